//! A parent run with two children, and a grandchild that asks a human. One transaction is one step, except where a
//! rule is off.
//!
//! A child's end answers a call of its parent. The parent waits without a worker, or works and logs the answer itself.

use stateright::{Model, Property};

/// The rules of spawn and answer. A test turns one off.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The intent of the call and the child are committed together.
    pub children_start_with_their_intent: bool,
    /// A child's end and the outcome of its parent's call are committed together.
    pub ends_answer_the_parent: bool,
    /// A child's end locks its parent's row before it reads it.
    pub ends_lock_the_parent: bool,
    /// A child's end takes an attempt of a waiting parent only.
    pub only_a_waiting_parent_is_written: bool,
    /// LEAVE looks for outcomes in its transaction.
    pub leaves_look_for_outcomes: bool,
    /// A parent logs the outcomes that its log does not have.
    pub outcomes_are_logged_once: bool,
    /// A child's end leaves an ended parent alone.
    pub ended_parents_stay: bool,
    /// The sweeper cancels live children of ended parents.
    pub the_sweeper_cancels_orphans: bool,
    /// A human's answer is refused once its run has ended.
    pub answers_check_the_end: bool,
    /// A spawn counts the runs of its tree in its transaction, under the lock of the top run.
    pub spawns_count_under_a_lock: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            children_start_with_their_intent: true,
            ends_answer_the_parent: true,
            ends_lock_the_parent: true,
            only_a_waiting_parent_is_written: true,
            leaves_look_for_outcomes: true,
            outcomes_are_logged_once: true,
            ended_parents_stay: true,
            the_sweeper_cancels_orphans: true,
            answers_check_the_end: true,
            spawns_count_under_a_lock: true,
        }
    }
}

/// The model of a family of runs.
#[derive(Debug, Clone)]
pub struct FamilyModel {
    /// The rules that hold.
    pub rules: Rules,
    /// Deaths of processes.
    pub kills: u8,
    /// Requests to cancel the top run.
    pub cancels: u8,
    /// Most runs of the tree. A call beyond it gets an outcome instead of a run.
    pub most_runs: usize,
}

impl Default for FamilyModel {
    fn default() -> Self {
        Self { rules: Rules::default(), kills: 2, cancels: 1, most_runs: RUNS }
    }
}

/// The parent of each run: the top run, its two children, and a child of the second one.
const PARENTS: [Option<usize>; 4] = [None, Some(0), Some(0), Some(2)];

/// The number of runs.
const RUNS: usize = PARENTS.len();

/// The run that asks a human.
const ASKING: usize = 3;

/// The status of a run, as committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Status {
    Unborn,
    Queued,
    Running,
    /// No worker holds the run until its children or a human answer.
    Waiting,
    Completed,
    Cancelled,
}

/// The call of the parent that a run answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Call {
    /// The parent has not requested it.
    Unplanned,
    /// The intent is committed.
    Called,
    /// The row has the outcome, and the parent's log does not.
    Answered,
    /// The parent's log has the outcome.
    Logged,
}

/// The parent as a child's end has read it, where it holds no lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Read {
    parent: Status,
    is_last: bool,
}

/// Returns the children of a run.
fn children_of(index: usize) -> impl Iterator<Item = usize> {
    (0..RUNS).filter(move |child| PARENTS[*child] == Some(index))
}

/// A run, and the call that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Run {
    status: Status,
    /// True once the run has ended, for ever.
    has_ended: bool,
    /// True while a worker executes the newest attempt.
    is_alive: bool,
    call: Call,
    /// How often the run was started for its call.
    starts: u8,
    /// True if the parent's holder knows that it has started the run.
    is_known: bool,
    /// How often the parent's log has the outcome.
    outcomes: u8,
    /// True once a human has answered.
    has_answer: bool,
    /// True after an end that has not answered the parent.
    owes_answer: bool,
    /// Set between the read and the write of an end without a lock.
    read: Option<Read>,
    /// The runs of the tree, between the count and the write of a spawn without a lock.
    counted: Option<usize>,
}

/// The state of the family.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Family {
    runs: [Run; RUNS],
    kills: u8,
    cancels: u8,
    /// Children that the process which ended their parent will cancel.
    to_cancel: Vec<usize>,
    /// True if a child's end has taken the run from a live worker.
    has_fenced: bool,
}

/// One step. A number is a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A worker claims the run.
    Claim(usize),
    /// The parent's holder commits the intent of the run's call, and the run.
    Spawn(usize),
    /// The parent's holder counts the runs of the tree before it spawns the run, where it takes no lock.
    Count(usize),
    /// The holder starts the run, where that is no part of the intent's commit.
    Start(usize),
    /// The holder logs the outcomes that it finds.
    Log(usize),
    /// LEAVE, until children or a human answer.
    Leave(usize),
    /// The holder completes the run.
    Finish(usize),
    /// An end reads its parent's row, where it takes no lock.
    ReadParent(usize),
    /// The process that committed an end answers the parent, where that is no part of the commit.
    AnswerParent(usize),
    /// A human answers the run's question.
    Approve(usize),
    /// A caller cancels the top run.
    Cancel,
    /// The process that ended a parent cancels this child.
    CancelChild(usize),
    /// The sweeper cancels a child of an ended parent.
    Sweep(usize),
    /// The worker that holds this run dies.
    Kill(usize),
    /// A death takes all workers at once.
    KillAll,
    /// The process that ended a parent dies before it cancels the children.
    Forget,
    /// The process that committed an end dies before it answers the parent.
    ForgetAnswer(usize),
}

impl Model for FamilyModel {
    type State = Family;
    type Action = Action;

    fn init_states(&self) -> Vec<Family> {
        let unborn = Run {
            status: Status::Unborn,
            has_ended: false,
            is_alive: false,
            call: Call::Unplanned,
            starts: 0,
            is_known: false,
            outcomes: 0,
            has_answer: false,
            owes_answer: false,
            read: None,
            counted: None,
        };
        let mut runs = [unborn; RUNS];
        runs[0].status = Status::Queued;
        let (kills, cancels) = (self.kills, self.cancels);
        vec![Family { runs, kills, cancels, to_cancel: Vec::new(), has_fenced: false }]
    }

    fn actions(&self, family: &Family, actions: &mut Vec<Action>) {
        for index in 0..RUNS {
            family.progress_of(index, &self.rules, actions);
            family.deaths_of(index, actions);
        }
        actions.extend(family.to_cancel.iter().copied().map(Action::CancelChild));
        if family.cancels > 0 && family.runs[0].is_live() {
            actions.push(Action::Cancel);
        }
        if family.kills > 0 && family.runs.iter().filter(|run| run.is_alive).count() > 1 {
            actions.push(Action::KillAll);
        }
        if family.kills > 0 && !family.to_cancel.is_empty() {
            actions.push(Action::Forget);
        }
    }

    fn next_state(&self, family: &Family, action: Action) -> Option<Family> {
        let mut next = family.clone();
        next.step(self, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a child starts once", |_, family: &Family| family.runs.iter().all(|run| run.starts <= 1)),
            Property::always("an outcome is logged once", |_, family: &Family| {
                family.runs.iter().all(|run| run.outcomes <= 1)
            }),
            Property::always("a completed run has all outcomes", |_, family: &Family| {
                (0..RUNS).all(|index| {
                    let has_all = children_of(index).all(|child| family.runs[child].call == Call::Logged);
                    family.runs[index].status != Status::Completed || has_all
                })
            }),
            Property::always("an ended run stays ended", |_, family: &Family| {
                family.runs.iter().all(|run| !(run.has_ended && run.is_live()))
            }),
            Property::always("a tree keeps to its limit", |model: &FamilyModel, family: &Family| {
                family.count() <= model.most_runs
            }),
            Property::always("an answer fences no worker", |_, family: &Family| !family.has_fenced),
            Property::always("an orphan is cancelled", |model: &FamilyModel, family: &Family| {
                let mut actions = Vec::new();
                model.actions(family, &mut actions);
                let is_cancelled = |run| actions.iter().any(|action| action.cancels(run));
                (0..RUNS).filter(|run| family.is_orphan(*run)).all(is_cancelled)
            }),
            Property::always("no run waits forever", |model: &FamilyModel, family: &Family| {
                let mut actions = Vec::new();
                model.actions(family, &mut actions);
                actions.iter().any(|action| !action.is_fault()) || !family.runs.iter().any(Run::is_live)
            }),
            Property::sometimes("all runs complete", |_, family: &Family| {
                family.runs.iter().all(|run| run.status == Status::Completed || run.is_refused())
            }),
            Property::sometimes("a cancel ends all", |_, family: &Family| {
                family.runs.iter().all(|run| run.status == Status::Cancelled || run.is_refused())
            }),
        ]
    }
}

impl Action {
    /// Returns whether the step is a fault or a caller's wish, on which no run may depend.
    const fn is_fault(&self) -> bool {
        matches!(self, Self::Kill(_) | Self::KillAll | Self::Forget | Self::ForgetAnswer(_) | Self::Cancel)
    }

    fn cancels(&self, run: usize) -> bool {
        matches!(self, Self::CancelChild(child) | Self::Sweep(child) if *child == run)
    }
}

impl Run {
    const fn is_live(&self) -> bool {
        matches!(self.status, Status::Queued | Status::Running | Status::Waiting)
    }

    /// Returns whether the tree had no room for the run.
    const fn is_refused(&self) -> bool {
        self.starts == 0 && matches!(self.call, Call::Answered | Call::Logged)
    }

    /// Returns whether the parent must wait for the run.
    const fn is_open(&self) -> bool {
        matches!(self.call, Call::Called)
    }
}

impl Family {
    /// Returns whether the run lives and its parent has ended.
    fn is_orphan(&self, index: usize) -> bool {
        self.runs[index].is_live() && PARENTS[index].is_some_and(|parent| self.runs[parent].has_ended)
    }

    fn asks(&self, index: usize) -> bool {
        index == ASKING && !self.runs[index].has_answer
    }

    /// Adds the steps that bring the run forward.
    fn progress_of(&self, index: usize, rules: &Rules, actions: &mut Vec<Action>) {
        let run = &self.runs[index];
        match run.status {
            Status::Queued => actions.push(Action::Claim(index)),
            Status::Running if run.is_alive => self.progress_of_holder(index, rules, actions),
            // The lease expires.
            Status::Running => actions.push(Action::Claim(index)),
            Status::Waiting if self.asks(index) => actions.push(Action::Approve(index)),
            Status::Cancelled if self.asks(index) && !rules.answers_check_the_end => {
                actions.push(Action::Approve(index));
            }
            _ => {}
        }
        if run.owes_answer {
            actions.push(Action::AnswerParent(index));
        }
        if rules.the_sweeper_cancels_orphans && self.is_orphan(index) {
            actions.push(Action::Sweep(index));
        }
    }

    fn progress_of_holder(&self, index: usize, rules: &Rules, actions: &mut Vec<Action>) {
        let children = || children_of(index).map(|child| (child, &self.runs[child]));
        for (child, run) in children() {
            match run.call {
                Call::Unplanned if !rules.spawns_count_under_a_lock && run.counted.is_none() => {
                    actions.push(Action::Count(child));
                }
                Call::Unplanned => actions.push(Action::Spawn(child)),
                Call::Called if !run.is_known && !rules.children_start_with_their_intent => {
                    actions.push(Action::Start(child));
                }
                _ => {}
            }
        }
        let has_news = |run: &Run| match run.call {
            Call::Answered => true,
            Call::Logged => !rules.outcomes_are_logged_once && run.outcomes < 2,
            Call::Unplanned | Call::Called => false,
        };
        if children().any(|(_, run)| has_news(run)) {
            actions.push(Action::Log(index));
        }
        let is_spawned = children().all(|(_, run)| run.call != Call::Unplanned && (run.starts > 0 || run.is_refused()));
        if children().all(|(_, run)| run.call == Call::Logged) && !self.asks(index) {
            if rules.ends_lock_the_parent || self.runs[index].read.is_some() || PARENTS[index].is_none() {
                actions.push(Action::Finish(index));
            } else {
                actions.push(Action::ReadParent(index));
            }
        } else if is_spawned {
            actions.push(Action::Leave(index));
        }
    }

    fn deaths_of(&self, index: usize, actions: &mut Vec<Action>) {
        if self.kills == 0 {
            return;
        }
        if self.runs[index].is_alive {
            actions.push(Action::Kill(index));
        }
        if self.runs[index].owes_answer {
            actions.push(Action::ForgetAnswer(index));
        }
    }

    fn step(&mut self, model: &FamilyModel, action: Action) {
        let rules = &model.rules;
        match action {
            Action::Claim(index) => {
                (self.runs[index].status, self.runs[index].is_alive) = (Status::Running, true);
                self.runs[index].read = None;
            }
            Action::Spawn(child) => self.spawn(child, model),
            Action::Count(child) => self.runs[child].counted = Some(self.count()),
            Action::Start(child) => self.start(child),
            Action::Log(index) => self.log_outcomes(index, rules),
            Action::Leave(index) => self.leave(index, rules),
            Action::ReadParent(index) => self.runs[index].read = self.read_parent(index),
            Action::Finish(index) => self.end(index, Status::Completed, rules),
            Action::AnswerParent(index) => {
                self.runs[index].owes_answer = false;
                self.answer_parent(index, rules);
            }
            Action::Approve(index) => {
                self.runs[index].has_answer = true;
                self.runs[index].status = Status::Queued;
            }
            Action::Cancel => {
                self.cancels -= 1;
                self.end(0, Status::Cancelled, rules);
            }
            Action::CancelChild(child) | Action::Sweep(child) => {
                self.to_cancel.retain(|other| *other != child);
                if self.runs[child].is_live() {
                    self.end(child, Status::Cancelled, rules);
                }
            }
            Action::Kill(index) => {
                self.kills -= 1;
                self.die(index);
            }
            Action::KillAll => {
                self.kills -= 1;
                (0..RUNS).for_each(|index| self.die(index));
            }
            Action::Forget => {
                self.kills -= 1;
                self.to_cancel.clear();
            }
            Action::ForgetAnswer(index) => {
                self.kills -= 1;
                self.runs[index].owes_answer = false;
            }
        }
    }

    /// Returns the runs of the tree.
    fn count(&self) -> usize {
        1 + self.runs.iter().filter(|run| run.starts > 0).count()
    }

    /// Commits the intent of a call with its run, or with the outcome that the tree is full.
    fn spawn(&mut self, child: usize, model: &FamilyModel) {
        let count = self.runs[child].counted.take().unwrap_or_else(|| self.count());
        if count >= model.most_runs {
            self.runs[child].call = Call::Answered;
            return;
        }
        self.runs[child].call = Call::Called;
        if model.rules.children_start_with_their_intent {
            self.start(child);
        }
    }

    fn start(&mut self, child: usize) {
        let run = &mut self.runs[child];
        run.starts += 1;
        run.is_known = true;
        run.status = Status::Queued;
    }

    fn die(&mut self, index: usize) {
        if std::mem::take(&mut self.runs[index].is_alive) {
            children_of(index).for_each(|child| self.runs[child].is_known = false);
        }
    }

    fn log_outcomes(&mut self, index: usize, rules: &Rules) {
        for child in children_of(index) {
            let run = &mut self.runs[child];
            if run.call == Call::Answered || run.call == Call::Logged && !rules.outcomes_are_logged_once {
                run.call = Call::Logged;
                run.outcomes += 1;
            }
        }
    }

    fn leave(&mut self, index: usize, rules: &Rules) {
        if rules.leaves_look_for_outcomes {
            self.log_outcomes(index, rules);
        }
        let is_waiting = children_of(index).any(|child| self.runs[child].call != Call::Logged) || self.asks(index);
        self.runs[index].is_alive = false;
        self.runs[index].status = if is_waiting { Status::Waiting } else { Status::Queued };
    }

    /// Ends the run, and answers its parent.
    fn end(&mut self, index: usize, status: Status, rules: &Rules) {
        let run = &mut self.runs[index];
        (run.status, run.has_ended, run.is_alive) = (status, true, false);
        let live: Vec<usize> = children_of(index).filter(|child| self.runs[*child].is_live()).collect();
        self.to_cancel.extend(live);
        self.to_cancel.sort_unstable();
        self.to_cancel.dedup();
        if PARENTS[index].is_none() {
            return;
        }
        if rules.ends_answer_the_parent {
            self.answer_parent(index, rules);
        } else {
            self.runs[index].owes_answer = true;
        }
    }

    fn read_parent(&self, index: usize) -> Option<Read> {
        let parent = PARENTS[index]?;
        let is_last = !children_of(parent).any(|child| child != index && self.runs[child].is_open());
        Some(Read { parent: self.runs[parent].status, is_last })
    }

    /// Writes the outcome of the call that the run answers.
    fn answer_parent(&mut self, index: usize, rules: &Rules) {
        let Some(parent) = PARENTS[index] else { return };
        let Some(read) = self.runs[index].read.take().or_else(|| self.read_parent(index)) else { return };
        let is_written = match read.parent {
            Status::Waiting => true,
            Status::Queued | Status::Running => !rules.only_a_waiting_parent_is_written,
            Status::Completed | Status::Cancelled if rules.ended_parents_stay => return,
            Status::Completed | Status::Cancelled | Status::Unborn => true,
        };
        if !is_written {
            self.runs[index].call = Call::Answered;
            return;
        }
        self.runs[index].call = Call::Logged;
        self.runs[index].outcomes += 1;
        if read.is_last && !self.asks(parent) {
            self.has_fenced |= self.runs[parent].is_alive;
            (self.runs[parent].status, self.runs[parent].is_alive) = (Status::Queued, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FamilyModel, Rules};
    use crate::check::{holds, needed};

    #[test]
    fn a_family_of_runs_keeps_its_promises() {
        holds(FamilyModel::default());
    }

    #[test]
    fn a_family_whose_tree_is_full_keeps_its_promises() {
        holds(FamilyModel { most_runs: 3, ..FamilyModel::default() });
    }

    fn full_without(remove: impl FnOnce(&mut Rules)) -> FamilyModel {
        FamilyModel { most_runs: 3, ..without(remove) }
    }

    needed! { full_without;
        spawns_count_under_a_lock: "a tree keeps to its limit";
    }

    fn without(remove: impl FnOnce(&mut Rules)) -> FamilyModel {
        let mut rules = Rules::default();
        remove(&mut rules);
        FamilyModel { rules, ..FamilyModel::default() }
    }

    needed! { without;
        children_start_with_their_intent: "a child starts once";
        ends_answer_the_parent: "no run waits forever";
        ends_lock_the_parent: "no run waits forever";
        only_a_waiting_parent_is_written: "an answer fences no worker";
        leaves_look_for_outcomes: "no run waits forever";
        outcomes_are_logged_once: "an outcome is logged once";
        ended_parents_stay: "an ended run stays ended";
        the_sweeper_cancels_orphans: "an orphan is cancelled";
        answers_check_the_end: "an ended run stays ended";
    }
}
