//! The protocol of the run's row.

use std::time::Duration;

use chrono::{TimeZone, Utc};
use holdfast_shared::{
    ending::Ending,
    event::{AttemptReason, Event, EventBody, MessageDelta},
    event_id::EventId,
    finish_reason::FinishReason,
    idempotency::IdempotencyKey,
    message::Content,
    run::{Run, RunStatus, SubmitMode},
    storage::{
        Answer, ArchiveChunk, BeginResult, CancelOutcome, Claim, Closed, FinishOutcome, FlushOutcome, Holder,
        MessageFilter, NewRun, Progress, Release, ReleaseOutcome, SubmitOutcome, Target, Window,
    },
    tool::ClientTool,
    usage::Usage,
};
use serde_json::json;
use uuid::Uuid;

use crate::{
    backends::{ALL, LEASE, MAX_CRASHES, NO_QUOTAS, TestBackends, new_run, terms},
    on_each_backend,
};

on_each_backend!(
    a_run_goes_from_submit_to_its_end,
    a_stale_claim_writes_nothing,
    a_flush_whose_answer_was_lost_can_be_repeated,
    a_finish_whose_answer_was_lost_can_be_repeated,
    only_the_first_run_of_a_conversation_is_claimed,
    runs_are_claimed_once,
    each_claim_of_a_run_has_the_limit_of_its_submission,
    an_attempt_begins_with_a_message_of_any_length_and_its_tools,
    the_first_event_of_an_attempt_is_archived_as_its_worker_sends_it,
    a_lost_claim_is_free_and_each_death_is_charged,
    a_run_that_took_down_three_workers_can_only_end,
    another_attempt_reads_the_finish_reason_of_the_newest_step,
    the_death_of_a_holder_is_settled_when_all_its_leases_have_expired,
    a_hand_over_charges_no_crash,
    a_hand_over_after_a_cancel_request_returns_the_request,
    an_end_without_a_claim_fences_the_holder,
    an_ended_run_never_changes,
    a_model_reads_earlier_messages_only,
    a_repeated_key_returns_the_first_run,
    a_repeated_key_precedes_a_busy_conversation,
    a_limit_applies_to_the_runs_of_a_conversation,
    a_text_that_the_database_refuses_stops_no_sweep,
    a_renewal_returns_held_runs_and_cancel_requests,
    a_large_chunk_is_kept_in_rows_and_read_in_order,
    conversations_with_the_same_time_are_all_listed,
    events_and_deleted_conversations_are_removed,
    one_sweep_removes_several_pieces,
    a_run_whose_row_is_gone_is_fenced,
);

const NEW: Target = Target::New { agent_id: None };

/// Returns an answer with its usage.
fn answer(text: &str) -> Answer {
    let usage = Usage { input_tokens: 1, output_tokens: 2, ..Usage::default() };
    Answer { text: text.into(), usage, finish_reason: Some(FinishReason::Length), ..Answer::default() }
}

/// Returns a chunk with the attempt's deltas `first..=last`.
pub fn deltas(claim: &Claim, first: u32, last: u32) -> ArchiveChunk {
    let mut body = Vec::new();
    for n in first..=last {
        let delta =
            EventBody::MessageDelta(MessageDelta { message_id: claim.output_message_id, text: format!("{n} ").into() });
        Event::encode_into(
            &mut body,
            EventId::new(claim.attempt, n),
            Utc.timestamp_opt(0, 0).unwrap().timestamp_millis(),
            &delta,
        );
    }
    ArchiveChunk { last: EventId::new(claim.attempt, last), body: body.into(), progress: Progress::default() }
}

async fn one_claim(backends: &TestBackends) -> Claim {
    backends.submit(NEW, "hi").await;
    backends.claim(1).await.remove(0)
}

async fn begin(backends: &TestBackends, claim: &Claim) -> Vec<String> {
    match backends.storage.begin(claim, ALL).await.unwrap() {
        BeginResult::Executing(start) => {
            let history = start.history;
            let messages = history.earlier.into_iter().map(|earlier| earlier.message).chain([history.input]);
            messages.map(|message| message.content.to_stored()).collect()
        }
        BeginResult::Fenced => panic!("the claim is fenced"),
    }
}

/// Returns the archived events after a cursor. One read returns only some of them.
pub async fn archived(backends: &TestBackends, run_id: Uuid, mut cursor: EventId) -> Vec<Event> {
    let mut read = Vec::new();
    loop {
        let events = backends.storage.read_archive(run_id, cursor).await.unwrap().unwrap().events;
        let fresh = events.into_iter().filter(|event| event.id > cursor);
        read.extend(fresh);
        match read.last().map(|event: &Event| event.id) {
            Some(last) if last > cursor => cursor = last,
            _ => return read,
        }
    }
}

fn ids(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| event.id.to_string()).collect()
}

async fn a_run_goes_from_submit_to_its_end(backends: TestBackends) {
    let claim = one_claim(&backends).await;
    assert_eq!(
        (claim.attempt, claim.started.id, claim.started.base),
        (1, EventId::new(1, 1), Some(EventId::new(0, 1)))
    );
    assert_eq!(begin(&backends, &claim).await, ["hi"]);
    let progress = Progress { model: Some("test/test".into()), ..Progress::default() };
    let chunk = ArchiveChunk { progress, ..deltas(&claim, 2, 3) };
    assert_eq!(backends.storage.flush(&claim, &chunk, LEASE).await.unwrap(), FlushOutcome::Durable);
    let (tail, last) = (deltas(&claim, 4, 4), EventId::new(1, 4));
    let finished =
        backends.storage.finish(&claim, Some(&tail), last, &answer("2 3 4 "), &Ending::Completed).await.unwrap();
    let FinishOutcome::Ended(closed) = finished else { panic!("fenced") };
    let Closed { events, next_waits, .. } = *closed;
    assert_eq!(
        events.iter().map(|event| (event.id.n, event.kind_name())).collect::<Vec<_>>(),
        [(5, "message.completed"), (6, "run.completed")]
    );
    assert!(!next_waits);
    let run = backends.storage.run("ann", claim.run_id).await.unwrap().unwrap();
    assert_eq!(
        (run.status, run.last_event_id, run.model.as_deref()),
        (RunStatus::Completed, EventId::new(1, 6), Some("test/test"))
    );
    let bare = backends.storage.run_without_answer("ann", claim.run_id).await.unwrap().unwrap();
    assert_eq!(bare, Run { output_message: None, ..run.clone() });
    assert_eq!(backends.storage.last_run("ann", claim.conversation_id).await.unwrap(), Some(bare));
    assert_eq!(backends.storage.run_without_answer("bob", claim.run_id).await.unwrap(), None);
    let message = run.output_message.unwrap();
    assert_eq!(message.content, Content::Text("2 3 4 ".into()));
    let payload: serde_json::Value = serde_json::from_slice(events[0].payload()).unwrap();
    assert_eq!(payload["message"], serde_json::json!(message));
    assert_eq!(run.usage.unwrap().output_tokens, 2);
    assert_eq!((run.finish_reason, message.finish_reason), (Some(FinishReason::Length), Some(FinishReason::Length)));
    let position = backends.storage.read_archive(claim.run_id, EventId::ORIGIN).await.unwrap().unwrap().position;
    assert_eq!(position.archived_to, EventId::new(1, 6));
    let events = archived(&backends, claim.run_id, EventId::ORIGIN).await;
    assert_eq!(ids(&events), ["0-1", "1-1", "1-2", "1-3", "1-4", "1-5", "1-6"]);
}

async fn a_stale_claim_writes_nothing(backends: TestBackends) {
    let stale = one_claim(&backends).await;
    begin(&backends, &stale).await;
    backends.expire(stale.run_id).await;
    let current = backends.take_over().await.remove(0);
    assert_eq!(current.attempt, 2);
    let chunk = deltas(&stale, 2, 2);
    assert_eq!(backends.storage.flush(&stale, &chunk, LEASE).await.unwrap(), FlushOutcome::Fenced);
    assert!(matches!(
        backends.storage.finish(&stale, Some(&chunk), chunk.last, &answer("x"), &Ending::Completed).await.unwrap(),
        FinishOutcome::Fenced
    ));
    assert!(matches!(
        backends.storage.release(&stale, None, stale.started.id, Release::Queued).await.unwrap(),
        ReleaseOutcome::Fenced
    ));
    assert!(backends.storage.renew(&backends.holder, LEASE).await.unwrap().is_empty());
    let run = backends.storage.run("ann", stale.run_id).await.unwrap().unwrap();
    assert_eq!((run.status, run.attempt, run.output_message), (RunStatus::Running, 2, None));
    assert_eq!(backends.storage.flush(&current, &deltas(&current, 2, 2), LEASE).await.unwrap(), FlushOutcome::Durable);
    backends.storage.end_run(current.run_id, &Ending::Cancelled).await.unwrap();
    assert!(matches!(backends.storage.begin(&current, ALL).await.unwrap(), BeginResult::Fenced));
}

async fn a_flush_whose_answer_was_lost_can_be_repeated(backends: TestBackends) {
    let claim = one_claim(&backends).await;
    let chunk = deltas(&claim, 2, 5);
    for _ in 0..2 {
        assert_eq!(backends.storage.flush(&claim, &chunk, LEASE).await.unwrap(), FlushOutcome::Durable);
    }
    let events = archived(&backends, claim.run_id, EventId::new(1, 1)).await;
    assert_eq!(ids(&events), ["1-2", "1-3", "1-4", "1-5"]);
}

async fn a_finish_whose_answer_was_lost_can_be_repeated(backends: TestBackends) {
    // The closing events are in one row of the archive, or in two.
    for text in ["2 3 ".to_owned(), "long ".repeat(20_000)] {
        let claim = one_claim(&backends).await;
        let tail = deltas(&claim, 2, 3);
        let mut endings = Vec::new();
        for _ in 0..2 {
            match backends
                .storage
                .finish(&claim, Some(&tail), tail.last, &answer(&text), &Ending::Completed)
                .await
                .unwrap()
            {
                FinishOutcome::Ended(closed) => endings.push(closed.events),
                FinishOutcome::Fenced => panic!("the run's own end fences its claim"),
            }
        }
        assert_eq!(ids(&endings[0]), ["1-4", "1-5"]);
        assert_eq!(endings[0], endings[1]);
        let messages = backends
            .storage
            .messages("ann", claim.conversation_id, MessageFilter::Current, 10, None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(messages.items.len(), 2);
    }
}

async fn only_the_first_run_of_a_conversation_is_claimed(backends: TestBackends) {
    let (first, conversation) = backends.submit(NEW, "one").await;
    let (second, _) = backends.submit(Target::Existing(conversation), "two").await;
    let claims = backends.claim(10).await;
    assert_eq!(claims.iter().map(|claim| claim.run_id).collect::<Vec<_>>(), [first]);
    assert!(backends.claim(10).await.is_empty());
    let finished =
        backends.storage.finish(&claims[0], None, claims[0].started.id, &answer(""), &Ending::Completed).await.unwrap();
    assert!(matches!(finished, FinishOutcome::Ended(closed) if closed.next_waits));
    assert_eq!(backends.claim(10).await[0].run_id, second);
}

async fn runs_are_claimed_once(backends: TestBackends) {
    let mut submitted = Vec::new();
    for _ in 0..30 {
        submitted.push(backends.submit(NEW, "hi").await.0);
    }
    let (one, two) = (Holder::new(), Holder::new());
    let claim = async |holder| {
        let mut claimed = Vec::new();
        loop {
            let claims = backends.storage.claim_queued(&terms(holder), 4).await.unwrap();
            if claims.is_empty() {
                return claimed;
            }
            claimed.extend(claims.into_iter().map(|claim| claim.run_id));
        }
    };
    let (first, second) = tokio::join!(claim(&one), claim(&two));
    let mut all = [first, second].concat();
    all.sort_unstable();
    submitted.sort_unstable();
    assert_eq!(all, submitted);
}

/// Longer than one tick of the database's clock.
const A_MOMENT: Duration = Duration::from_millis(5);

/// Returns the crashes in the claim's event.
fn crashes(claim: &Claim) -> u64 {
    serde_json::from_slice::<serde_json::Value>(claim.started.payload()).unwrap()["crashes"].as_u64().unwrap()
}

async fn each_claim_of_a_run_has_the_limit_of_its_submission(backends: TestBackends) {
    let mut new = new_run(NEW, "hi");
    new.options.max_silence = Some(Duration::from_secs(90));
    assert!(matches!(backends.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap(), SubmitOutcome::Accepted(_)));
    let limit = Some(Duration::from_secs(90));
    assert_eq!(backends.claim(1).await[0].max_silence, limit);
    backends.expire(new.run_id).await;
    assert_eq!(backends.take_over().await[0].max_silence, limit);
    assert_eq!(one_claim(&backends).await.max_silence, None);
}

async fn an_attempt_begins_with_a_message_of_any_length_and_its_tools(backends: TestBackends) {
    for (length, has_tools) in [(1, false), (1, true), (16_384, false), (16_385, false)] {
        let mut new = new_run(NEW, &"x".repeat(length));
        let tool = ClientTool { name: "locate".into(), description: String::new(), input_schema: json!({}) };
        new.options.client_tools = if has_tools { vec![tool] } else { Vec::new() };
        new.options.metadata = Some(json!({"a": 1}));
        assert!(matches!(backends.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap(), SubmitOutcome::Accepted(_)));
        let claim = backends.claim(1).await.remove(0);
        let is_short = length <= 16_384 && !has_tools;
        assert_eq!(claim.first_input.is_some(), is_short, "only a short message comes with its claim");
        let BeginResult::Executing(start) = backends.storage.begin(&claim, ALL).await.unwrap() else {
            panic!("fenced")
        };
        assert_eq!(start.history.input.content, Content::Text("x".repeat(length)));
        assert_eq!((start.client_tools.len(), &start.metadata), (usize::from(has_tools), &json!({"a": 1})));
    }
}

async fn the_first_event_of_an_attempt_is_archived_as_its_worker_sends_it(backends: TestBackends) {
    let first = one_claim(&backends).await;
    let mut chunk = deltas(&first, 2, 3);
    chunk.progress.resume_at = Some(chunk.last);
    backends.storage.release(&first, Some(&chunk), chunk.last, Release::Queued).await.unwrap();
    let second = backends.claim(1).await.remove(0);
    backends.storage.charge_panic(&backends.holder, second.run_id, second.attempt).await.unwrap();
    let third = backends.take_over().await.remove(0);
    let reasons = [AttemptReason::Claimed, AttemptReason::Drain, AttemptReason::LeaseExpired];
    assert_eq!([&first, &second, &third].map(|claim| claim.reason), reasons);
    assert_eq!((third.checkpoint, crashes(&third)), (chunk.last, 1));
    for claim in [first, second, third] {
        assert_eq!(backends.archived_start(&claim).await.line(), claim.started.line());
    }
}

async fn a_lost_claim_is_free_and_each_death_is_charged(backends: TestBackends) {
    let claim = one_claim(&backends).await;
    backends.storage.give_back(&backends.holder, vec![(claim.run_id, claim.attempt)]).await.unwrap();
    let (holder, dead) = (Holder::new(), Holder::new());
    let second = backends.storage.claim_expired(&terms(&holder), 1).await.unwrap().remove(0);
    assert_eq!(crashes(&second), 0);
    // The executor of the first attempt panics after its worker has claimed the second one.
    backends.storage.charge_panic(&holder, claim.run_id, claim.attempt).await.unwrap();
    assert!(backends.take_over().await.is_empty());
    backends.storage.charge_panic(&holder, claim.run_id, second.attempt).await.unwrap();
    let third = backends.storage.claim_expired(&terms(&dead), 1).await.unwrap().remove(0);
    assert_eq!((third.attempt, crashes(&third)), (3, 1));
    let payload: serde_json::Value = serde_json::from_slice(third.started.payload()).unwrap();
    assert_eq!(payload["reason"], serde_json::json!(AttemptReason::LeaseExpired));
    // Its worker dies before it has begun, as one does that the run kills at once.
    backends.storage.renew(&dead, Duration::ZERO).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    assert!(backends.take_over().await.is_empty(), "it is a suspect now");
    assert_eq!(crashes(&backends.storage.claim_suspects(&terms(&Holder::new()), 1).await.unwrap().claims[0]), 2);
}

/// Lets workers die during the run until it is a suspect.
async fn crash_but_once(backends: &TestBackends, claim: &Claim) {
    let (mut claim, mut holder) = (claim.clone(), backends.holder.clone());
    for death in 1..MAX_CRASHES {
        begin(backends, &claim).await;
        backends.storage.charge_panic(&holder, claim.run_id, claim.attempt).await.unwrap();
        if death < MAX_CRASHES - 1 {
            holder = Holder::new();
            claim = backends.storage.claim_expired(&terms(&holder), 1).await.unwrap().remove(0);
        }
    }
}

async fn the_death_of_a_holder_is_settled_when_all_its_leases_have_expired(backends: TestBackends) {
    let (one, two) = (one_claim(&backends).await, one_claim(&backends).await);
    begin(&backends, &one).await;
    begin(&backends, &two).await;
    backends.storage.renew(&backends.holder, Duration::ZERO).await.unwrap();
    // The holder lives, because it has just archived events.
    backends.storage.flush(&two, &deltas(&two, 2, 2), LEASE).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    assert!(backends.take_over().await.is_empty());
    backends.storage.renew(&backends.holder, Duration::ZERO).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    let taken = backends.take_over().await;
    assert_eq!(taken.iter().map(|claim| (claim.attempt, crashes(claim))).collect::<Vec<_>>(), [(2, 1), (2, 1)]);
    assert!(
        backends.storage.renew(&backends.holder, LEASE).await.unwrap().is_empty(),
        "the dead holder still holds a run"
    );
}

async fn a_run_that_took_down_three_workers_can_only_end(backends: TestBackends) {
    let claim = one_claim(&backends).await;
    crash_but_once(&backends, &claim).await;
    let holder = Holder::new();
    let claim = backends.storage.claim_suspects(&terms(&holder), 1).await.unwrap().claims.remove(0);
    begin(&backends, &claim).await;
    backends.storage.flush(&claim, &deltas(&claim, 2, 3), LEASE).await.unwrap();
    assert!(
        backends.storage.end_expired(&terms(&Holder::new())).await.unwrap().is_empty(),
        "its lease has not expired yet"
    );
    backends.storage.charge_panic(&holder, claim.run_id, claim.attempt).await.unwrap();
    assert!(backends.take_over().await.is_empty());
    let ended = backends.storage.end_expired(&terms(&Holder::new())).await.unwrap().remove(0);
    assert_eq!((ended.run_id, ended.attempt, ended.closed.events[0].base), (claim.run_id, 4, Some(EventId::new(3, 3))));
    let run = backends.storage.run("ann", claim.run_id).await.unwrap().unwrap();
    assert_eq!((run.status, run.error.unwrap().code.as_str()), (RunStatus::Failed, "max_attempts"));
    assert_eq!(run.output_message.unwrap().content, Content::Text("2 3 ".into()));
}

async fn another_attempt_reads_the_finish_reason_of_the_newest_step(backends: TestBackends) {
    let claim = one_claim(&backends).await;
    begin(&backends, &claim).await;
    let progress = Progress { finish_reason: Some(FinishReason::Length), ..Progress::default() };
    let chunk = ArchiveChunk { progress, ..deltas(&claim, 2, 2) };
    backends.storage.flush(&claim, &chunk, LEASE).await.unwrap();
    let run = backends.storage.run("ann", claim.run_id).await.unwrap().unwrap();
    assert_eq!(run.finish_reason, None, "the run has not ended");
    backends.expire(claim.run_id).await;
    let taken = backends.take_over().await.remove(0);
    let BeginResult::Executing(start) = backends.storage.begin(&taken, ALL).await.unwrap() else { panic!("fenced") };
    assert_eq!(start.finish_reason, Some(FinishReason::Length));
}

async fn a_hand_over_charges_no_crash(backends: TestBackends) {
    let claim = one_claim(&backends).await;
    begin(&backends, &claim).await;
    let tail = deltas(&claim, 2, 3);
    for _ in 0..2 {
        assert!(matches!(
            backends.storage.release(&claim, Some(&tail), tail.last, Release::Queued).await.unwrap(),
            ReleaseOutcome::Released { .. }
        ));
    }
    let next = backends.claim(1).await.remove(0);
    assert_eq!((next.attempt, crashes(&next), next.started.base), (2, 0, Some(EventId::new(0, 1))));
    let events = archived(&backends, claim.run_id, EventId::new(1, 1)).await;
    assert_eq!(ids(&events), ["1-2", "1-3", "2-1"]);
}

async fn a_hand_over_after_a_cancel_request_returns_the_request(backends: TestBackends) {
    let claim = one_claim(&backends).await;
    assert!(matches!(backends.storage.request_cancel("ann", claim.run_id).await.unwrap(), CancelOutcome::Requested));
    assert!(matches!(
        backends.storage.release(&claim, None, claim.started.id, Release::Queued).await.unwrap(),
        ReleaseOutcome::CancelRequested
    ));
}

async fn an_end_without_a_claim_fences_the_holder(backends: TestBackends) {
    let claim = one_claim(&backends).await;
    backends.storage.flush(&claim, &deltas(&claim, 2, 3), LEASE).await.unwrap();
    let ended = backends.storage.end_run(claim.run_id, &Ending::Cancelled).await.unwrap().unwrap();
    assert_eq!(
        ended.closed.events.iter().map(|event| event.kind_name()).collect::<Vec<_>>(),
        ["message.completed", "run.cancelled"]
    );
    assert_eq!(
        (ended.closed.events[0].id, ended.closed.events[0].base),
        (EventId::new(2, 1), Some(EventId::new(1, 3)))
    );
    let tail = deltas(&claim, 4, 4);
    assert_eq!(backends.storage.flush(&claim, &tail, LEASE).await.unwrap(), FlushOutcome::Fenced);
    assert!(matches!(
        backends.storage.finish(&claim, Some(&tail), tail.last, &answer(""), &Ending::Completed).await.unwrap(),
        FinishOutcome::Fenced
    ));
    let run = backends.storage.run("ann", claim.run_id).await.unwrap().unwrap();
    assert_eq!(
        (run.status, run.output_message.unwrap().content.to_stored()),
        (RunStatus::Cancelled, "2 3 ".to_owned())
    );
}

async fn an_ended_run_never_changes(backends: TestBackends) {
    let (run_id, _) = backends.submit(NEW, "hi").await;
    assert!(matches!(backends.storage.request_cancel("ann", run_id).await.unwrap(), CancelOutcome::Ended(_)));
    assert!(matches!(backends.storage.request_cancel("ann", run_id).await.unwrap(), CancelOutcome::Over));
    assert!(backends.storage.end_run(run_id, &Ending::Completed).await.unwrap().is_none());
    assert!(backends.claim(10).await.is_empty());
    assert!(matches!(backends.storage.request_cancel("bob", run_id).await.unwrap(), CancelOutcome::NotFound));
}

async fn a_model_reads_earlier_messages_only(backends: TestBackends) {
    let (_, conversation) = backends.submit(NEW, "one").await;
    let first = backends.claim(1).await.remove(0);
    backends.submit(Target::Existing(conversation), "two").await;
    assert_eq!(begin(&backends, &first).await, ["one"], "the model reads no later message");
    backends.storage.finish(&first, None, first.started.id, &answer("answer"), &Ending::Completed).await.unwrap();
    let second = backends.claim(1).await.remove(0);
    assert_eq!(begin(&backends, &second).await, ["one", "answer", "two"]);
    let BeginResult::Executing(start) = backends.storage.begin(&second, Window { usual: 1, ..ALL }).await.unwrap()
    else {
        panic!("fenced")
    };
    assert_eq!(
        start.history.earlier.iter().map(|earlier| earlier.message.content.to_stored()).collect::<Vec<_>>(),
        ["answer"]
    );
}

async fn a_repeated_key_returns_the_first_run(backends: TestBackends) {
    let submit = async |content: &str, owner: &str| {
        let key = Some(IdempotencyKey::new("k".into(), &[content]));
        let new = NewRun { key, ..new_run(NEW, content) };
        backends.storage.submit(owner, &NO_QUOTAS, &new).await.unwrap()
    };
    let SubmitOutcome::Accepted(first) = submit("hi", "ann").await else { panic!("not accepted") };
    let SubmitOutcome::Repeated(again) = submit("hi", "ann").await else { panic!("not recognised") };
    assert_eq!((again.0, again.1, again.2.id), (first.conversation, first.message, first.run.id));
    assert!(matches!(submit("ho", "ann").await, SubmitOutcome::KeyReused));
    assert!(matches!(submit("ho", "bob").await, SubmitOutcome::Accepted(_)));
}

async fn a_repeated_key_precedes_a_busy_conversation(backends: TestBackends) {
    let conversation = backends.storage.create_conversation("ann", Uuid::now_v7(), None, None).await.unwrap().unwrap();
    let submit = async || {
        let key = Some(IdempotencyKey::new("k".into(), &["hi"]));
        let new = NewRun { mode: SubmitMode::Reject, key, ..new_run(Target::Existing(conversation.id), "hi") };
        match backends.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap() {
            SubmitOutcome::Accepted(accepted) => accepted.run.id,
            SubmitOutcome::Repeated(repeated) => repeated.2.id,
            _ => panic!("a repeated request was refused"),
        }
    };
    let runs = futures::future::join_all((0..10).map(|_| submit())).await;
    assert!(runs.iter().all(|run| *run == runs[0]));
}

async fn a_limit_applies_to_the_runs_of_a_conversation(backends: TestBackends) {
    let (_, conversation) = backends.submit(NEW, "one").await;
    let submit = async |mode| {
        let new = NewRun { mode, max_unfinished: 2, ..new_run(Target::Existing(conversation), "hi") };
        backends.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap()
    };
    assert!(matches!(submit(SubmitMode::Enqueue).await, SubmitOutcome::Accepted(_)));
    assert!(matches!(submit(SubmitMode::Enqueue).await, SubmitOutcome::TooMany));
    assert!(matches!(submit(SubmitMode::Interrupt).await, SubmitOutcome::Accepted(_)));
}

async fn a_text_that_the_database_refuses_stops_no_sweep(backends: TestBackends) {
    // This version writes no NUL, but an older one may have archived one.
    let (poisoned, innocent) = (one_claim(&backends).await, one_claim(&backends).await);
    let mut body = Vec::new();
    let delta = EventBody::MessageDelta(MessageDelta { message_id: poisoned.output_message_id, text: "\0".into() });
    Event::encode_into(&mut body, EventId::new(1, 2), 0, &delta);
    let chunk = ArchiveChunk { last: EventId::new(1, 2), body: body.into(), progress: Progress::default() };
    backends.storage.flush(&poisoned, &chunk, LEASE).await.unwrap();
    for claim in [&poisoned, &innocent] {
        backends.storage.request_cancel("ann", claim.run_id).await.unwrap();
        backends.expire(claim.run_id).await;
    }
    let ended = backends.storage.end_expired(&terms(&Holder::new())).await.unwrap();
    assert_eq!(ended.len(), 2);
}

async fn a_renewal_returns_held_runs_and_cancel_requests(backends: TestBackends) {
    let claim = one_claim(&backends).await;
    let renewed = backends.storage.renew(&backends.holder, LEASE).await.unwrap().remove(0);
    assert_eq!((renewed.run_id, renewed.attempt, renewed.cancel_requested), (claim.run_id, 1, false));
    backends.storage.request_cancel("ann", claim.run_id).await.unwrap();
    assert!(backends.storage.renew(&backends.holder, LEASE).await.unwrap()[0].cancel_requested);
    assert!(backends.storage.renew(&Holder::new(), LEASE).await.unwrap().is_empty());
    // Other workers claim no run with a renewed lease. The sweeper ends an expired run with a cancel request.
    assert!(backends.storage.end_expired(&terms(&Holder::new())).await.unwrap().is_empty());
    backends.expire(claim.run_id).await;
    assert!(backends.take_over().await.is_empty());
    assert_eq!(
        backends.storage.end_expired(&terms(&Holder::new())).await.unwrap()[0]
            .closed
            .events
            .last()
            .unwrap()
            .kind_name(),
        "run.cancelled"
    );
}

async fn a_large_chunk_is_kept_in_rows_and_read_in_order(backends: TestBackends) {
    let claim = one_claim(&backends).await;
    let chunk = deltas(&claim, 2, 5000);
    assert!(chunk.body.len() > 5 * 64 * 1024);
    backends.storage.flush(&claim, &chunk, LEASE).await.unwrap();
    let (mut cursor, mut read) = (EventId::new(1, 1), Vec::new());
    while read.len() < 4999 {
        let events = backends.storage.read_archive(claim.run_id, cursor).await.unwrap().unwrap().events;
        let bytes: usize = events.iter().map(|event| event.line().len()).sum();
        assert!(bytes < 192 * 1024, "one read returns {bytes} bytes");
        let fresh: Vec<Event> = events.into_iter().filter(|event| event.id > cursor).collect();
        cursor = fresh.last().expect("there is more").id;
        read.extend(fresh);
    }
    assert!(read.iter().enumerate().all(|(index, event)| event.id.n == index as u32 + 2));
}

async fn conversations_with_the_same_time_are_all_listed(backends: TestBackends) {
    for _ in 0..25 {
        backends.storage.create_conversation("ann", Uuid::now_v7(), None, None).await.unwrap();
    }
    let (mut listed, mut cursor) = (Vec::new(), None);
    loop {
        let page = backends.storage.conversations("ann", 4, cursor.as_deref(), None).await.unwrap().unwrap();
        listed.extend(page.items.into_iter().map(|conversation| conversation.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let mut distinct = listed.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!((listed.len(), distinct.len()), (25, 25));
    assert!(backends.storage.conversations("ann", 4, Some("x"), None).await.unwrap().is_none());
}

async fn events_and_deleted_conversations_are_removed(backends: TestBackends) {
    let claim = one_claim(&backends).await;
    let (running, conversation) = backends.submit(NEW, "hi").await;
    let claim_of_second = backends.claim(1).await.remove(0);
    let (waiting, _) = backends.submit(Target::Existing(conversation), "hi").await;
    backends.storage.finish(&claim, None, claim.started.id, &answer("answer"), &Ending::Completed).await.unwrap();
    assert_eq!(backends.storage.retire(LEASE, Duration::ZERO).await.unwrap().runs, 0);
    // Times are in whole milliseconds, so no event expires before the next one begins.
    while backends.storage.retire(Duration::from_millis(1), Duration::ZERO).await.unwrap().runs == 0 {}
    let archived = backends.storage.read_archive(claim.run_id, EventId::ORIGIN).await.unwrap().unwrap();
    assert!(archived.position.removed && archived.events.is_empty());
    let (ended, requested) = backends.storage.delete_conversation("ann", conversation).await.unwrap().unwrap();
    assert_eq!((ended[0].run_id, &requested[..]), (waiting, &[running][..]));
    assert_eq!(
        backends.storage.retire(LEASE, Duration::ZERO).await.unwrap().conversations,
        0,
        "a run of it has not ended"
    );
    backends
        .storage
        .finish(&claim_of_second, None, claim_of_second.started.id, &answer(""), &Ending::Cancelled)
        .await
        .unwrap();
    let retired = backends.storage.retire(LEASE, LEASE).await.unwrap();
    let mut removed = retired.removed_runs.clone();
    removed.sort_unstable();
    assert_eq!((retired.conversations, removed), (1, vec![running, waiting]));
    assert!(backends.storage.read_archive(waiting, EventId::ORIGIN).await.unwrap().is_none());
}

async fn one_sweep_removes_several_pieces(backends: TestBackends) {
    const RUNS: usize = 205;
    for _ in 0..RUNS {
        backends.submit(NEW, "hi").await;
    }
    for claim in backends.claim(RUNS).await {
        let ended = backends.storage.finish(&claim, None, claim.started.id, &answer(""), &Ending::Completed).await;
        assert!(matches!(ended.unwrap(), FinishOutcome::Ended(_)));
    }
    tokio::time::sleep(A_MOMENT).await;
    let retired = backends.storage.retire(Duration::ZERO, LEASE).await.unwrap();
    assert_eq!(retired.runs, RUNS);
}

async fn a_run_whose_row_is_gone_is_fenced(backends: TestBackends) {
    let claim = one_claim(&backends).await;
    // No row has this id, as after a failover to a server that lacks the last writes.
    let mut lost = claim.clone();
    lost.run_id = Uuid::now_v7();
    let chunk = deltas(&lost, 2, 2);
    assert_eq!(backends.storage.flush(&lost, &chunk, LEASE).await.unwrap(), FlushOutcome::Fenced);
    assert!(matches!(
        backends.storage.release(&lost, Some(&chunk), chunk.last, Release::Queued).await.unwrap(),
        ReleaseOutcome::Fenced
    ));
    for ending in [Ending::Completed, Ending::Cancelled] {
        let finished = backends.storage.finish(&lost, Some(&chunk), chunk.last, &answer("x"), &ending).await.unwrap();
        assert!(matches!(finished, FinishOutcome::Fenced));
    }
    assert_eq!(backends.storage.flush(&claim, &deltas(&claim, 2, 2), LEASE).await.unwrap(), FlushOutcome::Durable);
}
