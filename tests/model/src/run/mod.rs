//! One run: its row, its log, two workers, the API, and their faults. `world` has the steps; this file has the rules, and
//! which steps are possible.

mod database;
mod log;
mod promises;
mod worker;
mod world;

#[cfg(test)]
mod tests;

use stateright::{Model, Property};

use self::{
    database::{Row, Status},
    worker::{Attempt, Stage, Write},
    world::{Action, Reply, World},
};

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
