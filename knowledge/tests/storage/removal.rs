//! The end of documents and collections: in pieces of few rows, and also while documents are added.

use futures::future::join_all;
use holdfast_knowledge::Hold;
use holdfast_shared::{
    database::{Commit, Sql, Tx, args},
    piece::PieceSize,
    storage::{Erasure, IngestOutcome},
};

use crate::{
    backends::{ANN, TestKnowledge, connect_postgres, passages_of},
    on_both_databases,
};

on_both_databases!(
    a_step_of_the_sweeper_removes_few_rows,
    a_step_of_an_erasure_removes_few_rows,
    a_step_of_the_index_has_few_passages,
);

/// The tables that a document has rows in.
const TABLES: [&str; 3] = ["passages", "passage_vectors", "document_texts"];

async fn counts(test: &TestKnowledge) -> [i64; 4] {
    let [passages, vectors, texts] = TABLES.map(|table| test.count(table));
    [passages.await, vectors.await, texts.await, test.count("documents").await]
}

/// Ingests a document with 1,200 passages, as many vectors, and 147 pieces of text.
async fn ingest_large(test: &TestKnowledge) -> Hold {
    let collection = test.collection(ANN).await;
    let hold = test.begin(ANN, collection).await;
    let (text, passages) = passages_of(&vec!["x".repeat(999).as_str(); 1200]);
    test.knowledge.store_text(hold, &text, &passages).await.unwrap();
    let vectors: Vec<(u64, Option<Vec<f32>>)> = (0..1200).map(|number| (number, Some(vec![1.0]))).collect();
    test.knowledge.store_vectors(hold, "m", &vectors).await.unwrap();
    assert_eq!(counts(test).await, [1200, 1200, 147, 1]);
    hold
}

/// Repeats a step until nothing is left. Each removes rows of one table: few at first, and at most twice as many as any before.
/// The rows of a document go before the document.
async fn expect_small_steps(test: &TestKnowledge, step: impl AsyncFn() -> bool) {
    let mut before = counts(test).await;
    let mut most = [first(); 4];
    let mut steps = 0;
    loop {
        let has_more = step().await;
        let after = counts(test).await;
        let removed = [0, 1, 2, 3].map(|table| before[table] - after[table]);
        assert!(removed.iter().filter(|rows| **rows > 0).count() <= 1, "{before:?} {after:?}");
        assert!(removed.iter().zip(most).all(|(rows, most)| *rows <= most), "{before:?} {after:?}");
        most = [0, 1, 2, 3].map(|table| most[table].max(2 * removed[table]));
        before = after;
        steps += 1;
        if !has_more {
            break;
        }
    }
    assert_eq!(before, [0; 4]);
    assert!(steps > 15, "{steps}");
}

/// Returns the rows of the first piece.
fn first() -> i64 {
    PieceSize::default().rows() as i64
}

async fn a_step_of_the_sweeper_removes_few_rows(test: TestKnowledge) {
    let hold = ingest_large(&test).await;
    test.knowledge.delete_document(ANN, hold.document_id).await.unwrap().unwrap();
    expect_small_steps(&test, async || test.knowledge.remove_deleted().await.unwrap()).await;
}

async fn a_step_of_an_erasure_removes_few_rows(test: TestKnowledge) {
    ingest_large(&test).await;
    expect_small_steps(&test, async || !test.storage.erase_some(ANN, Erasure::Wanted).await.unwrap().is_done).await;
    assert_eq!(test.count("collections").await, 0);
}

async fn a_step_of_the_index_has_few_passages(test: TestKnowledge) {
    let hold = ingest_large(&test).await;
    let (mut most, mut indexed) = (first() as usize, 0);
    while indexed < 1200 {
        let passages = test.knowledge.index_some(hold).await.unwrap().unwrap();
        assert!((1..=most).contains(&passages), "{passages} after {indexed}");
        most = most.max(2 * passages);
        indexed += passages;
    }
}

/// SQLite has one writer. PostgreSQL's do not wait for each other.
#[tokio::test]
async fn a_writer_that_waits_goes_before_the_pieces_that_wait() {
    const COUNT: Sql = Sql::named("COUNT").both("select count(*) from passages");
    let test = TestKnowledge::sqlite().await;
    let hold = ingest_large(&test).await;
    test.knowledge.delete_document(ANN, hold.document_id).await.unwrap().unwrap();
    // A future asks for its turn when it is polled first, and `join!` polls them in this order.
    let removals = join_all((0..8).map(|_| test.knowledge.remove_deleted()));
    let count = async |tx: &mut Tx| Ok(Commit(tx.fetch_one::<(i64,)>(COUNT, args![]).await?.0));
    let writer = test.storage.database().transact("count passages", count);
    let (removed, left) = tokio::join!(removals, writer);
    assert!(removed.into_iter().all(Result::unwrap));
    assert!(left.unwrap() >= 1200 - first(), "the writer waits for a piece under way alone");
}

#[tokio::test]
async fn a_document_never_joins_a_collection_that_is_being_deleted() {
    let test = TestKnowledge::postgres().await;
    let collection = test.collection(ANN).await;
    let url = test.urls().0.unwrap();
    let mut deletion = connect_postgres(&url).await;
    sqlx::query("begin").execute(&mut deletion).await.unwrap();
    let delete = "update collections set deleted_at = now() where id = $1";
    sqlx::query(delete).bind(collection).execute(&mut deletion).await.unwrap();
    let commit_after_the_submission_waits = async {
        let waiting = "pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        while test.count(waiting).await == 0 && test.count("documents").await == 0 {}
        sqlx::query("commit").execute(&mut deletion).await.unwrap();
    };
    let ((outcome, _, _), ()) = tokio::join!(test.submit(ANN, collection), commit_after_the_submission_waits);
    assert!(matches!(outcome, IngestOutcome::CollectionNotFound));
    assert_eq!(test.count("documents").await, 0);
}
