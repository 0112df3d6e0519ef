//! The state of the world, and the steps that change it.

use std::collections::BTreeSet;

use super::{
    Faults, Rules,
    database::{Call, Row, Status},
    log::{Appended, append},
    worker::{Attempt, Stage, Write, Written},
};
use crate::event::{Event, Kind};

/// The state of the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub row: Row,
    pub log: Vec<Event>,
    /// Every event that the log ever had.
    pub shown: BTreeSet<Event>,
    /// The attempts of two workers, in order, because the workers are alike.
    pub workers: [Option<Attempt>; 2],
    /// An event that the API has committed and not appended yet.
    pub unannounced: Option<Event>,
    /// Calls that were made.
    pub calls: u8,
    /// Calls that a human wanted again.
    pub repeats: u8,
    /// Holders that died or stood still while they executed the run.
    pub deaths: u8,
    pub left: Faults,
}

/// Whether an answer arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// It arrives.
    Arrives,
    /// It gets lost, after the effect.
    IsLost,
}

/// One step of the world. A number is a worker's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A worker claims the run.
    Claim(usize, Reply),
    /// BEGIN, where CLAIM does not mark the execution.
    Begin(usize),
    /// The attempt says something.
    Speak(usize),
    /// The attempt makes the call.
    Call(usize),
    /// The attempt writes the row.
    Commit(usize, Write, Reply),
    /// The attempt appends its new events.
    Append(usize, Reply),
    /// The attempt appends its end before the commit, against the rule.
    AppendEnd(usize),
    /// A worker that finds its lease lost drops the run.
    Drop(usize),
    /// The lease ends.
    Expire,
    /// A worker settles the death of the holder.
    SettleDeath,
    /// The holder gives back a claim that it does not know.
    GiveBack,
    /// The sweeper ends a run that has killed too many workers.
    EndCrashed,
    /// A caller cancels the run.
    Cancel,
    /// The API ends a run whose worker is too late to cancel it.
    EndCancelled,
    /// A human answers the question.
    Answer(bool),
    /// The API appends what it has committed.
    Announce(Reply),
    /// A worker dies.
    Kill(usize),
    /// A worker dies that does not know of its claim.
    KillUnknown,
    /// A worker stands still.
    Freeze(usize),
    /// It continues.
    Thaw(usize),
    /// The log loses all events from this one on.
    LoseLog(usize),
}

impl World {
    /// Takes one step.
    pub fn step(&mut self, rules: &Rules, action: Action) {
        match action {
            Action::Claim(place, reply) => {
                let started = self.row.claim(rules);
                match reply {
                    Reply::Arrives => self.workers[place] = Some(Attempt::claimed(rules, &self.row, started)),
                    Reply::IsLost => {
                        self.left.lost_commits -= 1;
                        self.row.is_unknown = true;
                    }
                }
            }
            Action::Begin(place) => self.begin(place),
            Action::Speak(place) => self.attempt(place).speak(),
            Action::Call(place) => {
                self.calls += 1;
                self.attempt(place).stage = Stage::Report;
            }
            Action::Commit(place, write, reply) => self.commit(rules, place, write, reply),
            Action::Append(place, reply) => self.append(rules, place, reply),
            Action::AppendEnd(place) => {
                let mut ending = self.attempt(place).clone();
                ending.emit(Kind::Finished);
                append(&mut self.log, &ending.events[ending.logged..], true);
                self.show();
            }
            Action::Drop(place) => self.workers[place] = None,
            Action::Expire => self.row.has_expired = true,
            Action::SettleDeath => self.row.settle_death(),
            Action::GiveBack => self.row.give_back(rules),
            Action::EndCrashed | Action::EndCancelled => self.unannounced = Some(self.row.end(rules)),
            Action::Cancel => {
                self.left.cancels -= 1;
                if self.row.status == Status::Running {
                    self.row.is_cancel_requested = true;
                } else {
                    self.unannounced = Some(self.row.end(rules));
                }
            }
            Action::Answer(again) => {
                self.repeats += u8::from(again);
                let call = if again { Call::Repeated } else { Call::Denied };
                self.unannounced = Some(self.row.answer(rules, call));
            }
            Action::Announce(reply) => {
                let event = self.unannounced.take();
                if let (Some(event), Reply::Arrives) = (event, reply) {
                    append(&mut self.log, &[event], true);
                    self.show();
                }
            }
            Action::Kill(place) => {
                self.left.kills = self.left.kills.saturating_sub(1);
                self.note_death(place);
                self.workers[place] = None;
            }
            Action::KillUnknown => {
                self.left.kills -= 1;
                self.deaths += u8::from(self.row.is_executing);
                self.row.is_unknown = false;
            }
            Action::Freeze(place) => {
                self.left.freezes -= 1;
                self.note_death(place);
                self.attempt(place).is_frozen = true;
            }
            Action::Thaw(place) => self.attempt(place).is_frozen = false,
            Action::LoseLog(from) => {
                self.left.log_losses -= 1;
                self.log.truncate(from);
            }
        }
    }

    fn attempt(&mut self, place: usize) -> &mut Attempt {
        self.workers[place].as_mut().expect("only a worker with an attempt has this action")
    }

    fn begin(&mut self, place: usize) {
        if self.attempt(place).number == self.row.attempt && self.row.status == Status::Running {
            self.row.is_executing = true;
            self.attempt(place).stage = Stage::after(self.row.call);
        } else {
            self.workers[place] = None;
        }
    }

    fn commit(&mut self, rules: &Rules, place: usize, write: Write, reply: Reply) {
        if write == Write::HandOver && self.workers[place].as_ref().is_some_and(|attempt| attempt.repeats.is_none()) {
            self.left.drains -= 1;
        }
        let Some(attempt) = &mut self.workers[place] else { return };
        let written = attempt.commit(write, &mut self.row, rules);
        if reply == Reply::IsLost {
            self.left.lost_commits -= 1;
            // A refused LEAVE has no effect, so the worker repeats it with its event.
            attempt.repeats = (written != Written::CancelRequested).then_some(write);
            return;
        }
        attempt.repeats = None;
        match written {
            Written::Done => attempt.advance(write),
            Written::CancelRequested => attempt.stage = Stage::Finish,
            Written::Fenced => self.workers[place] = None,
        }
    }

    fn append(&mut self, rules: &Rules, place: usize, reply: Reply) {
        let Some(attempt) = &mut self.workers[place] else { return };
        let visible = attempt.visible();
        let after_gap = attempt.after_gap || !rules.gaps_are_flushed_first;
        let appended = append(&mut self.log, &attempt.events[attempt.logged..visible], after_gap);
        match (appended, reply) {
            (_, Reply::IsLost) => self.left.lost_appends -= 1,
            (Appended::Stored, Reply::Arrives) => {
                attempt.logged = visible;
                attempt.after_gap = false;
            }
            (Appended::Behind, Reply::Arrives) if attempt.stage == Stage::Close => attempt.after_gap = true,
            (Appended::Behind, Reply::Arrives) => attempt.is_behind = true,
            (Appended::Fenced, Reply::Arrives) => self.workers[place] = None,
        }
        self.show();
    }

    fn note_death(&mut self, place: usize) {
        let is_holder = |attempt: &Attempt| attempt.number == self.row.attempt && self.row.is_executing;
        self.deaths += u8::from(self.workers[place].as_ref().is_some_and(is_holder));
    }

    fn show(&mut self) {
        self.shown.extend(&self.log);
    }
}
