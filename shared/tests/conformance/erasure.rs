//! An erasure leaves no data of an owner, and a move leaves none at the old owner.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use holdfast_shared::{
    approval::ApprovalKind,
    conversation::Handle,
    ending::Ending,
    event::{Event, EventBody, ExecutedBy, WarningRaised},
    event_id::EventId,
    idempotency::IdempotencyKey,
    message::Message,
    quotas::FileQuotas,
    run::RunStatus,
    storage::{
        Answer, ArchiveChunk, BeginResult, CallState, Claim, Erasure, ErasureStep, FinishOutcome, FlushOutcome,
        MessageFilter, NewApproval, NewBriefing, NewCheckpoint, NewRun, NewTraceMessage, Progress, Release,
        ReleaseOutcome, RunOptions, StoredBriefing, SubmitOutcome, Summary, Target,
    },
    tool::{Effect, ToolCallStatus},
    trace::{Node, TraceRole},
    usage::Usage,
};
use serde_json::json;
use uuid::Uuid;

use crate::{
    backends::{ALL, LEASE, NO_QUOTAS, TestBackends, briefing, new_run},
    conversations::agent,
    conversations::checkpoint_of,
    on_each_backend,
    summaries::scope,
};

on_each_backend!(
    an_erasure_leaves_no_data_of_the_owner,
    the_worker_of_an_erased_run_writes_nothing,
    an_erasure_takes_steps_until_no_data_is_left,
    a_fork_beside_an_erasure_is_erased_or_finds_no_checkpoint,
    only_absent_anonymous_users_are_erased,
    a_move_takes_all_data_of_an_owner,
    handles_and_keys_of_the_new_owner_stay,
    a_move_that_postgres_ends_in_a_deadlock_is_repeated,
    removed_logs_are_empty,
);

const NEW: Target = Target::New { agent_id: None };

async fn submit(backends: &TestBackends, owner: &str, new: NewRun) -> (Uuid, Uuid) {
    match backends.storage.submit(owner, &NO_QUOTAS, &new).await.unwrap() {
        SubmitOutcome::Accepted(accepted) => (accepted.run.id, accepted.conversation.id),
        _ => panic!("the message was not accepted"),
    }
}

/// Claims the only queued run and begins it.
async fn executing(backends: &TestBackends) -> Claim {
    let claim = backends.claim(1).await.remove(0);
    assert!(matches!(backends.storage.begin(&claim, ALL).await.unwrap(), BeginResult::Executing(_)));
    claim
}

fn chunk(claim: &Claim, n: u32, text: &str, progress: Progress) -> ArchiveChunk {
    let body = EventBody::WarningRaised(WarningRaised { code: "test".into(), message: text.into() });
    let event = Event::new(EventId::new(claim.attempt, n), DateTime::UNIX_EPOCH, &body);
    ArchiveChunk { last: event.id, body: Bytes::from([event.line(), &b"\n"[..]].concat()), progress }
}

/// Returns rows for all tables of a run, each with this text.
fn progress(text: &str) -> Progress {
    let (call_id, name, input) = ("c1".to_owned(), "kb__count".to_owned(), json!({ "note": text }));
    let message = NewTraceMessage {
        position: 1,
        step: 1,
        role: TraceRole::Assistant,
        content: text.into(),
        tool_calls: Vec::new(),
        call_id: None,
        is_error: false,
        usage: None,
        model: None,
        plan_step: None,
    };
    let call = CallState {
        by: Some(ExecutedBy::Worker),
        call_id: call_id.clone(),
        step: 1,
        position: 0,
        name: name.clone(),
        input: input.clone(),
        effect: Effect::Once,
        status: ToolCallStatus::Waiting,
        schema: None,
        expires_at: None,
        child_run_id: None,
        output: None,
        error: None,
        files: Vec::new(),
        duration_ms: None,
    };
    let approval = NewApproval {
        id: Uuid::now_v7(),
        call_id,
        kind: ApprovalKind::Policy,
        name,
        input,
        schema: json!({}),
        expires_at: Utc::now() + Duration::from_secs(60),
    };
    let checkpoint = NewCheckpoint {
        id: Uuid::now_v7(),
        node: Node::Process,
        step: 1,
        event_id: EventId::new(1, 2),
        messages: 1,
        metadata: json!({ "said": text }),
    };
    let (messages, calls) = (vec![message], vec![call]);
    Progress { messages, calls, approvals: vec![approval], checkpoints: vec![checkpoint], ..Progress::default() }
}

/// Creates an owner's data of every kind: a waiting, an ended, a running and a queued run, a deleted conversation, a
/// briefing and its card. Returns the claim of the running one.
async fn use_everything(backends: &TestBackends, owner: &str, text: &str) -> Claim {
    let agent_id = agent(backends).await;
    backends.storage.remember_anonymous(owner).await.unwrap();
    let key = |key: &str| Some(IdempotencyKey::new(format!("{text}-{key}"), &[]));
    let options = RunOptions { metadata: Some(json!({ "said": text })), ..RunOptions::default() };
    let target = Target::New { agent_id: Some(agent_id) };
    submit(backends, owner, NewRun { key: key("1"), options, ..new_run(target, text) }).await;
    let claim = executing(backends).await;
    backends
        .storage
        .keep_summary(&scope(&claim), &Summary { up_to: 1, content: text.into() }, Usage::default())
        .await
        .unwrap();
    let tail = chunk(&claim, 2, text, progress(text));
    assert!(matches!(
        backends.storage.release(&claim, Some(&tail), tail.last, Release::Waiting).await.unwrap(),
        ReleaseOutcome::Released { .. }
    ));

    let (_, ended) = submit(backends, owner, new_run(NEW, text)).await;
    let claim = executing(backends).await;
    let answer = Answer { text: text.into(), ..Answer::default() };
    backends.storage.finish(&claim, None, claim.started.id, &answer, &Ending::Completed).await.unwrap();
    let authored = Some((owner.to_owned(), key("2").unwrap()));
    let new = NewBriefing { authored, summary: text.into(), ..briefing(agent_id, text) };
    let StoredBriefing::Stored(new_briefing) = backends.storage.create_briefing(owner, new).await.unwrap() else {
        panic!()
    };
    backends.storage.add_card(owner, ended, new_briefing).await.unwrap().unwrap();
    let id = Uuid::now_v7();
    backends.storage.create_conversation(owner, id, Some(text.into()), None).await.unwrap().unwrap();
    backends.storage.delete_conversation(owner, id).await.unwrap().unwrap();

    submit(backends, owner, new_run(NEW, text)).await;
    let running = executing(backends).await;
    let running_chunk = chunk(&running, 2, text, progress(text));
    assert_eq!(backends.storage.flush(&running, &running_chunk, LEASE).await.unwrap(), FlushOutcome::Durable);
    submit(backends, owner, new_run(NEW, text)).await;
    running
}

async fn erase(backends: &TestBackends, owner: &str) -> Vec<ErasureStep> {
    let mut steps = Vec::new();
    while steps.last().is_none_or(|step: &ErasureStep| !step.is_done) {
        steps.push(backends.storage.erase_some(owner, Erasure::Wanted).await.unwrap());
    }
    steps
}

async fn messages(backends: &TestBackends, owner: &str, conversation: Uuid) -> Vec<Message> {
    backends
        .storage
        .messages(owner, conversation, MessageFilter::Current, 10, None)
        .await
        .unwrap()
        .map_or(Vec::new(), |page| page.items)
}

async fn an_erasure_leaves_no_data_of_the_owner(backends: TestBackends) {
    use_everything(&backends, "bob-of-the-others", "admiral").await;
    // No run of bob is in the way of ann's claims.
    backends.claim(1).await;
    use_everything(&backends, "ann-of-the-erased", "zitronenfalter").await;
    let raw = backends.raw().await;
    let Some(mut raw) = raw else { return };
    let of_bob = raw.tables_with("admiral").await;
    let full = [
        "agent_run_approvals",
        "agent_run_checkpoints",
        "agent_run_messages",
        "agent_run_tool_calls",
        "agent_runs",
        "briefings",
        "chat_conversations",
        "chat_messages",
        "chat_summaries",
        "run_events",
    ];
    assert_eq!(raw.tables_with("zitronenfalter").await, full);
    let with_owner = raw.tables_with("ann-of-the-erased").await;
    assert_eq!(with_owner, ["agent_runs", "anonymous_users", "briefings", "chat_conversations", "chat_messages"]);
    let steps = erase(&backends, "ann-of-the-erased").await;
    let ended: Vec<RunStatus> = steps.iter().flat_map(|step| &step.ended).map(|run| run.status).collect();
    assert_eq!(ended, [RunStatus::Cancelled; 3]);
    assert_eq!(steps.iter().map(|step| step.runs.len()).sum::<usize>(), 4);
    for text in ["zitronenfalter", "ann-of-the-erased"] {
        assert_eq!(raw.tables_with(text).await, Vec::<String>::new(), "{text} is left");
    }
    assert_eq!(raw.tables_with("admiral").await, of_bob);
}

async fn the_worker_of_an_erased_run_writes_nothing(backends: TestBackends) {
    let claim = use_everything(&backends, "ann", "zitronenfalter").await;
    backends.claim(1).await;
    erase(&backends, "ann").await;
    let late = chunk(&claim, 3, "zitronenfalter", progress("zitronenfalter"));
    assert_eq!(backends.storage.flush(&claim, &late, LEASE).await.unwrap(), FlushOutcome::Fenced);
    assert!(matches!(
        backends.storage.release(&claim, Some(&late), late.last, Release::Waiting).await.unwrap(),
        ReleaseOutcome::Fenced
    ));
    backends
        .storage
        .keep_summary(&scope(&claim), &Summary { up_to: 1, content: "zitronenfalter".into() }, Usage::default())
        .await
        .unwrap();
    let answer = Answer { text: "zitronenfalter".into(), ..Answer::default() };
    for ending in [Ending::Completed, Ending::Cancelled] {
        let finished = backends.storage.finish(&claim, Some(&late), late.last, &answer, &ending).await.unwrap();
        assert!(matches!(finished, FinishOutcome::Fenced), "{finished:?}");
    }
    assert!(backends.storage.renew(&backends.holder, LEASE).await.unwrap().is_empty());
    let Some(mut raw) = backends.raw().await else { return };
    assert_eq!(raw.tables_with("zitronenfalter").await, Vec::<String>::new());
}

async fn an_erasure_takes_steps_until_no_data_is_left(backends: TestBackends) {
    for _ in 0..25 {
        backends.storage.create_conversation("ann", Uuid::now_v7(), None, None).await.unwrap();
    }
    let steps = erase(&backends, "ann").await;
    let removed = steps.iter().map(|step| step.conversations.len()).filter(|removed| *removed > 0);
    assert_eq!(removed.collect::<Vec<_>>(), [10, 10, 5]);
    assert_eq!(erase(&backends, "ann").await.len(), 1, "a repeated erasure finds nothing");
}

async fn only_absent_anonymous_users_are_erased(backends: TestBackends) {
    const HOUR: Duration = Duration::from_secs(3_600);
    let Some(mut raw) = backends.raw().await else { return };
    for owner in ["anonymous_a", "anonymous_b", "anonymous_c"] {
        backends.storage.remember_anonymous(owner).await.unwrap();
        backends.submit_as(owner, NEW, "hi").await;
    }
    backends.submit_as("ann", NEW, "hi").await;
    assert!(backends.storage.absent_anonymous(HOUR, 10).await.unwrap().is_empty());
    raw.execute(
        "update anonymous_users set seen_at = now() - interval '2 hours'",
        "update anonymous_users set seen_at = strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now', '-2 hours')",
    )
    .await;
    assert!(backends.storage.see_anonymous("anonymous_b").await.unwrap(), "a read is a return");
    backends.storage.remember_anonymous("anonymous_c").await.unwrap();
    assert!(!backends.storage.see_anonymous("anonymous_d").await.unwrap(), "a user without data gets no row");
    assert_eq!(backends.storage.absent_anonymous(HOUR, 10).await.unwrap(), ["anonymous_a"]);
    for owner in ["anonymous_a", "anonymous_b", "anonymous_c", "ann"] {
        let mut removed = 0;
        loop {
            let step = backends.storage.erase_some(owner, Erasure::Forgotten(HOUR)).await.unwrap();
            removed += step.runs.len();
            if step.is_done {
                break;
            }
        }
        assert_eq!(removed, usize::from(owner == "anonymous_a"), "{owner}");
    }
    assert_eq!(raw.tables_with("anonymous_a").await, Vec::<String>::new());
}

async fn a_move_takes_all_data_of_an_owner(backends: TestBackends) {
    let claim = use_everything(&backends, "anonymous_a", "zitronenfalter").await;
    let moved =
        backends.storage.move_owner("anonymous_a", "ann", &NO_QUOTAS, FileQuotas::default().into()).await.unwrap();
    assert_eq!((moved, backends.storage.count_conversations("ann").await.unwrap()), (4, 4));
    assert_eq!(backends.storage.count_conversations("anonymous_a").await.unwrap(), 0);
    let answer = Answer { text: "said after the move".into(), ..Answer::default() };
    let last = EventId::new(1, 2);
    let finished = backends.storage.finish(&claim, None, last, &answer, &Ending::Completed).await.unwrap();
    assert!(matches!(finished, FinishOutcome::Ended(_)), "{finished:?}");
    assert_eq!(messages(&backends, "ann", claim.conversation_id).await.len(), 2);
    assert_eq!(messages(&backends, "anonymous_a", claim.conversation_id).await.len(), 0);
    assert_eq!(backends.storage.briefings("ann", 9, None).await.unwrap().unwrap().items.len(), 1);
    assert_eq!(
        backends.storage.move_owner("anonymous_a", "ann", &NO_QUOTAS, FileQuotas::default().into()).await.unwrap(),
        0
    );
    let Some(mut raw) = backends.raw().await else { return };
    assert_eq!(raw.tables_with("anonymous_a").await, Vec::<String>::new());
}

async fn a_move_that_postgres_ends_in_a_deadlock_is_repeated(backends: TestBackends) {
    let (first, _) = backends.submit_as("anonymous_a", NEW, "hi").await;
    let (second, _) = backends.submit_as("anonymous_a", NEW, "hi").await;
    assert_eq!(backends.claim(2).await.len(), 2);
    let Some(mut raw) = backends.raw().await else { return };
    // Only PostgreSQL locks rows. It ends the transaction that finds the deadlock: this one never looks for one.
    let lock = |run_id: Uuid| format!("select 1 from agent_runs where id = '{run_id}' for update");
    raw.execute("begin", "select 1").await;
    raw.execute("set local deadlock_timeout = '1h'", "select 1").await;
    raw.execute(&lock(second), "select 1").await;
    let circle = async {
        let until_it_waits = "do $$ begin while not exists (select 1 from pg_stat_activity where wait_event_type = 'Lock' \
                              and datname = current_database()) loop perform pg_sleep(0.01); perform pg_stat_clear_snapshot(); \
                              end loop; end $$";
        raw.execute(until_it_waits, "select 1").await;
        raw.execute(&lock(first), "select 1").await;
        raw.execute("rollback", "select 1").await;
    };
    let (moved, ()) = tokio::join!(
        backends.storage.move_owner("anonymous_a", "ann", &NO_QUOTAS, FileQuotas::default().into()),
        circle
    );
    assert_eq!(moved.unwrap(), 2);
}

async fn handles_and_keys_of_the_new_owner_stay(backends: TestBackends) {
    let named = |name: &str| Target::Named { handle: Handle::Session(name.into()), agent_id: None };
    let keyed =
        |target: Target| NewRun { key: Some(IdempotencyKey::new("k".into(), &["hi"])), ..new_run(target, "hi") };
    let (_, own) = submit(&backends, "ann", keyed(named("both"))).await;
    let (run, moved) = submit(&backends, "anonymous_a", keyed(named("both"))).await;
    let (_, other) = submit(&backends, "anonymous_a", new_run(named("other"), "hi")).await;
    assert_eq!(
        backends.storage.move_owner("anonymous_a", "ann", &NO_QUOTAS, FileQuotas::default().into()).await.unwrap(),
        2
    );
    let find = async |name: &str| {
        backends.storage.find_conversation("ann", &Handle::Session(name.into())).await.unwrap().map(|found| found.id)
    };
    assert_eq!((find("both").await, find("other").await), (Some(own), Some(other)));
    assert!(backends.storage.conversation("ann", moved).await.unwrap().is_some());
    assert!(backends.storage.run("ann", run).await.unwrap().is_some());
}

async fn removed_logs_are_empty(backends: TestBackends) {
    use holdfast_shared::run_log::{EventBatch, Gap};
    let runs: Vec<Uuid> = (0..3).map(|_| Uuid::now_v7()).collect();
    let event = Event::new(
        EventId::new(1, 1),
        DateTime::UNIX_EPOCH,
        &EventBody::WarningRaised(WarningRaised { code: "c".into(), message: "m".into() }),
    );
    for run in &runs {
        backends
            .run_log
            .append(*run, &EventBatch::of(std::slice::from_ref(&event)).unwrap(), Gap::Refuse)
            .await
            .unwrap();
    }
    backends.run_log.remove(&runs[..2]).await.unwrap();
    for (run, left) in runs.iter().zip([0, 0, 1]) {
        assert_eq!(backends.run_log.read(*run, EventId::ORIGIN, 1 << 20).await.unwrap().len(), left);
    }
    backends.run_log.remove(&[]).await.unwrap();
}

async fn a_fork_beside_an_erasure_is_erased_or_finds_no_checkpoint(backends: TestBackends) {
    for round in 0..10 {
        let owner = format!("ann{round}");
        let (run_id, id) = submit(&backends, &owner, new_run(NEW, "one")).await;
        let claim = backends.claim(10).await.into_iter().find(|claim| claim.run_id == run_id).unwrap();
        let checkpoint = checkpoint_of(&backends, &claim).await;
        let forks = (0..8).map(|_| backends.storage.fork_conversation(owner.as_str(), id, checkpoint));
        let (forked, erased) =
            tokio::join!(futures::future::join_all(forks), backends.storage.erase_some(&owner, Erasure::Wanted));
        erased.unwrap();
        forked.into_iter().for_each(|fork| drop(fork.unwrap()));
    }
}
