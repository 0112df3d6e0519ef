//! Races of PostgreSQL's transactions, each in a fixed order: a transaction of the test holds a row that both sides
//! need. SQLite has one writer, so its transactions cannot meet.

use std::time::Duration;

use holdfast_shared::{
    idempotency::IdempotencyKey,
    run::RunStatus,
    storage::{EndedRun, NewRun, Storage, SubmitOutcome, Target},
};
use sqlx::PgConnection;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::{
    backends::{NO_QUOTAS, TestBackends, new_run},
    raw::Raw,
};

const NEW: Target = Target::New { agent_id: None };

fn keyed(target: Target) -> NewRun {
    NewRun { key: Some(IdempotencyKey::new("k".into(), &["hi"])), ..new_run(target, "hi") }
}

async fn submit(storage: &Storage, target: Target) -> SubmitOutcome {
    storage.submit("ann", &NO_QUOTAS, &keyed(target)).await.unwrap()
}

fn submitting(backends: &TestBackends, target: Target) -> JoinHandle<SubmitOutcome> {
    let storage = backends.storage.clone();
    tokio::spawn(async move { submit(&storage, target).await })
}

fn deleting(backends: &TestBackends, id: Uuid) -> JoinHandle<Option<(Vec<EndedRun>, Vec<Uuid>)>> {
    let storage = backends.storage.clone();
    tokio::spawn(async move { storage.delete_conversation("ann", id).await.unwrap() })
}

async fn connection(backends: &TestBackends) -> PgConnection {
    match backends.raw().await {
        Some(Raw::Postgres(connection)) => connection,
        _ => panic!("it is not PostgreSQL"),
    }
}

async fn execute(connection: &mut PgConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(connection).await.unwrap();
}

/// Returns when this many transactions wait for a lock.
async fn until_waiting(watcher: &mut PgConnection, expected: i64) {
    let sql = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let reached = async {
        while sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut *watcher).await.unwrap() != expected {
            // PostgreSQL announces no wait, so the test asks again.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(8), reached).await.expect("too few transactions wait");
}

#[tokio::test]
async fn a_deletion_before_a_keyed_message_leaves_the_key_free() {
    let backends = TestBackends::scaled_out().await;
    let (_, id) = backends.submit(NEW, "hi").await;
    let (mut blocker, mut watcher) = (connection(&backends).await, connection(&backends).await);
    execute(&mut blocker, "begin; select id from chat_conversations for update").await;
    let deletion = deleting(&backends, id);
    until_waiting(&mut watcher, 1).await;
    let message = submitting(&backends, Target::Existing(id));
    until_waiting(&mut watcher, 2).await;
    execute(&mut blocker, "commit").await;
    assert!(deletion.await.unwrap().is_some());
    assert!(matches!(message.await.unwrap(), SubmitOutcome::ConversationNotFound));
    assert!(matches!(submit(&backends.storage, NEW).await, SubmitOutcome::Accepted(_)));
}

#[tokio::test]
async fn a_deletion_after_a_keyed_message_frees_the_key_and_ends_the_run() {
    let backends = TestBackends::scaled_out().await;
    let (_, id) = backends.submit(NEW, "hi").await;
    let (mut blocker, mut watcher) = (connection(&backends).await, connection(&backends).await);
    execute(&mut blocker, "begin; select id from chat_conversations for update").await;
    let message = submitting(&backends, Target::Existing(id));
    until_waiting(&mut watcher, 1).await;
    let deletion = deleting(&backends, id);
    until_waiting(&mut watcher, 2).await;
    execute(&mut blocker, "commit").await;
    let SubmitOutcome::Accepted(first) = message.await.unwrap() else { panic!("the message came first") };
    let (ended, _) = deletion.await.unwrap().unwrap();
    let ended = ended.iter().find(|run| run.run_id == first.run.id).expect("the deletion ends the new run too");
    assert_eq!(ended.status, RunStatus::Cancelled);
    let SubmitOutcome::Accepted(second) = submit(&backends.storage, NEW).await else { panic!("the key is not free") };
    assert_ne!(second.run.id, first.run.id);
}

#[tokio::test]
async fn a_repeated_message_during_a_deletion_returns_the_earlier_run_until_the_commit() {
    let backends = TestBackends::scaled_out().await;
    let SubmitOutcome::Accepted(first) = submit(&backends.storage, NEW).await else { panic!("refused") };
    let (mut blocker, mut watcher) = (connection(&backends).await, connection(&backends).await);
    execute(&mut blocker, "begin; select id from agent_runs for update").await;
    let deletion = deleting(&backends, first.conversation.id);
    until_waiting(&mut watcher, 1).await;
    let SubmitOutcome::Repeated(repeated) = submit(&backends.storage, NEW).await else {
        panic!("the key is free early")
    };
    assert_eq!(repeated.2.id, first.run.id);
    execute(&mut blocker, "commit").await;
    assert!(deletion.await.unwrap().is_some());
    assert!(matches!(submit(&backends.storage, NEW).await, SubmitOutcome::Accepted(_)));
}
