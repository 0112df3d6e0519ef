//! Limits of one owner. The configuration says how much; storage holds it inside the write that would exceed it.

/// The quotas of an owner; none of them unless set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Runs that have not ended: queued, running and waiting ones.
    pub runs: Option<usize>,
    /// Bytes that the owner keeps in conversations and briefings, roughly.
    pub bytes: Option<usize>,
}
