//! The results of calls that a run may read again.

use holdfast_shared::{
    ending::Ending,
    storage::{Answer, CallState, Claim, Progress, Target},
    tool::{ToolCallStatus, ToolError},
};
use uuid::Uuid;

use crate::{
    backends::{LEASE, TestBackends},
    conversations::claim_of,
    on_each_backend,
    waiting::{call, chunk},
};

on_each_backend!(
    a_run_reads_the_results_of_its_conversation_and_owner_only,
    an_error_and_a_result_of_a_child_are_kept_as_such,
);

/// Completes a run of the owner that has made these calls, and returns its conversation.
async fn run_with(backends: &TestBackends, owner: &str, calls: Vec<CallState>) -> Uuid {
    let (run, conversation) = backends.submit_as(owner, Target::New { agent_id: None }, "hi").await;
    let claim = claim_of(backends, run).await;
    let chunk = chunk(&claim, 2, Progress { calls, ..Progress::default() });
    backends.storage.flush(&claim, &chunk, LEASE).await.unwrap();
    backends.storage.finish(&claim, None, chunk.last, &Answer::default(), &Ending::Completed).await.unwrap();
    conversation
}

async fn next_run(backends: &TestBackends, owner: &str, conversation: Uuid) -> Claim {
    let (run, _) = backends.submit_as(owner, Target::Existing(conversation), "and?").await;
    claim_of(backends, run).await
}

fn completed(call_id: &str, output: &str) -> CallState {
    CallState { output: Some(output.into()), ..call(call_id, ToolCallStatus::Completed, None) }
}

async fn a_run_reads_the_results_of_its_conversation_and_owner_only(backends: TestBackends) {
    let calls = vec![completed("call_1", "one"), call("call_2", ToolCallStatus::Called, None)];
    let conversation = run_with(&backends, "ann", calls).await;
    let of_bob = run_with(&backends, "bob", vec![completed("call_3", "of bob")]).await;
    let other = run_with(&backends, "ann", vec![completed("call_4", "elsewhere")]).await;
    let reader = next_run(&backends, "ann", conversation).await;
    let read = async |conversation, call_id| {
        let kept = backends.storage.kept_result(reader.run_id, conversation, call_id).await.unwrap();
        kept.and_then(|kept| kept.output)
    };
    assert_eq!(read(conversation, "call_1").await.as_deref(), Some("one"));
    assert_eq!(read(conversation, "call_2").await, None, "it has no outcome");
    assert_eq!(read(conversation, "call_3").await, None, "it is of another conversation");
    assert_eq!(read(conversation, "call_4").await, None, "it is of another conversation");
    assert_eq!(read(of_bob, "call_3").await, None, "it is of another owner");
    assert_eq!(read(other, "call_4").await.as_deref(), Some("elsewhere"));
}

async fn an_error_and_a_result_of_a_child_are_kept_as_such(backends: TestBackends) {
    let error = ToolError::new("tool_failed", "no tide");
    let failed = CallState { error: Some(error.clone()), ..call("call_1", ToolCallStatus::Completed, None) };
    let of_child = CallState { child_run_id: Some(Uuid::now_v7()), position: 1, ..completed("call_2", "a child's") };
    let conversation = run_with(&backends, "ann", vec![failed, of_child]).await;
    let reader = next_run(&backends, "ann", conversation).await;
    let read = async |call_id| {
        backends.storage.kept_result(reader.run_id, conversation, call_id).await.unwrap().expect("it is kept")
    };
    let kept = read("call_1").await;
    assert_eq!((kept.output, kept.error, kept.is_of_child), (None, Some(error), false));
    let kept = read("call_2").await;
    assert_eq!((kept.output.as_deref(), kept.is_of_child), (Some("a child's"), true));
}
