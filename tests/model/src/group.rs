//! The writes of many runs in one transaction.
//!
//! While a commit is under way, the writes of other runs gather. The next transaction takes all of them. Each member has
//! a fence of its own, and none may harm the others.

use stateright::{Model, Property};

/// The rules of a group. A test turns one off.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Each member is written only if its attempt is the newest.
    pub each_member_is_fenced: bool,
    /// A group that the database refuses is written again, each member alone.
    pub a_refused_group_is_split: bool,
    /// A group leaves out a row that another transaction has locked, and its member is written alone.
    pub locked_rows_are_skipped: bool,
    /// A repeated write recognises its own commit.
    pub writes_find_their_own_work: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            each_member_is_fenced: true,
            a_refused_group_is_split: true,
            locked_rows_are_skipped: true,
            writes_find_their_own_work: true,
        }
    }
}

/// The model of a worker with three runs.
#[derive(Debug, Clone, Default)]
pub struct GroupModel {
    /// The rules that hold.
    pub rules: Rules,
    /// Answers to commits that may get lost.
    pub lost_commits: u8,
}

/// The number of runs. The database refuses the first write of the last one.
const RUNS: usize = 3;

/// The events that each run writes, one a time.
const EVENTS: u8 = 2;

/// The worker's knowledge about its next write of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Member {
    /// The run produces.
    Producing,
    /// The write waits for a transaction; `is_alone` after a refusal or a lock.
    Gathered { is_alone: bool },
    /// A transaction has it.
    Committing { is_alone: bool },
    /// The attempt was fenced.
    Fenced,
    /// The database never accepts the write, so the run fails.
    Refused,
}

/// A run's row, and its worker's knowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Run {
    member: Member,
    /// Writes that the database has acknowledged.
    acknowledged: u8,
    /// Stored events of the worker's attempt.
    stored: u8,
    /// True if another writer has taken an attempt.
    is_taken: bool,
    /// Events that were stored after that.
    stale: u8,
    /// True while another transaction holds the row.
    is_locked: bool,
}

/// The runs of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Worker {
    runs: [Run; RUNS],
    /// True while a transaction waits for a lock.
    waits: bool,
    lost_commits: u8,
}

/// One step. A number is a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The run has an event to write.
    Produce(usize),
    /// A transaction begins with all writes that have gathered.
    Begin,
    /// It commits, and its answer arrives or gets lost.
    Commit {
        /// True if the worker does not learn the outcome.
        is_lost: bool,
    },
    /// The API locks the row to take an attempt.
    Lock(usize),
    /// It commits.
    Take(usize),
}

impl Model for GroupModel {
    type State = Worker;
    type Action = Action;

    fn init_states(&self) -> Vec<Worker> {
        let run =
            Run { member: Member::Producing, acknowledged: 0, stored: 0, is_taken: false, stale: 0, is_locked: false };
        vec![Worker { runs: [run; RUNS], waits: false, lost_commits: self.lost_commits }]
    }

    fn actions(&self, worker: &Worker, actions: &mut Vec<Action>) {
        for (index, run) in worker.runs.iter().enumerate() {
            if run.member == Member::Producing && run.acknowledged < EVENTS {
                actions.push(Action::Produce(index));
            }
            // The API takes an attempt of the first run only, which is enough to meet each state of the others.
            if run.is_locked {
                // The API also needs a row that the group has locked already.
                if !worker.waits {
                    actions.push(Action::Take(index));
                }
            } else if index == 0 && !run.is_taken && !run.is_committing() {
                actions.push(Action::Lock(index));
            }
        }
        if worker.runs.iter().any(Run::is_committing) {
            if !worker.waits {
                actions.push(Action::Commit { is_lost: false });
                if worker.lost_commits > 0 {
                    actions.push(Action::Commit { is_lost: true });
                }
            }
        } else if worker.runs.iter().any(|run| run.can_begin(&self.rules)) {
            actions.push(Action::Begin);
        }
    }

    fn next_state(&self, worker: &Worker, action: Action) -> Option<Worker> {
        let mut next = worker.clone();
        match action {
            Action::Produce(index) => next.runs[index].member = Member::Gathered { is_alone: false },
            Action::Begin => next.begin(&self.rules),
            Action::Commit { is_lost } => next.commit(&self.rules, is_lost),
            Action::Lock(index) => next.runs[index].is_locked = true,
            Action::Take(index) => {
                next.runs[index].is_locked = false;
                next.runs[index].is_taken = true;
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("an acknowledged write is stored once", |_, worker: &Worker| {
                worker.runs.iter().all(|run| run.acknowledged <= run.stored && run.stored <= run.acknowledged + 1)
            }),
            Property::always("a fenced attempt writes nothing", |_, worker: &Worker| {
                worker.runs.iter().all(|run| run.stale == 0)
            }),
            Property::always("only a fenced run is fenced", |_, worker: &Worker| {
                worker.runs.iter().all(|run| run.member != Member::Fenced || run.is_taken)
            }),
            Property::always("one refused write harms no other", |_, worker: &Worker| {
                worker.runs.iter().enumerate().all(|(index, run)| run.member != Member::Refused || refuses(index, run))
            }),
            Property::always("no write waits forever", |model: &GroupModel, worker: &Worker| {
                let mut actions = Vec::new();
                model.actions(worker, &mut actions);
                !actions.is_empty() || worker.runs.iter().all(Run::is_settled)
            }),
            Property::sometimes("all runs are written", |_, worker: &Worker| {
                worker.runs[..RUNS - 1].iter().all(|run| run.acknowledged == EVENTS)
            }),
        ]
    }
}

/// Returns whether the database never accepts the run's write.
const fn refuses(index: usize, run: &Run) -> bool {
    index == RUNS - 1 && run.stored == 0
}

impl Run {
    const fn is_committing(&self) -> bool {
        matches!(self.member, Member::Committing { .. })
    }

    const fn can_begin(&self, rules: &Rules) -> bool {
        match self.member {
            // A write alone waits for the lock, and a group does not.
            Member::Gathered { is_alone: true } => !self.is_locked,
            Member::Gathered { is_alone: false } => !(self.is_locked && rules.locked_rows_are_skipped),
            _ => false,
        }
    }

    fn is_settled(&self) -> bool {
        match self.member {
            Member::Producing => self.acknowledged == EVENTS,
            Member::Fenced | Member::Refused => true,
            Member::Gathered { .. } | Member::Committing { .. } => false,
        }
    }

    /// Stores one event, unless the fence refuses it. Returns the worker's knowledge after that.
    fn write(&mut self, rules: &Rules) -> Member {
        if self.stored > self.acknowledged {
            return if rules.writes_find_their_own_work { Member::Producing } else { Member::Fenced };
        }
        if self.is_taken && rules.each_member_is_fenced {
            return Member::Fenced;
        }
        self.stale += u8::from(self.is_taken);
        self.stored += 1;
        Member::Producing
    }
}

impl Worker {
    fn begin(&mut self, rules: &Rules) {
        let alone =
            self.runs.iter().position(|run| run.member == Member::Gathered { is_alone: true } && !run.is_locked);
        if let Some(alone) = alone {
            self.runs[alone].member = Member::Committing { is_alone: true };
            return;
        }
        for run in self.runs.iter_mut().filter(|run| run.member == Member::Gathered { is_alone: false }) {
            if run.is_locked && rules.locked_rows_are_skipped {
                run.member = Member::Gathered { is_alone: true };
            } else {
                // The owner of the lock may wait for a row of this group, and then neither ends.
                self.waits |= run.is_locked;
                run.member = Member::Committing { is_alone: false };
            }
        }
    }

    fn commit(&mut self, rules: &Rules, is_lost: bool) {
        self.lost_commits -= u8::from(is_lost);
        let mut runs = self.runs;
        let members = (0..RUNS).filter(|index| self.runs[*index].is_committing());
        let is_refused = members.clone().any(|index| refuses(index, &self.runs[index]));
        for index in members {
            let run = &mut runs[index];
            let is_alone = run.member == Member::Committing { is_alone: true };
            let outcome = match is_refused {
                true if is_alone || !rules.a_refused_group_is_split => Member::Refused,
                true => Member::Gathered { is_alone: true },
                false => run.write(rules),
            };
            if is_lost {
                run.member = Member::Gathered { is_alone };
                continue;
            }
            run.acknowledged += u8::from(outcome == Member::Producing);
            run.member = outcome;
        }
        self.runs = runs;
    }
}

#[cfg(test)]
mod tests {
    use super::{GroupModel, Rules};
    use crate::check::{holds, needed};

    #[test]
    fn the_members_of_a_group_do_not_harm_each_other() {
        holds(GroupModel { lost_commits: 2, ..GroupModel::default() });
    }

    fn without(remove: impl FnOnce(&mut Rules)) -> GroupModel {
        let mut rules = Rules::default();
        remove(&mut rules);
        GroupModel { rules, lost_commits: 1 }
    }

    needed! { without;
        each_member_is_fenced: "a fenced attempt writes nothing";
        a_refused_group_is_split: "one refused write harms no other";
        locked_rows_are_skipped: "no write waits forever";
        writes_find_their_own_work: "only a fenced run is fenced";
    }
}
