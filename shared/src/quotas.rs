//! Limits of one owner. The configuration says how much; storage holds it inside the write that would exceed it.

/// The quotas of an owner; none of them unless set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Runs that have not ended: queued, running and waiting ones.
    pub runs: Option<usize>,
    /// Bytes that the owner keeps in conversations and briefings, roughly.
    pub bytes: Option<usize>,
}

/// An owner who is about to store something, and the bytes that it may keep.
#[derive(Debug, Clone, Copy)]
pub struct Account<'a> {
    pub owner: &'a str,
    /// `None` is no limit.
    pub max_bytes: Option<usize>,
}

impl<'a> From<&'a str> for Account<'a> {
    fn from(owner: &'a str) -> Self {
        Self { owner, max_bytes: None }
    }
}

/// A quota that a write would exceed, with its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuotaExceeded {
    #[error("the owner would have more than {0} unfinished runs")]
    Runs(usize),
    #[error("the owner would keep more than {0} bytes")]
    Bytes(usize),
}
