//! Quotas of one owner, and the retention of anonymous owners.

use std::time::Duration;

use super::{bytes, count};
use crate::quotas::{FileLimits, FileQuotas, KnowledgeLimits, KnowledgeQuotas, MemoryLimits, Quotas, WorkspaceLimits};

/// Settings of quotas.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Quotas")]
pub struct QuotasConfig {
    /// Unfinished runs of one owner, 100 by default; a further one gets 429. 0 for no limit. In development mode only
    /// if set.
    #[arg(long, env = "HOLDFAST_RUNS_PER_OWNER", value_parser = runs)]
    pub runs_per_owner: Option<usize>,

    /// Bytes that one owner may keep in conversations and briefings, 268435456 by default; a further write gets 403. 0
    /// for no limit. In development mode only if set.
    #[arg(long, env = "HOLDFAST_OWNER_BYTES", value_parser = size)]
    pub owner_bytes: Option<usize>,

    /// Files that one owner may keep, 1000 by default; a further one gets 403. 0 for no limit. In development mode only if set.
    #[arg(long, env = "HOLDFAST_OWNER_FILES", value_parser = files)]
    pub owner_files: Option<usize>,

    /// Bytes that one owner may keep in files, 1073741824 by default; a further file gets 403. 0 for no limit. In
    /// development mode only if set.
    #[arg(long, env = "HOLDFAST_OWNER_FILE_BYTES", value_parser = size)]
    pub owner_file_bytes: Option<usize>,

    /// Documents that one owner may keep in collections, 1000 by default; a further one gets 403. 0 for no limit. In development
    /// mode only if set.
    #[arg(long, env = "HOLDFAST_OWNER_DOCUMENTS", value_parser = documents)]
    pub owner_documents: Option<usize>,

    /// Bytes that the texts of one owner's documents may have together, with the headings of their passages, 268435456
    /// by default; a further document fails. 0 for no limit. In development mode only if set.
    #[arg(long, env = "HOLDFAST_OWNER_TEXT_BYTES", value_parser = size)]
    pub owner_text_bytes: Option<usize>,

    /// Bytes that the texts of one anonymous user's documents may have together; a further document fails.
    #[arg(long, env = "HOLDFAST_ANONYMOUS_TEXT_BYTES", default_value = "4194304", value_parser = bytes)]
    pub anonymous_text_bytes: usize,

    /// Bytes that one anonymous user may keep in files; a further file gets 403.
    #[arg(long, env = "HOLDFAST_ANONYMOUS_FILE_BYTES", default_value = "16777216", value_parser = bytes)]
    pub anonymous_file_bytes: usize,

    /// Bytes that all anonymous users together may keep, 10737418240 by default; beyond it, anonymous callers store nothing
    /// new. 0 for no limit. In development mode only if set.
    #[arg(long, env = "HOLDFAST_ALL_ANONYMOUS_BYTES", value_parser = size)]
    pub all_anonymous_bytes: Option<usize>,

    /// Entities of one owner's workspace, with those deleted in the last 30 days; a further one gets 403.
    #[arg(long, env = "HOLDFAST_WORKSPACE_ENTITIES", default_value = "20000", value_parser = count)]
    pub workspace_entities: usize,

    /// Bytes that one owner's workspace keeps, with the changes of the last 30 days; a change beyond it gets 403.
    #[arg(long, env = "HOLDFAST_WORKSPACE_BYTES", default_value = "268435456", value_parser = bytes)]
    pub workspace_bytes: usize,

    /// Entities of one deletion or restoration in a workspace, and changes of one undo; a larger one gets 403.
    #[arg(long, env = "HOLDFAST_CHANGE_ENTITIES", default_value = "2000", value_parser = count)]
    pub change_entities: usize,

    /// Bytes of the texts of these entities, roughly; a deletion, restoration or undo of more gets 403.
    #[arg(long, env = "HOLDFAST_CHANGE_BYTES", default_value = "8388608", value_parser = bytes)]
    pub change_bytes: usize,

    /// Memories that agents may keep of one user; a further one is refused, and the model reads why.
    #[arg(long, env = "HOLDFAST_OWNER_MEMORIES", default_value = "500", value_parser = count)]
    pub owner_memories: usize,

    /// Memories that agents may keep of one anonymous user.
    #[arg(long, env = "HOLDFAST_ANONYMOUS_MEMORIES", default_value = "50", value_parser = count)]
    pub anonymous_memories: usize,

    /// Characters of a memory; a longer one is refused.
    #[arg(long, env = "HOLDFAST_MEMORY_CHARS", default_value = "2000", value_parser = count)]
    pub memory_chars: usize,

    /// Absence after which the sweeper erases an anonymous user with all data, in ms; 0 for never.
    #[arg(long = "anonymous-retention-ms", env = "HOLDFAST_ANONYMOUS_RETENTION_MS", default_value = "7776000000", value_parser = absence)]
    pub anonymous_retention: Duration,
}

const DEFAULT_RUNS: usize = 100;

const DEFAULT_BYTES: usize = 256 << 20;

const DEFAULT_FILES: usize = 1000;

const DEFAULT_DOCUMENTS: usize = 1000;

const DEFAULT_TEXT_BYTES: usize = 256 << 20;

const DEFAULT_FILE_BYTES: usize = 1 << 30;

const DEFAULT_ALL_ANONYMOUS_BYTES: usize = 10 << 30;

impl QuotasConfig {
    /// Returns the absence after which the sweeper erases an anonymous user; `None` for never.
    pub fn forgotten_after(&self) -> Option<Duration> {
        Some(self.anonymous_retention).filter(|retention| !retention.is_zero())
    }

    /// Returns the bytes that all anonymous users together may keep; `None` for no limit. In development mode only if set.
    pub fn all_anonymous(&self, is_development: bool) -> Option<u64> {
        in_force(self.all_anonymous_bytes, DEFAULT_ALL_ANONYMOUS_BYTES, is_development).map(|bytes| bytes as u64)
    }

    /// Returns the limits of one owner's workspace.
    pub const fn workspace(&self) -> WorkspaceLimits {
        WorkspaceLimits {
            max_entities: self.workspace_entities,
            max_bytes: self.workspace_bytes,
            max_change_entities: self.change_entities,
            max_change_bytes: self.change_bytes,
        }
    }

    /// Returns the limits of one owner's memories.
    pub const fn memories(&self) -> MemoryLimits {
        MemoryLimits {
            max_memories: self.owner_memories,
            max_anonymous: self.anonymous_memories,
            max_chars: self.memory_chars,
        }
    }

    /// Returns the quotas that apply. In development mode, only set quotas apply.
    pub fn quotas(&self, is_development: bool) -> Quotas {
        Quotas {
            runs: in_force(self.runs_per_owner, DEFAULT_RUNS, is_development),
            bytes: in_force(self.owner_bytes, DEFAULT_BYTES, is_development),
        }
    }

    /// Returns the quotas of collections and documents that apply. In development mode, only set quotas of documents
    /// apply.
    pub fn knowledge(&self, owner_collections: usize, is_development: bool) -> KnowledgeLimits {
        let text_bytes = in_force(self.owner_text_bytes, DEFAULT_TEXT_BYTES, is_development);
        let named = KnowledgeQuotas {
            collections: Some(owner_collections),
            documents: in_force(self.owner_documents, DEFAULT_DOCUMENTS, is_development),
            text_bytes: text_bytes.map(|bytes| bytes as u64),
        };
        let anonymous_text_bytes = (!is_development).then_some(self.anonymous_text_bytes as u64);
        KnowledgeLimits { named, anonymous_text_bytes }
    }

    /// Returns the quotas of files that apply. In development mode, only set quotas apply.
    pub fn files(&self, is_development: bool) -> FileLimits {
        let named = FileQuotas {
            files: in_force(self.owner_files, DEFAULT_FILES, is_development),
            bytes: in_force(self.owner_file_bytes, DEFAULT_FILE_BYTES, is_development).map(|bytes| bytes as u64),
        };
        FileLimits { named, anonymous_bytes: (!is_development).then_some(self.anonymous_file_bytes as u64) }
    }
}

fn documents(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("a number of documents such as 1000, or 0 for no limit, not {text:?}"))
}

fn files(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("a number of files such as 1000, or 0 for no limit, not {text:?}"))
}

/// Returns the limit that is set, else the default outside of development mode. 0 becomes `None`.
fn in_force(set: Option<usize>, default: usize, is_development: bool) -> Option<usize> {
    set.or((!is_development).then_some(default)).filter(|limit| *limit > 0)
}

fn runs(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("a number of runs such as 100, or 0 for no limit, not {text:?}"))
}

fn absence(text: &str) -> Result<Duration, String> {
    let expected = || format!("a duration in whole milliseconds such as 7776000000, or 0 for no limit, not {text:?}");
    text.parse().map(Duration::from_millis).map_err(|_| expected())
}

pub(super) fn size(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("a size in bytes such as 268435456, or 0 for no limit, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_applies_outside_of_development_mode_or_where_it_is_set() {
        let check = |set: Option<usize>, is_development: bool, expected: Option<usize>| {
            let quotas = QuotasConfig {
                owner_documents: set,
                owner_text_bytes: set,
                anonymous_text_bytes: 1,
                runs_per_owner: set,
                owner_bytes: set,
                owner_files: set,
                owner_file_bytes: set,
                anonymous_file_bytes: 1,
                all_anonymous_bytes: set,
                workspace_entities: 1,
                workspace_bytes: 1,
                change_entities: 1,
                change_bytes: 1,
                owner_memories: 1,
                anonymous_memories: 1,
                memory_chars: 1,
                anonymous_retention: Duration::ZERO,
            };
            let knowledge = quotas.knowledge(7, is_development);
            assert_eq!(
                (knowledge.named.collections, knowledge.anonymous_text_bytes.is_some()),
                (Some(7), !is_development)
            );
            let of_knowledge = (knowledge.named.documents, knowledge.named.text_bytes);
            let quotas = quotas.quotas(is_development);
            let bytes = if set.is_none() { expected.map(|_| 268_435_456) } else { expected };
            assert_eq!((quotas.runs, quotas.bytes), (expected, bytes), "{set:?}, development {is_development}");
            let documents = if set.is_none() { expected.map(|_| 1000) } else { expected };
            assert_eq!(of_knowledge, (documents, bytes.map(|bytes| bytes as u64)), "{set:?}");
        };
        check(None, false, Some(100));
        check(None, true, None);
        check(Some(3), false, Some(3));
        check(Some(3), true, Some(3));
        check(Some(0), false, None);
        check(Some(0), true, None);
    }
}
