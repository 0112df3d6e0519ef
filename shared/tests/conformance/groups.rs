//! Groups of writes in PostgreSQL: messages that open conversations at one moment share a transaction, and so do runs that
//! archive events, and runs that end. None delays or harms another.

use std::{pin::pin, process::Command, time::Duration};

use futures::{future::join_all, poll};
use holdfast_shared::{
    ending::Ending,
    event_id::EventId,
    quotas::Quotas,
    run::RunStatus,
    storage::{
        Answer, ArchiveChunk, Claim, FinishOutcome, FlushOutcome, NewCheckpoint, Progress, Release, Storage,
        SubmitOutcome, Target,
    },
    tool::ClientTool,
    trace::Node,
};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::{
    backends::{NO_QUOTAS, TestBackends, new_run},
    raw::Raw,
    storage::deltas,
};

const NEW: Target = Target::New { agent_id: None };

/// A lease that is longer than that of a claim.
const LEASE: Duration = Duration::from_secs(3600);

/// Less than the time-out of a statement, after which a group gives up by itself.
const MOMENT: Duration = Duration::from_secs(8);

/// More runs than fit into the first group, which has one member, and the second.
const RUNS: usize = 100;

async fn connection(backends: &TestBackends) -> PgConnection {
    match backends.raw().await {
        Some(Raw::Postgres(connection)) => connection,
        _ => panic!("it is not PostgreSQL"),
    }
}

async fn claims(backends: &TestBackends, runs: usize) -> Vec<Claim> {
    for _ in 0..runs {
        backends.submit(NEW, "hi").await;
    }
    backends.claim(runs).await
}

async fn finish(storage: &Storage, claim: &Claim, tail: Option<&ArchiveChunk>) -> FinishOutcome {
    let answer = Answer { text: "done".into(), ..Answer::default() };
    let last = tail.map_or(claim.started.id, |tail| tail.last);
    storage.finish(claim, tail, last, &answer, &Ending::Completed).await.unwrap()
}

fn finishing(backends: &TestBackends, claim: &Claim) -> JoinHandle<FinishOutcome> {
    let (storage, claim) = (backends.storage.clone(), claim.clone());
    tokio::spawn(async move { finish(&storage, &claim, None).await })
}

async fn flush(storage: &Storage, claim: &Claim, chunk: &ArchiveChunk) -> FlushOutcome {
    storage.flush(claim, chunk, LEASE).await.unwrap()
}

/// Locks a run. A lone flush of it waits until `unlock`, and other flushes join groups meanwhile.
async fn lock_run(backends: &TestBackends, claim: &Claim) -> PgConnection {
    let mut connection = connection(backends).await;
    let lock = format!("begin; select id from agent_runs where id = '{}' for update", claim.run_id);
    sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut connection).await.unwrap();
    connection
}

async fn unlock(mut lock: PgConnection) {
    sqlx::raw_sql("commit").execute(&mut lock).await.unwrap();
    lock.close().await.unwrap();
}

/// Returns whether the archive ends with this chunk, and the run's row says so.
async fn has_archived(backends: &TestBackends, claim: &Claim, chunk: &ArchiveChunk) -> bool {
    let archived = backends.storage.read_archive(claim.run_id, claim.started.id).await.unwrap();
    archived.is_some_and(|archived| {
        archived.position.archived_to == chunk.last && archived.events.last().map(|event| event.id) == Some(chunk.last)
    })
}

async fn is_completed(backends: &TestBackends, claim: &Claim) -> bool {
    let run = backends.storage.run("ann", claim.run_id).await.unwrap().unwrap();
    let archived = backends.storage.read_archive(claim.run_id, EventId::ORIGIN).await.unwrap().unwrap();
    run.status == RunStatus::Completed
        && run.output_message.is_some()
        && run.last_event_id == archived.position.archived_to
}

#[tokio::test]
async fn runs_that_end_at_one_moment_share_a_transaction() {
    let backends = TestBackends::scaled_out().await;
    let claims = claims(&backends, RUNS).await;
    join_all(claims.iter().map(|claim| finish(&backends.storage, claim, None))).await;
    for claim in &claims {
        assert!(is_completed(&backends, claim).await);
    }
    let mut connection = connection(&backends).await;
    let sql = "select count(distinct cast(xmin as text)) from agent_runs where status = 'completed'";
    let transactions: i64 = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
    assert!(transactions < RUNS as i64 / 2, "{transactions} transactions");
    connection.close().await.unwrap();
}

#[tokio::test]
async fn runs_that_archive_events_at_one_moment_share_a_transaction() {
    let backends = TestBackends::scaled_out().await;
    let claims = claims(&backends, RUNS).await;
    let chunks: Vec<_> = claims.iter().map(|claim| deltas(claim, 2, 3)).collect();
    let flushes = claims.iter().zip(&chunks).map(|(claim, chunk)| flush(&backends.storage, claim, chunk));
    assert!(join_all(flushes).await.into_iter().all(|outcome| outcome == FlushOutcome::Durable));
    for (claim, chunk) in claims.iter().zip(&chunks) {
        assert!(has_archived(&backends, claim, chunk).await);
    }
    let mut connection = connection(&backends).await;
    let sql = "select count(distinct cast(xmin as text)) from agent_runs";
    let transactions: i64 = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
    assert!(transactions < RUNS as i64 / 2, "{transactions} transactions");
    connection.close().await.unwrap();
}

#[tokio::test]
async fn messages_that_open_conversations_at_one_moment_share_a_transaction() {
    let backends = TestBackends::scaled_out().await;
    let messages: Vec<_> = (0..RUNS).map(|_| new_run(NEW, "hi")).collect();
    let submissions = messages.iter().map(|message| backends.storage.submit("ann", &NO_QUOTAS, message));
    for outcome in join_all(submissions).await {
        let SubmitOutcome::Accepted(accepted) = outcome.unwrap() else { panic!("it is refused") };
        let conversation = backends.storage.conversation("ann", accepted.conversation.id).await.unwrap().unwrap();
        assert_eq!(conversation, accepted.conversation);
        let run = backends.storage.run("ann", accepted.run.id).await.unwrap().unwrap();
        assert_eq!((run.created_at, run.last_event_id), (accepted.run.created_at, accepted.queued.id));
    }
    let mut connection = connection(&backends).await;
    let sql = "select count(distinct cast(xmin as text)) from chat_conversations";
    let transactions: i64 = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
    assert!(transactions < RUNS as i64 / 2, "{transactions} transactions");
    assert_eq!(backends.claim(RUNS + 1).await.len(), RUNS);
}

#[tokio::test]
async fn members_of_a_group_keep_to_the_quotas_of_their_owner() {
    // Near the smaller quota, each message has a transaction. The larger one leaves room for some members of a group.
    for quota in [RUNS / 4, RUNS * 3 / 4] {
        let backends = TestBackends::scaled_out().await;
        let quotas = Quotas { runs: Some(quota), ..NO_QUOTAS };
        let messages: Vec<_> = (0..RUNS).map(|_| new_run(NEW, "hi")).collect();
        let submissions = messages.iter().map(|message| backends.storage.submit("ann", &quotas, message));
        let outcomes = join_all(submissions).await;
        let accepted = outcomes.iter().filter(|outcome| matches!(outcome, Ok(SubmitOutcome::Accepted(_)))).count();
        assert_eq!(accepted, quota);
    }
}

#[tokio::test]
async fn a_message_that_the_database_refuses_harms_no_other() {
    let backends = TestBackends::scaled_out().await;
    let unknown = Target::New { agent_id: Some(Uuid::now_v7()) };
    let messages: Vec<_> = (0..RUNS)
        .map(|n| match n % 10 {
            0 => new_run(unknown.clone(), "hi"),
            1 => new_run(NEW, "a text with a \0"),
            _ => new_run(NEW, "hi"),
        })
        .collect();
    let submissions = messages.iter().map(|message| backends.storage.submit("ann", &NO_QUOTAS, message));
    for (n, outcome) in join_all(submissions).await.into_iter().enumerate() {
        match (n % 10, outcome) {
            (0, Ok(SubmitOutcome::AgentNotFound)) | (1, Err(_)) | (2.., Ok(SubmitOutcome::Accepted(_))) => {}
            (n, _) => panic!("the message {n} has another outcome"),
        }
    }
}

#[tokio::test]
async fn a_locked_conversation_delays_no_other_completion() {
    a_lock_delays_no_other_completion("chat_conversations", |claim| claim.conversation_id).await;
}

#[tokio::test]
async fn a_locked_run_delays_no_other_completion() {
    a_lock_delays_no_other_completion("agent_runs", |claim| claim.run_id).await;
}

async fn a_lock_delays_no_other_completion(table: &str, id: fn(&Claim) -> Uuid) {
    let backends = TestBackends::scaled_out().await;
    let [one, two] = claims(&backends, 2).await.try_into().unwrap();
    let mut blocker = connection(&backends).await;
    let lock = format!("begin; select id from {table} where id = '{}' for update", id(&one));
    sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut blocker).await.unwrap();
    let (blocked, free) = (finishing(&backends, &one), finishing(&backends, &two));
    assert!(matches!(free.await.unwrap(), FinishOutcome::Ended(_)));
    assert!(!blocked.is_finished());
    sqlx::raw_sql("commit").execute(&mut blocker).await.unwrap();
    assert!(matches!(blocked.await.unwrap(), FinishOutcome::Ended(_)));
    assert!(is_completed(&backends, &one).await && is_completed(&backends, &two).await);
}

#[tokio::test]
async fn one_refused_completion_harms_no_other() {
    let backends = TestBackends::scaled_out().await;
    let claims = claims(&backends, RUNS).await;
    backends.refuse_rows_of("agent_run_checkpoints").await;
    let refused = &claims[RUNS / 2];
    let checkpoint = NewCheckpoint {
        id: Uuid::now_v7(),
        node: Node::Respond,
        step: 1,
        event_id: EventId::new(1, 2),
        messages: 1,
        metadata: json!({}),
    };
    let progress = Progress { checkpoints: vec![checkpoint], ..Progress::default() };
    let tail = ArchiveChunk { progress, ..deltas(refused, 2, 2) };
    let tail = |claim: &Claim| (claim.run_id == refused.run_id).then_some(&tail);
    let outcomes = join_all(claims.iter().map(|claim| finish(&backends.storage, claim, tail(claim)))).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, FinishOutcome::Ended(_))));
    for claim in &claims {
        assert!(is_completed(&backends, claim).await);
    }
}

#[tokio::test]
async fn members_too_large_for_a_group_are_written_alone() {
    const MAX_BYTES: usize = 128 * 1024;
    let backends = TestBackends::scaled_out().await;
    for bytes in [MAX_BYTES - 8 * 1024, MAX_BYTES, MAX_BYTES + 1] {
        let text = "x".repeat(bytes);
        backends.submit(NEW, &text).await;
        let claim = backends.claim(1).await.remove(0);
        let answer = Answer { text: text.clone(), ..Answer::default() };
        let finished = backends.storage.finish(&claim, None, claim.started.id, &answer, &Ending::Completed).await;
        assert!(matches!(finished.unwrap(), FinishOutcome::Ended(_)), "{bytes} bytes");
        assert!(is_completed(&backends, &claim).await, "{bytes} bytes");
    }
}

#[tokio::test]
async fn a_fenced_member_of_a_group_writes_nothing_and_the_others_end() {
    let backends = TestBackends::scaled_out().await;
    let claims = claims(&backends, RUNS).await;
    let stale = &claims[RUNS / 2];
    backends.storage.end_run(stale.run_id, &Ending::Cancelled).await.unwrap();
    let outcomes = join_all(claims.iter().map(|claim| finish(&backends.storage, claim, None))).await;
    for (claim, outcome) in claims.iter().zip(outcomes) {
        assert_eq!(matches!(outcome, FinishOutcome::Fenced), claim.run_id == stale.run_id);
    }
    let run = backends.storage.run("ann", stale.run_id).await.unwrap().unwrap();
    assert_eq!((run.status, run.output_message.is_some()), (RunStatus::Cancelled, false));
}

#[tokio::test]
async fn a_fenced_member_of_a_group_archives_nothing_and_the_others_do() {
    let backends = TestBackends::scaled_out().await;
    let claims = claims(&backends, RUNS).await;
    let (ended, outdated) = (claims[RUNS / 2].run_id, claims[RUNS / 3].run_id);
    backends.storage.end_run(ended, &Ending::Cancelled).await.unwrap();
    // Another attempt, in a row that is as the older one left it.
    let mut connection = connection(&backends).await;
    let sql = format!("update agent_runs set attempt = attempt + 1 where id = '{outdated}'");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let chunks: Vec<_> = claims.iter().map(|claim| deltas(claim, 2, 3)).collect();
    let flushes = claims.iter().zip(&chunks).map(|(claim, chunk)| flush(&backends.storage, claim, chunk));
    let outcomes = join_all(flushes).await;
    for ((claim, chunk), outcome) in claims.iter().zip(&chunks).zip(outcomes) {
        let is_fenced = [ended, outdated].contains(&claim.run_id);
        assert_eq!(outcome == FlushOutcome::Fenced, is_fenced);
        assert_eq!(has_archived(&backends, claim, chunk).await, !is_fenced);
    }
}

#[tokio::test]
async fn an_older_attempt_does_not_pass_the_fence_of_a_newer_one_in_its_group() {
    let backends = TestBackends::scaled_out().await;
    let [first, older] = claims(&backends, 2).await.try_into().unwrap();
    backends.storage.release(&older, None, older.started.id, Release::Queued).await.unwrap();
    let newer = backends.claim(1).await.remove(0);
    assert_eq!((newer.run_id, newer.attempt), (older.run_id, 2));
    let chunks = [deltas(&first, 2, 3), deltas(&older, 2, 3), deltas(&newer, 2, 3)];
    let lock = lock_run(&backends, &first).await;
    let mut alone = pin!(flush(&backends.storage, &first, &chunks[0]));
    assert!(poll!(alone.as_mut()).is_pending());
    let outcomes =
        tokio::join!(flush(&backends.storage, &older, &chunks[1]), flush(&backends.storage, &newer, &chunks[2]));
    assert_eq!(outcomes, (FlushOutcome::Fenced, FlushOutcome::Durable));
    unlock(lock).await;
    assert_eq!(alone.await, FlushOutcome::Durable);
    let mut connection = connection(&backends).await;
    let sql = format!("select last_id from run_events where run_id = '{}' order by last_id", older.run_id);
    let archived: Vec<i64> = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut connection).await.unwrap();
    assert!(!archived.contains(&chunks[1].last.packed()), "{archived:?}");
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_locked_run_delays_no_other_flush() {
    let backends = TestBackends::scaled_out().await;
    let claims = claims(&backends, 3).await;
    let lock = lock_run(&backends, &claims[1]).await;
    let mut flushes: Vec<_> = claims
        .iter()
        .map(|claim| {
            let (storage, claim, chunk) = (backends.storage.clone(), claim.clone(), deltas(claim, 2, 3));
            tokio::spawn(async move { flush(&storage, &claim, &chunk).await })
        })
        .collect();
    let blocked = flushes.remove(1);
    for free in flushes {
        assert_eq!(free.await.unwrap(), FlushOutcome::Durable);
    }
    assert!(!blocked.is_finished());
    unlock(lock).await;
    assert_eq!(blocked.await.unwrap(), FlushOutcome::Durable);
}

#[tokio::test]
async fn a_connection_that_stands_still_delays_a_flush_for_a_moment_only() {
    let backends = TestBackends::scaled_out().await;
    let claims = claims(&backends, 3).await;
    let lock = lock_run(&backends, &claims[0]).await;
    let chunk = deltas(&claims[0], 2, 3);
    let mut alone = pin!(flush(&backends.storage, &claims[0], &chunk));
    assert!(poll!(alone.as_mut()).is_pending());
    let flush_others = async |first, last| {
        let chunks: Vec<_> = claims[1..].iter().map(|claim| deltas(claim, first, last)).collect();
        join_all(claims[1..].iter().zip(&chunks).map(|(claim, chunk)| flush(&backends.storage, claim, chunk))).await
    };
    assert_eq!(flush_others(2, 3).await, [FlushOutcome::Durable; 2]);
    let mut connection = connection(&backends).await;
    let sql = "select pid from pg_stat_activity where query like '%unnest%flushed%' and pid <> pg_backend_pid()";
    let server: i32 = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
    let signal = |name: &str| Command::new("kill").args([name, &server.to_string()]).status().unwrap();
    assert!(signal("-STOP").success());
    let outcomes = tokio::time::timeout(MOMENT, flush_others(4, 5)).await;
    assert!(signal("-CONT").success());
    assert_eq!(outcomes.expect("the flushes waited for the connection"), [FlushOutcome::Durable; 2]);
    unlock(lock).await;
    assert_eq!(alone.await, FlushOutcome::Durable);
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_flush_leaves_the_same_run_alone_and_in_a_group() {
    let backends = TestBackends::scaled_out().await;
    let claims = claims(&backends, 2).await;
    let flush_named = async |claim: &Claim| {
        let progress = Progress { model: Some("provider/model".into()), ..Progress::default() };
        flush(&backends.storage, claim, &ArchiveChunk { progress, ..deltas(claim, 2, 3) }).await
    };
    let lock = lock_run(&backends, &claims[0]).await;
    let mut alone = pin!(flush_named(&claims[0]));
    assert!(poll!(alone.as_mut()).is_pending());
    assert_eq!(flush_named(&claims[1]).await, FlushOutcome::Durable);
    unlock(lock).await;
    assert_eq!(alone.await, FlushOutcome::Durable);
    let mut connection = connection(&backends).await;
    let sql = "
        select concat_ws(' ', to_jsonb(r) - array['id', 'conversation_id', 'input_message_id', 'output_message_id',
                'created_at', 'queue_round', 'started_at', 'lease_until'],
            lease_until - now() > interval '59 minutes')
        from agent_runs r";
    let rows: Vec<String> = sqlx::query_scalar(sql).fetch_all(&mut connection).await.unwrap();
    assert_eq!((rows.len(), &rows[0]), (2, &rows[1]));
    assert!(rows[0].contains("provider/model") && rows[0].ends_with(" t"), "{}", rows[0]);
    connection.close().await.unwrap();
}

/// The columns of a run and its message that its submission decides, without ids, times and the turn of its owner.
const SUBMITTED: &str = "
    select concat_ws(' ', to_jsonb(r) - array['id', 'owner_id', 'conversation_id', 'input_message_id',
            'output_message_id', 'created_at', 'queue_round']
        || (to_jsonb(m) - array['id', 'owner_id', 'conversation_id', 'run_id', 'created_at']))
    from agent_runs r
    join chat_messages m on m.id = r.input_message_id
    order by r.created_at";

#[tokio::test]
async fn a_message_leaves_the_same_rows_alone_and_in_a_group() {
    let backends = TestBackends::scaled_out().await;
    let submit = async || {
        let mut new = new_run(NEW, "hi");
        new.client_message_id = Some("m1".into());
        new.options.stream = false;
        new.options.client_tools =
            vec![ClientTool { name: "locate".into(), description: String::new(), input_schema: json!({}) }];
        new.options.metadata = Some(json!({"a": 1}));
        new.options.max_silence = Some(Duration::from_secs(90));
        let outcome = backends.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap();
        assert!(matches!(outcome, SubmitOutcome::Accepted(_)));
    };
    // The first write is under way when the second message comes, which therefore joins a group.
    tokio::join!(submit(), submit());
    let mut connection = connection(&backends).await;
    let rows: Vec<String> = sqlx::query_scalar(SUBMITTED).fetch_all(&mut connection).await.unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0], rows[1]);
    for part in ["locate", "90000", "m1"] {
        assert!(rows[0].contains(part), "{}", rows[0]);
    }
    connection.close().await.unwrap();
}
