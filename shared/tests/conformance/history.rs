//! The history of a conversation: messages and answers, each with its parts.

use chrono::DateTime;
use holdfast_shared::{
    ending::Ending,
    event::{Event, EventBody, MessageDelta, StepStarted},
    event_id::EventId,
    page::PageSize,
    parts::{MessagePart, MessageParts},
    run::{RunError, RunStatus},
    storage::{Answer, ArchiveChunk, Claim, HistoryMessage, Progress, Release, Target},
};
use uuid::Uuid;

use crate::{
    backends::{LEASE, TestBackends},
    conversations::claim_of,
    on_each_backend,
};

on_each_backend!(
    an_answer_keeps_the_parts_that_its_worker_gives,
    an_ending_without_a_worker_keeps_the_parts_of_the_archive,
    the_parts_of_earlier_attempts_are_read_up_to_the_claim,
    a_history_ends_where_its_page_is_full,
    reasoning_counts_in_the_quota,
);

const SIZE: PageSize = PageSize { items: 100, bytes: 1_000_000 };

async fn new_claim(backends: &TestBackends) -> (Claim, Uuid) {
    let (run, conversation) = backends.submit(Target::New { agent_id: None }, "hi").await;
    (claim_of(backends, run).await, conversation)
}

async fn history(backends: &TestBackends, conversation: Uuid) -> Vec<HistoryMessage> {
    backends.storage.history("ann", conversation, SIZE).await.unwrap()
}

fn answer(text: &str, parts: Vec<MessagePart>) -> Answer {
    Answer { text: text.into(), parts: MessageParts { ended_ms: 0, parts }, ..Answer::default() }
}

fn reasoning(text: &str) -> MessagePart {
    MessagePart::Reasoning { text: text.into(), duration_ms: 5 }
}

/// Returns a chunk with a step and a delta, after the claim's own event.
fn step_and_delta(claim: &Claim) -> ArchiveChunk {
    let bodies: [EventBody<'_>; 2] = [
        StepStarted { step: 1 }.into(),
        MessageDelta { message_id: claim.output_message_id, text: "five!".into() }.into(),
    ];
    let (mut body, mut last) = (Vec::new(), claim.started.id);
    for event in &bodies {
        last = last.next();
        Event::encode_into(&mut body, last, DateTime::UNIX_EPOCH.timestamp_millis(), event);
    }
    ArchiveChunk { last, body: body.into(), progress: Progress::default() }
}

async fn an_answer_keeps_the_parts_that_its_worker_gives(backends: TestBackends) {
    let parts = vec![MessagePart::Step, reasoning("why"), MessagePart::Text { chars: 4 }];
    let failed = Ending::Failed(RunError::new("model_failed", "it failed"));
    for (ending, status) in [
        (Ending::Completed, RunStatus::Completed),
        (failed, RunStatus::Failed),
        (Ending::Cancelled, RunStatus::Cancelled),
    ] {
        let (claim, conversation) = new_claim(&backends).await;
        let given = answer("text", parts.clone());
        backends.storage.finish(&claim, None, claim.started.id, &given, &ending).await.unwrap();
        let newest = history(&backends, conversation).await.remove(0);
        let stored = newest.answer.unwrap();
        assert_eq!((stored.run_id, stored.message_id, stored.status), (claim.run_id, newest.message.id, status));
        let MessageParts { ended_ms, parts: stored } = stored.parts.unwrap();
        assert_eq!(stored, parts);
        assert!(ended_ms > 0, "the end has no time");
    }
    // Without a text, the answer has no message.
    let (claim, conversation) = new_claim(&backends).await;
    let given = answer("", vec![reasoning("why")]);
    backends.storage.finish(&claim, None, claim.started.id, &given, &Ending::Cancelled).await.unwrap();
    assert!(history(&backends, conversation).await.remove(0).answer.is_none());
    let unanswered = backends.storage.answers_without_message("ann", conversation, SIZE).await.unwrap();
    assert_eq!(unanswered[0].parts.as_ref().unwrap().parts, [reasoning("why")]);
}

async fn an_ending_without_a_worker_keeps_the_parts_of_the_archive(backends: TestBackends) {
    let (claim, conversation) = new_claim(&backends).await;
    backends.storage.flush(&claim, &step_and_delta(&claim), LEASE).await.unwrap();
    backends.storage.end_run(claim.run_id, &Ending::Cancelled).await.unwrap().unwrap();
    let newest = history(&backends, conversation).await.remove(0);
    assert_eq!(newest.message.content.to_stored(), "five!");
    let expected = [MessagePart::Step, MessagePart::Text { chars: 5 }];
    assert_eq!(newest.answer.unwrap().parts.unwrap().parts, expected);
}

async fn the_parts_of_earlier_attempts_are_read_up_to_the_claim(backends: TestBackends) {
    let (claim, _) = new_claim(&backends).await;
    let mut chunk = step_and_delta(&claim);
    chunk.progress.resume_at = Some(chunk.last);
    backends.storage.release(&claim, Some(&chunk), chunk.last, Release::Queued).await.unwrap();
    let again = claim_of(&backends, claim.run_id).await;
    assert_eq!(again.started.base, Some(chunk.last));
    backends.storage.flush(&again, &step_and_delta(&again), LEASE).await.unwrap();
    let parts = backends.storage.earlier_parts(&again).await.unwrap().into_parts(0);
    assert_eq!(parts.parts, [MessagePart::Step, MessagePart::Text { chars: 5 }]);
    assert_eq!(again.started.id, EventId::first_of(2));
}

async fn a_history_ends_where_its_page_is_full(backends: TestBackends) {
    let (first, conversation) = new_claim(&backends).await;
    let large = answer("one", vec![reasoning(&"x".repeat(2_000))]);
    backends.storage.finish(&first, None, first.started.id, &large, &Ending::Completed).await.unwrap();
    let (run, _) = backends.submit(Target::Existing(conversation), "and?").await;
    let second = claim_of(&backends, run).await;
    backends.storage.finish(&second, None, second.started.id, &large, &Ending::Completed).await.unwrap();
    let check = async |items, bytes, expected| {
        let page = backends.storage.history("ann", conversation, PageSize { items, bytes }).await.unwrap();
        assert_eq!(page.len(), expected, "{items} items, {bytes} bytes");
    };
    check(4, 1_000_000, 4).await;
    check(3, 1_000_000, 3).await;
    // The newest answer alone has more than 2,000 bytes, and its question some hundred.
    check(4, 2_000, 1).await;
    check(4, 2_700, 2).await;
    check(4, 1, 1).await;
    assert!(backends.storage.history("eve", conversation, SIZE).await.unwrap().is_empty());
}

async fn reasoning_counts_in_the_quota(backends: TestBackends) {
    let mut kept = Vec::new();
    for text in ["", "0123456789"] {
        let (claim, _) = new_claim(&backends).await;
        let before = backends.storage.kept_bytes("ann").await.unwrap();
        let given = answer("text", vec![reasoning(text)]);
        backends.storage.finish(&claim, None, claim.started.id, &given, &Ending::Completed).await.unwrap();
        kept.push(backends.storage.kept_bytes("ann").await.unwrap() - before);
    }
    assert_eq!(kept[1] - kept[0], 10);
}
