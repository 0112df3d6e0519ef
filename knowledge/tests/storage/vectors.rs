//! Vectors, as both databases keep them: what searches use, what is missing, and the limit of memory.

use std::time::Duration;

use holdfast_knowledge::{DocumentError, Hold, QueryVector, SearchScope, StoreOutcome, VectorCoverage};
use holdfast_shared::{
    quotas::Quotas,
    run::SubmitMode,
    storage::{IngestOutcome, NewRun, SubmitOutcome, Target},
};
use uuid::Uuid;

use crate::{
    backends::{ANN, TestKnowledge, new_run, passages_of},
    on_both_databases,
};

on_both_databases!(
    vectors_find_what_is_near_and_words_agree,
    a_refused_passage_is_asked_for_once,
    vectors_of_the_model_before_serve_until_the_new_ones_are_complete,
    vectors_that_are_there_serve_during_an_outage,
    a_collection_beyond_the_memory_costs_the_others_nothing,
    documents_that_lack_vectors_are_found_until_they_have_them,
    a_long_document_is_read_in_parts,
    a_try_in_the_background_puts_off_the_next_one,
);

const MINUTE: Duration = Duration::from_secs(60);

/// Returns the passages that a vector finds, each as its document and its number.
pub async fn near(test: &TestKnowledge, collection: Uuid, model: &str, values: &[f32]) -> Vec<(Uuid, u64)> {
    let scope = SearchScope { owner: ANN, collections: &[collection] };
    let vector = QueryVector { model: model.into(), values: values.to_vec() };
    let found = test.knowledge.search(scope, "nothing", &[vector], 10).await.unwrap();
    found.into_iter().map(|found| (found.id.document_id, found.id.number)).collect()
}

async fn coverage(test: &TestKnowledge, hold: Hold) -> (VectorCoverage, Option<String>, Option<String>) {
    let document = test.knowledge.document(ANN, hold.document_id).await.unwrap().unwrap();
    (document.vectors, document.vectors_model, document.vectors_error.map(|error| error.code))
}

fn outage() -> DocumentError {
    DocumentError { code: "model_unavailable".into(), message: "away".into() }
}

async fn vectors_find_what_is_near_and_words_agree(test: TestKnowledge) {
    let collection = test.collection(ANN).await;
    let hold = test.ingest(ANN, collection, &["one", "two", "three"]).await;
    let unembedded = test.knowledge.unembedded(hold, "m", 2).await.unwrap();
    assert_eq!(unembedded.iter().map(|passage| passage.text.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    let vectors = [(0, Some(vec![1.0, 0.0])), (1, Some(vec![0.6, 0.8])), (2, Some(vec![0.0, 1.0]))];
    test.knowledge.store_vectors(hold, "m", &vectors[..2]).await.unwrap();
    assert_eq!(test.knowledge.unembedded(hold, "m", 9).await.unwrap()[0].number, 2);
    assert!(near(&test, collection, "m", &[1.0, 0.0]).await.is_empty(), "the vectors are not complete");
    test.knowledge.store_vectors(hold, "m", &vectors[2..]).await.unwrap();
    test.knowledge.note_vectors(hold, "m").await.unwrap();
    let search = async |question: &str, values: Vec<f32>, model: &str| {
        let scope = SearchScope { owner: ANN, collections: &[collection] };
        let vector = QueryVector { model: model.into(), values };
        let found = test.knowledge.search(scope, question, &[vector], 10).await.unwrap();
        found.into_iter().map(|found| found.text).collect::<Vec<_>>()
    };
    assert_eq!(search("nothing", vec![0.1, 0.99], "m").await, ["three", "two", "one"]);
    assert_eq!(search("two", vec![0.1, 0.99], "m").await[0], "two", "both searches find it");
    assert!(search("nothing", vec![1.0, 0.0], "other").await.is_empty());
    let second = test.begin(ANN, collection).await;
    let (text, passages) = passages_of(&["four"]);
    test.knowledge.store_text(second, &text, &passages).await.unwrap();
    test.store(second, "m", &[vec![0.0, 1.0]]).await;
    assert_eq!(search("nothing", vec![0.0, 1.0], "m").await.len(), 3, "the document is not ready");
    test.knowledge.note_indexed(second).await.unwrap();
    assert_eq!(search("nothing", vec![0.0, 1.0], "m").await.len(), 4, "new vectors join those in memory");
}

async fn a_refused_passage_is_asked_for_once(test: TestKnowledge) {
    let collection = test.collection(ANN).await;
    let hold = test.ingest(ANN, collection, &["one", "two"]).await;
    assert_eq!(coverage(&test, hold).await, (VectorCoverage::None, None, None));
    let answers = [(0, None), (1, Some(vec![1.0, 0.0]))];
    test.knowledge.store_vectors(hold, "m", &answers).await.unwrap();
    assert!(test.knowledge.unembedded(hold, "m", 9).await.unwrap().is_empty());
    test.knowledge.note_vectors(hold, "m").await.unwrap();
    let refused = (VectorCoverage::Partial, Some("m".into()), Some("passages_refused".into()));
    assert_eq!(coverage(&test, hold).await, refused);
    assert_eq!(near(&test, collection, "m", &[1.0, 0.0]).await, [(hold.document_id, 1)]);
    let stale = Hold { attempt: hold.attempt + 1, ..hold };
    assert_eq!(test.knowledge.note_vectors(stale, "n").await.unwrap(), StoreOutcome::Fenced);
    assert_eq!(test.knowledge.remove_other_vectors(stale, "n").await.unwrap(), None);
    assert_eq!(coverage(&test, hold).await, refused);
}

async fn vectors_of_the_model_before_serve_until_the_new_ones_are_complete(test: TestKnowledge) {
    let collection = test.collection(ANN).await;
    let hold = test.ingest_vectors(collection, "old", &[vec![1.0, 0.0], vec![0.0, 1.0]]).await;
    let new = [(0, Some(vec![1.0, 0.0, 0.0]))];
    test.knowledge.store_vectors(hold, "new", &new).await.unwrap();
    test.knowledge.note_missing_vectors(hold, "new", &outage(), MINUTE).await.unwrap();
    assert_eq!(test.knowledge.models_of(&[collection]).await.unwrap(), ["old"]);
    assert_eq!(near(&test, collection, "old", &[1.0, 0.0]).await.len(), 2);
    assert!(near(&test, collection, "new", &[1.0, 0.0, 0.0]).await.is_empty());
    let failed = (VectorCoverage::Complete, Some("old".into()), Some("model_unavailable".into()));
    assert_eq!(coverage(&test, hold).await, failed);
    let rest = [(1, Some(vec![0.0, 1.0, 0.0]))];
    test.knowledge.store_vectors(hold, "new", &rest).await.unwrap();
    test.knowledge.note_vectors(hold, "new").await.unwrap();
    assert_eq!(test.knowledge.models_of(&[collection]).await.unwrap(), ["new"]);
    assert_eq!(near(&test, collection, "new", &[1.0, 0.0, 0.0]).await.len(), 2);
    assert!(near(&test, collection, "old", &[1.0, 0.0]).await.is_empty());
    assert_eq!(coverage(&test, hold).await, (VectorCoverage::Complete, Some("new".into()), None));
    while test.knowledge.remove_other_vectors(hold, "new").await.unwrap().unwrap() {}
    assert!(test.knowledge.unembedded(hold, "new", 9).await.unwrap().is_empty());
    assert_eq!(test.knowledge.unembedded(hold, "old", 9).await.unwrap().len(), 2, "the old ones are gone");
}

async fn vectors_that_are_there_serve_during_an_outage(test: TestKnowledge) {
    let collection = test.collection(ANN).await;
    let hold = test.ingest(ANN, collection, &["one", "two"]).await;
    test.knowledge.store_vectors(hold, "m", &[(1, Some(vec![1.0, 0.0]))]).await.unwrap();
    test.knowledge.note_missing_vectors(hold, "m", &outage(), MINUTE).await.unwrap();
    let partial = (VectorCoverage::Partial, Some("m".into()), Some("model_unavailable".into()));
    assert_eq!(coverage(&test, hold).await, partial);
    assert_eq!(near(&test, collection, "m", &[1.0, 0.0]).await, [(hold.document_id, 1)]);
    test.store(hold, "m", &[vec![0.9, 0.1]]).await;
    assert_eq!(near(&test, collection, "m", &[1.0, 0.0]).await.len(), 2, "the vectors in memory are read again");
}

async fn a_collection_beyond_the_memory_costs_the_others_nothing(test: TestKnowledge) {
    let test = test.with_vector_bytes(6);
    let (small, large) = (test.collection(ANN).await, test.collection(ANN).await);
    let vector = |n: f32| vec![1.0, n];
    test.ingest_vectors(small, "m", &[vector(0.0)]).await;
    test.ingest_vectors(large, "m", &[vector(0.1), vector(0.2), vector(0.3)]).await;
    assert_eq!(near(&test, small, "m", &[1.0, 0.0]).await.len(), 1);
    assert_eq!(near(&test, large, "m", &[1.0, 0.0]).await.len(), 3, "six bytes have room at their edge");
    let last = test.ingest_vectors(large, "m", &[vector(0.4)]).await;
    assert!(near(&test, large, "m", &[1.0, 0.0]).await.is_empty(), "eight bytes have none");
    let scope = SearchScope { owner: ANN, collections: &[large] };
    let found = test.knowledge.search(scope, "passage", &[], 10).await.unwrap();
    assert_eq!(found.len(), 4, "its words find it");
    assert_eq!(near(&test, small, "m", &[1.0, 0.0]).await.len(), 1);
    test.knowledge.delete_document(ANN, last.document_id).await.unwrap().unwrap();
    assert_eq!(near(&test, large, "m", &[1.0, 0.0]).await.len(), 3, "it is read as soon as it has room");
}

async fn documents_that_lack_vectors_are_found_until_they_have_them(test: TestKnowledge) {
    let collection = test.collection(ANN).await;
    let hold = test.ingest(ANN, collection, &["one"]).await;
    let lacking = async |model: &str| test.knowledge.unembedded_documents(model, 9).await.unwrap();
    assert!(lacking("m").await.is_empty(), "its own run is not finished");
    test.end(hold).await;
    let [document] = lacking("m").await.try_into().unwrap();
    assert_eq!((document.id, document.owner_id.as_str(), document.tries), (hold.document_id, ANN, 0));
    test.knowledge.postpone_vectors(hold.document_id, MINUTE).await.unwrap();
    assert!(lacking("m").await.is_empty());
    let other = test.ingest_vectors(collection, "m", &[vec![1.0]]).await;
    test.end(other).await;
    assert!(lacking("m").await.is_empty());
    for model in ["a", "z"] {
        let lacking = lacking(model).await;
        assert_eq!(lacking.iter().map(|document| document.id).collect::<Vec<_>>(), [other.document_id], "{model}");
    }
    assert_eq!(test.knowledge.tries_for_vectors(MINUTE).await.unwrap(), (0, false));
    let failing = test.ingest(ANN, collection, &["one"]).await;
    test.knowledge.note_missing_vectors(failing, "m", &outage(), MINUTE).await.unwrap();
    assert_eq!(test.knowledge.tries_for_vectors(MINUTE).await.unwrap(), (1, true));
    test.end(failing).await;
    assert_eq!(test.knowledge.tries_for_vectors(MINUTE).await.unwrap(), (0, true));
    assert!(lacking("m").await.is_empty(), "the pause has not passed");
    test.knowledge.delete_document(ANN, other.document_id).await.unwrap();
    assert!(lacking("z").await.is_empty());
}

async fn a_long_document_is_read_in_parts(test: TestKnowledge) {
    let collection = test.collection(ANN).await;
    let vectors: Vec<Vec<f32>> = (0..2005).map(|n| vec![1.0, n as f32 / 2005.0]).collect();
    let hold = test.ingest_vectors(collection, "m", &vectors).await;
    let found = near(&test, collection, "m", &[0.7, 0.7]).await;
    assert!(found.contains(&(hold.document_id, 2004)), "{found:?}");
    assert_eq!(near(&test, collection, "m", &[1.0, 0.0]).await.len(), 10);
}

/// Returns another run of a document's conversation.
fn run_of(conversation_id: Uuid) -> NewRun {
    NewRun { target: Target::Existing(conversation_id), mode: SubmitMode::Reject, ..new_run(true) }
}

async fn a_try_in_the_background_puts_off_the_next_one(test: TestKnowledge) {
    let collection = test.collection(ANN).await;
    let hold = test.ingest(ANN, collection, &["one"]).await;
    test.end(hold).await;
    let [document] = test.knowledge.unembedded_documents("m", 9).await.unwrap().try_into().unwrap();
    let try_again = async |quotas: Quotas, pause: Duration| {
        let run = run_of(document.conversation_id);
        let outcome = test.storage.embed_document(ANN, &quotas, (document.id, "m", pause), &run).await.unwrap();
        (run.run_id, outcome)
    };
    let is_lacking = async || !test.knowledge.unembedded_documents("m", 9).await.unwrap().is_empty();
    let (_, full) = try_again(Quotas { runs: Some(0), ..Quotas::default() }, MINUTE).await;
    assert!(matches!(full, IngestOutcome::Submitted(SubmitOutcome::TooManyRuns(0))));
    assert!(is_lacking().await, "a refused try is none");
    let (run_id, accepted) = try_again(Quotas::default(), Duration::ZERO).await;
    assert!(matches!(accepted, IngestOutcome::Submitted(SubmitOutcome::Accepted(_))));
    assert_eq!(test.knowledge.tries_for_vectors(MINUTE).await.unwrap(), (1, false));
    let (_, second) = try_again(Quotas::default(), Duration::ZERO).await;
    assert!(matches!(second, IngestOutcome::Submitted(SubmitOutcome::Busy)));
    test.storage.request_cancel(ANN, run_id).await.unwrap();
    assert!(!is_lacking().await, "a cancelled run is not tried again");
    let retry = async || {
        let run = run_of(document.conversation_id);
        (run.run_id, test.storage.retry_document(ANN, &Quotas::default(), document.id, &run).await.unwrap())
    };
    assert!(matches!(retry().await.1, IngestOutcome::NothingToRetry), "the deployment has no model of vectors");
    test.storage.note_models("p", "n", Some("m".into())).await.unwrap();
    let (retried, outcome) = retry().await;
    assert!(matches!(outcome, IngestOutcome::Submitted(SubmitOutcome::Accepted(_))));
    let hold = test.claim(document.id, retried).await;
    test.knowledge.note_missing_vectors(hold, "m", &outage(), MINUTE).await.unwrap();
    test.end(hold).await;
    assert!(!is_lacking().await, "a failed try waits");
}
