//! Limits of one owner. The configuration sets them, and storage enforces them inside each write.

use crate::config::{ANONYMOUS_PREFIX, begins_with};

/// The quotas of an owner. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Unfinished runs: queued, running and waiting ones.
    pub runs: Option<usize>,
    /// Bytes of the owner's conversations and briefings, roughly.
    pub bytes: Option<usize>,
}

/// The limits of one owner's files. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileQuotas {
    /// Files, with those whose upload lasts.
    pub files: Option<usize>,
    /// Bytes of their contents; equal contents count for each file.
    pub bytes: Option<u64>,
}

/// The quotas of what an owner keeps beside conversations, runs and briefings. `None` is no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct OtherQuotas {
    /// Those of files.
    pub files: FileQuotas,
    /// Memories.
    pub memories: Option<usize>,
    /// Those of collections and documents.
    pub knowledge: KnowledgeQuotas,
    /// Those of the workspace.
    pub workspace: Option<WorkspaceLimits>,
}

impl From<FileQuotas> for OtherQuotas {
    fn from(files: FileQuotas) -> Self {
        Self { files, ..Self::default() }
    }
}

/// The limits of one owner's collections and documents. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnowledgeQuotas {
    /// Collections.
    pub collections: Option<usize>,
    /// Documents, with those that the sweeper has not removed yet.
    pub documents: Option<usize>,
    /// Bytes of the texts of these documents, with the headings of their passages.
    pub text_bytes: Option<u64>,
}

/// The quotas of collections and documents of each kind of owner.
#[derive(Debug, Clone, Copy, Default)]
pub struct KnowledgeLimits {
    /// Those of an owner with a name.
    pub named: KnowledgeQuotas,
    /// Most bytes of the texts of an anonymous owner; `None` is no limit of its own.
    pub anonymous_text_bytes: Option<u64>,
}

impl KnowledgeLimits {
    /// Returns the quotas of an owner.
    pub fn of(&self, owner: &str) -> KnowledgeQuotas {
        let Self { named, anonymous_text_bytes } = *self;
        if !begins_with(owner, ANONYMOUS_PREFIX) {
            return named;
        }
        KnowledgeQuotas { text_bytes: [named.text_bytes, anonymous_text_bytes].into_iter().flatten().min(), ..named }
    }
}

/// The quotas of files of each kind of owner.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileLimits {
    /// Those of an owner with a name.
    pub named: FileQuotas,
    /// Most bytes of an anonymous owner; `None` is no limit of its own.
    pub anonymous_bytes: Option<u64>,
}

impl FileLimits {
    /// Returns the quotas of an owner.
    pub fn of(&self, is_anonymous: bool) -> FileQuotas {
        let Self { named, anonymous_bytes } = *self;
        if !is_anonymous {
            return named;
        }
        FileQuotas { bytes: [named.bytes, anonymous_bytes].into_iter().flatten().min(), ..named }
    }
}

/// The limits of one owner's workspace.
#[derive(Debug, Clone, Copy)]
pub struct WorkspaceLimits {
    /// Most entities, with those deleted in the last 30 days.
    pub max_entities: usize,
    /// Most bytes of JSON of the entities and of the changes of the last 30 days, roughly.
    pub max_bytes: usize,
    /// Most entities of one deletion or restoration, and most changes of one undo.
    pub max_change_entities: usize,
    /// Most bytes of the texts of these, roughly.
    pub max_change_bytes: usize,
}

/// The limits of one owner's memories.
#[derive(Debug, Clone, Copy)]
pub struct MemoryLimits {
    /// Most memories.
    pub max_memories: usize,
    /// Most memories of an anonymous owner.
    pub max_anonymous: usize,
    /// Most characters of a memory.
    pub max_chars: usize,
}

impl MemoryLimits {
    /// Returns the most memories of an owner.
    pub fn of(&self, owner: &str) -> usize {
        let is_anonymous = begins_with(owner, ANONYMOUS_PREFIX);
        if is_anonymous { self.max_anonymous.min(self.max_memories) } else { self.max_memories }
    }
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
    /// Most files.
    #[error("the owner would have more than {0} files")]
    Files(usize),
    /// Most bytes of files.
    #[error("the owner would keep more than {0} bytes in files")]
    FileBytes(usize),
    /// Most memories.
    #[error("the owner would have more than {0} memories")]
    Memories(usize),
    /// Most collections.
    #[error("the owner would have more than {0} collections")]
    Collections(usize),
    /// Most documents.
    #[error("the owner would have more than {0} documents")]
    Documents(usize),
    /// Most bytes of the texts of documents.
    #[error("the texts of the owner's documents would have more than {0} bytes")]
    TextBytes(u64),
    /// Most entities of a workspace.
    #[error("the owner's workspace would have more than {0} entities")]
    Entities(usize),
    /// Most bytes of a workspace.
    #[error("the owner's workspace would have more than {0} bytes")]
    WorkspaceBytes(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anonymous_owner_has_the_smaller_limit_of_bytes() {
        let check = |named: Option<u64>, anonymous: Option<u64>, expected: [Option<u64>; 2]| {
            let quotas = FileQuotas { files: Some(2), bytes: named };
            let limits = FileLimits { named: quotas, anonymous_bytes: anonymous };
            let bytes = [false, true].map(|is_anonymous| limits.of(is_anonymous).bytes);
            assert_eq!((bytes, limits.of(true).files), (expected, Some(2)), "{limits:?}");
        };
        check(Some(9), Some(3), [Some(9), Some(3)]);
        check(Some(3), Some(9), [Some(3), Some(3)]);
        check(None, Some(3), [None, Some(3)]);
        check(None, None, [None, None]);
    }

    #[test]
    fn an_anonymous_owner_has_the_smaller_limit_of_texts() {
        let check = |named: Option<u64>, anonymous: Option<u64>, expected: [Option<u64>; 2]| {
            let quotas = KnowledgeQuotas { documents: Some(2), text_bytes: named, ..KnowledgeQuotas::default() };
            let limits = KnowledgeLimits { named: quotas, anonymous_text_bytes: anonymous };
            let bytes = ["ann", "anonymous_1"].map(|owner| limits.of(owner).text_bytes);
            assert_eq!((bytes, limits.of("anonymous_1").documents), (expected, Some(2)), "{limits:?}");
        };
        check(Some(9), Some(3), [Some(9), Some(3)]);
        check(Some(3), Some(9), [Some(3), Some(3)]);
        check(None, Some(3), [None, Some(3)]);
        check(None, None, [None, None]);
    }

    #[test]
    fn an_anonymous_owner_has_the_smaller_limit_of_memories() {
        let limits = MemoryLimits { max_memories: 5, max_anonymous: 2, max_chars: 1 };
        assert_eq!(["ann", "anonymous_1"].map(|owner| limits.of(owner)), [5, 2]);
        assert_eq!(MemoryLimits { max_anonymous: 9, ..limits }.of("anonymous_1"), 5);
    }
}
