//! The database: the truth about conversations, messages, runs and their archived events.
//!
//! `connect` chooses the back end, which no other module knows. There is one file per verb or noun. Each SQL text
//! exists once, and `sql` translates it for both dialects. ARCHITECTURE.md describes the protocol in "the life of
//! a run".
//!
//! Invariant: each write of a worker carries its attempt, and each write without a claim takes an attempt.
//!
//! Invariant: a transaction that locks a conversation's row and a run's row locks the conversation's first.

mod accept;
mod access;
mod agents;
mod answer;
mod approvals;
mod archive;
mod begin;
mod briefings;
mod cancel;
mod caution;
mod checkpoints;
mod claim;
mod complete;
mod connect;
mod conversations;
mod data_folder;
mod deaths;
mod deployment;
mod end;
mod flush;
mod history;
mod messages;
mod new_run;
mod newest_first;
mod owners;
mod pages;
mod progress;
mod quota;
mod retire;
mod rows;
mod runs;
mod sessions;
mod sql;
mod submit;
mod summaries;
mod supersede;
mod suspects;
mod trace;
mod unfinished;
mod versions;

pub use access::AskedRun;
pub use agents::AgentChange;
pub use answer::{AnswerOutcome, AnsweredRun, ClientResult, DecisionBy, InvalidInput};
pub use archive::{ArchiveChunk, ArchivePage, Position};
pub use begin::{BeginResult, EarlierMessage, EarlierResult, History, Start, Summary, Window};
pub use briefings::{NewBriefing, StoredBriefing};
pub use cancel::CancelOutcome;
pub use caution::Caution;
pub use claim::{Claim, ClaimTerms, Holder, RenewedLease};
pub use connect::{SchemaState, connect, connect_worker, inspect, migrate};
pub use end::{Answer, EndedRun};
pub use flush::{FinishOutcome, FlushOutcome, Release, ReleaseOutcome};
pub use history::{HistoryMessage, StoredAnswer, StoredCall};
pub use messages::MessageFilter;
pub use new_run::{CommittedMessage, MessageInput, NewRun, RunOptions, SubmitOutcome, Target};
pub use owners::{Erasure, ErasureStep};
pub use progress::{CallState, NewApproval, NewCheckpoint, NewTraceMessage, Progress};
pub use retire::RetireCounts;
pub use runs::{Backlog, RunFilter, StreamDefaults};
pub use sql::{Connections, Error};
pub use suspects::{Room, Suspects};
pub use versions::RestoreOutcome;

use sql::Database;

/// A connection to the database; cheap to clone.
#[derive(Clone)]
pub struct Storage {
    database: Database,
    /// The lock that keeps other processes out of the data folder while any clone lives.
    _folder: Option<std::sync::Arc<std::fs::File>>,
    /// A connection without users. A database in memory ends with its last connection, and the pool closes the
    /// connection of a caller that gives up.
    _keeper: Option<sqlx::SqlitePool>,
    caution: Option<Caution>,
}

/// The kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackEnd {
    /// A SQLite file.
    Sqlite,
    /// SQLite in memory. The end of the process loses all data.
    Memory,
    /// PostgreSQL, schema `kb`.
    Postgres,
}

impl Storage {
    /// Returns the kind of database.
    pub const fn back_end(&self) -> BackEnd {
        match (&self.database, &self._keeper) {
            (Database::Postgres(_), _) => BackEnd::Postgres,
            (Database::Sqlite { .. }, None) => BackEnd::Sqlite,
            (Database::Sqlite { .. }, Some(_)) => BackEnd::Memory,
        }
    }

    /// Returns a warning for clients and operators if the database is not the configured one.
    pub fn caution(&self) -> Option<&Caution> {
        self.caution.as_ref()
    }

    /// Returns the number of this process's connections to the database.
    pub fn connections(&self) -> Connections {
        self.database.connections()
    }

    /// Returns when the database answers. Fails if it is away or read-only.
    pub async fn ping(&self) -> Result<(), Error> {
        self.database.ping().await
    }
}
