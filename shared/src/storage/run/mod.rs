//! The protocol of a run: a file per step, and the parts that several steps share. ARCHITECTURE.md describes it in "the
//! life of a run", and `tests/model` is its model.
//!
//! - SUBMIT: `submit`, `locked_conversation`, `added`, `accept`, `opening`, `zone`, `supersede`; `ingestion` for documents. CLAIM: `claim`,
//!   `attempt_start`, `queued`, `suspects`; `blocked` and `delayed` runs are no candidates.
//!   BEGIN: `begin`, `earlier`; `summary`, `due_summary`. RENEW: `lease`.
//! - The holder's writes: FLUSH in `flush` and `plain_flush`, FINISH in `finish` and `completion`, LEAVE in `release`.
//! - Plans and roles: `planning`. Runs below a run: `children` starts them within the limits of their
//!   `tree`, `outcomes` answers their parent, `orphans` cancels them.
//! - Writers without a claim: ANSWER in `answer` and `expire`, CANCEL in `cancel`, `end`, `sweep`, `deaths`, `retire`.
//!   `attempt` has their rule, and the fence of every write.
//! - `chunk` and `progress` are the rows of events, and `closing` is the last write. `group` lets the writes of several
//!   runs share a transaction.

mod abilities;
mod accept;
mod added;
mod ancestor;
mod answer;
mod attempt;
mod attempt_start;
mod begin;
mod blocked;
mod cancel;
mod children;
mod chunk;
mod claim;
mod clock;
mod closing;
mod completion;
mod deaths;
mod delayed;
mod due_summary;
mod durable;
mod earlier;
mod edit_plan;
mod elements;
mod end;
mod expire;
mod finish;
mod flush;
mod forwarded;
mod group;
mod holder;
mod ingestion;
mod lease;
mod locked_conversation;
mod new_run;
mod opening;
mod orphans;
mod outcomes;
mod plain_flush;
mod planning;
mod progress;
mod queued;
mod release;
mod retire;
mod round;
mod statements;
mod steering;
mod submit;
mod summary;
mod supersede;
mod suspects;
mod sweep;
mod take;
mod take_back;
mod tree;
mod unfinished;
mod zone;

pub use self::{
    added::{AddedMessage, insert_from, take_positions},
    ancestor::AnsweredRun,
    answer::{AnswerOutcome, ClientResult, DecisionBy, InvalidInput},
    begin::{BeginResult, Start, merged},
    cancel::CancelOutcome,
    children::NewChild,
    chunk::ArchiveChunk,
    claim::{Claim, ClaimTerms, Ingestion},
    closing::{Answer, Closed},
    due_summary::{DueSummary, NewDueSummary},
    earlier::{EarlierMessage, EarlierResult, History, Window},
    edit_plan::{EditOutcome, PendingEdit},
    elements::{CallState, NewApproval, NewCheckpoint, NewTraceMessage, ToldPassage},
    end::{EndedRun, cancel_in_conversation},
    finish::FinishOutcome,
    flush::FlushOutcome,
    holder::Holder,
    ingestion::{IngestOutcome, NewDocument},
    lease::RenewedLease,
    new_run::{CommittedMessage, MessageInput, NewRun, RunOptions, SubmitOutcome, Target},
    planning::{NewRole, StepState, TakenEdit},
    progress::Progress,
    release::{Release, ReleaseOutcome},
    retire::RetireOutcome,
    statements::{FENCED, SPARE, STATEMENTS},
    steering::SteeringMessage,
    summary::{Summary, SummaryScope},
    supersede::{SupersedePoint, everything_from as supersede_from},
    suspects::{Room, Suspects},
    take_back::TakeBackOutcome,
    tree::{Tree, tree_is_full},
    unfinished::{cancel_all, lock_running, unfinished_runs},
};

pub(in crate::storage) use self::{
    added::USE_FILES,
    attempt::{held, status},
    summary::newest_summary,
};

use chrono::{DateTime, Utc};

use self::{completion::Completion, group::Group, opening::Opening, plain_flush::PlainFlush};
use super::sql::Database;

/// The groups of this process's writes.
#[derive(Clone)]
pub struct Groups {
    /// The database, with the connections of groups.
    database: Database,
    openings: Group<Opening, DateTime<Utc>>,
    completions: Group<Completion, ()>,
    flushes: Group<PlainFlush, ()>,
}

impl Groups {
    /// Starts the groups, whose statements run in this database.
    pub fn start(database: Database) -> Self {
        Self {
            openings: opening::start(database.clone()),
            completions: completion::start(database.clone()),
            flushes: plain_flush::start(database.clone()),
            database,
        }
    }
}
