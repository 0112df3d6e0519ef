//! Progress of a run, its wait for people, and their answers.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use holdfast_shared::{
    agent::AgentDefinition,
    approval::{ApprovalKind, ApprovalStatus, Decision},
    event::{AttemptReason, Event, EventBody, ExecutedBy, WarningRaised},
    event_id::EventId,
    page::PageSize,
    run::RunStatus,
    storage::{
        AgentChange, AnswerOutcome, ArchiveChunk, BeginResult, CallState, Claim, ClientResult, DecisionBy,
        FlushOutcome, InvalidInput, NewApproval, NewCheckpoint, NewTraceMessage, Progress, Release, ReleaseOutcome,
        Start, Target,
    },
    tool::{Effect, ToolCallStatus},
    trace::{Node, RequestedCall, TraceRole},
    usage::Usage,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    backends::{ALL, LEASE, TestBackends},
    on_each_backend,
    pages::pages,
};

on_each_backend!(
    progress_is_written_once_with_its_events,
    a_stale_claim_writes_no_progress,
    traces_and_calls_are_listed_in_pages_of_any_bytes,
    approvals_are_listed_in_pages_of_any_bytes,
    a_checkpoint_is_read_in_pages_of_any_bytes,
    the_next_attempt_resumes_from_the_newest_position,
    an_answer_takes_an_attempt_and_queues_the_run,
    only_one_of_two_answers_counts,
    a_run_resumes_after_its_last_answer,
    expired_questions_are_denied,
    an_earlier_definition_stays_until_its_last_run_ends,
);

const NEW: Target = Target::New { agent_id: None };

/// Returns a chunk of one event with this progress.
pub fn chunk(claim: &Claim, n: u32, progress: Progress) -> ArchiveChunk {
    let body = EventBody::WarningRaised(WarningRaised { code: "test".into(), message: format!("{n}").into() });
    let event = Event::new(EventId::new(claim.attempt, n), DateTime::UNIX_EPOCH, &body);
    ArchiveChunk { last: event.id, body: Bytes::from([event.line(), &b"\n"[..]].concat()), progress }
}

pub fn call(call_id: &str, status: ToolCallStatus, expires_at: Option<DateTime<Utc>>) -> CallState {
    CallState {
        by: Some(ExecutedBy::Worker),
        call_id: call_id.into(),
        step: 1,
        position: 0,
        name: "kb__count".into(),
        input: json!({"note": "ü"}),
        effect: Effect::Once,
        status,
        schema: None,
        expires_at,
        child_run_id: None,
        output: None,
        error: None,
        files: Vec::new(),
        duration_ms: None,
    }
}

/// Returns a question.
pub fn approval(call_id: &str, expires_at: DateTime<Utc>) -> NewApproval {
    NewApproval {
        id: Uuid::now_v7(),
        call_id: call_id.into(),
        kind: ApprovalKind::Policy,
        name: "kb__count".into(),
        input: json!({"note": "ü"}),
        schema: json!({"type": "object", "properties": {"note": {"type": "string"}}}),
        expires_at,
    }
}

pub fn trace_message(position: u32, calls: &[&str]) -> NewTraceMessage {
    let requested = calls.iter().map(|call_id| RequestedCall {
        call_id: (*call_id).into(),
        name: "kb__count".into(),
        input: json!({"note": "ü"}),
        signature: Some(json!("s")),
    });
    NewTraceMessage {
        plan_step: None,
        position,
        step: 1,
        role: TraceRole::Assistant,
        content: "one\n\"two\"".into(),
        tool_calls: requested.collect(),
        call_id: None,
        is_error: false,
        usage: Some(Usage { output_tokens: 3, ..Usage::default() }),
        model: Some("scripted/scripted".into()),
    }
}

pub fn later() -> DateTime<Utc> {
    Utc::now() + Duration::from_secs(60)
}

async fn executing(backends: &TestBackends) -> Claim {
    backends.submit(NEW, "hi").await;
    let claim = backends.claim(1).await.remove(0);
    start(backends, &claim).await;
    claim
}

async fn start(backends: &TestBackends, claim: &Claim) -> Start {
    match backends.storage.begin(claim, ALL).await.unwrap() {
        BeginResult::Executing(start) => *start,
        BeginResult::Fenced => panic!("the claim is fenced"),
    }
}

/// Returns the claim of a run that waits for these answers.
async fn waiting(backends: &TestBackends, approvals: Vec<NewApproval>, calls: Vec<CallState>) -> Claim {
    let claim = executing(backends).await;
    let progress = Progress { approvals, calls, resume_at: Some(EventId::new(1, 2)), ..Progress::default() };
    let tail = chunk(&claim, 2, progress);
    for _ in 0..2 {
        assert!(matches!(
            backends.storage.release(&claim, Some(&tail), tail.last, Release::Waiting).await.unwrap(),
            ReleaseOutcome::Released { .. }
        ));
    }
    claim
}

pub async fn decide(backends: &TestBackends, claim: &Claim, id: Uuid, decision: Decision) -> AnswerOutcome {
    let decision = DecisionBy { by: "ann", decision: &decision, checked: Ok(()) };
    backends.storage.decide("ann", claim.run_id, id, decision).await.unwrap()
}

pub fn approve() -> Decision {
    Decision::Approve { edited_input: None, reason: None }
}

pub async fn status(backends: &TestBackends, claim: &Claim) -> RunStatus {
    backends.storage.run("ann", claim.run_id).await.unwrap().unwrap().status
}

async fn progress_is_written_once_with_its_events(backends: TestBackends) {
    let claim = executing(&backends).await;
    let checkpoint = NewCheckpoint {
        id: Uuid::now_v7(),
        node: Node::Process,
        step: 1,
        event_id: EventId::new(1, 2),
        messages: 1,
        metadata: json!({"a": [1]}),
    };
    let usage = Some(Usage { output_tokens: 3, ..Usage::default() });
    let first = Progress {
        messages: vec![trace_message(1, &["c1"])],
        calls: vec![call("c1", ToolCallStatus::Called, None)],
        checkpoints: vec![checkpoint.clone()],
        resume_at: Some(EventId::new(1, 2)),
        usage,
        ..Progress::default()
    };
    let flushed = chunk(&claim, 2, first);
    for _ in 0..2 {
        assert_eq!(backends.storage.flush(&claim, &flushed, LEASE).await.unwrap(), FlushOutcome::Durable);
    }
    let done = CallState {
        output: Some("3".into()),
        duration_ms: Some(7),
        effect: Effect::ReadOnly,
        ..call("c1", ToolCallStatus::Completed, None)
    };
    let outcome = chunk(&claim, 3, Progress { calls: vec![done], ..Progress::default() });
    backends.storage.flush(&claim, &outcome, LEASE).await.unwrap();
    let trace = backends.storage.trace(claim.run_id).await.unwrap();
    assert_eq!((trace.len(), trace[0].content.as_str(), trace[0].usage), (1, "one\n\"two\"", usage));
    assert_eq!(trace[0].tool_calls, trace_message(1, &["c1"]).tool_calls);
    let calls = backends.storage.tool_calls(claim.run_id).await.unwrap();
    assert_eq!(
        (calls.len(), calls[0].status, calls[0].output.as_deref(), calls[0].duration_ms),
        (1, ToolCallStatus::Completed, Some("3"), Some(7))
    );
    assert_eq!((calls[0].effect, &calls[0].input), (Effect::ReadOnly, &json!({"note": "ü"})));
    let run = backends.storage.run("ann", claim.run_id).await.unwrap().unwrap();
    assert_eq!(run.usage, usage);
    let listed = backends.storage.checkpoints("ann", claim.conversation_id, 10, None).await.unwrap().unwrap().items;
    assert_eq!(
        (listed.len(), listed[0].id, listed[0].event_id, &listed[0].metadata),
        (1, checkpoint.id, EventId::new(1, 2), &json!({"a": [1]}))
    );
}

async fn traces_and_calls_are_listed_in_pages_of_any_bytes(backends: TestBackends) {
    let claim = executing(&backends).await;
    let calls = [(1, 0), (1, 1), (2, 0), (2, 1), (10, 0)].map(|(step, position)| {
        let output = Some("x".repeat(1_000));
        let call_id = format!("c{step}-{position}");
        CallState { step, position, output, ..call(&call_id, ToolCallStatus::Completed, None) }
    });
    let progress = Progress {
        messages: (1..=5).map(|position| trace_message(position, &["c1"])).collect(),
        calls: calls.to_vec(),
        ..Progress::default()
    };
    backends.storage.flush(&claim, &chunk(&claim, 2, progress), LEASE).await.unwrap();
    let (storage, run_id) = (&backends.storage, claim.run_id);
    for (items, bytes, expected) in [(9, 1, vec![1, 1, 1, 1, 1]), (9, 1_600, vec![2, 2, 1]), (3, 90_000, vec![3, 2])] {
        let size = PageSize { items, bytes };
        let (listed, sizes) =
            pages(|cursor| async move { storage.tool_calls_page(run_id, size, cursor.as_deref()).await }).await;
        assert_eq!(listed, storage.tool_calls(run_id).await.unwrap());
        assert_eq!(sizes, expected, "calls in pages of {items} and {bytes} bytes");
    }
    for (items, bytes, expected) in [(9, 1, vec![1, 1, 1, 1, 1]), (2, 90_000, vec![2, 2, 1])] {
        let size = PageSize { items, bytes };
        let (listed, sizes) =
            pages(|cursor| async move { storage.trace_page(run_id, size, cursor.as_deref()).await }).await;
        assert_eq!(listed.len(), 5);
        assert!(listed.is_sorted_by_key(|message| message.position));
        assert_eq!(sizes, expected, "the trace in pages of {items} and {bytes} bytes");
    }
    let size = PageSize { items: 1, bytes: 1 };
    assert!(storage.tool_calls_page(run_id, size, Some("x")).await.unwrap().is_none());
    assert!(storage.trace_page(run_id, size, Some("x")).await.unwrap().is_none());
}

async fn approvals_are_listed_in_pages_of_any_bytes(backends: TestBackends) {
    let long = |n: usize| NewApproval { input: json!({"note": "x".repeat(1_000 * n)}), ..approval("c1", later()) };
    let requested: Vec<NewApproval> = (0..4).map(long).collect();
    let run_id = waiting(&backends, requested, Vec::new()).await.run_id;
    let storage = &backends.storage;
    let all = storage.approvals(run_id).await.unwrap();
    for (items, bytes, expected) in [(9, 1, vec![1, 1, 1, 1]), (9, 2_100, vec![3, 1]), (3, 90_000, vec![3, 1])] {
        let size = PageSize { items, bytes };
        let (listed, sizes) =
            pages(|cursor| async move { storage.approvals_page(run_id, size, cursor.as_deref()).await }).await;
        assert_eq!(listed, all);
        assert_eq!(sizes, expected, "approvals in pages of {items} and {bytes} bytes");
    }
    assert!(storage.approvals_page(run_id, PageSize::ALL, Some("x")).await.unwrap().is_none());
}

async fn a_checkpoint_is_read_in_pages_of_any_bytes(backends: TestBackends) {
    let claim = executing(&backends).await;
    let result = |position: u32, call_id: &str| NewTraceMessage {
        role: TraceRole::Tool,
        call_id: Some(call_id.into()),
        step: position / 2,
        ..trace_message(position, &[])
    };
    let done = |step: u32, call_id: &str| CallState {
        step,
        output: Some("x".repeat(1_000)),
        ..call(call_id, ToolCallStatus::Completed, None)
    };
    let second = NewTraceMessage { step: 2, ..trace_message(3, &["c2"]) };
    let checkpoint = NewCheckpoint {
        id: Uuid::now_v7(),
        node: Node::Process,
        step: 2,
        event_id: EventId::new(1, 2),
        messages: 3,
        metadata: json!({}),
    };
    let progress = Progress {
        messages: vec![trace_message(1, &["c1"]), result(2, "c1"), second, result(4, "c2")],
        calls: vec![done(1, "c1"), done(2, "c2")],
        checkpoints: vec![checkpoint.clone()],
        ..Progress::default()
    };
    backends.storage.flush(&claim, &chunk(&claim, 2, progress), LEASE).await.unwrap();
    let (storage, conversation_id) = (&backends.storage, claim.conversation_id);
    let point = storage.checkpoint("ann", conversation_id, checkpoint.id).await.unwrap().unwrap();
    assert!(storage.checkpoint("eve", conversation_id, checkpoint.id).await.unwrap().is_none());
    for (bytes, expected) in [(1, vec![1, 1, 1]), (1_000, vec![1, 2]), (90_000, vec![3])] {
        let (mut positions, mut sizes, mut statuses, mut cursor) = (Vec::new(), Vec::new(), Vec::new(), None);
        loop {
            let size = PageSize { items: 9, bytes };
            let state = storage.checkpoint_state(point.clone(), size, cursor.as_deref()).await.unwrap().unwrap();
            sizes.push(state.trace.len());
            positions.extend(state.trace.iter().map(|message| message.position));
            statuses.extend(state.tool_calls.iter().map(|call| (call.call_id.clone(), call.status)));
            cursor = state.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!((positions, sizes), (vec![1, 2, 3], expected), "in pages of {bytes} bytes");
        let known = [("c1".into(), ToolCallStatus::Completed), ("c2".into(), ToolCallStatus::Requested)];
        assert_eq!(statuses, known, "the second call's result came after the checkpoint");
    }
    assert!(storage.checkpoint_state(point, PageSize::ALL, Some("x")).await.unwrap().is_none());
}

async fn a_stale_claim_writes_no_progress(backends: TestBackends) {
    let stale = executing(&backends).await;
    backends.expire(stale.run_id).await;
    backends.take_over().await;
    let progress = Progress { calls: vec![call("c1", ToolCallStatus::Called, None)], ..Progress::default() };
    let tail = chunk(&stale, 2, progress);
    assert_eq!(backends.storage.flush(&stale, &tail, LEASE).await.unwrap(), FlushOutcome::Fenced);
    assert!(matches!(
        backends.storage.release(&stale, Some(&tail), tail.last, Release::Waiting).await.unwrap(),
        ReleaseOutcome::Fenced
    ));
    assert!(backends.storage.tool_calls(stale.run_id).await.unwrap().is_empty());
}

async fn the_next_attempt_resumes_from_the_newest_position(backends: TestBackends) {
    let claim = executing(&backends).await;
    let progress = Progress {
        messages: vec![trace_message(1, &["c1"])],
        calls: vec![call("c1", ToolCallStatus::Called, None)],
        resume_at: Some(EventId::new(1, 2)),
        ..Progress::default()
    };
    backends.storage.flush(&claim, &chunk(&claim, 2, progress), LEASE).await.unwrap();
    backends.storage.flush(&claim, &chunk(&claim, 3, Progress::default()), LEASE).await.unwrap();
    backends.expire(claim.run_id).await;
    let next = backends.take_over().await.remove(0);
    assert_eq!((next.started.base, next.checkpoint), (Some(EventId::new(1, 2)), EventId::new(1, 2)));
    let start = start(&backends, &next).await;
    assert_eq!((start.trace.len(), start.calls.len(), start.calls[0].status), (1, 1, ToolCallStatus::Called));
    // A completed step forgives earlier crashes.
    let completed = Progress { step_completed: true, ..Progress::default() };
    backends.storage.flush(&next, &chunk(&next, 2, completed), LEASE).await.unwrap();
    backends.storage.release(&next, None, EventId::new(2, 2), Release::Queued).await.unwrap();
    let payload: Value = serde_json::from_slice(backends.claim(1).await[0].started.payload()).unwrap();
    assert_eq!(payload["crashes"], 0);
}

async fn an_answer_takes_an_attempt_and_queues_the_run(backends: TestBackends) {
    let question = approval("c1", later());
    let claim = waiting(&backends, vec![question.clone()], vec![call("c1", ToolCallStatus::Waiting, None)]).await;
    assert_eq!(status(&backends, &claim).await, RunStatus::Waiting);
    assert!(backends.claim(10).await.is_empty(), "no worker holds a waiting run");
    let edited = |input| Decision::Approve { edited_input: Some(input), reason: Some("go\0".into()) };
    let schema_for = async |owner| backends.storage.approval_schema(owner, claim.run_id, question.id).await.unwrap();
    assert_eq!(schema_for("ann").await.as_ref(), Some(&question.schema));
    assert_eq!(schema_for("eve").await, None);
    let (unfit, checked) = (edited(json!({"note": 1})), Err(InvalidInput("at /note".into())));
    let unfit = DecisionBy { by: "ann", decision: &unfit, checked };
    let refused = backends.storage.decide("ann", claim.run_id, question.id, unfit).await.unwrap();
    assert!(matches!(refused, AnswerOutcome::InvalidInput(problem) if problem == "at /note"));
    let decision = DecisionBy { by: "eve", decision: &approve(), checked: Ok(()) };
    let stranger = backends.storage.decide("eve", claim.run_id, question.id, decision).await.unwrap();
    assert!(matches!(stranger, AnswerOutcome::NotFound));
    assert!(matches!(decide(&backends, &claim, Uuid::now_v7(), approve()).await, AnswerOutcome::NotFound));
    let AnswerOutcome::Accepted { run: answered, .. } =
        decide(&backends, &claim, question.id, edited(json!({"note": "n\0"}))).await
    else {
        panic!("not accepted")
    };
    assert_eq!(
        (answered.events[0].id, answered.events[0].base, answered.queued),
        (EventId::new(2, 1), Some(EventId::new(1, 2)), true)
    );
    let next = backends.claim(1).await.remove(0);
    assert_eq!((next.attempt, next.started.base), (3, Some(EventId::new(2, 1))));
    let payload: Value = serde_json::from_slice(next.started.payload()).unwrap();
    assert_eq!(payload["reason"], json!(AttemptReason::Resumed));
    assert_eq!(backends.archived_start(&next).await.line(), next.started.line());
    let approved = &start(&backends, &next).await.approvals[0];
    assert_eq!(
        (approved.status, approved.edited_input.as_ref()),
        (ApprovalStatus::Approved, Some(&json!({"note": "n\u{fffd}"})))
    );
    assert_eq!((approved.reason.as_deref(), approved.decided_by.as_deref()), (Some("go\u{fffd}"), Some("ann")));
}

async fn only_one_of_two_answers_counts(backends: TestBackends) {
    let question = approval("c1", later());
    let claim = waiting(&backends, vec![question.clone()], Vec::new()).await;
    let (one, other) = tokio::join!(
        decide(&backends, &claim, question.id, approve()),
        decide(&backends, &claim, question.id, Decision::Deny { reason: None }),
    );
    assert!(
        matches!(
            (&one, &other),
            (AnswerOutcome::Accepted { .. }, AnswerOutcome::Decided(_))
                | (AnswerOutcome::Decided(_), AnswerOutcome::Accepted { .. })
        ),
        "{one:?} {other:?}"
    );
    assert_eq!(backends.storage.approvals(claim.run_id).await.unwrap().len(), 1);
}

async fn a_run_resumes_after_its_last_answer(backends: TestBackends) {
    let question = approval("c1", later());
    let calls = vec![call("c1", ToolCallStatus::Waiting, None), call("c2", ToolCallStatus::Client, Some(later()))];
    let claim = waiting(&backends, vec![question.clone()], calls).await;
    let AnswerOutcome::Accepted { run: first, .. } = decide(&backends, &claim, question.id, approve()).await else {
        panic!("not accepted")
    };
    assert!(!first.queued);
    assert_eq!(status(&backends, &claim).await, RunStatus::Waiting);
    let complete = async |call_id: &str, result| {
        backends.storage.complete_client_call("ann", claim.run_id, call_id, &result).await.unwrap()
    };
    assert!(
        matches!(complete("c1", ClientResult::Output("x".into())).await, AnswerOutcome::NotWaiting),
        "the call is not the client's"
    );
    let AnswerOutcome::Accepted { run: second, .. } = complete("c2", ClientResult::Output("found".into())).await else {
        panic!("not accepted")
    };
    assert_eq!((second.queued, second.events[0].id), (true, EventId::new(3, 1)));
    assert!(matches!(complete("c2", ClientResult::Error("late".into())).await, AnswerOutcome::Completed));
    let calls = backends.storage.tool_calls(claim.run_id).await.unwrap();
    let done = calls.iter().find(|call| call.call_id == "c2").unwrap();
    assert_eq!((done.status, done.output.as_deref()), (ToolCallStatus::Completed, Some("found")));
}

async fn expired_questions_are_denied(backends: TestBackends) {
    let past = Utc::now() - Duration::from_secs(1);
    let (over, open) = (approval("c1", past), approval("c2", later()));
    let calls = vec![call("c3", ToolCallStatus::Client, Some(past))];
    let claim = waiting(&backends, vec![over.clone(), open.clone()], calls).await;
    assert!(matches!(decide(&backends, &claim, over.id, approve()).await, AnswerOutcome::Expired));
    let answered = backends.storage.expire_questions().await.unwrap();
    assert_eq!(answered.iter().map(|answered| answered.queued).collect::<Vec<_>>(), [false, false]);
    assert!(backends.storage.expire_questions().await.unwrap().is_empty());
    let statuses: Vec<ApprovalStatus> =
        backends.storage.approvals(claim.run_id).await.unwrap().iter().map(|approval| approval.status).collect();
    assert_eq!(statuses, [ApprovalStatus::Expired, ApprovalStatus::Pending]);
    assert_eq!(backends.storage.tool_calls(claim.run_id).await.unwrap()[0].error.as_ref().unwrap().code, "expired");
    assert_eq!(status(&backends, &claim).await, RunStatus::Waiting);
}

async fn an_earlier_definition_stays_until_its_last_run_ends(backends: TestBackends) {
    let definition = |name: &str| AgentDefinition { name: name.into(), ..AgentDefinition::default() };
    let agent = backends.storage.create_agent(&definition("one")).await.unwrap().unwrap();
    backends.submit(Target::New { agent_id: Some(agent.id) }, "hi").await;
    let change = |_: &AgentDefinition| Ok::<_, ()>(definition("two"));
    let changed = backends.storage.change_agent(agent.id, change).await.unwrap().unwrap();
    assert!(matches!(changed, AgentChange::Changed(agent) if agent.version == 2));
    let claim = backends.claim(1).await.remove(0);
    assert_eq!(claim.agent, Some((agent.id, 1)));
    let kept = async || {
        backends.storage.retire(Duration::from_secs(60), Duration::ZERO).await.unwrap();
        backends.storage.agent_definition(agent.id, 1).await.unwrap().map(|definition| definition.name)
    };
    assert_eq!(kept().await.as_deref(), Some("one"));
    backends.storage.request_cancel("ann", claim.run_id).await.unwrap();
    backends.storage.end_run(claim.run_id, &holdfast_shared::ending::Ending::Cancelled).await.unwrap();
    assert_eq!(kept().await, None);
    assert_eq!(backends.storage.agent_definition(agent.id, 2).await.unwrap().unwrap().name, "two");
}
