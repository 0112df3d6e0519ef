//! One conversation: the positions of its messages, and the mark of the run that a worker may claim.
//!
//! SUBMIT stores a question, FINISH stores an answer. Both take the next position of the conversation, and both decide
//! which run is the head of the conversation's queue. So does the sweep that ends the delay of a run.

use stateright::{Model, Property};

/// The rules of a conversation's transactions. A test turns one off.
#[derive(Debug, Clone)]
pub struct Rules {
    /// A transaction holds the counter from its first write until its commit.
    pub the_counter_is_locked: bool,
    /// FINISH marks the next run as the head.
    pub an_end_marks_the_next_run: bool,
    /// A worker claims only the head.
    pub workers_claim_the_head: bool,
    /// The sweep holds the counter while it ends a delay.
    pub delays_end_under_the_lock: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            the_counter_is_locked: true,
            an_end_marks_the_next_run: true,
            workers_claim_the_head: true,
            delays_end_under_the_lock: true,
        }
    }
}

/// The model of one conversation with two runs.
#[derive(Debug, Clone, Default)]
pub struct QueueModel {
    /// The rules that hold.
    pub rules: Rules,
}

/// The number of runs.
const RUNS: usize = 2;

/// The status of a run, as committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Status {
    Unsubmitted,
    Queued,
    Running,
    Ended,
}

/// The wait of a run before its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Delay {
    None,
    /// For its time.
    Lasts,
    /// For the sweep, because its time has come.
    IsOver,
}

/// A transaction that has taken its position and has read the other runs. The sweep takes no position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Transaction {
    position: Option<u8>,
    /// The run that it marks as the head.
    head: Option<usize>,
}

/// A run and the transaction that writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Run {
    status: Status,
    /// The position of its question.
    position: u8,
    delay: Delay,
    is_head: bool,
    transaction: Option<Transaction>,
}

/// The state of the conversation and of one reader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Conversation {
    runs: [Run; RUNS],
    last_position: u8,
    committed: Vec<u8>,
    /// The positions that a client has read page by page.
    read: Vec<u8>,
}

/// One step. A number is a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// SUBMIT, FINISH or the sweep begins, and reads the other runs.
    Begin(usize),
    /// It commits.
    Commit(usize),
    /// Its process dies before the commit.
    RollBack(usize),
    /// The time of a delayed run comes.
    TimeComes(usize),
    /// A worker claims the run.
    Claim(usize),
    /// A client reads the messages after its cursor.
    Read,
}

impl Model for QueueModel {
    type State = Conversation;
    type Action = Action;

    fn init_states(&self) -> Vec<Conversation> {
        let run = |delay| Run { status: Status::Unsubmitted, position: 0, delay, is_head: false, transaction: None };
        let conversation = |runs| Conversation { runs, last_position: 0, committed: Vec::new(), read: Vec::new() };
        [Delay::None, Delay::Lasts].map(|delay| conversation([run(Delay::None), run(delay)])).into()
    }

    fn actions(&self, conversation: &Conversation, actions: &mut Vec<Action>) {
        let is_locked = conversation.runs.iter().any(|run| run.transaction.is_some());
        for (index, run) in conversation.runs.iter().enumerate() {
            match run {
                Run { transaction: Some(_), .. } => actions.extend([Action::Commit(index), Action::RollBack(index)]),
                Run { status: Status::Unsubmitted | Status::Running, .. } => {
                    if !(is_locked && self.rules.the_counter_is_locked) {
                        actions.push(Action::Begin(index));
                    }
                }
                Run { status: Status::Queued, delay: Delay::Lasts, .. } => actions.push(Action::TimeComes(index)),
                Run { status: Status::Queued, delay: Delay::IsOver, is_head: false, .. } => {
                    if !(is_locked && self.rules.delays_end_under_the_lock) {
                        actions.push(Action::Begin(index));
                    }
                }
                Run { status: Status::Queued, is_head, .. } => {
                    if *is_head || !self.rules.workers_claim_the_head {
                        actions.push(Action::Claim(index));
                    }
                }
                Run { status: Status::Ended, .. } => {}
            }
        }
        actions.push(Action::Read);
    }

    fn next_state(&self, conversation: &Conversation, action: Action) -> Option<Conversation> {
        let mut next = conversation.clone();
        match action {
            Action::Begin(index) => next.begin(index, &self.rules),
            Action::Commit(index) => next.commit(index),
            Action::RollBack(index) => {
                let position = next.runs[index].transaction.take().and_then(|transaction| transaction.position);
                // A row that counts returns to its value; a sequence has a gap.
                if position.is_some() && self.rules.the_counter_is_locked {
                    next.last_position -= 1;
                }
            }
            Action::TimeComes(index) => next.runs[index].delay = Delay::IsOver,
            Action::Claim(index) => next.runs[index].status = Status::Running,
            Action::Read => {
                let cursor = next.read.last().copied().unwrap_or(0);
                let mut page: Vec<u8> = next.committed.iter().copied().filter(|position| *position > cursor).collect();
                page.sort_unstable();
                next.read.extend(page);
            }
        }
        (next != *conversation).then_some(next)
    }

    /// A process can die again and again.
    fn within_boundary(&self, conversation: &Conversation) -> bool {
        conversation.last_position <= 8
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no message appears before a cursor", |_, conversation: &Conversation| {
                let cursor = conversation.read.last().copied().unwrap_or(0);
                let mut before = conversation.committed.iter().filter(|position| **position <= cursor);
                before.all(|position| conversation.read.contains(position))
            }),
            Property::always("one run is live", |_, conversation: &Conversation| {
                conversation.runs.iter().filter(|run| run.status == Status::Running).count() <= 1
            }),
            Property::always("a queue has a head", |_, conversation: &Conversation| conversation.has_head()),
            Property::sometimes("all runs end", |_, conversation: &Conversation| {
                conversation.runs.iter().all(|run| run.status == Status::Ended)
            }),
        ]
    }
}

impl Conversation {
    fn begin(&mut self, index: usize, rules: &Rules) {
        let is_live = |run: &Run| matches!(run.status, Status::Queued | Status::Running);
        let mut others = (0..RUNS).filter(|other| *other != index);
        let is_first = !others.clone().any(|other| is_live(&self.runs[other]));
        let (takes_position, head) = match self.runs[index].status {
            Status::Unsubmitted => (true, (is_first && self.runs[index].delay == Delay::None).then_some(index)),
            // The sweep.
            Status::Queued => (
                false,
                (!others.any(|other| is_live(&self.runs[other]) && self.is_before(other, index))).then_some(index),
            ),
            Status::Running | Status::Ended => {
                let is_next = |run: &Run| run.status == Status::Queued && run.delay == Delay::None;
                (true, others.find(|other| is_next(&self.runs[*other])).filter(|_| rules.an_end_marks_the_next_run))
            }
        };
        self.last_position += u8::from(takes_position);
        let position = takes_position.then_some(self.last_position);
        self.runs[index].transaction = Some(Transaction { position, head });
    }

    fn is_before(&self, earlier: usize, later: usize) -> bool {
        self.runs[earlier].position < self.runs[later].position
    }

    fn commit(&mut self, index: usize) {
        let run = &mut self.runs[index];
        let Some(Transaction { position, head }) = run.transaction.take() else { return };
        match run.status {
            Status::Unsubmitted => {
                run.status = Status::Queued;
                run.position = position.unwrap_or_default();
            }
            Status::Queued => run.delay = Delay::None,
            Status::Running | Status::Ended => run.status = Status::Ended,
        }
        run.is_head = false;
        self.committed.extend(position);
        if let Some(head) = head {
            self.runs[head].is_head = true;
        }
    }

    /// Returns whether a queued run waits for its time or the sweep, for a claim, or for an end that comes.
    fn has_head(&self) -> bool {
        let is_queued = |run: &Run| run.status == Status::Queued;
        let comes =
            |run: &Run| run.status == Status::Running || run.is_head || is_queued(run) && run.delay != Delay::None;
        !self.runs.iter().any(is_queued) || self.runs.iter().any(comes)
    }
}

#[cfg(test)]
mod tests {
    use super::{QueueModel, Rules};
    use crate::check::{counterexample, holds, needed};

    #[test]
    fn a_conversation_keeps_its_order() {
        holds(QueueModel::default());
    }

    fn without(remove: impl FnOnce(&mut Rules)) -> QueueModel {
        let mut rules = Rules::default();
        remove(&mut rules);
        QueueModel { rules }
    }

    needed! { without;
        the_counter_is_locked: "no message appears before a cursor";
        an_end_marks_the_next_run: "a queue has a head";
        workers_claim_the_head: "one run is live";
        delays_end_under_the_lock: "a queue has a head";
    }

    #[test]
    fn without_the_lock_a_queue_loses_its_head() {
        let model = without(|rules| rules.the_counter_is_locked = false);
        insta::assert_snapshot!(counterexample(model, "a queue has a head"));
    }
}
