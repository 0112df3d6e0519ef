//! The run protocol as a model. A checker visits every state that the model can reach within its budget of faults, and
//! tests each promise in each of them.
//!
//! A change of the protocol begins here. Each rule of the protocol has a switch; its test turns the rule off and shows a
//! way to a broken promise.
//!
//! - [`run`]: one run, its log and its archive, with two workers, the API, and the faults of all of them.
//! - [`group`]: the writes of many runs in one transaction.
//! - [`queue`]: the runs of one conversation, and the positions of its messages.
//! - [`steering`]: messages that join a live run.
//! - [`plan_edits`]: changes of the plan of a run that is executed.
//! - [`subagents`]: a run, its children, and the answers of their ends.

pub mod event;
pub mod group;
pub mod plan_edits;
pub mod queue;
pub mod run;
pub mod steering;
pub mod subagents;

#[cfg(test)]
mod check;
