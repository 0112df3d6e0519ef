//! The abilities that a run needs from its worker.
//!
//! Workers of two versions share a queue during a deploy. A version that begins to submit runs which the one before cannot execute
//! raises both numbers: that of its workers here, and `agent_runs.needs` of those runs. Earlier workers then leave these runs alone.

/// The condition of a run that a worker of this version can execute.
macro_rules! executable {
    ($run:literal) => {
        concat!($run, ".needs <= 0")
    };
}
pub(in crate::storage) use executable;
