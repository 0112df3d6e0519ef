//! One run: its row, its log, two workers, the API, and their faults.

mod database;
mod log;
mod promises;
mod worker;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use stateright::{Model, Property};

use self::{
    database::{Call, Row, Status},
    log::{Appended, append},
    worker::{Attempt, Stage, Write, Written},
};
use crate::event::{Event, Kind};

/// The rules of the protocol. A test turns one off.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Only the holder of the newest attempt writes the row.
    pub attempts_fence_the_database: bool,
    /// A writer without a claim takes an attempt.
    pub every_writer_takes_an_attempt: bool,
    /// A terminal event is appended after its commit.
    pub ends_are_committed_first: bool,
    /// The intent of a call is committed before the call.
    pub intents_are_committed_first: bool,
    /// A repeated write recognises its own commit.
    pub writes_find_their_own_work: bool,
    /// LEAVE finds a request to cancel in its own transaction.
    pub leaves_check_cancels: bool,
    /// An answer is the point from which the next attempt continues.
    pub answers_move_the_checkpoint: bool,
    /// A worker flushes before it appends after a gap.
    pub gaps_are_flushed_first: bool,
    /// Clients check the base of an attempt's first event.
    pub clients_check_bases: bool,
    /// CLAIM archives the attempt's first event, which supersedes text of the attempt before.
    pub claims_archive_their_start: bool,
    /// CLAIM marks the run as executing; without it, BEGIN does so.
    pub claim_marks_execution: bool,
    /// A claim that its holder does not know costs the run no crash.
    pub unknown_claims_are_free: bool,
    /// Crashes at which a run fails.
    pub max_crashes: u8,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            attempts_fence_the_database: true,
            every_writer_takes_an_attempt: true,
            ends_are_committed_first: true,
            intents_are_committed_first: true,
            writes_find_their_own_work: true,
            leaves_check_cancels: true,
            answers_move_the_checkpoint: true,
            gaps_are_flushed_first: true,
            clients_check_bases: true,
            claims_archive_their_start: true,
            claim_marks_execution: true,
            unknown_claims_are_free: true,
            max_crashes: 2,
        }
    }
}

/// How often each fault may happen, and each request of a caller or an operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// Deaths of a worker.
    pub kills: u8,
    /// Workers that stand still for longer than their lease.
    pub freezes: u8,
    /// Losses of the log, in part or whole.
    pub log_losses: u8,
    /// Answers of the database that get lost.
    pub lost_commits: u8,
    /// Answers of Redis that get lost.
    pub lost_appends: u8,
    /// Drains of a worker.
    pub drains: u8,
    /// Requests to cancel the run.
    pub cancels: u8,
    /// True if the run kills each worker that executes it.
    pub is_deadly: bool,
}

/// The model of one run.
#[derive(Debug, Clone, Default)]
pub struct RunModel {
    /// The rules that hold.
    pub rules: Rules,
    /// The budget of faults.
    pub faults: Faults,
}

/// The state of the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    row: Row,
    log: Vec<Event>,
    /// Every event that the log ever had.
    shown: BTreeSet<Event>,
    /// The attempts of two workers, in order, because the workers are alike.
    workers: [Option<Attempt>; 2],
    /// An event that the API has committed and not appended yet.
    unannounced: Option<Event>,
    /// Calls that were made.
    calls: u8,
    /// Calls that a human wanted again.
    repeats: u8,
    /// Holders that died or stood still while they executed the run.
    deaths: u8,
    left: Faults,
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

impl Model for RunModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let row = Row::submitted();
        vec![World {
            log: row.archive.clone(),
            shown: row.archive.iter().copied().collect(),
            row,
            workers: [None, None],
            unannounced: None,
            calls: 0,
            repeats: 0,
            deaths: 0,
            left: self.faults,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.actions_without_holder(world, actions);
        for (place, attempt) in world.workers.iter().enumerate() {
            match attempt {
                None if place == 1 && world.workers[0].is_none() => {}
                None if world.row.is_claimable(&self.rules) => {
                    self.replies(world, actions, |reply| Action::Claim(place, reply))
                }
                None => {}
                Some(attempt) if attempt.is_frozen => actions.push(Action::Thaw(place)),
                Some(attempt) => self.actions_of(world, place, attempt, actions),
            }
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        next.step(&self.rules, action);
        next.workers.sort();
        (next != *world).then_some(next)
    }

    /// Without its rule, a run can begin attempts forever.
    fn within_boundary(&self, world: &World) -> bool {
        world.row.attempt < 8
    }

    fn properties(&self) -> Vec<Property<Self>> {
        promises::all()
    }
}

impl RunModel {
    /// Adds an action that the database answers.
    fn replies(&self, world: &World, actions: &mut Vec<Action>, action: impl Fn(Reply) -> Action) {
        actions.push(action(Reply::Arrives));
        if world.left.lost_commits > 0 {
            actions.push(action(Reply::IsLost));
        }
    }

    fn actions_without_holder(&self, world: &World, actions: &mut Vec<Action>) {
        let (row, left) = (&world.row, &world.left);
        let is_running = row.status == Status::Running;
        let is_alive = |attempt: &Attempt| attempt.number == row.attempt && !attempt.is_frozen && row.is_held;
        // A live holder renews the lease of a claim that it does not know, and gives the claim back.
        if is_running && !row.has_expired && !row.is_unknown && !world.workers.iter().flatten().any(is_alive) {
            actions.push(Action::Expire);
        }
        if is_running && row.has_expired && row.is_held {
            actions.push(Action::SettleDeath);
        }
        if is_running && row.is_unknown {
            actions.push(Action::GiveBack);
            if left.kills > 0 {
                actions.push(Action::KillUnknown);
            }
        }
        // A holder that wakes up after its death was settled can still release the run.
        if (row.is_orphaned() || row.status == Status::Queued) && row.crashes >= self.rules.max_crashes {
            actions.push(Action::EndCrashed);
        }
        if row.status != Status::Ended && !row.is_cancel_requested && left.cancels > 0 {
            actions.push(Action::Cancel);
        }
        if row.is_cancel_requested && is_running {
            actions.push(Action::EndCancelled);
        }
        if row.status == Status::Waiting {
            actions.extend([Action::Answer(true), Action::Answer(false)]);
        }
        if world.unannounced.is_some() {
            actions.extend([Action::Announce(Reply::Arrives), Action::Announce(Reply::IsLost)]);
        }
        if left.log_losses > 0 {
            actions.extend((0..world.log.len()).map(Action::LoseLog));
        }
    }

    fn actions_of(&self, world: &World, place: usize, attempt: &Attempt, actions: &mut Vec<Action>) {
        let Faults { kills, freezes, lost_appends, drains, is_deadly, .. } = world.left;
        let is_executing = attempt.stage != Stage::Claimed;
        if kills > 0 || is_deadly && attempt.stage != Stage::Close {
            actions.push(Action::Kill(place));
        }
        if is_deadly && is_executing {
            return;
        }
        if freezes > 0 {
            actions.push(Action::Freeze(place));
        }
        if attempt.logged < attempt.visible() && !attempt.is_behind {
            actions.push(Action::Append(place, Reply::Arrives));
            if lost_appends > 0 {
                actions.push(Action::Append(place, Reply::IsLost));
            }
        }
        let is_mine = world.row.attempt == attempt.number && world.row.status == Status::Running && world.row.is_held;
        if attempt.stage == Stage::Close || !is_mine {
            actions.push(Action::Drop(place));
        }
        if attempt.stage == Stage::Close {
            return;
        }
        if let Some(write) = attempt.repeats {
            return self.replies(world, actions, |reply| Action::Commit(place, write, reply));
        }
        if attempt.stored < attempt.events.len() {
            self.replies(world, actions, |reply| Action::Commit(place, Write::Flush, reply));
        }
        if is_mine && world.row.is_cancel_requested {
            self.replies(world, actions, |reply| Action::Commit(place, Write::Finish, reply));
        }
        if drains > 0 && is_executing {
            self.replies(world, actions, |reply| Action::Commit(place, Write::HandOver, reply));
        }
        match attempt.stage {
            Stage::Claimed => actions.push(Action::Begin(place)),
            Stage::Speak | Stage::Continue | Stage::Conclude => actions.push(Action::Speak(place)),
            Stage::Plan if !self.rules.intents_are_committed_first => actions.push(Action::Call(place)),
            Stage::Plan => self.replies(world, actions, |reply| Action::Commit(place, Write::Intent, reply)),
            Stage::Call => actions.push(Action::Call(place)),
            Stage::Report => self.replies(world, actions, |reply| Action::Commit(place, Write::Outcome, reply)),
            Stage::Ask => self.replies(world, actions, |reply| Action::Commit(place, Write::Ask, reply)),
            Stage::Finish => {
                self.replies(world, actions, |reply| Action::Commit(place, Write::Finish, reply));
                if !self.rules.ends_are_committed_first {
                    actions.push(Action::AppendEnd(place));
                }
            }
            Stage::Close => {}
        }
    }
}

impl World {
    fn step(&mut self, rules: &Rules, action: Action) {
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
