//! Changes of a plan by clients: one is made at once if the plan's run waits, and otherwise by the run's holder.

use stateright::{Model, Property};

/// The rules of changes. A test turns one off.
#[derive(Debug, Clone)]
pub struct Rules {
    /// EDIT holds the run's lock from its look at the run until its commit.
    pub edits_hold_the_lock: bool,
    /// LEAVE looks for changes, and queues the run if there are any.
    pub leaves_look_for_edits: bool,
    /// Only the holder of the newest attempt takes changes.
    pub takes_are_fenced: bool,
    /// A taken change is removed in the commit of the changed plan.
    pub takes_are_one_commit: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            edits_hold_the_lock: true,
            leaves_look_for_edits: true,
            takes_are_fenced: true,
            takes_are_one_commit: true,
        }
    }
}

/// The model of one planner's run with an executor, and of two changes of its plan.
#[derive(Debug, Clone)]
pub struct EditModel {
    /// The rules that hold.
    pub rules: Rules,
    /// Deaths of workers.
    pub kills: u8,
    /// Workers that stand still while another one takes over.
    pub freezes: u8,
}

impl Default for EditModel {
    fn default() -> Self {
        Self { rules: Rules::default(), kills: 1, freezes: 1 }
    }
}

const EDITS: u8 = 2;

/// The status of the run in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Status {
    Running,
    /// For its executor.
    Waiting,
    Queued,
    Ended,
}

/// A worker with an attempt, and the changes that it has read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Holder {
    attempt: u8,
    read: Vec<u8>,
    /// Changes whose rows are removed, and whose plan is not stored yet.
    removed: Vec<u8>,
    is_frozen: bool,
}

/// The state of the run, its plan and its changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EditedRun {
    status: Status,
    attempt: u8,
    has_executor: bool,
    holders: Vec<Holder>,
    posted: u8,
    /// A change whose EDIT has seen that the run is held, and has not committed yet.
    posting: Option<u8>,
    /// The changes that wait for the holder.
    pending: Vec<u8>,
    /// The changes that the plan has, in order.
    made: Vec<u8>,
    kills: u8,
    freezes: u8,
}

/// One step. A number is a worker's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// EDIT looks at the run, and commits unless it holds no lock.
    Edit,
    /// An EDIT without a lock commits what it has decided.
    CommitEdit,
    /// A worker takes the run.
    Claim,
    /// The holder reads the changes that wait.
    Read(usize),
    /// The rows of the read changes are removed before the plan is stored.
    Remove(usize),
    /// The holder commits the plan with what it has read.
    Take(usize),
    /// The holder leaves the run to its executor.
    Leave(usize),
    /// The executor ends, and queues a run that waits.
    ExecutorEnds,
    /// The holder ends the plan with its run.
    Finish(usize),
    /// A worker dies.
    Kill(usize),
    /// A worker stands still.
    Freeze(usize),
    /// It continues.
    Thaw(usize),
}

impl Model for EditModel {
    type State = EditedRun;
    type Action = Action;

    fn init_states(&self) -> Vec<EditedRun> {
        vec![EditedRun {
            status: Status::Running,
            attempt: 1,
            has_executor: true,
            holders: vec![Holder { attempt: 1, read: Vec::new(), removed: Vec::new(), is_frozen: false }],
            posted: 0,
            posting: None,
            pending: Vec::new(),
            made: Vec::new(),
            kills: self.kills,
            freezes: self.freezes,
        }]
    }

    fn actions(&self, run: &EditedRun, actions: &mut Vec<Action>) {
        if run.posting.is_some() {
            actions.push(Action::CommitEdit);
        } else if run.posted < EDITS && run.status != Status::Ended {
            actions.push(Action::Edit);
        }
        let is_orphaned = run.status == Status::Running && run.holders.iter().all(|holder| holder.is_frozen);
        if (run.status == Status::Queued || is_orphaned) && run.holders.len() < 2 {
            actions.push(Action::Claim);
        }
        if run.has_executor {
            actions.push(Action::ExecutorEnds);
        }
        for (place, holder) in run.holders.iter().enumerate() {
            if holder.is_frozen {
                actions.push(Action::Thaw(place));
                continue;
            }
            if holder.read.is_empty() && holder.removed.is_empty() && !run.pending.is_empty() {
                actions.push(Action::Read(place));
            }
            if !holder.read.is_empty() {
                actions.push(if self.rules.takes_are_one_commit { Action::Take(place) } else { Action::Remove(place) });
            } else if !holder.removed.is_empty() {
                actions.push(Action::Take(place));
            } else if holder.attempt == run.attempt && run.status == Status::Running {
                actions.push(if run.has_executor { Action::Leave(place) } else { Action::Finish(place) });
            }
            if run.kills > 0 {
                actions.push(Action::Kill(place));
            }
            if run.freezes > 0 {
                actions.push(Action::Freeze(place));
            }
        }
    }

    fn next_state(&self, run: &EditedRun, action: Action) -> Option<EditedRun> {
        let mut next = run.clone();
        match action {
            Action::Edit => next.edit(&self.rules),
            Action::CommitEdit => {
                let edit = next.posting.take()?;
                next.pending.push(edit);
            }
            Action::Claim => {
                next.attempt += 1;
                next.status = Status::Running;
                let (read, removed) = (Vec::new(), Vec::new());
                next.holders.push(Holder { attempt: next.attempt, read, removed, is_frozen: false });
            }
            Action::Read(place) => next.holders[place].read = run.pending.clone(),
            Action::Remove(place) => next.remove(place),
            Action::Take(place) => next.take(place, &self.rules),
            Action::Leave(place) => {
                next.holders.remove(place);
                let must_go_on = self.rules.leaves_look_for_edits && !run.pending.is_empty();
                next.status = if must_go_on { Status::Queued } else { Status::Waiting };
            }
            Action::ExecutorEnds => {
                next.has_executor = false;
                if next.status == Status::Waiting {
                    next.status = Status::Queued;
                }
            }
            Action::Finish(place) => {
                next.holders.remove(place);
                next.status = Status::Ended;
            }
            Action::Kill(place) => {
                next.kills -= 1;
                next.holders.remove(place);
            }
            Action::Freeze(place) => {
                next.freezes -= 1;
                next.holders[place].is_frozen = true;
            }
            Action::Thaw(place) => next.holders[place].is_frozen = false,
        }
        (next != *run).then_some(next)
    }

    fn within_boundary(&self, run: &EditedRun) -> bool {
        run.attempt <= 5
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no change waits for a run that waits", |_, run: &EditedRun| {
                run.status != Status::Waiting || run.pending.is_empty()
            }),
            Property::always("changes are made once, in order", |_, run: &EditedRun| {
                run.made.windows(2).all(|pair| pair[0] < pair[1])
            }),
            Property::always("a change is lost with its plan only", |_, run: &EditedRun| {
                let is_kept = |edit: u8| {
                    let is_removed = run.holders.iter().any(|holder| holder.removed.contains(&edit));
                    run.made.contains(&edit) || run.pending.contains(&edit) || run.posting == Some(edit) || is_removed
                };
                run.status == Status::Ended || (0..run.posted).all(is_kept)
            }),
            Property::sometimes("a holder makes both", |_, run: &EditedRun| run.made == [0, 1] && run.has_executor),
            Property::sometimes("a plan ends before a change", |_, run: &EditedRun| {
                run.status == Status::Ended && !run.pending.is_empty()
            }),
        ]
    }
}

impl EditedRun {
    fn edit(&mut self, rules: &Rules) {
        let edit = self.posted;
        self.posted += 1;
        match self.status {
            Status::Waiting => {
                self.made.push(edit);
                self.status = Status::Queued;
            }
            _ if rules.edits_hold_the_lock => self.pending.push(edit),
            _ => self.posting = Some(edit),
        }
    }

    fn remove(&mut self, place: usize) {
        let removed = std::mem::take(&mut self.holders[place].read);
        self.pending.retain(|edit| !removed.contains(edit));
        self.holders[place].removed = removed;
    }

    fn take(&mut self, place: usize, rules: &Rules) {
        let holder = &mut self.holders[place];
        let (read, removed) = (std::mem::take(&mut holder.read), std::mem::take(&mut holder.removed));
        let is_fenced = holder.attempt != self.attempt || self.status != Status::Running;
        if rules.takes_are_fenced && is_fenced {
            self.holders.remove(place);
            return;
        }
        self.pending.retain(|edit| !read.contains(edit));
        self.made.extend(read.into_iter().chain(removed));
    }
}

#[cfg(test)]
mod tests {
    use super::{EditModel, Rules};
    use crate::check::{holds, needed};

    #[test]
    fn an_accepted_change_is_made_once_or_ends_with_its_plan() {
        holds(EditModel::default());
    }

    fn without(remove: impl FnOnce(&mut Rules)) -> EditModel {
        let mut rules = Rules::default();
        remove(&mut rules);
        EditModel { rules, ..EditModel::default() }
    }

    needed! { without;
        edits_hold_the_lock: "no change waits for a run that waits";
        leaves_look_for_edits: "no change waits for a run that waits";
        takes_are_fenced: "changes are made once, in order";
        takes_are_one_commit: "a change is lost with its plan only";
    }
}
