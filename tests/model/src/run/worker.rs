//! A worker's attempt, and the writes of a holder.

use super::{
    Rules,
    database::{Call, Row, Status},
};
use crate::event::{Event, EventId, Kind, Text, id};

/// The next thing that an attempt does. The run says something, makes one call, and says something more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// The attempt has not begun.
    Claimed,
    /// The first step's text.
    Speak,
    /// The rest of that text.
    Continue,
    /// The intent of the call.
    Plan,
    /// The call itself.
    Call,
    /// Its outcome.
    Report,
    /// The question whether to repeat a call.
    Ask,
    /// The second step's text.
    Conclude,
    /// The end of the run.
    Finish,
    /// The last append, after the commit that released or ended the run.
    Close,
}

/// A write of the holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Write {
    /// FLUSH within a step.
    Flush,
    /// FLUSH with the intent of a call.
    Intent,
    /// FLUSH with the outcome of a call.
    Outcome,
    /// LEAVE, for an answer.
    Ask,
    /// LEAVE, for another worker.
    HandOver,
    /// FINISH.
    Finish,
}

/// The answer to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It is committed.
    Done,
    /// Another attempt holds the run, or it has ended.
    Fenced,
    /// A LEAVE found a request to cancel.
    CancelRequested,
}

/// A worker's attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Attempt {
    /// Its number, the fence.
    pub number: u8,
    /// The next thing that it does.
    pub stage: Stage,
    /// Its events so far.
    pub events: Vec<Event>,
    /// How many of them the log has, as the worker knows.
    pub logged: usize,
    /// How many of them the archive has, as the worker knows.
    pub stored: usize,
    /// True after the log's answer `behind`, until the next flush.
    pub is_behind: bool,
    /// True if the append after a flush may leave a gap.
    pub after_gap: bool,
    /// True while the process stands still.
    pub is_frozen: bool,
    /// The text of the run.
    pub text: Text,
    /// A write whose answer was lost.
    pub repeats: Option<Write>,
}

impl Attempt {
    /// Begins after a CLAIM.
    pub fn claimed(rules: &Rules, row: &Row, started: Event) -> Self {
        let mut attempt = Self {
            number: row.attempt,
            stage: Stage::Claimed,
            events: vec![started],
            logged: 0,
            stored: usize::from(rules.claims_archive_their_start),
            is_behind: false,
            after_gap: false,
            is_frozen: false,
            text: row.text.clone(),
            repeats: None,
        };
        if rules.claim_marks_execution {
            attempt.stage = Stage::after(row.call);
        }
        attempt
    }

    /// Returns the id of its newest event.
    pub fn newest(&self) -> EventId {
        id(self.number, self.events.len() as u8)
    }

    /// Adds an event.
    pub fn emit(&mut self, kind: Kind) {
        let event = Event { id: self.newest().next(), kind, base: id(0, 0) };
        if kind.is_shown() {
            self.text.insert(event.id);
        }
        self.events.push(event);
    }

    /// Says something.
    pub fn speak(&mut self) {
        self.emit(Kind::Delta);
        self.stage = match self.stage {
            Stage::Speak => Stage::Continue,
            Stage::Continue => Stage::Plan,
            _ => Stage::Finish,
        };
    }

    /// Returns how many of its events may be appended. An event whose commit is uncertain may not.
    pub fn visible(&self) -> usize {
        let is_uncertain = self.repeats.is_some_and(|write| !matches!(write, Write::Flush | Write::HandOver));
        self.events.len() - usize::from(is_uncertain)
    }

    /// Returns whether this attempt may write the row.
    pub fn holds(&self, row: &Row, rules: &Rules) -> bool {
        row.status == Status::Running && (row.attempt == self.number || !rules.attempts_fence_the_database)
    }

    /// Writes the row. A repeated write finds its own work.
    pub fn commit(&mut self, write: Write, row: &mut Row, rules: &Rules) -> Written {
        if self.repeats.is_none() {
            match write {
                Write::Flush | Write::HandOver => {}
                Write::Intent => self.emit(Kind::Intent),
                Write::Outcome => self.emit(Kind::Outcome),
                Write::Ask => self.emit(Kind::Question),
                Write::Finish => self.emit(Kind::Finished),
            }
        }
        let is_written = row.attempt == self.number && row.archived_to() >= self.newest();
        if self.repeats.is_some() && is_written {
            return if rules.writes_find_their_own_work { Written::Done } else { Written::Fenced };
        }
        if !self.holds(row, rules) {
            return Written::Fenced;
        }
        if matches!(write, Write::Ask | Write::HandOver) && row.is_cancel_requested && rules.leaves_check_cancels {
            if write == Write::Ask
                && let Some(question) = self.events.pop()
            {
                self.text.remove(&question.id);
            }
            return Written::CancelRequested;
        }
        let newest = row.archived_to();
        row.archive.extend(self.events.iter().filter(|event| event.id > newest));
        (row.has_expired, row.is_unknown) = (false, false);
        match write {
            Write::Flush => {}
            Write::Intent => self.checkpoint(row, Call::Intended),
            Write::Outcome => {
                self.checkpoint(row, Call::Completed);
                row.crashes = 0;
            }
            Write::Ask => {
                self.checkpoint(row, row.call);
                row.status = Status::Waiting;
            }
            Write::HandOver => row.status = Status::Queued,
            Write::Finish => {
                row.status = Status::Ended;
                row.message = Some(self.text.clone());
            }
        }
        if row.status != Status::Running {
            (row.is_held, row.is_executing) = (false, false);
        }
        Written::Done
    }

    fn checkpoint(&self, row: &mut Row, call: Call) {
        row.checkpoint = self.newest();
        row.text = self.text.clone();
        row.call = call;
    }

    /// Continues after a committed write.
    pub fn advance(&mut self, write: Write) {
        self.stored = self.events.len();
        self.after_gap |= self.is_behind;
        self.is_behind = false;
        self.stage = match write {
            Write::Flush => self.stage,
            Write::Intent => Stage::Call,
            Write::Outcome => Stage::Conclude,
            Write::Ask | Write::HandOver | Write::Finish => Stage::Close,
        };
    }
}

impl Stage {
    /// Returns where an attempt resumes.
    pub const fn after(call: Call) -> Self {
        match call {
            Call::Unplanned => Self::Speak,
            Call::Intended => Self::Ask,
            // The human's decision allows one more call, so it needs an intent of its own.
            Call::Repeated => Self::Plan,
            Call::Denied | Call::Completed => Self::Conclude,
        }
    }
}

impl EventId {
    /// Returns the next id of the attempt.
    pub const fn next(self) -> Self {
        Self { n: self.n + 1, ..self }
    }
}
