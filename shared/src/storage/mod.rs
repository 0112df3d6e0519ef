//! The database: the truth about conversations, messages, runs and their archived events.
//!
//! `connect` chooses the back end, which no other module knows. There is one file per verb or noun. Each SQL text
//! exists once, and `sql` translates it for both dialects. ARCHITECTURE.md describes the protocol in "the life of
//! a run".
//!
//! Invariant: each write of a worker carries its attempt, and each write without a claim takes an attempt.
//!
//! Invariant: a transaction that locks a conversation's row and a run's row locks the conversation's first.

mod access;
mod add_messages;
mod agents;
mod anonymous_data;
mod approvals;
mod archive;
mod briefings;
mod caution;
mod chats;
mod checkpoints;
mod client_parts;
mod connect;
mod conversation_removal;
mod conversations;
mod data_folder;
mod delegations;
mod deployment;
mod erasure;
mod file_removals;
mod files;
mod fork_summary;
mod history;
mod kept_results;
mod knowledge_rows;
mod linked_files;
mod memories;
mod memory_removals;
mod memory_rows;
mod message_place;
mod messages;
mod newest_first;
mod owners;
mod pages;
mod pause_names;
mod plans;
mod position;
mod profiles;
mod project_conversations;
mod quota;
mod removals;
mod roomy_owners;
mod rows;
mod run;
mod run_positions;
mod runs;
mod sessions;
mod similar;
pub(crate) mod sql;
mod statements;
mod trace;
mod user_profiles;
mod versions;
mod workspace_rows;

pub use access::AskedRun;
pub use add_messages::AddOutcome;
pub use agents::AgentChange;
pub use anonymous_data::AnonymousMeasurement;
pub use archive::{ArchivePage, Position};
pub use briefings::{NewBriefing, StoredBriefing};
pub use caution::Caution;
pub use chats::ChatFilter;
pub use connect::{SchemaState, connect, connect_worker, inspect, migrate};
pub use data_folder::files_in;
pub use delegations::FoundAgent;
pub use erasure::{Erasure, ErasureStep};
pub use file_removals::Removal;
pub use files::{NewFile, UploadOutcome, UploadedContents};
pub use history::{HistoryMessage, StoredAnswer, StoredCall};
pub use kept_results::KeptResult;
pub use knowledge_rows::{collections_exceed, texts_exceed};
pub use linked_files::LinkedFiles;
pub use memories::{MemoryCall, MemoryChange, MemoryChanged, NewMemory, Remembered};
pub use message_place::MessagePlace;
pub use messages::MessageFilter;
pub use plans::StoredRole;
pub use profiles::StoredProfiles;
pub use run::{
    AddedMessage, Answer, AnswerOutcome, AnsweredRun, ArchiveChunk, BeginResult, CallState, CancelOutcome, Claim,
    ClaimTerms, ClientResult, Closed, CommittedMessage, DecisionBy, DueSummary, EarlierMessage, EarlierResult,
    EditOutcome, EndedRun, FinishOutcome, FlushOutcome, History, Holder, IngestOutcome, Ingestion, InvalidInput,
    MessageInput, NewApproval, NewCheckpoint, NewChild, NewDocument, NewDueSummary, NewRole, NewRun, NewTraceMessage,
    PendingEdit, Progress, Release, ReleaseOutcome, RenewedLease, RetireOutcome, Room, RunOptions, Start,
    SteeringMessage, StepState, SubmitOutcome, Summary, SummaryScope, Suspects, TakeBackOutcome, TakenEdit, Target,
    ToldPassage, Tree, Window, tree_is_full,
};
pub use runs::{Backlog, RunFilter, StreamDefaults};
pub use sql::{Connections, Error, Pgvector};
pub use statements::statement_texts;
pub use user_profiles::StoredUserProfile;
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
    /// The writes that share transactions; PostgreSQL alone gains by it.
    groups: Option<run::Groups>,
    roomy_owners: roomy_owners::RoomyOwners,
    pgvector: Pgvector,
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
    /// Returns the database, for the statements of another crate.
    pub const fn database(&self) -> &Database {
        &self.database
    }

    /// Returns the kind of database.
    pub const fn back_end(&self) -> BackEnd {
        match (&self.database, &self._keeper) {
            (Database::Postgres(_), _) => BackEnd::Postgres,
            (Database::Sqlite { .. }, None) => BackEnd::Sqlite,
            (Database::Sqlite { .. }, Some(_)) => BackEnd::Memory,
        }
    }

    /// Returns whether the database had the extension pgvector when this process started.
    pub const fn pgvector(&self) -> Pgvector {
        self.pgvector
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
