//! Limits of one owner. The configuration sets them, and storage enforces them inside each write.

/// The quotas of an owner. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Unfinished runs: queued, running and waiting ones.
    pub runs: Option<usize>,
    /// Bytes of the owner's conversations and briefings, roughly.
    pub bytes: Option<usize>,
}

/// The limits of one owner's workspace.
#[derive(Debug, Clone, Copy)]
pub struct WorkspaceLimits {
    /// Most entities, with those deleted in the last 30 days.
    pub max_entities: usize,
    /// Most bytes of JSON of the entities and of the changes of the last 30 days, roughly.
    pub max_bytes: usize,
}

/// An owner that stores something, with its limit of bytes.
#[derive(Debug, Clone, Copy)]
pub struct Account<'a> {
    /// Owner id.
    pub owner: &'a str,
    /// Most bytes that the owner may keep; `None` is no limit.
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
    /// Most unfinished runs.
    #[error("the owner would have more than {0} unfinished runs")]
    Runs(usize),
    /// Most bytes.
    #[error("the owner would keep more than {0} bytes")]
    Bytes(usize),
}
