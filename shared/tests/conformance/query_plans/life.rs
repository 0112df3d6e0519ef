//! The life of some runs, through every step of the protocol, and what clients and sweepers read of them.

use std::time::Duration;

use futures::future::join_all;
use holdfast_shared::{
    approval::Decision,
    ending::Ending,
    event_id::EventId,
    page::PageSize,
    quotas::Quotas,
    storage::{
        Answer, ArchiveChunk, BeginResult, Claim, DecisionBy, FinishOutcome, FlushOutcome, Holder, MessageFilter,
        NewCheckpoint, Progress, Release, ReleaseOutcome, RunFilter, Storage, SubmitOutcome, Target,
    },
    tool::ToolCallStatus,
    trace::Node,
};
use serde_json::json;
use uuid::Uuid;

use crate::{
    backends::{ALL, LEASE, new_run, terms},
    storage::deltas,
    waiting::{approval, call, chunk, later, trace_message},
};

const OWNER: &str = "ann";
const NEW: Target = Target::New { agent_id: None };

/// Messages that arrive at one moment, so that all but the first are one group.
const AT_ONCE: usize = 16;

/// Far more than the lives of a test need, so that each message is checked against them.
const QUOTAS: Quotas = Quotas { runs: Some(1_000), bytes: Some(1 << 30) };

/// Lets runs live from their messages to their ends.
pub async fn live(api: &Storage, worker: &Storage) {
    let holder = Holder::new();
    let claim = async |limit: usize| worker.claim_queued(&terms(&holder), limit).await.unwrap();

    let (run, conversation) = submit(api, NEW).await;
    join_all((0..AT_ONCE).map(|_| submit(api, NEW))).await;
    submit(api, Target::Existing(conversation)).await;
    let mut claims = claim(1).await;
    claims.extend(claim(100).await);
    assert_eq!((claims.len(), claims[0].run_id), (1 + AT_ONCE, run));
    for claim in &claims {
        begin(worker, claim).await;
    }
    let rows = rows(&claims[0]);
    flush(worker, &claims[0], &rows).await;
    let chunks: Vec<_> = claims.iter().skip(1).map(|claim| deltas(claim, 2, 3)).collect();
    join_all(claims.iter().skip(1).zip(&chunks).map(|(claim, chunk)| flush(worker, claim, chunk))).await;
    assert_eq!(worker.renew(&holder, LEASE).await.unwrap().len(), claims.len());
    read(api, run, conversation).await;

    let resumed = claims.split_off(AT_ONCE - 1);
    hand_over(worker, &resumed[0]).await;
    wait_for_answer(worker, api, &resumed[1]).await;
    claims.extend(claim(100).await);
    assert_eq!(claims.len(), 1 + AT_ONCE);
    for claim in &claims[AT_ONCE - 1..] {
        begin(worker, claim).await;
    }
    finish(worker, &claims[0]).await;
    join_all(claims.iter().skip(1).map(|claim| finish(worker, claim))).await;
    let later = claim(100).await;
    assert_eq!((later.len(), later[0].conversation_id), (1, conversation));
    begin(worker, &later[0]).await;
    finish(worker, &later[0]).await;
    read(api, later[0].run_id, conversation).await;

    let (cancelled, _) = submit(api, NEW).await;
    api.request_cancel(OWNER, cancelled).await.unwrap();
    sweep(worker).await;
}

async fn submit(api: &Storage, target: Target) -> (Uuid, Uuid) {
    match api.submit(OWNER, &QUOTAS, &new_run(target, "hi")).await.unwrap() {
        SubmitOutcome::Accepted(accepted) => (accepted.run.id, accepted.conversation.id),
        _ => panic!("the message was not accepted"),
    }
}

async fn begin(worker: &Storage, claim: &Claim) {
    assert!(matches!(worker.begin(claim, ALL).await.unwrap(), BeginResult::Executing(_)));
}

/// Returns events with a row in each table of a run.
fn rows(claim: &Claim) -> ArchiveChunk {
    let checkpoint = NewCheckpoint {
        id: Uuid::now_v7(),
        node: Node::Process,
        step: 1,
        event_id: EventId::new(1, 2),
        messages: 1,
        metadata: json!({}),
    };
    let progress = Progress {
        messages: vec![trace_message(1, &["c1"])],
        calls: vec![call("c1", ToolCallStatus::Called, None)],
        checkpoints: vec![checkpoint],
        resume_at: Some(EventId::new(1, 2)),
        ..Progress::default()
    };
    chunk(claim, 2, progress)
}

async fn flush(worker: &Storage, claim: &Claim, chunk: &ArchiveChunk) {
    assert_eq!(worker.flush(claim, chunk, LEASE).await.unwrap(), FlushOutcome::Durable);
}

async fn hand_over(worker: &Storage, claim: &Claim) {
    let tail = chunk(claim, 4, Progress::default());
    let released = worker.release(claim, Some(&tail), tail.last, Release::Queued).await.unwrap();
    assert!(matches!(released, ReleaseOutcome::Released { .. }));
}

async fn wait_for_answer(worker: &Storage, api: &Storage, claim: &Claim) {
    let question = approval("c1", later());
    let progress = Progress {
        calls: vec![call("c1", ToolCallStatus::Called, None)],
        approvals: vec![question.clone()],
        resume_at: Some(EventId::new(1, 4)),
        ..Progress::default()
    };
    let tail = chunk(claim, 4, progress);
    let released = worker.release(claim, Some(&tail), tail.last, Release::Waiting).await.unwrap();
    assert!(matches!(released, ReleaseOutcome::Released { .. }));
    let decision =
        DecisionBy { by: OWNER, decision: &Decision::Approve { edited_input: None, reason: None }, checked: Ok(()) };
    api.decide(OWNER, claim.run_id, question.id, decision).await.unwrap();
}

async fn finish(worker: &Storage, claim: &Claim) {
    let answer = Answer { text: "done".into(), ..Answer::default() };
    let tail = deltas(claim, 5, 6);
    let outcome = worker.finish(claim, Some(&tail), tail.last, &answer, &Ending::Completed).await.unwrap();
    assert!(matches!(outcome, FinishOutcome::Ended(_)));
}

/// Reads as an API does for its clients.
async fn read(api: &Storage, run: Uuid, conversation: Uuid) {
    let size = PageSize { items: 20, bytes: 1 << 20 };
    api.positions(vec![run]).await.unwrap();
    let page = api.read_archive(run, EventId::ORIGIN).await.unwrap().unwrap();
    api.read_archive(run, page.position.archived_to).await.unwrap();
    api.run(OWNER, run).await.unwrap().unwrap();
    api.conversation(OWNER, conversation).await.unwrap().unwrap();
    api.conversations(OWNER, 20, None, None).await.unwrap().unwrap();
    api.history(OWNER, conversation, size).await.unwrap();
    api.messages(OWNER, conversation, MessageFilter::Current, size, None).await.unwrap().unwrap();
    api.runs(OWNER, RunFilter::default(), 20, None).await.unwrap().unwrap();
    let newest = api.history(OWNER, conversation, size).await.unwrap();
    api.place_of_message(OWNER, conversation, newest[0].message.id).await.unwrap().unwrap();
}

/// Looks for runs without a worker.
async fn sweep(worker: &Storage) {
    let terms = terms(&Holder::new());
    assert!(worker.claim_expired(&terms, 100).await.unwrap().is_empty());
    worker.end_expired(&terms).await.unwrap();
    worker.expire_questions().await.unwrap();
    worker.end_delays(Duration::ZERO).await.unwrap();
    worker.backlog().await.unwrap();
}
