//! Messages that steer a live run: each joins the run at a border of a step, or becomes a run of its own at the run's end.

use stateright::{Model, Property};

/// The rules of steering. A test turns one off.
#[derive(Debug, Clone)]
pub struct Rules {
    /// SUBMIT holds the conversation's lock from its look at the live run until its commit.
    pub posts_hold_the_lock: bool,
    /// Only the holder of the newest attempt takes messages.
    pub takes_are_fenced: bool,
    /// A take leaves out messages that have a run of their own.
    pub takes_look_at_the_message: bool,
    /// The end of a run queues a run for each message that it has not taken.
    pub ends_queue_the_rest: bool,
    /// The taken message and its event are committed before clients see the event.
    pub takes_are_committed_first: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            posts_hold_the_lock: true,
            takes_are_fenced: true,
            takes_look_at_the_message: true,
            ends_queue_the_rest: true,
            takes_are_committed_first: true,
        }
    }
}

/// The model of one live run and two messages.
#[derive(Debug, Clone)]
pub struct SteeringModel {
    /// The rules that hold.
    pub rules: Rules,
    /// Deaths of workers.
    pub kills: u8,
    /// Workers that stand still while another one takes over.
    pub freezes: u8,
}

impl Default for SteeringModel {
    fn default() -> Self {
        Self { rules: Rules::default(), kills: 1, freezes: 1 }
    }
}

const MESSAGES: usize = 2;

/// The place of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Unposted,
    /// SUBMIT has seen a live run, and has not committed yet.
    Posting,
    Pending,
}

/// A message, and the places in which a model reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct SteeringMessage {
    place: Place,
    /// How often the committed trace of the run has it.
    taken: u8,
    /// True once it has a run of its own.
    is_queued: bool,
    /// True once a client has seen that the run took it.
    is_shown: bool,
}

/// A worker with an attempt, and the messages that it has read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Holder {
    attempt: u8,
    read: Vec<usize>,
    is_frozen: bool,
}

/// The state of the run and its messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SteeredRun {
    attempt: u8,
    has_ended: bool,
    holders: Vec<Holder>,
    messages: [SteeringMessage; MESSAGES],
    kills: u8,
    freezes: u8,
}

/// One step. A number is a message, or a worker's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// SUBMIT looks at the live run, and commits unless it holds no lock.
    Post(usize),
    /// A SUBMIT without a lock commits.
    CommitPost(usize),
    /// A worker takes the run over.
    Claim,
    /// The holder reads the messages that wait.
    Read(usize),
    /// A client sees the event before its commit.
    Show(usize),
    /// The holder commits what it has read.
    Take(usize),
    /// The holder ends the run.
    Finish(usize),
    /// The API ends the run by the write rule.
    End,
    /// A worker dies.
    Kill(usize),
    /// A worker stands still.
    Freeze(usize),
    /// It continues.
    Thaw(usize),
}

impl Model for SteeringModel {
    type State = SteeredRun;
    type Action = Action;

    fn init_states(&self) -> Vec<SteeredRun> {
        let unposted = SteeringMessage { place: Place::Unposted, taken: 0, is_queued: false, is_shown: false };
        vec![SteeredRun {
            attempt: 1,
            has_ended: false,
            holders: vec![Holder { attempt: 1, read: Vec::new(), is_frozen: false }],
            messages: [unposted; MESSAGES],
            kills: self.kills,
            freezes: self.freezes,
        }]
    }

    fn actions(&self, run: &SteeredRun, actions: &mut Vec<Action>) {
        for (index, message) in run.messages.iter().enumerate() {
            match message.place {
                // A client posts one message after the other.
                Place::Unposted if index == 0 || run.messages[index - 1].place != Place::Unposted => {
                    actions.push(Action::Post(index));
                }
                Place::Posting => actions.push(Action::CommitPost(index)),
                Place::Unposted | Place::Pending => {}
            }
        }
        if !run.has_ended {
            if run.holders.iter().all(|holder| holder.is_frozen) && run.holders.len() < 2 {
                actions.push(Action::Claim);
            }
            actions.push(Action::End);
        }
        for (place, holder) in run.holders.iter().enumerate() {
            if holder.is_frozen {
                actions.push(Action::Thaw(place));
                continue;
            }
            if holder.read.is_empty() && run.pending().next().is_some() {
                actions.push(Action::Read(place));
            }
            if !holder.read.is_empty() {
                actions.push(Action::Take(place));
                if !self.rules.takes_are_committed_first {
                    actions.push(Action::Show(place));
                }
            }
            if !run.has_ended && holder.attempt == run.attempt {
                actions.push(Action::Finish(place));
            }
            if run.kills > 0 {
                actions.push(Action::Kill(place));
            }
            if run.freezes > 0 {
                actions.push(Action::Freeze(place));
            }
        }
    }

    fn next_state(&self, run: &SteeredRun, action: Action) -> Option<SteeredRun> {
        let mut next = run.clone();
        match action {
            Action::Post(index) => next.post(index, &self.rules),
            Action::CommitPost(index) => next.messages[index].place = Place::Pending,
            Action::Claim => {
                next.attempt += 1;
                next.holders.push(Holder { attempt: next.attempt, read: Vec::new(), is_frozen: false });
            }
            Action::Read(place) => next.holders[place].read = run.pending().collect(),
            Action::Show(place) => {
                for index in next.holders[place].read.clone() {
                    next.messages[index].is_shown = true;
                }
            }
            Action::Take(place) => next.take(place, &self.rules),
            Action::Finish(place) => {
                next.holders.remove(place);
                next.end(&self.rules);
            }
            Action::End => {
                next.attempt += 1;
                next.end(&self.rules);
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

    fn within_boundary(&self, run: &SteeredRun) -> bool {
        run.attempt <= 4
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a message is in one place", |_, run: &SteeredRun| {
                run.messages.iter().all(|message| message.taken + u8::from(message.is_queued) <= 1)
            }),
            Property::always("no message waits for an ended run", |_, run: &SteeredRun| {
                !run.has_ended || run.pending().next().is_none()
            }),
            Property::always("a shown message was taken", |_, run: &SteeredRun| {
                run.messages.iter().all(|message| !(message.is_shown && message.is_queued))
            }),
            Property::always("messages keep their order", |_, run: &SteeredRun| {
                let is_behind = |pair: &[SteeringMessage]| pair[1].taken > 0 && pair[0].taken == 0;
                !run.messages.windows(2).any(is_behind)
            }),
            Property::sometimes("a run takes both", |_, run: &SteeredRun| {
                run.messages.iter().all(|message| message.taken == 1)
            }),
            Property::sometimes("a run takes the first, and the second has its own", |_, run: &SteeredRun| {
                run.messages[0].taken == 1 && run.messages[1].is_queued
            }),
        ]
    }
}

impl SteeredRun {
    fn pending(&self) -> impl Iterator<Item = usize> {
        let is_pending =
            |message: &SteeringMessage| message.place == Place::Pending && message.taken == 0 && !message.is_queued;
        self.messages.iter().enumerate().filter(move |(_, message)| is_pending(message)).map(|(index, _)| index)
    }

    fn post(&mut self, index: usize, rules: &Rules) {
        let message = &mut self.messages[index];
        if self.has_ended {
            (message.place, message.is_queued) = (Place::Pending, true);
        } else {
            message.place = if rules.posts_hold_the_lock { Place::Pending } else { Place::Posting };
        }
    }

    fn take(&mut self, place: usize, rules: &Rules) {
        let Holder { attempt, read, .. } = self.holders[place].clone();
        self.holders[place].read.clear();
        if rules.takes_are_fenced && (attempt != self.attempt || self.has_ended) {
            self.holders.remove(place);
            return;
        }
        for index in read {
            let message = &mut self.messages[index];
            if rules.takes_look_at_the_message && (message.taken > 0 || message.is_queued) {
                continue;
            }
            message.taken += 1;
            message.is_shown = true;
        }
    }

    fn end(&mut self, rules: &Rules) {
        self.has_ended = true;
        if rules.ends_queue_the_rest {
            for index in self.pending().collect::<Vec<_>>() {
                self.messages[index].is_queued = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Rules, SteeringModel};
    use crate::check::{counterexample, holds, needed};

    #[test]
    fn a_steering_message_is_read_once() {
        holds(SteeringModel::default());
    }

    fn without(remove: impl FnOnce(&mut Rules)) -> SteeringModel {
        let mut rules = Rules::default();
        remove(&mut rules);
        SteeringModel { rules, ..SteeringModel::default() }
    }

    needed! { without;
        posts_hold_the_lock: "no message waits for an ended run";
        ends_queue_the_rest: "no message waits for an ended run";
        takes_are_committed_first: "a shown message was taken";
    }

    /// Either of two rules is enough, and without both a message is read twice.
    #[test]
    fn takes_are_fenced_or_look_at_the_message() {
        holds(without(|rules| rules.takes_are_fenced = false));
        holds(without(|rules| rules.takes_look_at_the_message = false));
        let model = without(|rules| (rules.takes_are_fenced, rules.takes_look_at_the_message) = (false, false));
        insta::assert_snapshot!(counterexample(model, "a message is in one place"));
    }
}
