//! Background writes go in pieces of few rows and bytes.

use std::time::Duration;

use holdfast_shared::{
    ending::Ending,
    piece::PieceSize,
    storage::{Answer, Target},
};
use uuid::Uuid;

use crate::{
    backends::{LEASE, TestBackends},
    on_each_backend,
    raw::Raw,
};

on_each_backend!(a_piece_of_a_deleted_conversation_has_few_rows, a_piece_has_few_bytes, no_event_outlives_a_sweep,);

const NEW: Target = Target::New { agent_id: None };

/// The tables in which the runs of these tests have rows.
const TABLES: [&str; 4] = ["run_events", "agent_runs", "chat_messages", "chat_conversations"];

/// Makes a conversation of so many ended runs.
async fn conversation(backends: &TestBackends, runs: usize, content: &str) -> Uuid {
    let (_, id) = backends.submit(NEW, content).await;
    for run in 0..runs {
        if run > 0 {
            backends.submit(Target::Existing(id), content).await;
        }
        let claim = backends.claim(1).await.remove(0);
        let answer = Answer::default();
        backends.storage.finish(&claim, None, claim.started.id, &answer, &Ending::Cancelled).await.unwrap();
    }
    id
}

async fn counts(raw: &mut Raw) -> [i64; 4] {
    let mut counts = [0; 4];
    for (count, table) in counts.iter_mut().zip(TABLES) {
        *count = raw.number(&format!("select count(*) from {table}")).await;
    }
    counts
}

/// Removes one piece, and returns its rows.
async fn removed(backends: &TestBackends, raw: &mut Raw) -> [i64; 4] {
    let before = counts(raw).await;
    backends.storage.retire(LEASE, Duration::ZERO).await.unwrap();
    let after = counts(raw).await;
    [0, 1, 2, 3].map(|table| before[table] - after[table])
}

async fn a_piece_of_a_deleted_conversation_has_few_rows(backends: TestBackends) {
    let Some(mut raw) = backends.raw().await else { return };
    let id = conversation(&backends, 30, "hi").await;
    backends.storage.delete_conversation("ann", id).await.unwrap().unwrap();
    let mut most = [PieceSize::default().rows() as i64; 4];
    let mut pieces = 0;
    while counts(&mut raw).await[3] > 0 {
        let rows = removed(&backends, &mut raw).await;
        assert!(rows.iter().filter(|rows| **rows > 0).count() <= 1, "{rows:?}");
        assert!(rows.iter().zip(most).all(|(rows, most)| *rows <= most), "{rows:?} of {most:?}");
        most = [0, 1, 2, 3].map(|table| most[table].max(2 * rows[table]));
        pieces += 1;
    }
    assert_eq!(counts(&mut raw).await, [0; 4]);
    assert!(pieces > 10, "{pieces}");
}

async fn a_piece_has_few_bytes(backends: TestBackends) {
    let Some(mut raw) = backends.raw().await else { return };
    let large = "x".repeat(PieceSize::default().bytes());
    let id = conversation(&backends, 3, &large).await;
    backends.storage.delete_conversation("ann", id).await.unwrap().unwrap();
    let mut first = 0;
    while first == 0 {
        first = removed(&backends, &mut raw).await[2];
    }
    assert_eq!(first, 1, "one message fills the first piece");
}

async fn no_event_outlives_a_sweep(backends: TestBackends) {
    let Some(mut raw) = backends.raw().await else { return };
    conversation(&backends, 30, "hi").await;
    // Times are in whole milliseconds, so no event expires before the next one begins.
    let mut runs = 0;
    while runs < 30 {
        runs += backends.storage.retire(Duration::from_millis(1), LEASE).await.unwrap().runs;
    }
    assert_eq!(counts(&mut raw).await[..2], [0, 30]);
    assert_eq!(raw.number("select count(*) from event_removals").await, 0);
}
