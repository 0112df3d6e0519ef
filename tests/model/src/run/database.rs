//! The run's row with its archive, and the transactions that write it.

use super::Rules;
use crate::event::{Event, EventId, Kind, Text, fold, id};

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// A worker can claim it.
    Queued,
    /// A worker holds it, or has died.
    Running,
    /// A human must answer.
    Waiting,
    /// It has a terminal event.
    Ended,
}

/// The state of the run's one tool call, whose effect must not happen twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// No attempt has planned it.
    Unplanned,
    /// It was perhaps made.
    Intended,
    /// A human wants it again.
    Repeated,
    /// A human does not want it again.
    Denied,
    /// Its outcome is known.
    Completed,
}

/// A run in the database.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Row {
    /// The run's status.
    pub status: Status,
    /// The newest attempt, which is the fence of every write.
    pub attempt: u8,
    /// False after the death of the holder was settled.
    pub is_held: bool,
    /// True if the holder's death counts as a crash.
    pub is_executing: bool,
    /// True after the end of the lease.
    pub has_expired: bool,
    /// True if the holder's process does not know of its claim.
    pub is_unknown: bool,
    /// Crashes since the last completed step.
    pub crashes: u8,
    /// True after a caller's request.
    pub is_cancel_requested: bool,
    /// The state of the tool call.
    pub call: Call,
    /// The event from which a later attempt continues.
    pub checkpoint: EventId,
    /// The text at the checkpoint.
    pub text: Text,
    /// The durable events.
    pub archive: Vec<Event>,
    /// The stored answer of an ended run.
    pub message: Option<Text>,
}

impl Row {
    /// SUBMIT.
    pub fn submitted() -> Self {
        let queued = Event { id: id(0, 1), kind: Kind::Queued, base: id(0, 0) };
        Self {
            status: Status::Queued,
            attempt: 0,
            is_held: false,
            is_executing: false,
            has_expired: false,
            is_unknown: false,
            crashes: 0,
            is_cancel_requested: false,
            call: Call::Unplanned,
            checkpoint: queued.id,
            text: Text::new(),
            archive: vec![queued],
            message: None,
        }
    }

    /// Returns the newest durable event.
    pub fn archived_to(&self) -> EventId {
        self.archive.last().map_or(id(0, 0), |event| event.id)
    }

    /// Returns whether a worker can claim the run.
    pub fn is_claimable(&self, rules: &Rules) -> bool {
        let is_free = self.status == Status::Queued || self.is_orphaned();
        is_free && !self.is_cancel_requested && self.crashes < rules.max_crashes
    }

    /// Returns whether the run has lost its holder.
    pub fn is_orphaned(&self) -> bool {
        self.status == Status::Running && self.has_expired && !self.is_held
    }

    /// CLAIM. Returns the attempt's first event.
    pub fn claim(&mut self, rules: &Rules) -> Event {
        self.attempt += 1;
        self.status = Status::Running;
        (self.is_held, self.has_expired) = (true, false);
        self.is_executing = rules.claim_marks_execution;
        let started = Event { id: id(self.attempt, 1), kind: Kind::Started, base: self.checkpoint };
        if rules.claims_archive_their_start {
            self.archive.push(started);
        }
        started
    }

    /// DEATH: settles the loss of the holder.
    pub fn settle_death(&mut self) {
        self.crashes += u8::from(self.is_executing);
        (self.is_held, self.is_executing, self.is_unknown) = (false, false, false);
    }

    /// Gives back a claim that its holder does not know.
    pub fn give_back(&mut self, rules: &Rules) {
        if !rules.unknown_claims_are_free {
            self.crashes += u8::from(self.is_executing);
        }
        (self.is_held, self.is_executing, self.is_unknown) = (false, false, false);
        self.has_expired = true;
    }

    /// The write rule: takes an attempt for a writer that does not hold the run, and writes its event.
    pub fn take_attempt(&mut self, rules: &Rules, kind: Kind) -> Event {
        let archived_to = self.archived_to();
        let event_id = if rules.every_writer_takes_an_attempt {
            self.attempt += 1;
            id(self.attempt, 1)
        } else {
            id(archived_to.attempt, archived_to.n + 1)
        };
        let event = Event { id: event_id, kind, base: archived_to };
        self.archive.push(event);
        (self.is_held, self.is_executing, self.has_expired) = (false, false, false);
        event
    }

    /// Ends the run by the write rule, with the durable text.
    pub fn end(&mut self, rules: &Rules) -> Event {
        let event = self.take_attempt(rules, Kind::Ended);
        self.status = Status::Ended;
        self.message = Some(fold(&self.archive));
        event
    }

    /// ANSWER, by the write rule.
    pub fn answer(&mut self, rules: &Rules, call: Call) -> Event {
        let event = self.take_attempt(rules, Kind::Answer);
        (self.status, self.call) = (Status::Queued, call);
        self.text.insert(event.id);
        if rules.answers_move_the_checkpoint {
            self.checkpoint = event.id;
        }
        event
    }
}
