//! A database that refuses a row: a refused checkpoint costs only itself, another row the whole transaction.

use bytes::Bytes;
use holdfast_shared::{
    ending::Ending,
    event::{Event, EventBody, ExecutedBy, MessageDelta},
    event_id::EventId,
    run::{RunError, RunStatus},
    storage::{
        Answer, ArchiveChunk, BeginResult, CallState, Claim, FinishOutcome, FlushOutcome, NewCheckpoint,
        NewTraceMessage, Progress, Release, ReleaseOutcome, Target,
    },
    tool::ToolCallStatus,
    trace::{Node, TraceRole},
    usage::Usage,
};
use serde_json::json;
use uuid::Uuid;

use crate::backends::{ALL, LEASE, TestBackends};

macro_rules! on_each_file {
    ($($fact:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact(crate::backends::TestBackends::embedded().await).await;
            })+
        }

        mod scaled_out {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact(crate::backends::TestBackends::scaled_out().await).await;
            })+
        }
    };
}

on_each_file!(
    a_refused_checkpoint_costs_a_flush_nothing_else,
    a_refused_checkpoint_costs_the_end_of_a_run_nothing_else,
    a_refused_checkpoint_costs_a_release_nothing_else,
    a_refused_tool_call_refuses_the_whole_flush,
);

async fn executing(backends: &TestBackends) -> Claim {
    backends.submit(Target::New { agent_id: None }, "hi").await;
    let claim = backends.claim(1).await.remove(0);
    let BeginResult::Executing(_) = backends.storage.begin(&claim, ALL).await.unwrap() else { panic!("fenced") };
    claim
}

/// Returns the end of a step at this event: a message, a call and a checkpoint.
fn step(claim: &Claim, n: u32) -> ArchiveChunk {
    let id = EventId::new(claim.attempt, n);
    let mut body = Vec::new();
    let delta = EventBody::MessageDelta(MessageDelta { message_id: claim.output_message_id, text: "x".into() });
    Event::encode_into(&mut body, id, 0, &delta);
    let message = NewTraceMessage {
        position: n,
        step: n,
        role: TraceRole::Assistant,
        content: "x".into(),
        tool_calls: Vec::new(),
        call_id: None,
        is_error: false,
        usage: None,
        model: None,
        plan_step: None,
    };
    let call = CallState {
        by: Some(ExecutedBy::Worker),
        call_id: format!("call_{n}"),
        step: n,
        position: 0,
        name: "kb__count".into(),
        input: json!({}),
        effect: Default::default(),
        status: ToolCallStatus::Called,
        schema: None,
        expires_at: None,
        child_run_id: None,
        output: None,
        error: None,
        files: Vec::new(),
        duration_ms: None,
    };
    let checkpoint = NewCheckpoint {
        id: Uuid::now_v7(),
        node: Node::Process,
        step: n,
        event_id: id,
        messages: n as usize,
        metadata: json!({}),
    };
    let progress = Progress {
        messages: vec![message],
        calls: vec![call],
        checkpoints: vec![checkpoint],
        resume_at: Some(id),
        usage: Some(Usage { output_tokens: u64::from(n), ..Usage::default() }),
        ..Progress::default()
    };
    ArchiveChunk { last: id, body: Bytes::from(body), progress }
}

/// Returns the numbers of a run's messages, calls and checkpoints.
async fn kept(backends: &TestBackends, claim: &Claim) -> (usize, usize, usize) {
    let checkpoints = backends.storage.checkpoints("ann", claim.conversation_id, 50, None).await.unwrap().unwrap();
    (
        backends.storage.trace(claim.run_id).await.unwrap().len(),
        backends.storage.tool_calls(claim.run_id).await.unwrap().len(),
        checkpoints.items.len(),
    )
}

async fn a_refused_checkpoint_costs_a_flush_nothing_else(backends: TestBackends) {
    let claim = executing(&backends).await;
    assert_eq!(backends.storage.flush(&claim, &step(&claim, 2), LEASE).await.unwrap(), FlushOutcome::Durable);
    assert_eq!(kept(&backends, &claim).await, (1, 1, 1));
    backends.refuse_rows_of("agent_run_checkpoints").await;
    let next = step(&claim, 3);
    assert_eq!(backends.storage.flush(&claim, &next, LEASE).await.unwrap(), FlushOutcome::WithoutCheckpoint);
    assert_eq!(kept(&backends, &claim).await, (2, 2, 1), "the checkpoint before is the newest");
    assert_eq!(
        backends.storage.flush(&claim, &next, LEASE).await.unwrap(),
        FlushOutcome::Durable,
        "it can be repeated"
    );
    let run = backends.storage.run("ann", claim.run_id).await.unwrap().unwrap();
    assert_eq!((run.status, run.last_event_id), (RunStatus::Running, EventId::new(1, 3)));
    // The next attempt resumes after the step, whose rows are stored.
    backends.expire(claim.run_id).await;
    let taken = backends.take_over().await.remove(0);
    assert_eq!(taken.started.base, Some(EventId::new(1, 3)));
    assert_eq!(backends.storage.flush(&claim, &step(&claim, 4), LEASE).await.unwrap(), FlushOutcome::Fenced);
}

async fn a_refused_checkpoint_costs_the_end_of_a_run_nothing_else(backends: TestBackends) {
    backends.refuse_rows_of("agent_run_checkpoints").await;
    let failed = Ending::Failed(RunError::new("model_failed", "no"));
    for (ending, status) in [(Ending::Completed, RunStatus::Completed), (failed, RunStatus::Failed)] {
        let claim = executing(&backends).await;
        let (tail, last) = (step(&claim, 2), EventId::new(1, 2));
        let answer = Answer { text: "x".into(), ..Answer::default() };
        let finished = backends.storage.finish(&claim, Some(&tail), last, &answer, &ending).await.unwrap();
        assert!(matches!(finished, FinishOutcome::Ended(_)), "{finished:?}");
        let run = backends.storage.run("ann", claim.run_id).await.unwrap().unwrap();
        assert_eq!((run.status, run.output_message.is_some()), (status, true));
        assert_eq!(kept(&backends, &claim).await, (1, 1, 0));
    }
}

async fn a_refused_checkpoint_costs_a_release_nothing_else(backends: TestBackends) {
    backends.refuse_rows_of("agent_run_checkpoints").await;
    let claim = executing(&backends).await;
    let (tail, last) = (step(&claim, 2), EventId::new(1, 2));
    assert!(matches!(
        backends.storage.release(&claim, Some(&tail), last, Release::Queued).await.unwrap(),
        ReleaseOutcome::Released { .. }
    ));
    assert_eq!(kept(&backends, &claim).await, (1, 1, 0));
    assert_eq!(backends.claim(1).await[0].started.base, Some(EventId::new(1, 2)));
}

async fn a_refused_tool_call_refuses_the_whole_flush(backends: TestBackends) {
    let claim = executing(&backends).await;
    backends.refuse_rows_of("agent_run_tool_calls").await;
    assert!(backends.storage.flush(&claim, &step(&claim, 2), LEASE).await.is_err());
    assert_eq!(kept(&backends, &claim).await, (0, 0, 0));
    let run = backends.storage.run("ann", claim.run_id).await.unwrap().unwrap();
    assert_eq!(run.last_event_id, EventId::new(1, 1));
}
