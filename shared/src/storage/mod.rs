//! The database: the one truth about conversations, messages, runs and their archived events.
//!
//! `connect` chooses the back end and nobody else knows which one it is. A file per verb or noun; each SQL text stands
//! once and `database` speaks both dialects. The protocol that these functions keep is "the life of a run" in ARCHITECTURE.md:
//! every write of a worker carries its attempt, every write without a claim takes one.
//!
//! Invariant: whoever locks a conversation's row and a run's row locks the conversation's first.

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
mod database;
mod deaths;
mod deployment;
mod end;
mod error;
mod fenced;
mod flush;
mod messages;
mod new_run;
mod newest_first;
mod outages;
mod owners;
mod pages;
mod pool;
mod progress;
mod quota;
mod retire;
mod rows;
mod runs;
mod schema;
mod sessions;
mod submit;
mod summaries;
mod supersede;
mod suspects;
mod trace;
mod versions;
mod writer;

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
pub use error::Error;
pub use flush::{FinishOutcome, FlushOutcome, Release, ReleaseOutcome};
pub use messages::MessageFilter;
pub use new_run::{CommittedMessage, MessageInput, NewRun, RunOptions, SubmitOutcome, Target};
pub use owners::{Erasure, ErasureStep};
pub use pool::Connections;
pub use progress::{CallState, NewApproval, NewCheckpoint, NewTraceMessage, Progress};
pub use retire::RetireCounts;
pub use runs::{Backlog, RunFilter, StreamDefaults};
pub use suspects::{Room, Suspects};
pub use versions::RestoreOutcome;

use database::Database;

/// A connection to the truth; cheap to clone.
#[derive(Clone)]
pub struct Storage {
    database: Database,
    /// Keeps other processes out of the data folder, for as long as any clone lives.
    _folder: Option<std::sync::Arc<std::fs::File>>,
    /// A connection that nobody uses: a database in memory is gone with its last one, and one is closed where its user gives
    /// up while it is being tried.
    _keeper: Option<sqlx::SqlitePool>,
    caution: Option<Caution>,
}

/// What the data is kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackEnd {
    /// A SQLite file.
    Sqlite,
    /// SQLite in memory: the end of the process is the end of the data.
    Memory,
    Postgres,
}

impl Storage {
    /// What the data is kept in.
    pub const fn back_end(&self) -> BackEnd {
        match (&self.database, &self._keeper) {
            (Database::Postgres(_), _) => BackEnd::Postgres,
            (Database::Sqlite { .. }, None) => BackEnd::Sqlite,
            (Database::Sqlite { .. }, Some(_)) => BackEnd::Memory,
        }
    }

    /// What whoever relies on this database should know, if it is not the one that was asked for.
    pub fn caution(&self) -> Option<&Caution> {
        self.caution.as_ref()
    }

    /// The connections that this process has to the database.
    pub fn connections(&self) -> Connections {
        self.database.connections()
    }

    /// Asks the database for a sign of life.
    pub async fn ping(&self) -> Result<(), Error> {
        self.database.ping().await.map_err(Error::doing("ping the database"))
    }
}
