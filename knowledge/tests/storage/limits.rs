//! The limits of an owner's texts, in an ingestion and in a claim.

use futures::future::join_all;
use holdfast_knowledge::{Hold, Knowledge, NewCollection, Readers, StoreOutcome};
use holdfast_shared::{
    quotas::{KnowledgeLimits, KnowledgeQuotas, OtherQuotas, QuotaExceeded, Quotas},
    storage::Error,
};

use crate::{
    backends::{ANN, TestKnowledge, passages_of},
    on_both_databases,
};

on_both_databases!(
    the_bytes_of_an_owners_texts_hold_at_their_edge,
    texts_that_are_stored_at_once_keep_to_the_limit,
    collections_that_are_created_at_once_keep_to_the_limit,
    a_claim_keeps_to_the_limits_of_the_account,
);

/// Has five bytes.
const TEXT: [&str; 2] = ["äb", "c"];

fn limited(test: &TestKnowledge, text_bytes: u64) -> Knowledge {
    let named = KnowledgeQuotas { text_bytes: Some(text_bytes), ..KnowledgeQuotas::default() };
    Knowledge::new(&test.storage, KnowledgeLimits { named, anonymous_text_bytes: Some(4) }, 0)
}

async fn store(knowledge: &Knowledge, hold: Hold) -> StoreOutcome {
    let (text, passages) = passages_of(&TEXT);
    knowledge.store_text(hold, &text, &passages).await.unwrap()
}

async fn the_bytes_of_an_owners_texts_hold_at_their_edge(test: TestKnowledge) {
    let knowledge = limited(&test, 10);
    let collection = test.collection(ANN).await;
    let [first, second, third] =
        [test.begin(ANN, collection).await, test.begin(ANN, collection).await, test.begin(ANN, collection).await];
    assert_eq!(store(&knowledge, first).await, StoreOutcome::Stored);
    assert_eq!(store(&knowledge, second).await, StoreOutcome::Stored, "ten bytes are not too many");
    assert_eq!(store(&knowledge, second).await, StoreOutcome::Stored, "a text counts once");
    assert_eq!(store(&knowledge, third).await, StoreOutcome::TooMuchText(10));
    assert_eq!(test.count("document_texts").await, 2, "a text that is too much costs no row");
    assert_eq!(knowledge.ingested(third.document_id).await.unwrap().unwrap().extracted, None);
    knowledge.delete_document(ANN, first.document_id).await.unwrap().unwrap();
    assert_eq!(store(&knowledge, third).await, StoreOutcome::TooMuchText(10), "its rows are still there");
    while knowledge.remove_deleted().await.unwrap() {}
    assert_eq!(store(&knowledge, third).await, StoreOutcome::Stored);
    let collection = test.collection("anonymous_1").await;
    let anonymous = test.begin("anonymous_1", collection).await;
    assert_eq!(store(&knowledge, anonymous).await, StoreOutcome::TooMuchText(4));
    assert_eq!(store(&test.knowledge, anonymous).await, StoreOutcome::Stored, "without a limit");
}

async fn texts_that_are_stored_at_once_keep_to_the_limit(test: TestKnowledge) {
    let knowledge = limited(&test, 15);
    let collection = test.collection(ANN).await;
    let mut holds = Vec::new();
    for _ in 0..8 {
        holds.push(test.begin(ANN, collection).await);
    }
    let outcomes = join_all(holds.into_iter().map(|hold| store(&knowledge, hold))).await;
    let stored = outcomes.iter().filter(|outcome| **outcome == StoreOutcome::Stored).count();
    assert_eq!(stored, 3, "{outcomes:?}");
}

async fn collections_that_are_created_at_once_keep_to_the_limit(test: TestKnowledge) {
    let new = || NewCollection { name: "c".into(), description: None, readable_by: Readers::Owner };
    let create = |_| test.knowledge.create_collection(ANN, new(), Some(3));
    let created = join_all((0..12).map(create)).await.into_iter().filter(|created| created.as_ref().unwrap().is_some());
    assert_eq!(created.count(), 3);
    assert_eq!(test.count("collections").await, 3);
    assert!(test.knowledge.create_collection(ANN, new(), Some(3)).await.unwrap().is_none());
    assert!(test.knowledge.create_collection("bob", new(), Some(3)).await.unwrap().is_some());
}

async fn a_claim_keeps_to_the_limits_of_the_account(test: TestKnowledge) {
    for owner in [ANN, "anonymous_1"] {
        let collection = test.collection(owner).await;
        test.ingest(owner, collection, &TEXT).await;
    }
    let claim = async |knowledge: KnowledgeQuotas| {
        let others = OtherQuotas { knowledge, ..OtherQuotas::default() };
        match test.storage.move_owner("anonymous_1", ANN, &Quotas::default(), others).await {
            Ok(_) => None,
            Err(Error::Quota { exceeded, .. }) => Some(exceeded),
            Err(error) => panic!("{error}"),
        }
    };
    let enough = KnowledgeQuotas { collections: Some(2), documents: Some(2), text_bytes: Some(10) };
    for (quotas, exceeded) in [
        (KnowledgeQuotas { collections: Some(1), ..enough }, QuotaExceeded::Collections(1)),
        (KnowledgeQuotas { documents: Some(1), ..enough }, QuotaExceeded::Documents(1)),
        (KnowledgeQuotas { text_bytes: Some(9), ..enough }, QuotaExceeded::TextBytes(9)),
    ] {
        assert_eq!(claim(quotas).await, Some(exceeded));
    }
    assert_eq!(claim(enough).await, None);
    assert_eq!(test.count("documents where owner_id = 'ann'").await, 2);
    assert_eq!(claim(KnowledgeQuotas { collections: Some(1), ..enough }).await, None, "a claim of nothing");
}
