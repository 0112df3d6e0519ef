//! The search by pgvector, for collections whose vectors have no room in memory.

use holdfast_knowledge::{Hold, QueryVector, SearchScope};
use holdfast_shared::storage::{Erasure, Pgvector};
use uuid::Uuid;

use crate::{
    backends::{ANN, TestKnowledge},
    vectors::near,
};

const CREATE: &str = "create extension vector";

/// Returns knowledge on a database with pgvector, with so many bytes of vectors in memory.
async fn with_pgvector(bytes: usize) -> TestKnowledge {
    TestKnowledge::before_pgvector().await.with_pgvector(CREATE, bytes).await
}

/// Copies all vectors, as the sweep does. Returns the documents that lacked copies.
async fn copy_all(test: &TestKnowledge) -> Vec<Uuid> {
    let mut lacking = Vec::new();
    loop {
        let some = test.knowledge.documents_without_embeddings(1).await.unwrap();
        let Some(document_id) = some.first() else { return lacking };
        test.knowledge.copy_vectors(*document_id).await.unwrap();
        lacking.extend(some);
    }
}

/// Ingests a document whose vectors have copies.
async fn ingest(test: &TestKnowledge, collection: Uuid, model: &str, vectors: &[Vec<f32>]) -> Hold {
    let hold = test.ingest_vectors(collection, model, vectors).await;
    test.knowledge.copy_vectors(hold.document_id).await.unwrap();
    hold
}

async fn embeddings(test: &TestKnowledge) -> i64 {
    test.count("passage_embeddings").await
}

#[tokio::test]
async fn a_collection_without_room_is_compared_like_those_in_memory() {
    let test = with_pgvector(2).await;
    let (small, large) = (test.collection(ANN).await, test.collection(ANN).await);
    let one = ingest(&test, small, "m", &[vec![0.6, 0.8]]).await.document_id;
    let three = ingest(&test, large, "m", &[vec![0.0, 1.0], vec![1.0, 0.0], vec![0.8, 0.6]]).await.document_id;
    assert_eq!(near(&test, large, "m", &[1.0, 0.0]).await, [(three, 1), (three, 2), (three, 0)]);
    let scope = SearchScope { owner: ANN, collections: &[small, large] };
    let question = QueryVector { model: "m".into(), values: vec![1.0, 0.0] };
    let found = test.knowledge.search(scope, "nothing", &[question], 10).await.unwrap();
    let found: Vec<(Uuid, u64)> = found.iter().map(|found| (found.id.document_id, found.id.number)).collect();
    assert_eq!(found, [(three, 1), (three, 2), (one, 0), (three, 0)]);
    assert!(near(&test, large, "other", &[1.0, 0.0]).await.is_empty());
    assert!(near(&test, large, "m", &[1.0, 0.0, 0.0]).await.is_empty(), "a question of other dimensions");
}

#[tokio::test]
async fn nothing_of_other_collections_or_of_deleted_documents_is_found() {
    let test = with_pgvector(0).await;
    let (own, other) = (test.collection(ANN).await, test.collection(ANN).await);
    ingest(&test, other, "m", &[vec![1.0, 0.0]]).await;
    let kept = ingest(&test, own, "m", &[vec![0.0, 1.0]]).await.document_id;
    let deleted = ingest(&test, own, "m", &[vec![1.0, 0.0]]).await.document_id;
    assert_eq!(near(&test, own, "m", &[1.0, 0.0]).await, [(deleted, 0), (kept, 0)]);
    let scope = SearchScope { owner: "bob", collections: &[own, other] };
    let question = QueryVector { model: "m".into(), values: vec![1.0, 0.0] };
    assert!(test.knowledge.search(scope, "nothing", &[question], 10).await.unwrap().is_empty());
    test.knowledge.delete_document(ANN, deleted).await.unwrap().unwrap();
    assert_eq!(near(&test, own, "m", &[1.0, 0.0]).await, [(kept, 0)]);
    while test.knowledge.remove_deleted().await.unwrap() {}
    assert_eq!(embeddings(&test).await, 2);
    while !test.storage.erase_some(ANN, Erasure::Wanted).await.unwrap().is_done {}
    assert_eq!(embeddings(&test).await, 0);
}

#[tokio::test]
async fn vectors_from_before_the_extension_are_copied() {
    let test = TestKnowledge::before_pgvector().await.with_vector_bytes(0);
    let collection = test.collection(ANN).await;
    let vectors: Vec<Vec<f32>> = (0..250).map(|n| vec![1.0, n as f32]).collect();
    let long = test.ingest_vectors(collection, "m", &vectors).await.document_id;
    let refused = test.ingest(ANN, collection, &["one", "two"]).await;
    test.knowledge.store_vectors(refused, "m", &[(0, None), (1, Some(vec![1.0, 500.0]))]).await.unwrap();
    test.knowledge.note_vectors(refused, "m").await.unwrap();
    assert_eq!(test.storage.pgvector(), Pgvector::Missing);
    assert!(near(&test, collection, "m", &[0.0, 1.0]).await.is_empty(), "words alone find passages");
    assert!(copy_all(&test).await.is_empty());
    test.execute(CREATE).await;
    let test = test.with_pgvector("", 0).await;
    assert!(near(&test, collection, "m", &[0.0, 1.0]).await.is_empty(), "there are no copies yet");
    assert_eq!(copy_all(&test).await, [long, refused.document_id]);
    assert_eq!(embeddings(&test).await, 251);
    assert_eq!(near(&test, collection, "m", &[0.0, 1.0]).await[..2], [(refused.document_id, 1), (long, 249)]);
    assert!(copy_all(&test).await.is_empty());
}

#[tokio::test]
async fn a_change_of_the_model_changes_the_copies() {
    let test = with_pgvector(0).await;
    let collection = test.collection(ANN).await;
    let hold = ingest(&test, collection, "old", &[vec![1.0, 0.0], vec![0.0, 1.0]]).await;
    test.knowledge.store_vectors(hold, "new", &[(0, Some(vec![1.0, 0.0, 0.0]))]).await.unwrap();
    assert!(copy_all(&test).await.is_empty(), "the earlier vectors still serve");
    assert_eq!(near(&test, collection, "old", &[1.0, 0.0]).await.len(), 2);
    test.store(hold, "new", &[vec![1.0, 0.0, 0.0], vec![0.0, 1.0, 0.0]]).await;
    assert!(near(&test, collection, "old", &[1.0, 0.0]).await.is_empty());
    assert_eq!(copy_all(&test).await, [hold.document_id]);
    assert_eq!(near(&test, collection, "new", &[1.0, 0.0, 0.0]).await.len(), 2);
    assert_eq!(embeddings(&test).await, 4);
    while test.knowledge.remove_other_vectors(hold, "new").await.unwrap().unwrap() {}
    assert_eq!(embeddings(&test).await, 2);
    assert_eq!(near(&test, collection, "new", &[1.0, 0.0, 0.0]).await.len(), 2);
}

#[tokio::test]
async fn words_find_passages_while_the_extension_is_away() {
    let test = with_pgvector(0).await;
    let collection = test.collection(ANN).await;
    let document = ingest(&test, collection, "m", &[vec![1.0, 0.0]]).await.document_id;
    assert_eq!(near(&test, collection, "m", &[1.0, 0.0]).await, [(document, 0)]);
    test.execute("drop extension vector cascade").await;
    let scope = SearchScope { owner: ANN, collections: &[collection] };
    let question = QueryVector { model: "m".into(), values: vec![1.0, 0.0] };
    let found = test.knowledge.search(scope, "passage", &[question], 10).await.unwrap();
    assert_eq!(found.len(), 1, "a search that fails costs its own passages alone");
    let test = test.with_pgvector("", 0).await;
    assert_eq!(test.storage.pgvector(), Pgvector::Missing);
    let test = test.with_pgvector(CREATE, 0).await;
    assert_eq!(copy_all(&test).await, [document], "its earlier copies are gone");
    assert_eq!(near(&test, collection, "m", &[1.0, 0.0]).await, [(document, 0)]);
}

#[tokio::test]
async fn the_extension_waits_for_a_migration() {
    let test = TestKnowledge::before_pgvector().await;
    test.execute(CREATE).await;
    let connected = test.connected_again().await;
    assert_eq!(connected.pgvector(), Pgvector::WithoutTable);
    let url = test.urls().0.unwrap();
    let migrations = [(); 2].map(|()| {
        tokio::task::spawn_blocking({
            let url = url.clone();
            move || crate::backends::migrate(&url)
        })
    });
    for migration in migrations {
        migration.await.unwrap();
    }
    assert_eq!(test.connected_again().await.pgvector(), Pgvector::Ready);
}
