//! Searches, ingestions and removals, as both databases do them.

use holdfast_knowledge::{FoundPassage, Hold, PassageId, SearchScope, StoreOutcome};
use uuid::Uuid;

use crate::{
    backends::{ANN, TestKnowledge, passages_of},
    on_both_databases,
};

on_both_databases!(
    rare_words_come_first_and_only_of_its_own_collection,
    common_words_are_sampled_and_found_in_pairs,
    a_word_of_almost_all_of_very_many_passages_finds_some,
    a_fenced_attempt_writes_nothing,
    deleted_documents_leave_no_row,
    passages_are_read_across_pieces,
    passages_that_are_not_ready_hide_no_other,
    a_word_is_found_with_its_accents_and_without,
);

async fn find(test: &TestKnowledge, owner: &str, collection: Uuid, question: &str) -> Vec<FoundPassage> {
    let scope = SearchScope { owner, collections: &[collection] };
    test.knowledge.search(scope, question, &[], 10).await.unwrap()
}

fn texts(found: &[FoundPassage]) -> Vec<&str> {
    found.iter().map(|found| found.text.as_str()).collect()
}

async fn rare_words_come_first_and_only_of_its_own_collection(test: TestKnowledge) {
    let (own, other) = (test.collection(ANN).await, test.collection("bob").await);
    test.ingest(ANN, own, &["the keel of the ship", "the mast of the ship", "the anchor of the ship, the anchor"])
        .await;
    test.ingest("bob", other, &["bob's keel"]).await;
    let found = find(&test, ANN, own, "Which ship has an anchor?").await;
    assert_eq!(texts(&found)[0], "the anchor of the ship, the anchor");
    assert_eq!(found.len(), 3);
    assert_eq!(texts(&find(&test, ANN, own, "keels").await), ["the keel of the ship"]);
    assert!(find(&test, ANN, other, "keel").await.is_empty(), "ann may not read bob's");
    assert!(find(&test, ANN, own, "").await.is_empty());
}

async fn common_words_are_sampled_and_found_in_pairs(test: TestKnowledge) {
    let collection = test.collection(ANN).await;
    let lines: Vec<String> = (0..2400)
        .map(|n| {
            format!("common{} shared{} row{n}", if n % 2 == 0 { "" } else { "x" }, if n % 3 == 0 { "" } else { "y" })
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    test.ingest(ANN, collection, &lines).await;
    let found = find(&test, ANN, collection, "common shared").await;
    assert_eq!(found.len(), 10);
    assert!(texts(&found).iter().all(|text| text.starts_with("common shared ")), "{:?}", texts(&found));
    let found = find(&test, ANN, collection, "common row1777").await;
    assert_eq!(texts(&found)[0], "commonx sharedy row1777");
}

async fn a_word_of_almost_all_of_very_many_passages_finds_some(test: TestKnowledge) {
    let (own, other) = (test.collection(ANN).await, test.collection("bob").await);
    test.ingest(ANN, own, &["the keel of the ship holds it", "a ship", "the mast and the anchor of the ship"]).await;
    test.ingest("bob", other, &["bob's ship"]).await;
    test.change("update collections set sampled_passages = 100000, common_words = '{\"ship\": 0.9}'").await;
    assert_eq!(find(&test, ANN, own, "ship").await.len(), 3);
    assert_eq!(texts(&find(&test, ANN, own, "ship keel").await), ["the keel of the ship holds it"]);
}

async fn a_fenced_attempt_writes_nothing(test: TestKnowledge) {
    let collection = test.collection(ANN).await;
    let hold = test.begin(ANN, collection).await;
    let (text, passages) = passages_of(&["a", "b"]);
    let stale = Hold { attempt: hold.attempt + 1, ..hold };
    assert_eq!(test.knowledge.store_text(stale, &text, &passages).await.unwrap(), StoreOutcome::Fenced);
    assert_eq!(test.knowledge.note_indexed(stale).await.unwrap(), StoreOutcome::Fenced);
    assert_eq!(test.knowledge.ingested(hold.document_id).await.unwrap().unwrap().extracted, None);
    assert_eq!(test.knowledge.store_text(hold, &text, &passages).await.unwrap(), StoreOutcome::Stored);
    assert_eq!(test.knowledge.store_text(hold, &text, &passages).await.unwrap(), StoreOutcome::Stored, "again");
    assert_eq!(test.knowledge.ingested(hold.document_id).await.unwrap().unwrap().extracted, Some((3, 2)));
    test.knowledge.delete_document(ANN, hold.document_id).await.unwrap().unwrap();
    assert_eq!(test.knowledge.index_some(hold).await.unwrap(), None, "a deleted document gets no words");
}

async fn deleted_documents_leave_no_row(test: TestKnowledge) {
    let collection = test.collection(ANN).await;
    let hold = test.ingest(ANN, collection, &["canary-4711 sings", "b"]).await;
    test.store(hold, "m", &[vec![1.0], vec![1.0]]).await;
    assert_eq!(find(&test, ANN, collection, "canary").await.len(), 1);
    test.knowledge.delete_collection(ANN, collection).await.unwrap().unwrap();
    while test.knowledge.remove_deleted().await.unwrap() {}
    assert!(test.knowledge.ingested(hold.document_id).await.unwrap().is_none());
    let passages = test.knowledge.passages(ANN, [PassageId { document_id: hold.document_id, number: 0 }]).await;
    assert!(passages.unwrap().is_empty());
    assert!(test.knowledge.text(ANN, hold.document_id, 0..100).await.unwrap().text.is_empty());
    assert!(test.knowledge.unembedded(hold, "m", 9).await.unwrap().is_empty());
}

async fn passages_are_read_across_pieces(test: TestKnowledge) {
    let collection = test.collection(ANN).await;
    let long = "日x".repeat(5000);
    let hold = test.ingest(ANN, collection, &["short", &long, "end"]).await;
    let ids = [0, 1, 2].map(|number| PassageId { document_id: hold.document_id, number });
    let found = test.knowledge.passages(ANN, ids).await.unwrap();
    assert_eq!(texts(&found), ["short", &long, "end"]);
    let scope = SearchScope { owner: ANN, collections: &[collection] };
    let between = test.knowledge.passages_between(scope, hold.document_id, 10_005..10_008).await.unwrap();
    assert_eq!(texts(&between), [long.as_str(), "end"]);
    assert_eq!(test.knowledge.text(ANN, hold.document_id, 8190..8196).await.unwrap().text.chars().count(), 6);
}

async fn passages_that_are_not_ready_hide_no_other(test: TestKnowledge) {
    let collection = test.collection(ANN).await;
    let unready = test.begin(ANN, collection).await;
    let words = "keel mast anchor rudder hull bow stern deck";
    let (text, passages) = passages_of(&vec![words; 4001]);
    test.knowledge.store_text(unready, &text, &passages).await.unwrap();
    while test.knowledge.index_some(unready).await.unwrap().unwrap() > 0 {}
    let ready = "on the deck there are many things that no sailor has ever counted";
    test.ingest(ANN, collection, &[ready]).await;
    for question in ["deck", words] {
        assert_eq!(texts(&find(&test, ANN, collection, question).await), [ready], "{question}");
    }
    test.knowledge.note_indexed(unready).await.unwrap();
    assert_eq!(texts(&find(&test, ANN, collection, "deck").await), [words; 10]);
    test.knowledge.delete_document(ANN, unready.document_id).await.unwrap().unwrap();
    for question in ["deck", words] {
        assert_eq!(texts(&find(&test, ANN, collection, question).await), [ready], "{question}, after a deletion");
    }
}

async fn a_word_is_found_with_its_accents_and_without(test: TestKnowledge) {
    let collection = test.collection(ANN).await;
    let lines = [
        "the cafe at the pier",
        "the café at the port",
        "Die Bru\u{308}cke in Köln",
        "Hauptstraße 5",
        "İstanbul, Işıl",
        "ｶﾀｶﾅ of half width",
        "an e\u{fb03}cient in\u{ad}voice",
    ];
    test.ingest(ANN, collection, &lines).await;
    for (question, expected) in [
        ("Brücke", 2),
        ("brucke", 2),
        ("KOLN", 2),
        ("Ko\u{308}ln", 2),
        ("hauptstrasse", 3),
        ("istanbul", 4),
        ("isil", 4),
        ("カタカナ", 5),
        ("efficient invoice", 6),
    ] {
        assert_eq!(texts(&find(&test, ANN, collection, question).await), [lines[expected]], "{question}");
    }
    assert_eq!(find(&test, ANN, collection, "cafe").await.len(), 2);
    let exact = find(&test, ANN, collection, "café").await;
    assert_eq!(texts(&exact), [lines[1], lines[0]], "the exact spelling is first");
}
