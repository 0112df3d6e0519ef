//! Conversations: their messages, the order of them, and the history that a run's model reads.

use std::collections::VecDeque;

use holdfast_shared::{
    conversation::Handle,
    ending::Ending,
    message::{Message, Role},
    run::SubmitMode,
    storage::{
        Answer, BeginResult, ChatFilter, Claim, CommittedMessage, FinishOutcome, MessageFilter, MessageInput, NewRun,
        SubmitOutcome, Summary, Target, Window,
    },
};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    backends::{ALL, NO_QUOTAS, TestBackends, briefing, new_run},
    briefings::stored,
    on_each_backend,
};

on_each_backend!(
    any_actions_leave_lists_and_histories_with_the_current_messages,
    a_handle_names_one_conversation_for_many_requests_at_once,
    metadata_with_any_name_is_found,
    the_edges_of_conversations_are_their_first_and_newest_messages,
    runs_of_a_conversation_come_by_their_positions,
    a_deleted_conversation_frees_its_handle,
    a_standing_conversation_has_its_own_window,
    a_window_keeps_the_newest_messages_within_its_bytes,
    the_answer_of_a_superseded_run_is_superseded,
    a_rollback_supersedes_the_interrupted_turn_only,
    an_answer_needs_a_question,
    a_fork_has_the_history_of_its_run,
    a_fork_of_a_fork_has_the_copied_messages_without_later_edits,
    an_answer_that_is_superseded_during_its_storage_is_not_part_of_the_conversation,
    the_later_of_a_submission_and_an_end_sees_the_other,
    a_search_forgives_one_typing_error,
);

async fn metadata_with_any_name_is_found(backends: TestBackends) {
    let names = [
        "team", "\\", "$1", "$", "$.team", "$[0]", "a.b", "\"", "'", "0", "-1", "[0]", "", " ", "%", "ü", "潮", "a\nb",
        "\u{7f}",
    ];
    let mut ids = Vec::new();
    for name in names {
        let id = Uuid::now_v7();
        backends.storage.create_conversation("ann", id, None, None).await.unwrap().unwrap();
        let metadata = Map::from_iter([(name.to_owned(), json!("blue")), ("all".to_owned(), json!({"n": [1]}))]);
        backends.storage.set_chat_metadata("ann", id, metadata).await.unwrap();
        ids.push(id);
    }
    let search = async |pairs: &[(&str, Value)]| {
        let metadata = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let filter = ChatFilter { metadata, ..ChatFilter::default() };
        let counted = backends.storage.count_chats("ann", filter.clone()).await.unwrap();
        let chats = backends.storage.chats("ann", filter, 100, 0).await.unwrap();
        assert_eq!(counted, chats.len());
        chats.into_iter().map(|chat| chat.conversation.id).collect::<Vec<_>>()
    };
    for (name, id) in names.into_iter().zip(&ids) {
        assert_eq!(search(&[(name, json!("blue"))]).await, [*id], "{name:?}");
        assert!(search(&[(name, json!("red"))]).await.is_empty(), "{name:?}");
    }
    assert_eq!(search(&[("all", json!({"n": [1]}))]).await.len(), names.len());
    assert!(search(&[("none", json!("blue"))]).await.is_empty());
}

async fn the_edges_of_conversations_are_their_first_and_newest_messages(backends: TestBackends) {
    let long = "ü".repeat(1_500);
    let (_, several) = backends.submit(Target::New { agent_id: None }, &long).await;
    backends.submit(Target::Existing(several), "two").await;
    backends.submit(Target::Existing(several), "three").await;
    let (_, single) = backends.submit(Target::New { agent_id: None }, "one").await;
    let empty = Uuid::now_v7();
    backends.storage.create_conversation("ann", empty, None, None).await.unwrap().unwrap();
    let edges = async |owner: &str| {
        let messages = backends.storage.edge_messages(owner, vec![several, single, empty]).await.unwrap();
        messages.into_iter().map(|message| (message.conversation_id, message.content.into_stored())).collect::<Vec<_>>()
    };
    let of = |messages: &[(Uuid, String)], id: Uuid| -> Vec<String> {
        messages.iter().filter(|(of, _)| *of == id).map(|(_, text)| text.clone()).collect()
    };
    let found = edges("ann").await;
    assert_eq!(of(&found, several), ["ü".repeat(1_000), "three".to_owned()]);
    assert_eq!((of(&found, single), found.len()), (vec!["one".to_owned()], 3));
    assert_eq!(edges("bob").await, []);
}

async fn runs_of_a_conversation_come_by_their_positions(backends: TestBackends) {
    let (first, conversation) = backends.submit(Target::New { agent_id: None }, "one").await;
    let (second, _) = backends.submit(Target::Existing(conversation), "two").await;
    let storage = &backends.storage;
    let (first_at, second_at) =
        (storage.run_position(first).await.unwrap().unwrap(), storage.run_position(second).await.unwrap().unwrap());
    assert!(first_at < second_at);
    let next = async |owner: &str, after: i64| storage.next_run(owner, conversation, after).await.unwrap();
    assert_eq!(next("ann", 0).await, Some((first, first_at)));
    assert_eq!(next("ann", first_at).await, Some((second, second_at)));
    assert_eq!((next("ann", second_at).await, next("bob", 0).await), (None, None));
    assert_eq!(storage.newest_positions("ann", conversation, 1).await.unwrap(), [second_at]);
    assert_eq!(storage.newest_positions("ann", conversation, 8).await.unwrap(), [second_at, first_at]);
    let last = async || storage.last_positions(vec![conversation, Uuid::now_v7()]).await.unwrap();
    let before = last().await;
    backends.submit(Target::Existing(conversation), "three").await;
    let after = last().await;
    assert_eq!((before[0].0, before.len(), after.len()), (conversation, 1, 1));
    assert!(before[0].1 < after[0].1, "a new run moves the last position on");
}

pub async fn agent(backends: &TestBackends) -> Uuid {
    let definition = serde_json::from_value(serde_json::json!({"name": "a"})).unwrap();
    backends.storage.create_agent(&definition).await.unwrap().unwrap().id
}

pub async fn submitted(backends: &TestBackends, new: NewRun) -> CommittedMessage {
    match backends.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap() {
        SubmitOutcome::Accepted(accepted) => *accepted,
        _ => panic!("it was not accepted"),
    }
}

async fn conversation(backends: &TestBackends) -> Uuid {
    backends.storage.create_conversation("ann", Uuid::now_v7(), None, None).await.unwrap().unwrap().id
}

/// Returns the summary and the messages that the run's model reads, its input last.
pub async fn model_history(backends: &TestBackends, claim: &Claim, window: Window) -> (Option<Summary>, Vec<Message>) {
    let BeginResult::Executing(start) = backends.storage.begin(claim, window).await.unwrap() else { panic!("fenced") };
    let earlier = start.history.earlier.into_iter().map(|earlier| earlier.message);
    (start.history.summary, earlier.chain([start.history.input]).collect())
}

pub fn ids(messages: &[Message]) -> Vec<Uuid> {
    messages.iter().map(|message| message.id).collect()
}

pub fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.content.to_stored()).collect()
}

/// Ends the run with an answer, and returns the answer's message id.
async fn answer(backends: &TestBackends, claim: &Claim, text: &str) -> Uuid {
    let answer = Answer { text: text.into(), ..Answer::default() };
    let finished = backends.storage.finish(claim, None, claim.started.id, &answer, &Ending::Completed).await.unwrap();
    assert!(matches!(finished, FinishOutcome::Ended(_)));
    claim.output_message_id
}

pub async fn claim_of(backends: &TestBackends, run_id: Uuid) -> Claim {
    backends.claim(100).await.into_iter().find(|claim| claim.run_id == run_id).unwrap()
}

pub async fn shown(backends: &TestBackends, conversation: Uuid, which: MessageFilter, limit: usize) -> Vec<Message> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page =
            backends.storage.messages("ann", conversation, which, limit, cursor.as_deref()).await.unwrap().unwrap();
        assert!(page.items.len() <= limit);
        all.extend(page.items);
        match page.next {
            Some(next) => cursor = Some(next),
            None => return all,
        }
    }
}

/// The actions of a client in a conversation.
#[derive(Debug, Clone)]
enum UserAction {
    Say,
    RollBack,
    /// Executes the next run of the queue.
    Answer,
    AddCard,
    /// The index of a shown message, modulo their number.
    Edit(usize),
    Again(usize),
}

fn actions() -> impl Strategy<Value = Vec<UserAction>> {
    let action = prop_oneof![
        4 => Just(UserAction::Say),
        4 => Just(UserAction::Answer),
        1 => Just(UserAction::RollBack),
        2 => Just(UserAction::AddCard),
        1 => (0..50_usize).prop_map(UserAction::Edit),
        1 => (0..50_usize).prop_map(UserAction::Again),
    ];
    prop::collection::vec(action, 1..16)
}

/// The expected conversation: its turns in order, and the runs of its queue.
#[derive(Default)]
struct Expected {
    turns: Vec<(usize, Vec<(Uuid, Role)>)>,
    queue: VecDeque<QueuedRun>,
    next_turn: usize,
    /// All messages, in the order of their creation.
    made: Vec<Uuid>,
}

struct QueuedRun {
    run_id: Uuid,
    /// The turn of its answer.
    turn: usize,
    question: Uuid,
}

impl Expected {
    fn queue(&mut self, accepted: &CommittedMessage, turn: usize) {
        self.queue.push_back(QueuedRun { run_id: accepted.run.id, turn, question: accepted.message.id });
    }

    fn begin_turn(&mut self, messages: Vec<(Uuid, Role)>) -> usize {
        self.next_turn += 1;
        self.made.extend(messages.iter().map(|message| message.0));
        self.turns.push((self.next_turn, messages));
        self.next_turn
    }

    fn all(&self) -> Vec<(Uuid, Role)> {
        self.turns.iter().flat_map(|(_, messages)| messages.clone()).collect()
    }

    /// Removes each message after the `place`-th one, and that one too unless `keep` is set.
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

async fn any_actions_leave_lists_and_histories_with_the_current_messages(backends: TestBackends) {
    let agent_id = agent(&backends).await;
    let mut runner = TestRunner::deterministic();
    for _ in 0..24 {
        let (actions, page) = (actions(), 1..6_usize).new_tree(&mut runner).unwrap().current();
        check(&backends, agent_id, &actions, page).await;
    }
}

async fn check(backends: &TestBackends, agent_id: Uuid, actions: &[UserAction], page: usize) {
    let id = conversation(backends).await;
    let target = Target::Existing(id);
    let mut expected = Expected::default();
    for action in actions {
        let all = expected.all();
        match action {
            UserAction::Say => {
                let accepted = submitted(backends, new_run(target.clone(), "a")).await;
                let turn = expected.begin_turn(vec![(accepted.message.id, Role::User)]);
                expected.queue(&accepted, turn);
            }
            UserAction::RollBack => {
                let new = NewRun { mode: SubmitMode::Rollback, ..new_run(target.clone(), "b") };
                let accepted = submitted(backends, new).await;
                // A run that answers again takes its question with it.
                let (turns, questions): (Vec<usize>, Vec<Uuid>) =
                    expected.queue.drain(..).map(|run| (run.turn, run.question)).unzip();
                expected.turns.retain(|(turn, _)| !turns.contains(turn));
                expected
                    .turns
                    .iter_mut()
                    .for_each(|(_, messages)| messages.retain(|message| !questions.contains(&message.0)));
                let turn = expected.begin_turn(vec![(accepted.message.id, Role::User)]);
                expected.queue(&accepted, turn);
            }
            UserAction::Answer => {
                let Some(QueuedRun { run_id, turn, .. }) = expected.queue.pop_front() else { continue };
                let claim = claim_of(backends, run_id).await;
                let before = expected.turns.iter().filter(|(own, _)| *own < turn);
                let mut tells: Vec<Uuid> = before.flat_map(|(_, messages)| messages).map(|message| message.0).collect();
                let own = expected.turns.iter_mut().find(|(own, _)| *own == turn).unwrap();
                tells.extend(own.1.iter().map(|message| message.0));
                let answer_id = answer(backends, &claim_with_history(backends, &claim, &tells).await, "c").await;
                own.1.push((answer_id, Role::Assistant));
                expected.made.push(answer_id);
            }
            UserAction::AddCard => {
                let new = briefing(agent_id, "t");
                let briefing = stored(backends, new).await;
                let card = backends.storage.add_card("ann", id, briefing).await.unwrap().unwrap();
                expected.begin_turn(vec![(card, Role::System)]);
            }
            UserAction::Edit(_) | UserAction::Again(_) if all.is_empty() => {}
            UserAction::Edit(place) => {
                let place = place % all.len();
                let input = MessageInput::Edit { content: "d".into(), replace_from: all[place].0 };
                let accepted = submitted(backends, NewRun { input, ..new_run(target.clone(), "") }).await;
                expected.cut(place, false);
                let turn = expected.begin_turn(vec![(accepted.message.id, Role::User)]);
                expected.queue(&accepted, turn);
            }
            UserAction::Again(place) => {
                let place = place % all.len();
                let input = MessageInput::Again { replace_from: all[place].0 };
                let new = NewRun { input, ..new_run(target.clone(), "") };
                let kept = place + usize::from(all[place].1 == Role::User);
                let question = all[..kept].iter().rev().find(|message| message.1 != Role::System);
                match question.filter(|message| message.1 == Role::User) {
                    None => {
                        let refused = backends.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap();
                        assert!(matches!(refused, SubmitOutcome::NothingToAnswer));
                    }
                    Some(question) => {
                        let accepted = submitted(backends, new).await;
                        assert_eq!(accepted.message.id, question.0);
                        expected.cut(place, all[place].1 == Role::User);
                        let turn = expected.begin_turn(Vec::new());
                        expected.queue(&accepted, turn);
                    }
                }
            }
        }
        let shown = shown(backends, id, MessageFilter::Current, page).await;
        assert!(shown.is_sorted_by_key(|message| message.created_at), "{actions:?}");
        let mut part: Vec<Uuid> = expected.all().iter().map(|message| message.0).collect();
        part.sort_by_key(|id| expected.made.iter().position(|made| made == id));
        assert_eq!(ids(&shown), part, "{actions:?}");
    }
}

/// Ends the run with an answer while a message is submitted, in either order. Returns whether a run waits.
async fn answer_meanwhile(
    backends: &TestBackends,
    claim: &Claim,
    new: NewRun,
    submit_first: bool,
) -> (bool, CommittedMessage) {
    let text = Answer { text: "c".into(), ..Answer::default() };
    let finish = backends.storage.finish(claim, None, claim.started.id, &text, &Ending::Completed);
    let (finished, accepted) = if submit_first {
        let (accepted, finished) = tokio::join!(submitted(backends, new), finish);
        (finished, accepted)
    } else {
        tokio::join!(finish, submitted(backends, new))
    };
    match finished.unwrap() {
        FinishOutcome::Ended(closed) => (closed.next_waits, accepted),
        FinishOutcome::Fenced => panic!("no other worker holds the run"),
    }
}

async fn an_answer_that_is_superseded_during_its_storage_is_not_part_of_the_conversation(backends: TestBackends) {
    for round in 0..40 {
        let (run_id, id) = backends.submit(Target::New { agent_id: None }, "a").await;
        let claim = claim_of(&backends, run_id).await;
        let question = shown(&backends, id, MessageFilter::Current, 10).await.remove(0).id;
        let again =
            NewRun { input: MessageInput::Again { replace_from: question }, ..new_run(Target::Existing(id), "") };
        let (_, again) = answer_meanwhile(&backends, &claim, again, round % 2 == 1).await;
        assert_eq!(ids(&shown(&backends, id, MessageFilter::Current, 10).await), [question], "round {round}");
        assert_eq!(claim_of(&backends, again.run.id).await.conversation_id, id);
    }
}

async fn the_later_of_a_submission_and_an_end_sees_the_other(backends: TestBackends) {
    for round in 0..40 {
        let (run_id, id) = backends.submit(Target::New { agent_id: None }, "a").await;
        let claim = claim_of(&backends, run_id).await;
        let next = new_run(Target::Existing(id), "b");
        let (next_waits, next) = answer_meanwhile(&backends, &claim, next, round % 2 == 1).await;
        let messages = shown(&backends, id, MessageFilter::Current, 10).await;
        assert!(messages.is_sorted_by_key(|message| message.created_at), "round {round}: {messages:?}");
        let was_queued_first = messages[1].id == next.message.id;
        assert!(next_waits || !was_queued_first, "round {round}");
    }
}

/// Returns the claim after a check of its run's history. A question that the run answers again comes last.
async fn claim_with_history(backends: &TestBackends, claim: &Claim, expected: &[Uuid]) -> Claim {
    let (_, history) = model_history(backends, claim, ALL).await;
    let question = history.last().unwrap().id;
    let mut expected = expected.to_vec();
    expected.retain(|id| *id != question);
    expected.push(question);
    assert_eq!(ids(&history), expected);
    claim.clone()
}

async fn a_handle_names_one_conversation_for_many_requests_at_once(backends: TestBackends) {
    let handle = Handle::Agent(agent(&backends).await);
    let ask = || backends.storage.conversation_by_handle("ann", &handle);
    let found = futures::future::join_all((0..50).map(|_| ask())).await;
    let first = found[0].as_ref().unwrap().clone().unwrap();
    assert!(found.into_iter().all(|found| found.unwrap().unwrap() == first));
    let others = backends.storage.conversation_by_handle("bob", &handle).await.unwrap().unwrap();
    assert_ne!(others.id, first.id);
    let session = |name: &str| Handle::Session(name.into());
    let one = backends.storage.conversation_by_handle("ann", &session("one")).await.unwrap().unwrap();
    assert_ne!(Some(one), backends.storage.conversation_by_handle("ann", &session("two")).await.unwrap());
    let unknown = Handle::Agent(Uuid::now_v7());
    assert_eq!(backends.storage.conversation_by_handle("ann", &unknown).await.unwrap(), None);
}

async fn a_deleted_conversation_frees_its_handle(backends: TestBackends) {
    let handle = Handle::Session("one".into());
    let first = backends.storage.conversation_by_handle("ann", &handle).await.unwrap().unwrap();
    backends.storage.delete_conversation("ann", first.id).await.unwrap().unwrap();
    assert_eq!(backends.storage.find_conversation("ann", &handle).await.unwrap(), None);
    let second = backends.storage.conversation_by_handle("ann", &handle).await.unwrap().unwrap();
    assert_ne!(first.id, second.id);
}

async fn a_standing_conversation_has_its_own_window(backends: TestBackends) {
    let handle = Handle::Agent(agent(&backends).await);
    let standing = backends.storage.conversation_by_handle("ann", &handle).await.unwrap().unwrap().id;
    let free = conversation(&backends).await;
    for (id, expected) in [(standing, 5), (free, 3)] {
        for _ in 0..3 {
            let (run_id, _) = backends.submit(Target::Existing(id), "q").await;
            answer(&backends, &claim_of(&backends, run_id).await, "a").await;
        }
        let (run_id, _) = backends.submit(Target::Existing(id), "now").await;
        let (_, history) =
            model_history(&backends, &claim_of(&backends, run_id).await, Window { usual: 3, standing: 5, ..ALL }).await;
        assert_eq!(history.len(), expected + 1, "and its own input");
    }
}

async fn a_window_keeps_the_newest_messages_within_its_bytes(backends: TestBackends) {
    let (first, id) = backends.submit(Target::New { agent_id: None }, "aaaa").await;
    answer(&backends, &claim_of(&backends, first).await, "bbbb").await;
    let (second, _) = backends.submit(Target::Existing(id), "cccc").await;
    answer(&backends, &claim_of(&backends, second).await, "dddd").await;
    let (third, _) = backends.submit(Target::Existing(id), "now").await;
    let claim = claim_of(&backends, third).await;
    let read = async |usual: usize, bytes: usize| {
        let window = Window { usual, bytes, ..ALL };
        let BeginResult::Executing(start) = backends.storage.begin(&claim, window).await.unwrap() else { panic!() };
        let earlier = start.history.earlier.into_iter().map(|earlier| earlier.message.content.to_stored());
        (earlier.collect::<Vec<_>>().join(" "), start.history.older)
    };
    assert_eq!(read(1000, 1000).await, ("aaaa bbbb cccc dddd".to_owned(), None));
    assert_eq!(read(4, 1000).await, ("aaaa bbbb cccc dddd".to_owned(), None));
    assert_eq!(read(3, 1000).await, ("bbbb cccc dddd".to_owned(), Some(1)));
    assert_eq!(read(2, 1000).await, ("cccc dddd".to_owned(), Some(1)));
    assert_eq!(read(0, 1000).await, (String::new(), Some(3)));
    assert_eq!(read(1000, 5).await, ("cccc dddd".to_owned(), Some(1)), "the oldest message may exceed the bytes");
    assert_eq!(read(1000, 0).await, ("dddd".to_owned(), Some(3)));
}

async fn the_answer_of_a_superseded_run_is_superseded(backends: TestBackends) {
    let first = submitted(&backends, new_run(Target::New { agent_id: None }, "one")).await;
    let claim = claim_of(&backends, first.run.id).await;
    let input = MessageInput::Again { replace_from: first.message.id };
    let again = submitted(&backends, NewRun { input, ..new_run(Target::Existing(claim.conversation_id), "") }).await;
    assert_eq!((again.cancel_requested, again.message.id), (vec![claim.run_id], first.message.id));
    answer(&backends, &claim, "late").await;
    let current = shown(&backends, claim.conversation_id, MessageFilter::Current, 10).await;
    assert_eq!(texts(&current), ["one"]);
    let everything = shown(&backends, claim.conversation_id, MessageFilter::SupersededToo, 10).await;
    assert_eq!(texts(&everything), ["one", "late"]);
    assert!(everything[1].superseded_at.is_some());
    let (_, history) = model_history(&backends, &claim_of(&backends, again.run.id).await, ALL).await;
    assert_eq!(texts(&history), ["one"]);
}

async fn a_rollback_supersedes_the_interrupted_turn_only(backends: TestBackends) {
    let (first, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    answer(&backends, &claim_of(&backends, first).await, "first").await;
    let (second, _) = backends.submit(Target::Existing(id), "two").await;
    let claim = claim_of(&backends, second).await;
    let new = NewRun { mode: SubmitMode::Rollback, ..new_run(Target::Existing(id), "three") };
    assert_eq!(submitted(&backends, new).await.cancel_requested, [second]);
    answer(&backends, &claim, "half").await;
    assert_eq!(texts(&shown(&backends, id, MessageFilter::Current, 10).await), ["one", "first", "three"]);
    let everything = texts(&shown(&backends, id, MessageFilter::SupersededToo, 10).await);
    assert_eq!(everything, ["one", "first", "two", "three", "half"]);
}

async fn an_answer_needs_a_question(backends: TestBackends) {
    let agent_id = agent(&backends).await;
    let id = conversation(&backends).await;
    let history = stored(&backends, briefing(agent_id, "t")).await;
    let card = backends.storage.add_card("ann", id, history).await.unwrap().unwrap();
    let again = async |replace_from, owner: &str| {
        let input = MessageInput::Again { replace_from };
        backends
            .storage
            .submit(owner, &NO_QUOTAS, &NewRun { input, ..new_run(Target::Existing(id), "") })
            .await
            .unwrap()
    };
    assert!(matches!(again(card, "ann").await, SubmitOutcome::NothingToAnswer));
    assert!(matches!(again(Uuid::now_v7(), "ann").await, SubmitOutcome::MessageNotFound));
    assert!(matches!(again(card, "bob").await, SubmitOutcome::ConversationNotFound));
    assert_eq!(ids(&shown(&backends, id, MessageFilter::Current, 10).await), [card], "nothing was superseded");
}

async fn a_fork_has_the_history_of_its_run(backends: TestBackends) {
    let (first, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    let target = Target::Existing(id);
    let replaced = answer(&backends, &claim_of(&backends, first).await, "first").await;
    let input = MessageInput::Again { replace_from: replaced };
    let again = submitted(&backends, NewRun { input, ..new_run(target.clone(), "") }).await;
    answer(&backends, &claim_of(&backends, again.run.id).await, "better").await;
    let (third, _) = backends.submit(target, "two").await;
    let claim = claim_of(&backends, third).await;
    let checkpoint = checkpoint_of(&backends, &claim).await;
    let fork = backends.storage.fork_conversation("ann", id, checkpoint).await.unwrap().unwrap();
    assert_eq!(texts(&shown(&backends, fork.id, MessageFilter::Current, 10).await), ["one", "better", "two"]);
    let (run_id, _) = backends.submit(Target::Existing(fork.id), "three").await;
    let (_, history) = model_history(&backends, &claim_of(&backends, run_id).await, ALL).await;
    assert_eq!(texts(&history), ["one", "better", "two", "three"]);
}

async fn a_fork_of_a_fork_has_the_copied_messages_without_later_edits(backends: TestBackends) {
    let (first, id) = backends.submit(Target::New { agent_id: None }, "one").await;
    let claim = claim_of(&backends, first).await;
    let checkpoint = checkpoint_of(&backends, &claim).await;
    let fork = backends.storage.fork_conversation("ann", id, checkpoint).await.unwrap().unwrap().id;
    let origin = backends.storage.checkpoints("ann", fork, 10, None).await.unwrap().unwrap().items.pop().unwrap();
    let copied = shown(&backends, fork, MessageFilter::Current, 10).await;
    let input = MessageInput::Edit { content: "eins".into(), replace_from: copied[0].id };
    submitted(&backends, NewRun { input, ..new_run(Target::Existing(fork), "") }).await;
    let again = backends.storage.fork_conversation("ann", fork, origin.id).await.unwrap().unwrap();
    assert_eq!(texts(&shown(&backends, again.id, MessageFilter::Current, 10).await), ["one"]);
}

/// Stores a checkpoint of the claim's run, after its input.
pub async fn checkpoint_of(backends: &TestBackends, claim: &Claim) -> Uuid {
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
    backends.storage.flush(claim, &chunk, crate::backends::LEASE).await.unwrap();
    id
}

async fn a_search_forgives_one_typing_error(backends: TestBackends) {
    let titled = Uuid::now_v7();
    backends.storage.create_conversation("ann", titled, Some("The Harbour plan".to_owned()), None).await.unwrap();
    let (_, said) =
        backends.submit(Target::New { agent_id: None }, "When does the ferry leave from 50% of the islands?").await;
    let hidden = Uuid::now_v7();
    backends.storage.create_conversation("eve", hidden, Some("Harbour of Eve".to_owned()), None).await.unwrap();
    let found = async |text: &str| {
        let page = backends.storage.conversations("ann", 10, None, Some(text)).await.unwrap().unwrap();
        assert_eq!(page.next, None);
        page.items.into_iter().map(|found| (found.id, found.found.map(|hit| hit.excerpt))).collect::<Vec<_>>()
    };
    for text in ["harbour", "harbuor", "hrbour plan", "harbiur", "PLANS harbour", "haarbour", "ahrbour"] {
        assert_eq!(found(text).await, [(titled, None)], "{text}");
    }
    let eight = "harbuor the plan har harb harbo th pl";
    assert_eq!(found(eight).await, [(titled, None)]);
    assert!(found(&format!("{eight} pla")).await.is_empty(), "a search of more words forgives no error");
    for text in ["fery", "ferrz islands", "isalnds", "frery 50%"] {
        let hits = found(text).await;
        assert_eq!(hits[0].0, said, "{text}");
        assert!(hits[0].1.as_ref().unwrap().contains("ferry"), "{text}");
    }
    // An exact word needs no guess.
    backends.submit(Target::New { agent_id: None }, "ferry").await;
    assert_eq!(found("ferry").await.len(), 2);
    for text in ["hxrbxur", "hrb", "fryre", "50_", "harbuor ferry"] {
        assert!(found(text).await.is_empty(), "{text}");
    }
    let cursor = backends.storage.conversations("ann", 1, None, None).await.unwrap().unwrap().next;
    let page = backends.storage.conversations("ann", 10, cursor.as_deref(), Some("harbuor")).await.unwrap().unwrap();
    assert!(page.items.is_empty(), "a later page guesses nothing");
}
