//! The protocol of the run's row.

use std::time::Duration;

use chrono::{TimeZone, Utc};
use holdfast_shared::{
    agent::Limits,
    ending::Ending,
    event::{AttemptReason, Event, EventBody, MessageDelta},
    event_id::EventId,
    finish_reason::FinishReason,
    idempotency::IdempotencyKey,
    message::Content,
    run::{Run, RunStatus, SubmitMode},
    storage::{
        Answer, ArchiveChunk, BeginResult, Cancelled, Claim, Finished, Flushed, Holder, Leave, Left, NewRun, Progress,
        Submitted, Target, Which, Window,
    },
    usage::Usage,
};
use uuid::Uuid;

use crate::{
    on_each_backend,
    places::{ALL, LEASE, MAX_CRASHES, NO_QUOTAS, Places, new_run, terms},
};

on_each_backend!(
    a_run_goes_from_submit_to_its_end,
    a_stale_claim_writes_nothing,
    a_flush_whose_answer_was_lost_can_be_repeated,
    a_finish_whose_answer_was_lost_can_be_repeated,
    only_the_first_run_of_a_conversation_is_claimed,
    runs_are_claimed_once,
    each_claim_of_a_run_has_the_limit_that_it_was_submitted_with,
    a_death_counts_only_if_something_was_executed,
    a_run_that_took_down_three_workers_can_only_end,
    another_attempt_knows_why_the_newest_step_has_ended,
    the_death_of_a_holder_is_settled_when_all_its_leases_have_expired,
    a_hand_over_charges_no_crash,
    a_handed_over_run_whose_cancel_was_requested_is_to_be_finished,
    whoever_ends_a_run_without_holding_it_fences_its_holder,
    an_ended_run_stays_as_it_is,
    a_model_sees_only_what_came_before,
    the_same_key_gives_the_same_run,
    the_same_key_is_seen_before_the_conversation_is_found_busy,
    a_conversation_takes_only_so_many_runs,
    a_text_that_the_database_cannot_keep_ends_no_sweep,
    a_renewal_names_what_is_still_held_and_what_is_to_be_cancelled,
    a_large_chunk_is_kept_in_rows_and_read_in_order,
    conversations_with_the_same_time_are_all_listed,
    events_and_deleted_conversations_are_removed,
    one_sweep_removes_more_than_a_batch,
    a_run_whose_row_is_gone_is_fenced,
);

const NEW: Target = Target::New { agent_id: None };

/// An answer and what it has used.
fn answer(text: &str) -> Answer {
    let usage = Usage { input_tokens: 1, output_tokens: 2, ..Usage::default() };
    Answer { text: text.into(), usage, finish_reason: Some(FinishReason::Length) }
}

/// The chunk of an attempt's deltas `first..=last`.
fn deltas(claim: &Claim, first: u32, last: u32) -> ArchiveChunk {
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

async fn one_claim(places: &Places) -> Claim {
    places.submit(NEW, "hi").await;
    places.claim(1).await.remove(0)
}

async fn begin(places: &Places, claim: &Claim) -> Vec<String> {
    match places.storage.begin(claim, "test/test", ALL).await.unwrap() {
        BeginResult::Executing(start) => {
            let history = start.history;
            let said = history.earlier.into_iter().map(|earlier| earlier.message).chain([history.input]);
            said.map(|message| message.content.to_stored()).collect()
        }
        BeginResult::Fenced => panic!("the claim is fenced"),
    }
}

/// The archived events after a cursor. A look reads only some of them.
async fn archived(places: &Places, run_id: Uuid, mut cursor: EventId) -> Vec<Event> {
    let mut read = Vec::new();
    loop {
        let events = places.storage.read_archive(run_id, cursor).await.unwrap().unwrap().events;
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

async fn a_run_goes_from_submit_to_its_end(places: Places) {
    let claim = one_claim(&places).await;
    assert_eq!(
        (claim.attempt, claim.started.id, claim.started.base),
        (1, EventId::new(1, 1), Some(EventId::new(0, 1)))
    );
    assert_eq!(begin(&places, &claim).await, ["hi"]);
    assert_eq!(places.storage.flush(&claim, &deltas(&claim, 2, 3), LEASE).await.unwrap(), Flushed::Durable);
    let (tail, last) = (deltas(&claim, 4, 4), EventId::new(1, 4));
    let finished =
        places.storage.finish(&claim, Some(&tail), last, &answer("2 3 4 "), &Ending::Completed).await.unwrap();
    let Finished::Ended { events, next_waits } = finished else { panic!("fenced") };
    assert_eq!(
        events.iter().map(|event| (event.id.n, event.kind_name())).collect::<Vec<_>>(),
        [(5, "message.completed"), (6, "run.completed")]
    );
    assert!(!next_waits);
    let run = places.storage.run("ann", claim.run_id).await.unwrap().unwrap();
    assert_eq!(
        (run.status, run.last_event_id, run.model.as_deref()),
        (RunStatus::Completed, EventId::new(1, 6), Some("test/test"))
    );
    let bare = places.storage.run_without_answer("ann", claim.run_id).await.unwrap().unwrap();
    assert_eq!(bare, Run { output_message: None, ..run.clone() });
    assert_eq!(places.storage.last_run("ann", claim.conversation_id).await.unwrap(), Some(bare));
    assert_eq!(places.storage.run_without_answer("bob", claim.run_id).await.unwrap(), None);
    let message = run.output_message.unwrap();
    assert_eq!(message.content, Content::Text("2 3 4 ".into()));
    let told: serde_json::Value = serde_json::from_slice(events[0].payload()).unwrap();
    assert_eq!(told["message"], serde_json::json!(message));
    assert_eq!(run.usage.unwrap().output_tokens, 2);
    assert_eq!((run.finish_reason, message.finish_reason), (Some(FinishReason::Length), Some(FinishReason::Length)));
    let position = places.storage.read_archive(claim.run_id, EventId::ORIGIN).await.unwrap().unwrap().position;
    assert_eq!(position.archived_to, EventId::new(1, 6));
    let events = archived(&places, claim.run_id, EventId::ORIGIN).await;
    assert_eq!(ids(&events), ["0-1", "1-1", "1-2", "1-3", "1-4", "1-5", "1-6"]);
}

async fn a_stale_claim_writes_nothing(places: Places) {
    let stale = one_claim(&places).await;
    begin(&places, &stale).await;
    places.expire(stale.run_id).await;
    let current = places.take_over().await.remove(0);
    assert_eq!(current.attempt, 2);
    let chunk = deltas(&stale, 2, 2);
    assert_eq!(places.storage.flush(&stale, &chunk, LEASE).await.unwrap(), Flushed::Fenced);
    assert!(matches!(
        places.storage.finish(&stale, Some(&chunk), chunk.last, &answer("x"), &Ending::Completed).await.unwrap(),
        Finished::Fenced
    ));
    assert_eq!(places.storage.leave(&stale, None, stale.started.id, Leave::Queued).await.unwrap(), Left::Fenced);
    assert!(matches!(places.storage.begin(&stale, "test", ALL).await.unwrap(), BeginResult::Fenced));
    assert!(places.storage.renew(&places.holder, LEASE).await.unwrap().is_empty());
    let run = places.storage.run("ann", stale.run_id).await.unwrap().unwrap();
    assert_eq!((run.status, run.attempt, run.output_message), (RunStatus::Running, 2, None));
    assert_eq!(places.storage.flush(&current, &deltas(&current, 2, 2), LEASE).await.unwrap(), Flushed::Durable);
}

async fn a_flush_whose_answer_was_lost_can_be_repeated(places: Places) {
    let claim = one_claim(&places).await;
    let chunk = deltas(&claim, 2, 5);
    for _ in 0..2 {
        assert_eq!(places.storage.flush(&claim, &chunk, LEASE).await.unwrap(), Flushed::Durable);
    }
    let events = archived(&places, claim.run_id, EventId::new(1, 1)).await;
    assert_eq!(ids(&events), ["1-2", "1-3", "1-4", "1-5"]);
}

async fn a_finish_whose_answer_was_lost_can_be_repeated(places: Places) {
    // What ends a run is in one row of the archive, or in two.
    for text in ["2 3 ".to_owned(), "long ".repeat(20_000)] {
        let claim = one_claim(&places).await;
        let tail = deltas(&claim, 2, 3);
        let mut endings = Vec::new();
        for _ in 0..2 {
            match places
                .storage
                .finish(&claim, Some(&tail), tail.last, &answer(&text), &Ending::Completed)
                .await
                .unwrap()
            {
                Finished::Ended { events, .. } => endings.push(events),
                Finished::Fenced => panic!("a run's own end fences it"),
            }
        }
        assert_eq!(ids(&endings[0]), ["1-4", "1-5"]);
        assert_eq!(endings[0], endings[1]);
        let messages =
            places.storage.messages("ann", claim.conversation_id, Which::Current, 10, None).await.unwrap().unwrap();
        assert_eq!(messages.items.len(), 2);
    }
}

async fn only_the_first_run_of_a_conversation_is_claimed(places: Places) {
    let (first, conversation) = places.submit(NEW, "one").await;
    let (second, _) = places.submit(Target::Existing(conversation), "two").await;
    let claims = places.claim(10).await;
    assert_eq!(claims.iter().map(|claim| claim.run_id).collect::<Vec<_>>(), [first]);
    assert!(places.claim(10).await.is_empty());
    let finished =
        places.storage.finish(&claims[0], None, claims[0].started.id, &answer(""), &Ending::Completed).await.unwrap();
    assert!(matches!(finished, Finished::Ended { next_waits: true, .. }));
    assert_eq!(places.claim(10).await[0].run_id, second);
}

async fn runs_are_claimed_once(places: Places) {
    let mut submitted = Vec::new();
    for _ in 0..30 {
        submitted.push(places.submit(NEW, "hi").await.0);
    }
    let (one, two) = (Holder::new(), Holder::new());
    let claim = async |holder| {
        let mut claimed = Vec::new();
        loop {
            let claims = places.storage.claim_queued(&terms(holder), 4).await.unwrap();
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

/// Longer than the database's clock needs to go on.
const A_MOMENT: Duration = Duration::from_millis(5);

/// Crashes so far, as the event of the claim says.
fn crashes(claim: &Claim) -> u64 {
    serde_json::from_slice::<serde_json::Value>(claim.started.payload()).unwrap()["crashes"].as_u64().unwrap()
}

async fn each_claim_of_a_run_has_the_limit_that_it_was_submitted_with(places: Places) {
    let mut new = new_run(NEW, "hi");
    new.options.max_duration = Some(Duration::from_secs(90));
    assert!(matches!(places.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap(), Submitted::Accepted(_)));
    let limits = Limits { max_duration_ms: Some(90_000), ..Limits::default() };
    assert_eq!(places.claim(1).await[0].limits, limits);
    places.expire(new.run_id).await;
    assert_eq!(places.take_over().await[0].limits, limits);
    assert_eq!(one_claim(&places).await.limits, Limits::default());
}

async fn a_death_counts_only_if_something_was_executed(places: Places) {
    let claim = one_claim(&places).await;
    places.expire(claim.run_id).await;
    let holder = Holder::new();
    let second = places.storage.claim_expired(&terms(&holder), 1).await.unwrap().remove(0);
    assert_eq!(crashes(&second), 0);
    begin(&places, &second).await;
    places.storage.void_unknown(&holder, vec![claim.run_id]).await.unwrap();
    let third = places.take_over().await.remove(0);
    assert_eq!((third.attempt, crashes(&third)), (3, 1));
    let payload: serde_json::Value = serde_json::from_slice(third.started.payload()).unwrap();
    assert_eq!(payload["reason"], serde_json::json!(AttemptReason::LeaseExpired));
}

/// Lets workers die while they execute the run, until it is a suspect.
async fn crash_but_once(places: &Places, claim: &Claim) {
    let (mut claim, mut holder) = (claim.clone(), places.holder.clone());
    for death in 1..MAX_CRASHES {
        begin(places, &claim).await;
        places.storage.void_unknown(&holder, vec![claim.run_id]).await.unwrap();
        if death < MAX_CRASHES - 1 {
            holder = Holder::new();
            claim = places.storage.claim_expired(&terms(&holder), 1).await.unwrap().remove(0);
        }
    }
}

async fn the_death_of_a_holder_is_settled_when_all_its_leases_have_expired(places: Places) {
    let (one, two) = (one_claim(&places).await, one_claim(&places).await);
    begin(&places, &one).await;
    begin(&places, &two).await;
    places.storage.renew(&places.holder, Duration::ZERO).await.unwrap();
    // The holder lives: it has just archived something.
    places.storage.flush(&two, &deltas(&two, 2, 2), LEASE).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    assert!(places.take_over().await.is_empty());
    places.storage.renew(&places.holder, Duration::ZERO).await.unwrap();
    tokio::time::sleep(A_MOMENT).await;
    let taken = places.take_over().await;
    assert_eq!(taken.iter().map(|claim| (claim.attempt, crashes(claim))).collect::<Vec<_>>(), [(2, 1), (2, 1)]);
    assert!(places.storage.renew(&places.holder, LEASE).await.unwrap().is_empty(), "the dead holder has none any more");
}

async fn a_run_that_took_down_three_workers_can_only_end(places: Places) {
    let claim = one_claim(&places).await;
    crash_but_once(&places, &claim).await;
    let holder = Holder::new();
    let claim = places.storage.claim_suspects(&terms(&holder), 1).await.unwrap().claims.remove(0);
    begin(&places, &claim).await;
    places.storage.flush(&claim, &deltas(&claim, 2, 3), LEASE).await.unwrap();
    assert!(
        places.storage.end_expired(&terms(&Holder::new())).await.unwrap().is_empty(),
        "its lease has not expired yet"
    );
    places.storage.void_unknown(&holder, vec![claim.run_id]).await.unwrap();
    assert!(places.take_over().await.is_empty());
    let ended = places.storage.end_expired(&terms(&Holder::new())).await.unwrap().remove(0);
    assert_eq!((ended.run_id, ended.attempt, ended.events[0].base), (claim.run_id, 4, Some(EventId::new(3, 3))));
    let run = places.storage.run("ann", claim.run_id).await.unwrap().unwrap();
    assert_eq!((run.status, run.error.unwrap().code.as_str()), (RunStatus::Failed, "max_attempts"));
    assert_eq!(run.output_message.unwrap().content, Content::Text("2 3 ".into()));
}

async fn another_attempt_knows_why_the_newest_step_has_ended(places: Places) {
    let claim = one_claim(&places).await;
    begin(&places, &claim).await;
    let progress = Progress { finish_reason: Some(FinishReason::Length), ..Progress::default() };
    let chunk = ArchiveChunk { progress, ..deltas(&claim, 2, 2) };
    places.storage.flush(&claim, &chunk, LEASE).await.unwrap();
    let run = places.storage.run("ann", claim.run_id).await.unwrap().unwrap();
    assert_eq!(run.finish_reason, None, "the run has not ended");
    places.expire(claim.run_id).await;
    let taken = places.take_over().await.remove(0);
    let BeginResult::Executing(start) = places.storage.begin(&taken, "test/test", ALL).await.unwrap() else {
        panic!("fenced")
    };
    assert_eq!(start.finish_reason, Some(FinishReason::Length));
}

async fn a_hand_over_charges_no_crash(places: Places) {
    let claim = one_claim(&places).await;
    begin(&places, &claim).await;
    let tail = deltas(&claim, 2, 3);
    for _ in 0..2 {
        assert_eq!(places.storage.leave(&claim, Some(&tail), tail.last, Leave::Queued).await.unwrap(), Left::Gone);
    }
    let next = places.claim(1).await.remove(0);
    assert_eq!((next.attempt, crashes(&next), next.started.base), (2, 0, Some(EventId::new(0, 1))));
    let events = archived(&places, claim.run_id, EventId::new(1, 1)).await;
    assert_eq!(ids(&events), ["1-2", "1-3", "2-1"]);
}

async fn a_handed_over_run_whose_cancel_was_requested_is_to_be_finished(places: Places) {
    let claim = one_claim(&places).await;
    assert!(matches!(places.storage.request_cancel("ann", claim.run_id).await.unwrap(), Cancelled::Requested));
    assert_eq!(
        places.storage.leave(&claim, None, claim.started.id, Leave::Queued).await.unwrap(),
        Left::CancelRequested
    );
}

async fn whoever_ends_a_run_without_holding_it_fences_its_holder(places: Places) {
    let claim = one_claim(&places).await;
    places.storage.flush(&claim, &deltas(&claim, 2, 3), LEASE).await.unwrap();
    let ended = places.storage.end_run(claim.run_id, &Ending::Cancelled).await.unwrap().unwrap();
    assert_eq!(
        ended.events.iter().map(|event| event.kind_name()).collect::<Vec<_>>(),
        ["message.completed", "run.cancelled"]
    );
    assert_eq!((ended.events[0].id, ended.events[0].base), (EventId::new(2, 1), Some(EventId::new(1, 3))));
    let tail = deltas(&claim, 4, 4);
    assert_eq!(places.storage.flush(&claim, &tail, LEASE).await.unwrap(), Flushed::Fenced);
    assert!(matches!(
        places.storage.finish(&claim, Some(&tail), tail.last, &answer(""), &Ending::Completed).await.unwrap(),
        Finished::Fenced
    ));
    let run = places.storage.run("ann", claim.run_id).await.unwrap().unwrap();
    assert_eq!(
        (run.status, run.output_message.unwrap().content.to_stored()),
        (RunStatus::Cancelled, "2 3 ".to_owned())
    );
}

async fn an_ended_run_stays_as_it_is(places: Places) {
    let (run_id, _) = places.submit(NEW, "hi").await;
    assert!(matches!(places.storage.request_cancel("ann", run_id).await.unwrap(), Cancelled::Ended(_)));
    assert!(matches!(places.storage.request_cancel("ann", run_id).await.unwrap(), Cancelled::Over));
    assert!(places.storage.end_run(run_id, &Ending::Completed).await.unwrap().is_none());
    assert!(places.claim(10).await.is_empty());
    assert!(matches!(places.storage.request_cancel("bob", run_id).await.unwrap(), Cancelled::NotFound));
}

async fn a_model_sees_only_what_came_before(places: Places) {
    let (_, conversation) = places.submit(NEW, "one").await;
    let first = places.claim(1).await.remove(0);
    places.submit(Target::Existing(conversation), "two").await;
    assert_eq!(begin(&places, &first).await, ["one"], "a message posted later is not seen");
    places.storage.finish(&first, None, first.started.id, &answer("answer"), &Ending::Completed).await.unwrap();
    let second = places.claim(1).await.remove(0);
    assert_eq!(begin(&places, &second).await, ["one", "answer", "two"]);
    let BeginResult::Executing(start) =
        places.storage.begin(&second, "test", Window { usual: 1, standing: 9, result_chars: 0 }).await.unwrap()
    else {
        panic!("fenced")
    };
    assert_eq!(
        start.history.earlier.iter().map(|earlier| earlier.message.content.to_stored()).collect::<Vec<_>>(),
        ["answer"]
    );
}

async fn the_same_key_gives_the_same_run(places: Places) {
    let submit = async |content: &str, owner: &str| {
        let key = Some(IdempotencyKey::new("k".into(), &[content]));
        let new = NewRun { key, ..new_run(NEW, content) };
        places.storage.submit(owner, &NO_QUOTAS, &new).await.unwrap()
    };
    let Submitted::Accepted(first) = submit("hi", "ann").await else { panic!("not accepted") };
    let Submitted::Repeated(again) = submit("hi", "ann").await else { panic!("not recognised") };
    assert_eq!((again.0, again.1, again.2.id), (first.conversation, first.message, first.run.id));
    assert!(matches!(submit("ho", "ann").await, Submitted::KeyReused));
    assert!(matches!(submit("ho", "bob").await, Submitted::Accepted(_)));
}

async fn the_same_key_is_seen_before_the_conversation_is_found_busy(places: Places) {
    let conversation = places.storage.create_conversation("ann", Uuid::now_v7(), None, None).await.unwrap().unwrap();
    let submit = async || {
        let key = Some(IdempotencyKey::new("k".into(), &["hi"]));
        let new = NewRun { mode: SubmitMode::Reject, key, ..new_run(Target::Existing(conversation.id), "hi") };
        match places.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap() {
            Submitted::Accepted(accepted) => accepted.run.id,
            Submitted::Repeated(repeated) => repeated.2.id,
            _ => panic!("a repeated request was refused"),
        }
    };
    let runs = futures::future::join_all((0..10).map(|_| submit())).await;
    assert!(runs.iter().all(|run| *run == runs[0]));
}

async fn a_conversation_takes_only_so_many_runs(places: Places) {
    let (_, conversation) = places.submit(NEW, "one").await;
    let submit = async |mode| {
        let new = NewRun { mode, max_unfinished: 2, ..new_run(Target::Existing(conversation), "hi") };
        places.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap()
    };
    assert!(matches!(submit(SubmitMode::Enqueue).await, Submitted::Accepted(_)));
    assert!(matches!(submit(SubmitMode::Enqueue).await, Submitted::TooMany));
    assert!(matches!(submit(SubmitMode::Interrupt).await, Submitted::Accepted(_)));
}

async fn a_text_that_the_database_cannot_keep_ends_no_sweep(places: Places) {
    // Nothing writes a NUL any more, but an older version may have archived one.
    let (poisoned, innocent) = (one_claim(&places).await, one_claim(&places).await);
    let mut body = Vec::new();
    let delta = EventBody::MessageDelta(MessageDelta { message_id: poisoned.output_message_id, text: "\0".into() });
    Event::encode_into(&mut body, EventId::new(1, 2), 0, &delta);
    let chunk = ArchiveChunk { last: EventId::new(1, 2), body: body.into(), progress: Progress::default() };
    places.storage.flush(&poisoned, &chunk, LEASE).await.unwrap();
    for claim in [&poisoned, &innocent] {
        places.storage.request_cancel("ann", claim.run_id).await.unwrap();
        places.expire(claim.run_id).await;
    }
    let ended = places.storage.end_expired(&terms(&Holder::new())).await.unwrap();
    assert_eq!(ended.len(), 2);
}

async fn a_renewal_names_what_is_still_held_and_what_is_to_be_cancelled(places: Places) {
    let claim = one_claim(&places).await;
    let renewed = places.storage.renew(&places.holder, LEASE).await.unwrap().remove(0);
    assert_eq!((renewed.run_id, renewed.attempt, renewed.cancel_requested), (claim.run_id, 1, false));
    places.storage.request_cancel("ann", claim.run_id).await.unwrap();
    assert!(places.storage.renew(&places.holder, LEASE).await.unwrap()[0].cancel_requested);
    assert!(places.storage.renew(&Holder::new(), LEASE).await.unwrap().is_empty());
    // A renewed lease is not taken over, an expired one that is to be cancelled is ended.
    assert!(places.storage.end_expired(&terms(&Holder::new())).await.unwrap().is_empty());
    places.expire(claim.run_id).await;
    assert!(places.take_over().await.is_empty());
    assert_eq!(
        places.storage.end_expired(&terms(&Holder::new())).await.unwrap()[0].events.last().unwrap().kind_name(),
        "run.cancelled"
    );
}

async fn a_large_chunk_is_kept_in_rows_and_read_in_order(places: Places) {
    let claim = one_claim(&places).await;
    let chunk = deltas(&claim, 2, 5000);
    assert!(chunk.body.len() > 5 * 64 * 1024);
    places.storage.flush(&claim, &chunk, LEASE).await.unwrap();
    let (mut cursor, mut read) = (EventId::new(1, 1), Vec::new());
    while read.len() < 4999 {
        let events = places.storage.read_archive(claim.run_id, cursor).await.unwrap().unwrap().events;
        let bytes: usize = events.iter().map(|event| event.line().len()).sum();
        assert!(bytes < 192 * 1024, "one look reads {bytes} bytes");
        let fresh: Vec<Event> = events.into_iter().filter(|event| event.id > cursor).collect();
        cursor = fresh.last().expect("there is more").id;
        read.extend(fresh);
    }
    assert!(read.iter().enumerate().all(|(index, event)| event.id.n == index as u32 + 2));
}

async fn conversations_with_the_same_time_are_all_listed(places: Places) {
    for _ in 0..25 {
        places.storage.create_conversation("ann", Uuid::now_v7(), None, None).await.unwrap();
    }
    let (mut listed, mut cursor) = (Vec::new(), None);
    loop {
        let page = places.storage.conversations("ann", 4, cursor.as_deref(), None).await.unwrap().unwrap();
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
    assert!(places.storage.conversations("ann", 4, Some("x"), None).await.unwrap().is_none());
}

async fn events_and_deleted_conversations_are_removed(places: Places) {
    let claim = one_claim(&places).await;
    let (running, conversation) = places.submit(NEW, "hi").await;
    let held = places.claim(1).await.remove(0);
    let (waiting, _) = places.submit(Target::Existing(conversation), "hi").await;
    places.storage.finish(&claim, None, claim.started.id, &answer("answer"), &Ending::Completed).await.unwrap();
    assert_eq!(places.storage.retire(LEASE, Duration::ZERO).await.unwrap().runs, 0);
    // Times are in whole milliseconds: until the next has begun, nothing is past its time.
    while places.storage.retire(Duration::from_millis(1), Duration::ZERO).await.unwrap().runs == 0 {}
    let archived = places.storage.read_archive(claim.run_id, EventId::ORIGIN).await.unwrap().unwrap();
    assert!(archived.position.removed && archived.events.is_empty());
    let (ended, requested) = places.storage.delete_conversation("ann", conversation).await.unwrap().unwrap();
    assert_eq!((ended[0].run_id, &requested[..]), (waiting, &[running][..]));
    assert_eq!(
        places.storage.retire(LEASE, Duration::ZERO).await.unwrap().conversations,
        0,
        "a run of it has not ended"
    );
    places.storage.finish(&held, None, held.started.id, &answer(""), &Ending::Cancelled).await.unwrap();
    assert_eq!(places.storage.retire(LEASE, Duration::ZERO).await.unwrap().conversations, 1);
    assert!(places.storage.read_archive(waiting, EventId::ORIGIN).await.unwrap().is_none());
}

async fn one_sweep_removes_more_than_a_batch(places: Places) {
    const RUNS: usize = 205;
    for _ in 0..RUNS {
        places.submit(NEW, "hi").await;
    }
    for claim in places.claim(RUNS).await {
        let ended = places.storage.finish(&claim, None, claim.started.id, &answer(""), &Ending::Completed).await;
        assert!(matches!(ended.unwrap(), Finished::Ended { .. }));
    }
    tokio::time::sleep(A_MOMENT).await;
    let retired = places.storage.retire(Duration::ZERO, LEASE).await.unwrap();
    assert_eq!(retired.runs, RUNS);
}

async fn a_run_whose_row_is_gone_is_fenced(places: Places) {
    let claim = one_claim(&places).await;
    // No row has this id, as after a failover to a server that lacks the last writes.
    let mut lost = claim.clone();
    lost.run_id = Uuid::now_v7();
    let chunk = deltas(&lost, 2, 2);
    assert_eq!(places.storage.flush(&lost, &chunk, LEASE).await.unwrap(), Flushed::Fenced);
    assert_eq!(places.storage.leave(&lost, Some(&chunk), chunk.last, Leave::Queued).await.unwrap(), Left::Fenced);
    for ending in [Ending::Completed, Ending::Cancelled] {
        let finished = places.storage.finish(&lost, Some(&chunk), chunk.last, &answer("x"), &ending).await.unwrap();
        assert!(matches!(finished, Finished::Fenced));
    }
    assert_eq!(places.storage.flush(&claim, &deltas(&claim, 2, 2), LEASE).await.unwrap(), Flushed::Durable);
}
