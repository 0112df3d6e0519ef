//! Messages that steer a live run: the scenarios of the model `steering`.

use holdfast_shared::{
    ending::Ending,
    event::{Event, EventKind},
    event_id::EventId,
    run::{RunStatus, SubmitMode},
    storage::{
        Answer, ArchiveChunk, BeginResult, Claim, FlushOutcome, MessageInput, NewCheckpoint, NewRun, NewTraceMessage,
        Progress, Release, ReleaseOutcome, SteeringMessage, SubmitOutcome, TakeBackOutcome, Target,
    },
    trace::{Node, TraceRole},
};
use uuid::Uuid;

use crate::{
    backends::{ALL, LEASE, NO_QUOTAS, TestBackends, new_run},
    on_each_backend,
    storage::archived,
    waiting::{approval, chunk, later, trace_message},
};

on_each_backend!(
    messages_join_the_live_run_once_and_in_their_order,
    a_message_whose_live_run_has_ended_is_the_next_input,
    a_stale_claim_takes_no_message,
    a_message_that_was_taken_back_does_not_join,
    a_cancel_beside_the_take_leaves_one_end,
    a_message_to_a_waiting_run_waits_for_its_turn,
    an_edit_joins_no_run,
    a_fork_has_the_messages_that_had_joined_at_its_checkpoint,
    a_message_without_a_live_run_is_an_ordinary_one,
);

const OWNER: &str = "ann";

/// A claimed run, and its conversation.
async fn live_run(backends: &TestBackends) -> (Claim, Uuid) {
    let (_, conversation) = backends.submit(Target::New { agent_id: None }, "hi").await;
    (backends.claim(1).await.remove(0), conversation)
}

/// Posts a message that steers; returns its run.
async fn steer(backends: &TestBackends, conversation: Uuid, content: &str) -> Uuid {
    let new = NewRun { mode: SubmitMode::Steer, ..new_run(Target::Existing(conversation), content) };
    match backends.storage.submit(OWNER, &NO_QUOTAS, &new).await.unwrap() {
        SubmitOutcome::Accepted(accepted) => accepted.run.id,
        _ => panic!("the message was not accepted"),
    }
}

async fn waiting(backends: &TestBackends, claim: &Claim) -> Vec<SteeringMessage> {
    backends.storage.steering_messages(claim).await.unwrap()
}

fn texts(messages: &[SteeringMessage]) -> Vec<&str> {
    messages.iter().map(|message| message.content.as_str()).collect()
}

fn taking(claim: &Claim, messages: &[SteeringMessage]) -> ArchiveChunk {
    let resume_at = Some(EventId::new(1, 2));
    chunk(claim, 2, Progress { steering: messages.to_vec(), resume_at, ..Progress::default() })
}

async fn take(backends: &TestBackends, claim: &Claim, messages: &[SteeringMessage]) -> FlushOutcome {
    backends.storage.flush(claim, &taking(claim, messages), LEASE).await.unwrap()
}

async fn finish(backends: &TestBackends, claim: &Claim) {
    let ending = Ending::Completed;
    backends.storage.finish(claim, None, EventId::new(1, 9), &Answer::default(), &ending).await.unwrap();
}

async fn status(backends: &TestBackends, run_id: Uuid) -> RunStatus {
    backends.storage.run(OWNER, run_id).await.unwrap().unwrap().status
}

/// Returns the run and the text of each message of the conversation.
async fn messages(backends: &TestBackends, conversation: Uuid) -> Vec<(Option<Uuid>, String)> {
    let newest = backends.storage.newest_messages(OWNER, conversation, 10).await.unwrap();
    newest.into_iter().map(|message| (message.run_id, message.content.to_stored())).collect()
}

/// Returns the kinds of the run's events.
async fn log(backends: &TestBackends, run_id: Uuid) -> Vec<EventKind> {
    archived(backends, run_id, EventId::ORIGIN).await.iter().map(Event::kind).collect()
}

async fn messages_join_the_live_run_once_and_in_their_order(backends: TestBackends) {
    let (claim, conversation) = live_run(&backends).await;
    assert!(!claim.is_steered);
    let first = steer(&backends, conversation, "first").await;
    let second = steer(&backends, conversation, "second").await;
    let taken = waiting(&backends, &claim).await;
    assert_eq!(texts(&taken), ["first", "second"]);
    for _ in 0..2 {
        assert_eq!(take(&backends, &claim, &taken).await, FlushOutcome::Durable);
    }
    assert!(waiting(&backends, &claim).await.is_empty());
    for own in [first, second] {
        assert_eq!(status(&backends, own).await, RunStatus::Cancelled);
        assert_eq!(
            log(&backends, own).await,
            [EventKind::RunQueued, EventKind::MessageSteered, EventKind::RunCancelled]
        );
    }
    let live = Some(claim.run_id);
    let expected = [(live, "hi".to_owned()), (live, "first".to_owned()), (live, "second".to_owned())];
    assert_eq!(messages(&backends, conversation).await, expected);
    finish(&backends, &claim).await;
    assert!(backends.claim(10).await.is_empty());
    // The next run reads the messages before the answer.
    backends.submit(Target::Existing(conversation), "next").await;
    let next = backends.claim(1).await.remove(0);
    let BeginResult::Executing(start) = backends.storage.begin(&next, ALL).await.unwrap() else { panic!("fenced") };
    let read: Vec<String> = start.history.earlier.iter().map(|earlier| earlier.message.content.to_stored()).collect();
    assert_eq!(read[..3], ["hi", "first", "second"]);
}

async fn a_message_whose_live_run_has_ended_is_the_next_input(backends: TestBackends) {
    let (claim, conversation) = live_run(&backends).await;
    let own = steer(&backends, conversation, "too late").await;
    let taken = waiting(&backends, &claim).await;
    backends.storage.end_run(claim.run_id, &Ending::Cancelled).await.unwrap().unwrap();
    assert_eq!(take(&backends, &claim, &taken).await, FlushOutcome::Fenced);
    assert_eq!(backends.claim(10).await.iter().map(|claim| claim.run_id).collect::<Vec<_>>(), [own]);
    assert_eq!(messages(&backends, conversation).await[1], (Some(own), "too late".to_owned()));
}

async fn a_stale_claim_takes_no_message(backends: TestBackends) {
    let (stale, conversation) = live_run(&backends).await;
    let own = steer(&backends, conversation, "once").await;
    let taken = waiting(&backends, &stale).await;
    backends.expire(stale.run_id).await;
    let claim = backends.take_over().await.remove(0);
    assert!(claim.is_steered);
    assert_eq!(take(&backends, &stale, &taken).await, FlushOutcome::Fenced);
    assert_eq!(status(&backends, own).await, RunStatus::Queued);
    assert_eq!(take(&backends, &claim, &waiting(&backends, &claim).await).await, FlushOutcome::Durable);
    assert_eq!(status(&backends, own).await, RunStatus::Cancelled);
}

async fn a_message_that_was_taken_back_does_not_join(backends: TestBackends) {
    let (claim, conversation) = live_run(&backends).await;
    let own = steer(&backends, conversation, "never mind").await;
    let take_back = async |owner: &str, run: Uuid| backends.storage.take_back(owner, run).await.unwrap();
    assert!(matches!(take_back("eve", own).await, TakeBackOutcome::NotFound));
    assert!(matches!(take_back(OWNER, own).await, TakeBackOutcome::TakenBack(_)));
    assert!(waiting(&backends, &claim).await.is_empty());
    assert_eq!(messages(&backends, conversation).await.len(), 1);
    assert!(matches!(take_back(OWNER, own).await, TakeBackOutcome::Begun));
    assert!(matches!(take_back(OWNER, claim.run_id).await, TakeBackOutcome::Begun));
}

async fn a_cancel_beside_the_take_leaves_one_end(backends: TestBackends) {
    let (claim, conversation) = live_run(&backends).await;
    let own = steer(&backends, conversation, "never mind").await;
    let taken = waiting(&backends, &claim).await;
    backends.storage.request_cancel(OWNER, own).await.unwrap();
    assert_eq!(take(&backends, &claim, &taken).await, FlushOutcome::Durable);
    assert_eq!(log(&backends, own).await, [EventKind::RunQueued, EventKind::RunCancelled]);
    // The live run has read the message.
    assert_eq!(messages(&backends, conversation).await[1], (Some(claim.run_id), "never mind".to_owned()));
}

async fn a_message_to_a_waiting_run_waits_for_its_turn(backends: TestBackends) {
    let (claim, conversation) = live_run(&backends).await;
    let approvals = vec![approval("one", later())];
    let asking = chunk(&claim, 2, Progress { approvals, ..Progress::default() });
    let released = backends.storage.release(&claim, Some(&asking), asking.last, Release::Waiting).await.unwrap();
    assert!(matches!(released, ReleaseOutcome::Released { .. }));
    let own = steer(&backends, conversation, "go on").await;
    assert_eq!(status(&backends, claim.run_id).await, RunStatus::Cancelled);
    assert_eq!(backends.claim(10).await[0].run_id, own);
}

async fn an_edit_joins_no_run(backends: TestBackends) {
    let (claim, conversation) = live_run(&backends).await;
    let replace_from = backends.storage.newest_messages(OWNER, conversation, 1).await.unwrap()[0].id;
    let new = NewRun {
        mode: SubmitMode::Steer,
        input: MessageInput::Edit { content: "other".into(), replace_from },
        ..new_run(Target::Existing(conversation), "other")
    };
    assert!(matches!(backends.storage.submit(OWNER, &NO_QUOTAS, &new).await.unwrap(), SubmitOutcome::Accepted(_)));
    assert!(waiting(&backends, &claim).await.is_empty());
}

async fn a_fork_has_the_messages_that_had_joined_at_its_checkpoint(backends: TestBackends) {
    let (claim, conversation) = live_run(&backends).await;
    let checkpoint = async |n: u32, messages: usize| {
        let event_id = EventId::new(1, n);
        let (id, metadata) = (Uuid::now_v7(), serde_json::json!({}));
        let checkpoints = vec![NewCheckpoint { id, event_id, node: Node::Tools, step: 1, messages, metadata }];
        let progress = Progress { checkpoints, ..Progress::default() };
        assert_eq!(
            backends.storage.flush(&claim, &chunk(&claim, n, progress), LEASE).await.unwrap(),
            FlushOutcome::Durable
        );
        id
    };
    let before = checkpoint(2, 0).await;
    steer(&backends, conversation, "joins").await;
    let steering = waiting(&backends, &claim).await;
    let read = NewTraceMessage { role: TraceRole::User, content: "joins".into(), ..trace_message(1, &[]) };
    let joining = chunk(&claim, 3, Progress { messages: vec![read], steering, ..Progress::default() });
    assert_eq!(backends.storage.flush(&claim, &joining, LEASE).await.unwrap(), FlushOutcome::Durable);
    let after = checkpoint(4, 1).await;
    for (checkpoint, expected) in [(before, &["hi"][..]), (after, &["hi", "joins"])] {
        let fork = backends.storage.fork_conversation(OWNER, conversation, checkpoint).await.unwrap().unwrap();
        let copied = messages(&backends, fork.id).await;
        assert_eq!(copied.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), expected);
    }
}

async fn a_message_without_a_live_run_is_an_ordinary_one(backends: TestBackends) {
    let (claim, conversation) = live_run(&backends).await;
    finish(&backends, &claim).await;
    let own = steer(&backends, conversation, "hello").await;
    assert_eq!(backends.claim(10).await[0].run_id, own);
}
