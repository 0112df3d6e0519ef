//! Runs that answer a call of another run: the scenarios of the model `subagents`.

use holdfast_shared::{
    agent::AgentDefinition,
    ending::Ending,
    event::ExecutedBy,
    event_id::EventId,
    run::RunStatus,
    storage::{
        Answer, ArchiveChunk, CallState, CancelOutcome, Claim, Closed, FinishOutcome, FlushOutcome, NewChild, Progress,
        Release, ReleaseOutcome, RunFilter, Target,
    },
    subagent::SubagentRole,
    tool::{Effect, ToolCallStatus},
    usage::Usage,
};
use serde_json::json;
use uuid::Uuid;

use crate::{
    backends::{LEASE, TestBackends},
    on_each_backend,
    waiting::chunk,
};

on_each_backend!(
    a_child_starts_once_with_the_intent_of_its_call,
    a_childs_end_queues_its_waiting_parent,
    a_parent_waits_for_its_last_child,
    two_children_that_end_at_once_queue_their_parent_once,
    a_child_that_ends_first_is_logged_when_its_parent_leaves,
    a_child_of_an_ended_parent_answers_nothing_and_is_cancelled,
    a_cancel_beside_the_end_of_a_child_ends_the_parent_once,
    a_deletion_hides_all_conversations_below,
);

const OWNER: &str = "ann";
const USAGE: Usage = Usage { input_tokens: 5, output_tokens: 3, cached_tokens: 0, reasoning_tokens: 0 };

/// A parent with a call for each child, in its first step.
pub struct Family {
    pub parent: Claim,
    pub children: Vec<NewChild>,
    pub tail: ArchiveChunk,
}

/// Claims a run that is about to start children.
pub async fn family(backends: &TestBackends, children: usize) -> Family {
    let definition = AgentDefinition { name: "helper".to_owned(), ..AgentDefinition::default() };
    let agent_id = backends.storage.create_agent(&definition).await.unwrap().unwrap().id;
    backends.submit(Target::New { agent_id: None }, "hi").await;
    let parent = backends.claim(1).await.remove(0);
    let child = |n: usize| NewChild::new(format!("call_{n}"), SubagentRole::Subagent, agent_id, format!("task {n}"));
    let children: Vec<NewChild> = (0..children).map(child).collect();
    let tail = starting(&parent, &children);
    Family { parent, children, tail }
}

/// Returns a chunk with which the run starts children.
pub fn starting(parent: &Claim, children: &[NewChild]) -> ArchiveChunk {
    let call = |(position, child): (usize, &NewChild)| CallState {
        by: Some(ExecutedBy::Worker),
        call_id: child.call_id.clone(),
        step: 1,
        position,
        name: "delegate_to_helper".into(),
        input: json!({"task": child.task}),
        effect: Effect::Once,
        status: ToolCallStatus::Called,
        schema: None,
        expires_at: None,
        child_run_id: Some(child.child_run_id),
        output: None,
        error: None,
        files: Vec::new(),
        duration_ms: None,
    };
    let calls = children.iter().enumerate().map(call).collect();
    let resume_at = Some(EventId::new(parent.attempt, 2));
    chunk(parent, 2, Progress { calls, children: children.to_vec(), resume_at, ..Progress::default() })
}

/// Starts the children, and lets their parent wait for them. Returns the children's claims in the order of their calls.
pub async fn waiting_family(backends: &TestBackends, children: usize) -> (Family, Vec<Claim>) {
    let family = family(backends, children).await;
    for _ in 0..2 {
        let released = leave(backends, &family.parent, Some(&family.tail), family.tail.last).await;
        assert!(matches!(released, ReleaseOutcome::Released { events, .. } if events.is_empty()));
    }
    let claims = claims_of(backends, &family.children).await;
    (family, claims)
}

pub async fn claims_of(backends: &TestBackends, children: &[NewChild]) -> Vec<Claim> {
    let claims = backends.claim(10).await;
    assert_eq!(claims.len(), children.len());
    let claim_of = |child: &NewChild| claims.iter().find(|claim| claim.run_id == child.child_run_id).unwrap().clone();
    children.iter().map(claim_of).collect()
}

pub async fn leave(
    backends: &TestBackends,
    claim: &Claim,
    tail: Option<&ArchiveChunk>,
    last: EventId,
) -> ReleaseOutcome {
    backends.storage.release(claim, tail, last, Release::WaitingForChildren).await.unwrap()
}

pub async fn finish(backends: &TestBackends, claim: &Claim, text: &str) -> Closed {
    let answer = Answer { text: text.into(), usage: USAGE, ..Answer::default() };
    match backends.storage.finish(claim, None, claim.started.id, &answer, &Ending::Completed).await.unwrap() {
        FinishOutcome::Ended(closed) => *closed,
        FinishOutcome::Fenced => panic!("the child is fenced"),
    }
}

async fn status(backends: &TestBackends, run_id: Uuid) -> RunStatus {
    backends.storage.run(OWNER, run_id).await.unwrap().unwrap().status
}

/// Returns the outputs of the parent's calls, each with its status.
async fn outputs(backends: &TestBackends, run_id: Uuid) -> Vec<(ToolCallStatus, Option<String>)> {
    let calls = backends.storage.tool_calls(run_id).await.unwrap();
    calls.into_iter().map(|call| (call.status, call.output)).collect()
}

async fn a_child_starts_once_with_the_intent_of_its_call(backends: TestBackends) {
    let Family { parent, children, tail } = family(&backends, 2).await;
    for _ in 0..2 {
        let flushed = backends.storage.flush(&parent, &tail, LEASE).await.unwrap();
        assert_eq!(flushed, FlushOutcome::Durable);
    }
    let claims = claims_of(&backends, &children).await;
    assert!(claims.iter().all(|claim| claim.is_child && claim.depth == 1 && claim.owner_id == OWNER));
    assert_eq!(claims[1].first_input.as_ref().unwrap().message.content.to_stored(), "task 1");
    let runs = backends.storage.runs(OWNER, RunFilter::default(), 10, None).await.unwrap().unwrap();
    assert_eq!(runs.items.len(), 3);
    let listed = backends.storage.conversations(OWNER, 10, None, None).await.unwrap().unwrap();
    assert_eq!(listed.items.iter().map(|found| found.id).collect::<Vec<_>>(), [parent.conversation_id]);
    // A holder that has lost its run starts nothing.
    let Family { parent, tail, .. } = family(&backends, 1).await;
    backends.expire(parent.run_id).await;
    assert_eq!(backends.take_over().await.len(), 1);
    assert_eq!(backends.storage.flush(&parent, &tail, LEASE).await.unwrap(), FlushOutcome::Fenced);
    assert!(backends.claim(10).await.is_empty());
}

async fn a_childs_end_queues_its_waiting_parent(backends: TestBackends) {
    let (Family { parent, .. }, claims) = waiting_family(&backends, 1).await;
    assert_eq!(status(&backends, parent.run_id).await, RunStatus::Running, "waiting for children is work");
    let answered = finish(&backends, &claims[0], "seven").await.answered.remove(0);
    assert_eq!((answered.run_id, answered.queued), (parent.run_id, true));
    let shown: Vec<_> = answered.events.iter().map(|event| (event.id, event.base, event.kind_name())).collect();
    assert_eq!(
        shown,
        [
            (EventId::new(2, 1), Some(EventId::new(1, 2)), "subagent.completed"),
            (EventId::new(2, 2), None, "tool_call.completed")
        ]
    );
    assert_eq!(outputs(&backends, parent.run_id).await, [(ToolCallStatus::Completed, Some("seven".to_owned()))]);
    let next = backends.claim(10).await.remove(0);
    assert_eq!((next.run_id, next.attempt, next.checkpoint), (parent.run_id, 3, EventId::new(2, 2)));
}

async fn a_parent_waits_for_its_last_child(backends: TestBackends) {
    let (Family { parent, .. }, claims) = waiting_family(&backends, 2).await;
    assert!(!finish(&backends, &claims[1], "b").await.answered.remove(0).queued);
    assert!(backends.claim(10).await.is_empty());
    let last = finish(&backends, &claims[0], "a").await.answered.remove(0);
    assert_eq!((last.queued, last.events[0].id), (true, EventId::new(3, 1)));
    assert_eq!(backends.claim(10).await[0].run_id, parent.run_id);
}

async fn two_children_that_end_at_once_queue_their_parent_once(backends: TestBackends) {
    for _ in 0..5 {
        let (Family { parent, .. }, claims) = waiting_family(&backends, 2).await;
        let (first, second) = tokio::join!(finish(&backends, &claims[0], "a"), finish(&backends, &claims[1], "b"));
        let queued = [first, second].map(|mut closed| closed.answered.remove(0).queued);
        assert_eq!(queued.iter().filter(|queued| **queued).count(), 1);
        let next = backends.claim(10).await.remove(0);
        assert_eq!((next.run_id, next.attempt), (parent.run_id, 4));
        finish(&backends, &next, "c").await;
    }
}

async fn a_child_that_ends_first_is_logged_when_its_parent_leaves(backends: TestBackends) {
    let Family { parent, children, tail } = family(&backends, 2).await;
    backends.storage.flush(&parent, &tail, LEASE).await.unwrap();
    let claims = claims_of(&backends, &children).await;
    assert!(finish(&backends, &claims[0], "a").await.answered.is_empty(), "the parent has a worker");
    assert_eq!(outputs(&backends, parent.run_id).await[0], (ToolCallStatus::Called, Some("a".to_owned())));
    let tail = chunk(&parent, 3, Progress::default());
    // The answer to the first commit is lost.
    for _ in 0..2 {
        let ReleaseOutcome::Released { events, .. } = leave(&backends, &parent, Some(&tail), tail.last).await else {
            panic!("the parent is fenced")
        };
        let shown: Vec<_> = events.iter().map(|event| (event.id, event.kind_name())).collect();
        assert_eq!(shown, [(EventId::new(1, 4), "subagent.completed"), (EventId::new(1, 5), "tool_call.completed")]);
    }
    assert!(backends.claim(10).await.is_empty(), "the parent waits for the other child");
    let answered = finish(&backends, &claims[1], "b").await.answered.remove(0);
    assert_eq!((answered.queued, answered.events[0].base), (true, Some(EventId::new(1, 5))));
    // Both children end before the parent leaves: it returns to the queue.
    let Family { parent: second, children, tail } = family(&backends, 1).await;
    backends.storage.flush(&second, &tail, LEASE).await.unwrap();
    let claim = backends.claim(10).await.into_iter().find(|claim| claim.run_id == children[0].child_run_id).unwrap();
    finish(&backends, &claim, "c").await;
    let released = leave(&backends, &second, None, tail.last).await;
    assert!(matches!(released, ReleaseOutcome::Released { queued: true, .. }), "{released:?}");
}

async fn a_child_of_an_ended_parent_answers_nothing_and_is_cancelled(backends: TestBackends) {
    let (Family { parent, children, .. }, claims) = waiting_family(&backends, 2).await;
    let CancelOutcome::Ended(ended) = backends.storage.request_cancel(OWNER, parent.run_id).await.unwrap() else {
        panic!("a run without a worker ends at once")
    };
    assert!(ended.closed.has_children);
    assert!(finish(&backends, &claims[0], "late").await.answered.is_empty());
    assert_eq!(backends.storage.parents_of_orphans().await.unwrap(), [parent.run_id]);
    // The live child has a worker, which the caller signals.
    let (ended, requested) = backends.storage.cancel_children(parent.run_id).await.unwrap();
    assert_eq!((ended.len(), requested), (0, vec![children[1].child_run_id]));
    backends.expire(children[1].child_run_id).await;
    let (ended, requested) = backends.storage.cancel_children(parent.run_id).await.unwrap();
    assert_eq!((ended.len(), requested.len()), (1, 0));
    assert!(backends.storage.parents_of_orphans().await.unwrap().is_empty());
    assert_eq!(status(&backends, parent.run_id).await, RunStatus::Cancelled);
}

async fn a_cancel_beside_the_end_of_a_child_ends_the_parent_once(backends: TestBackends) {
    for _ in 0..5 {
        let (Family { parent, .. }, claims) = waiting_family(&backends, 1).await;
        let cancel = backends.storage.request_cancel(OWNER, parent.run_id);
        let (cancelled, _) = tokio::join!(cancel, finish(&backends, &claims[0], "a"));
        assert!(matches!(cancelled.unwrap(), CancelOutcome::Ended(_)));
        assert_eq!(status(&backends, parent.run_id).await, RunStatus::Cancelled);
        assert!(backends.claim(10).await.is_empty());
    }
}

async fn a_deletion_hides_all_conversations_below(backends: TestBackends) {
    let (Family { parent, .. }, claims) = waiting_family(&backends, 1).await;
    let child = claims[0].conversation_id;
    assert!(backends.storage.conversation(OWNER, child).await.unwrap().is_some());
    backends.storage.delete_conversation(OWNER, parent.conversation_id).await.unwrap().unwrap();
    assert!(backends.storage.conversation(OWNER, child).await.unwrap().is_none());
    finish(&backends, &claims[0], "late").await;
    let retired = backends.storage.retire(LEASE, LEASE).await.unwrap();
    assert_eq!(retired.conversations, 2);
}
