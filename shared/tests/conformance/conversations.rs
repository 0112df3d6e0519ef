//! Conversations: what they show, in which order, and what a run goes on from.

use std::collections::VecDeque;

use holdfast_shared::{
    conversation::Handle,
    ending::Ending,
    message::{Message, Role},
    run::SubmitMode,
    storage::{
        Accepted, Answer, BeginResult, Claim, Finished, MessageInput, NewRun, Submitted, Summary, Target, Which, Window,
    },
};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use uuid::Uuid;

use crate::{
    briefings::stored,
    on_each_backend,
    places::{ALL, NO_QUOTAS, Places, briefing, new_run},
};

on_each_backend!(
    whatever_happens_a_conversation_shows_and_tells_what_is_part_of_it,
    a_handle_names_one_conversation_however_many_ask_for_it,
    a_deleted_conversation_gives_its_handle_back,
    a_standing_conversation_has_a_window_of_its_own,
    a_summary_stands_for_older_turns_until_one_of_them_is_superseded,
    what_a_superseded_run_leaves_behind_is_superseded,
    rolling_back_supersedes_the_interrupted_turn_only,
    an_answer_needs_a_question,
    a_fork_has_what_its_run_went_on_from,
    a_fork_of_a_fork_has_what_was_copied_whatever_was_edited_since,
    an_answer_that_is_superseded_while_it_is_stored_is_not_part_of_the_conversation,
    a_run_that_is_queued_while_another_one_ends_is_known_to_the_second_of_the_two,
);

pub async fn agent(places: &Places) -> Uuid {
    let definition = serde_json::from_value(serde_json::json!({"name": "a"})).unwrap();
    places.storage.create_agent(&definition).await.unwrap().id
}

pub async fn submitted(places: &Places, new: NewRun) -> Accepted {
    match places.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap() {
        Submitted::Accepted(accepted) => *accepted,
        _ => panic!("it was not accepted"),
    }
}

async fn conversation(places: &Places) -> Uuid {
    places.storage.create_conversation("ann", Uuid::now_v7(), None, None).await.unwrap().unwrap().id
}

/// What the run goes on from, its input last.
pub async fn told(places: &Places, claim: &Claim, window: Window) -> (Option<Summary>, Vec<Message>) {
    let BeginResult::Executing(start) = places.storage.begin(claim, "test/test", window).await.unwrap() else {
        panic!("fenced")
    };
    let earlier = start.history.earlier.into_iter().map(|earlier| earlier.message);
    (start.history.summary, earlier.chain([start.history.input]).collect())
}

pub fn ids(messages: &[Message]) -> Vec<Uuid> {
    messages.iter().map(|message| message.id).collect()
}

pub fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.content.to_stored()).collect()
}

/// Ends the run with an answer; answers the answer's message.
async fn answer(places: &Places, claim: &Claim, text: &str) -> Uuid {
    let answer = Answer { text: text.into(), ..Answer::default() };
    let finished = places.storage.finish(claim, None, claim.started.id, &answer, &Ending::Completed).await.unwrap();
    assert!(matches!(finished, Finished::Ended { .. }));
    claim.output_message_id
}

pub async fn claim_of(places: &Places, run_id: Uuid) -> Claim {
    places.claim(100).await.into_iter().find(|claim| claim.run_id == run_id).unwrap()
}

pub async fn shown(places: &Places, conversation: Uuid, which: Which, limit: usize) -> Vec<Message> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page =
            places.storage.messages("ann", conversation, which, limit, cursor.as_deref()).await.unwrap().unwrap();
        assert!(page.items.len() <= limit);
        all.extend(page.items);
        match page.next {
            Some(next) => cursor = Some(next),
            None => return all,
        }
    }
}

/// What people do in a conversation.
#[derive(Debug, Clone)]
enum Deed {
    Say,
    RollBack,
    /// The next run in the queue is executed.
    Answer,
    AddCard,
    /// The message at this place of what is shown, modulo their number.
    Edit(usize),
    Again(usize),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        4 => Just(Deed::Say),
        4 => Just(Deed::Answer),
        1 => Just(Deed::RollBack),
        2 => Just(Deed::AddCard),
        1 => (0..50_usize).prop_map(Deed::Edit),
        1 => (0..50_usize).prop_map(Deed::Again),
    ];
    prop::collection::vec(deed, 1..16)
}

/// A conversation as it should be: its turns in order, and which of them wait for an answer.
#[derive(Default)]
struct Expected {
    turns: Vec<(usize, Vec<(Uuid, Role)>)>,
    queue: VecDeque<Queued>,
    next_turn: usize,
    /// All messages, in the order in which they were made.
    made: Vec<Uuid>,
}

struct Queued {
    run_id: Uuid,
    /// The turn that it answers in.
    turn: usize,
    question: Uuid,
}

impl Expected {
    fn queue(&mut self, accepted: &Accepted, turn: usize) {
        self.queue.push_back(Queued { run_id: accepted.run.id, turn, question: accepted.message.id });
    }

    fn begin_turn(&mut self, messages: Vec<(Uuid, Role)>) -> usize {
        self.next_turn += 1;
        self.made.extend(messages.iter().map(|said| said.0));
        self.turns.push((self.next_turn, messages));
        self.next_turn
    }

    fn all(&self) -> Vec<(Uuid, Role)> {
        self.turns.iter().flat_map(|(_, messages)| messages.clone()).collect()
    }

    /// Cuts everything off behind the `place`-th message, or before it.
    fn cut(&mut self, place: usize, keep: bool) {
        let mut before = 0;
        let index = self.turns.iter().position(|(_, messages)| {
            let is_here = place < before + messages.len();
            before += messages.len();
            is_here
        });
        let index = index.unwrap();
        let (turn, messages) = &mut self.turns[index];
        let (turn, start) = (*turn, before - messages.len());
        messages.truncate(place - start + usize::from(keep));
        self.turns.truncate(index + 1);
        self.queue.retain(|run| run.turn < turn);
    }
}

async fn whatever_happens_a_conversation_shows_and_tells_what_is_part_of_it(places: Places) {
    let agent_id = agent(&places).await;
    let mut runner = TestRunner::deterministic();
    for _ in 0..24 {
        let (deeds, page) = (deeds(), 1..6_usize).new_tree(&mut runner).unwrap().current();
        check(&places, agent_id, &deeds, page).await;
    }
}

async fn check(places: &Places, agent_id: Uuid, deeds: &[Deed], page: usize) {
    let id = conversation(places).await;
    let target = Target::Existing(id);
    let mut expected = Expected::default();
    for deed in deeds {
        let all = expected.all();
        match deed {
            Deed::Say => {
                let accepted = submitted(places, new_run(target.clone(), "a")).await;
                let turn = expected.begin_turn(vec![(accepted.message.id, Role::User)]);
                expected.queue(&accepted, turn);
            }
            Deed::RollBack => {
                let new = NewRun { mode: SubmitMode::Rollback, ..new_run(target.clone(), "b") };
                let accepted = submitted(places, new).await;
                // A run that was to answer again takes its question with it.
                let (turns, questions): (Vec<usize>, Vec<Uuid>) =
                    expected.queue.drain(..).map(|run| (run.turn, run.question)).unzip();
                expected.turns.retain(|(turn, _)| !turns.contains(turn));
                expected.turns.iter_mut().for_each(|(_, said)| said.retain(|said| !questions.contains(&said.0)));
                let turn = expected.begin_turn(vec![(accepted.message.id, Role::User)]);
                expected.queue(&accepted, turn);
            }
            Deed::Answer => {
                let Some(Queued { run_id, turn, .. }) = expected.queue.pop_front() else { continue };
                let claim = claim_of(places, run_id).await;
                let before = expected.turns.iter().filter(|(own, _)| *own < turn);
                let mut tells: Vec<Uuid> = before.flat_map(|(_, said)| said).map(|said| said.0).collect();
                let own = expected.turns.iter_mut().find(|(own, _)| *own == turn).unwrap();
                tells.extend(own.1.iter().map(|said| said.0));
                let said = answer(places, &claim_told(places, &claim, &tells).await, "c").await;
                own.1.push((said, Role::Assistant));
                expected.made.push(said);
            }
            Deed::AddCard => {
                let new = briefing(agent_id, "t");
                let briefing = stored(places, new).await;
                let card = places.storage.add_card("ann", id, briefing).await.unwrap().unwrap();
                expected.begin_turn(vec![(card, Role::System)]);
            }
            Deed::Edit(_) | Deed::Again(_) if all.is_empty() => {}
            Deed::Edit(place) => {
                let place = place % all.len();
                let said = MessageInput::Edit { content: "d".into(), replace_from: all[place].0 };
                let accepted = submitted(places, NewRun { said, ..new_run(target.clone(), "") }).await;
                expected.cut(place, false);
                let turn = expected.begin_turn(vec![(accepted.message.id, Role::User)]);
                expected.queue(&accepted, turn);
            }
            Deed::Again(place) => {
                let place = place % all.len();
                let said = MessageInput::Again { replace_from: all[place].0 };
                let new = NewRun { said, ..new_run(target.clone(), "") };
                let kept = place + usize::from(all[place].1 == Role::User);
                let asked = all[..kept].iter().rev().find(|said| said.1 != Role::System);
                match asked.filter(|said| said.1 == Role::User) {
                    None => {
                        let refused = places.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap();
                        assert!(matches!(refused, Submitted::NothingToAnswer));
                    }
                    Some(asked) => {
                        let accepted = submitted(places, new).await;
                        assert_eq!(accepted.message.id, asked.0);
                        expected.cut(place, all[place].1 == Role::User);
                        let turn = expected.begin_turn(Vec::new());
                        expected.queue(&accepted, turn);
                    }
                }
            }
        }
        let shown = shown(places, id, Which::Current, page).await;
        assert!(shown.is_sorted_by_key(|message| message.created_at), "{deeds:?}");
        let mut part: Vec<Uuid> = expected.all().iter().map(|said| said.0).collect();
        part.sort_by_key(|id| expected.made.iter().position(|made| made == id));
        assert_eq!(ids(&shown), part, "{deeds:?}");
    }
}

/// Ends the run with an answer while something is submitted; either may come first. Tells whether a run waits.
async fn answer_meanwhile(places: &Places, claim: &Claim, new: NewRun, submit_first: bool) -> (bool, Accepted) {
    let text = Answer { text: "c".into(), ..Answer::default() };
    let finish = places.storage.finish(claim, None, claim.started.id, &text, &Ending::Completed);
    let (finished, accepted) = match submit_first {
        false => tokio::join!(finish, submitted(places, new)),
        true => {
            let (accepted, finished) = tokio::join!(submitted(places, new), finish);
            (finished, accepted)
        }
    };
    match finished.unwrap() {
        Finished::Ended { next_waits, .. } => (next_waits, accepted),
        Finished::Fenced => panic!("nobody else holds the run"),
    }
}

async fn an_answer_that_is_superseded_while_it_is_stored_is_not_part_of_the_conversation(places: Places) {
    for round in 0..40 {
        let (run_id, id) = places.submit(Target::New { agent_id: None }, "a").await;
        let claim = claim_of(&places, run_id).await;
        let question = shown(&places, id, Which::Current, 10).await.remove(0).id;
        let again =
            NewRun { said: MessageInput::Again { replace_from: question }, ..new_run(Target::Existing(id), "") };
        let (_, again) = answer_meanwhile(&places, &claim, again, round % 2 == 1).await;
        assert_eq!(ids(&shown(&places, id, Which::Current, 10).await), [question], "round {round}");
        assert_eq!(claim_of(&places, again.run.id).await.conversation_id, id);
    }
}

async fn a_run_that_is_queued_while_another_one_ends_is_known_to_the_second_of_the_two(places: Places) {
    for round in 0..40 {
        let (run_id, id) = places.submit(Target::New { agent_id: None }, "a").await;
        let claim = claim_of(&places, run_id).await;
        let next = new_run(Target::Existing(id), "b");
        let (next_waits, next) = answer_meanwhile(&places, &claim, next, round % 2 == 1).await;
        let messages = shown(&places, id, Which::Current, 10).await;
        assert!(messages.is_sorted_by_key(|message| message.created_at), "round {round}: {messages:?}");
        let was_queued_first = messages[1].id == next.message.id;
        assert!(next_waits || !was_queued_first, "round {round}");
    }
}

/// The claim, once its run goes on from these messages. A question that is answered again comes last.
async fn claim_told(places: &Places, claim: &Claim, expected: &[Uuid]) -> Claim {
    let (_, told) = told(places, claim, ALL).await;
    let asked = told.last().unwrap().id;
    let mut expected = expected.to_vec();
    expected.retain(|id| *id != asked);
    expected.push(asked);
    assert_eq!(ids(&told), expected);
    claim.clone()
}

async fn a_handle_names_one_conversation_however_many_ask_for_it(places: Places) {
    let handle = Handle::Agent(agent(&places).await);
    let ask = || places.storage.conversation_by_handle("ann", &handle);
    let found = futures::future::join_all((0..50).map(|_| ask())).await;
    let first = found[0].as_ref().unwrap().clone().unwrap();
    assert!(found.into_iter().all(|found| found.unwrap().unwrap() == first));
    let others = places.storage.conversation_by_handle("bob", &handle).await.unwrap().unwrap();
    assert_ne!(others.id, first.id);
    let session = |name: &str| Handle::Session(name.into());
    let one = places.storage.conversation_by_handle("ann", &session("one")).await.unwrap().unwrap();
    assert_ne!(Some(one), places.storage.conversation_by_handle("ann", &session("two")).await.unwrap());
    let unknown = Handle::Agent(Uuid::now_v7());
    assert_eq!(places.storage.conversation_by_handle("ann", &unknown).await.unwrap(), None);
}

async fn a_deleted_conversation_gives_its_handle_back(places: Places) {
    let handle = Handle::Session("one".into());
    let first = places.storage.conversation_by_handle("ann", &handle).await.unwrap().unwrap();
    places.storage.delete_conversation("ann", first.id).await.unwrap().unwrap();
    assert_eq!(places.storage.find_conversation("ann", &handle).await.unwrap(), None);
    let second = places.storage.conversation_by_handle("ann", &handle).await.unwrap().unwrap();
    assert_ne!(first.id, second.id);
}

async fn a_standing_conversation_has_a_window_of_its_own(places: Places) {
    let handle = Handle::Agent(agent(&places).await);
    let standing = places.storage.conversation_by_handle("ann", &handle).await.unwrap().unwrap().id;
    let free = conversation(&places).await;
    for (id, expected) in [(standing, 5), (free, 3)] {
        for _ in 0..3 {
            let (run_id, _) = places.submit(Target::Existing(id), "q").await;
            answer(&places, &claim_of(&places, run_id).await, "a").await;
        }
        let (run_id, _) = places.submit(Target::Existing(id), "now").await;
        let (_, told) =
            told(&places, &claim_of(&places, run_id).await, Window { usual: 3, standing: 5, result_chars: 0 }).await;
        assert_eq!(told.len(), expected + 1, "and its own input");
    }
}

async fn a_summary_stands_for_older_turns_until_one_of_them_is_superseded(places: Places) {
    let (first, id) = places.submit(Target::New { agent_id: None }, "one").await;
    let target = Target::Existing(id);
    answer(&places, &claim_of(&places, first).await, "first").await;
    let second = submitted(&places, new_run(target.clone(), "two")).await;
    let claim = claim_of(&places, second.run.id).await;
    let summary = Summary { up_to: 1, content: "short".into() };
    for _ in 0..2 {
        places.storage.keep_summary(&claim, &summary).await.unwrap();
    }
    let (kept, said) = told(&places, &claim, ALL).await;
    assert_eq!((kept, texts(&said)), (Some(summary.clone()), vec!["two".to_owned()]));
    answer(&places, &claim, "second").await;
    let (third, _) = places.submit(target.clone(), "three").await;
    let (kept, said) = told(&places, &claim_of(&places, third).await, ALL).await;
    assert_eq!((kept, texts(&said)), (Some(summary.clone()), ["two", "second", "three"].map(str::to_owned).to_vec()));
    places.storage.end_run(third, &Ending::Cancelled).await.unwrap();
    let edit = async |content: &str, replace_from| {
        let said = MessageInput::Edit { content: content.into(), replace_from };
        let run_id = submitted(&places, NewRun { said, ..new_run(target.clone(), "") }).await.run.id;
        let claim = claim_of(&places, run_id).await;
        let (kept, said) = told(&places, &claim, ALL).await;
        places.storage.end_run(run_id, &Ending::Cancelled).await.unwrap();
        (kept, texts(&said))
    };
    let other = edit("zwei", second.message.id).await;
    assert_eq!(other, (Some(summary), vec!["zwei".to_owned()]), "what it covers is as it was");
    let first_message = shown(&places, id, Which::Current, 10).await[0].id;
    assert_eq!(edit("eins", first_message).await, (None, vec!["eins".to_owned()]));
}

async fn what_a_superseded_run_leaves_behind_is_superseded(places: Places) {
    let first = submitted(&places, new_run(Target::New { agent_id: None }, "one")).await;
    let claim = claim_of(&places, first.run.id).await;
    let said = MessageInput::Again { replace_from: first.message.id };
    let again = submitted(&places, NewRun { said, ..new_run(Target::Existing(claim.conversation_id), "") }).await;
    assert_eq!((again.cancel_requested, again.message.id), (vec![claim.run_id], first.message.id));
    answer(&places, &claim, "late").await;
    let current = shown(&places, claim.conversation_id, Which::Current, 10).await;
    assert_eq!(texts(&current), ["one"]);
    let everything = shown(&places, claim.conversation_id, Which::SupersededToo, 10).await;
    assert_eq!(texts(&everything), ["one", "late"]);
    assert!(everything[1].superseded_at.is_some());
    let (_, said) = told(&places, &claim_of(&places, again.run.id).await, ALL).await;
    assert_eq!(texts(&said), ["one"]);
}

async fn rolling_back_supersedes_the_interrupted_turn_only(places: Places) {
    let (first, id) = places.submit(Target::New { agent_id: None }, "one").await;
    answer(&places, &claim_of(&places, first).await, "first").await;
    let (second, _) = places.submit(Target::Existing(id), "two").await;
    let claim = claim_of(&places, second).await;
    let new = NewRun { mode: SubmitMode::Rollback, ..new_run(Target::Existing(id), "three") };
    assert_eq!(submitted(&places, new).await.cancel_requested, [second]);
    answer(&places, &claim, "half").await;
    assert_eq!(texts(&shown(&places, id, Which::Current, 10).await), ["one", "first", "three"]);
    let everything = texts(&shown(&places, id, Which::SupersededToo, 10).await);
    assert_eq!(everything, ["one", "first", "two", "three", "half"]);
}

async fn an_answer_needs_a_question(places: Places) {
    let agent_id = agent(&places).await;
    let id = conversation(&places).await;
    let told = stored(&places, briefing(agent_id, "t")).await;
    let card = places.storage.add_card("ann", id, told).await.unwrap().unwrap();
    let again = async |replace_from, owner: &str| {
        let said = MessageInput::Again { replace_from };
        places.storage.submit(owner, &NO_QUOTAS, &NewRun { said, ..new_run(Target::Existing(id), "") }).await.unwrap()
    };
    assert!(matches!(again(card, "ann").await, Submitted::NothingToAnswer));
    assert!(matches!(again(Uuid::now_v7(), "ann").await, Submitted::MessageNotFound));
    assert!(matches!(again(card, "bob").await, Submitted::ConversationNotFound));
    assert_eq!(ids(&shown(&places, id, Which::Current, 10).await), [card], "nothing was superseded");
}

async fn a_fork_has_what_its_run_went_on_from(places: Places) {
    let (first, id) = places.submit(Target::New { agent_id: None }, "one").await;
    let target = Target::Existing(id);
    let replaced = answer(&places, &claim_of(&places, first).await, "first").await;
    let said = MessageInput::Again { replace_from: replaced };
    let again = submitted(&places, NewRun { said, ..new_run(target.clone(), "") }).await;
    answer(&places, &claim_of(&places, again.run.id).await, "better").await;
    let (third, _) = places.submit(target, "two").await;
    let claim = claim_of(&places, third).await;
    let checkpoint = checkpoint_of(&places, &claim).await;
    let fork = places.storage.fork_conversation("ann", id, checkpoint).await.unwrap().unwrap();
    assert_eq!(texts(&shown(&places, fork.id, Which::Current, 10).await), ["one", "better", "two"]);
    let (run_id, _) = places.submit(Target::Existing(fork.id), "three").await;
    let (_, said) = told(&places, &claim_of(&places, run_id).await, ALL).await;
    assert_eq!(texts(&said), ["one", "better", "two", "three"]);
}

async fn a_fork_of_a_fork_has_what_was_copied_whatever_was_edited_since(places: Places) {
    let (first, id) = places.submit(Target::New { agent_id: None }, "one").await;
    let claim = claim_of(&places, first).await;
    let checkpoint = checkpoint_of(&places, &claim).await;
    let fork = places.storage.fork_conversation("ann", id, checkpoint).await.unwrap().unwrap().id;
    let origin = places.storage.checkpoints("ann", fork, 10, None).await.unwrap().unwrap().items.pop().unwrap();
    let copied = shown(&places, fork, Which::Current, 10).await;
    let said = MessageInput::Edit { content: "eins".into(), replace_from: copied[0].id };
    submitted(&places, NewRun { said, ..new_run(Target::Existing(fork), "") }).await;
    let again = places.storage.fork_conversation("ann", fork, origin.id).await.unwrap().unwrap();
    assert_eq!(texts(&shown(&places, again.id, Which::Current, 10).await), ["one"]);
}

/// A checkpoint of the claim's run, behind its input.
pub async fn checkpoint_of(places: &Places, claim: &Claim) -> Uuid {
    use holdfast_shared::{
        event::{Event, EventBody, StepStarted},
        storage::{ArchiveChunk, NewCheckpoint, Progress},
        trace::Node,
    };
    let (id, event_id) = (Uuid::now_v7(), claim.started.id.next());
    let checkpoint =
        NewCheckpoint { id, node: Node::Input, step: 0, event_id, messages: 0, metadata: serde_json::json!({}) };
    let progress = Progress { checkpoints: vec![checkpoint], ..Progress::default() };
    let mut body = Vec::new();
    Event::encode_into(&mut body, event_id, 0, &EventBody::StepStarted(StepStarted { step: 1 }));
    let chunk = ArchiveChunk { last: event_id, body: body.into(), progress };
    places.storage.flush(claim, &chunk, crate::places::LEASE).await.unwrap();
    id
}
