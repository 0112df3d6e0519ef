//! A passage is what stands at its place: for random documents, the stored text, the passages and the search agree to the
//! character.

use std::sync::Arc;

use holdfast_extraction::{DocumentText, PageStart, passages};
use holdfast_knowledge::{FoundPassage, NewPassage, PassageId, SearchScope, StoreOutcome, words_of};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::{backends::TestKnowledge, on_both_databases};

on_both_databases!(each_passage_is_what_stands_at_its_place);

/// A document, and the most characters of its passages.
#[derive(Debug, Clone)]
struct RandomDocument {
    text: String,
    media_type: &'static str,
    most: usize,
    pages: Vec<usize>,
}

/// Pieces of one script, of Markdown, or of both, in any order. Some are longer than a stored piece.
fn text() -> impl Strategy<Value = String> {
    let words = prop_oneof![
        "[a-zA-Z]{1,12}( [a-z]{1,9}){0,20}[.!?]? ",
        "[äöüßéèñøЖдлчαβγ]{1,9} ",
        "[日本語港口開放時水手]{1,40}[。、！]?",
        "[กขคงสวัดีเรือ]{1,20}",
        "[א-ת]{1,8} [א-ת]{1,8} ",
        "(👍🏽|👩‍👩‍👧|🇩🇪|e\u{301}|n\u{303}\u{323}|\u{1F6A2}|\u{200d}|\u{feff}){1,6}",
    ];
    let structure = prop_oneof![
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\r\n\r\n".to_owned()),
        Just("\n\n---\n\n".to_owned()),
        Just("\t \u{a0}\u{3000}".to_owned()),
        "\n#{1,6} [a-z]{1,9}( [日本語]{0,3})?\n",
        "\n[-*] [a-z]{1,9}\n",
        "\n\\| [a-z]{1,5} \\| [0-9]{1,5} \\|\n",
        "\n```[a-z]{0,4}\n[a-z(){};\n]{0,60}\n```\n",
        "\n> [a-z]{1,30}\n",
        "[\\[\\]\"“”'`*_%\\\\{}$:;,0-9]{1,8}",
    ];
    let long = ("[a-zé日👍]{1,7}", 100_usize..3000).prop_map(|(piece, times)| piece.repeat(times));
    let piece = prop_oneof![12 => words, 6 => structure, 1 => long];
    vec(piece, 1..60).prop_map(|pieces| pieces.concat())
}

fn document() -> impl Strategy<Value = RandomDocument> {
    const MEDIA_TYPES: &[&str] = &["text/plain", "text/markdown", "text/csv", "application/pdf", "text/html"];
    let pages = vec(0_usize..30_000, 0..6);
    (text(), prop::sample::select(MEDIA_TYPES), 20_usize..1500, pages)
        .prop_map(|(text, media_type, most, pages)| RandomDocument { text, media_type, most, pages })
}

async fn each_passage_is_what_stands_at_its_place(knowledge: TestKnowledge) {
    let (handle, knowledge) = (Handle::current(), Arc::new(knowledge));
    let checked = tokio::task::spawn_blocking(move || {
        let config = Config { failure_persistence: None, ..Config::with_cases(48) };
        TestRunner::new(config).run(&document(), |document| {
            handle.block_on(check(&knowledge, &document));
            Ok(())
        })
    });
    checked.await.unwrap().unwrap();
}

async fn check(test: &TestKnowledge, document: &RandomDocument) {
    // Each case has an owner of its own, because an owner has at most a few unfinished runs.
    let owner = Uuid::now_v7().to_string();
    let collection = test.collection(&owner).await;
    let hold = test.begin(&owner, collection).await;
    let characters: Vec<char> = document.text.chars().collect();
    let part = |start: u64, end: u64| characters[start as usize..end as usize].iter().collect::<String>();
    let places = cut(document, characters.len());
    assert_eq!(test.knowledge.store_text(hold, &document.text, &places).await.unwrap(), StoreOutcome::Stored);
    while test.knowledge.index_some(hold).await.unwrap().unwrap() > 0 {}
    test.knowledge.note_indexed(hold).await.unwrap();

    let id = hold.document_id;
    let whole = test.knowledge.text(&owner, id, 0..u64::MAX / 2).await.unwrap();
    assert_eq!(whole.text, document.text);
    let ids = places.iter().map(|place| PassageId { document_id: id, number: place.number });
    let stored = test.knowledge.passages(&owner, ids).await.unwrap();
    assert_eq!(stored.len(), places.len());
    for (place, passage) in places.iter().zip(&stored) {
        assert_eq!((&passage.place, &passage.text), (place, &part(place.start, place.end)));
        let text = test.knowledge.text(&owner, id, place.start..place.end).await.unwrap();
        assert_eq!((text.start, &text.text), (place.start, &passage.text));
    }
    let scope = SearchScope { owner: &owner, collections: &[collection] };
    for place in places.iter().step_by(places.len().div_ceil(4).max(1)) {
        let question = words_of(&part(place.start, place.end)).into_iter().take(5).collect::<Vec<_>>().join(" ");
        let found = test.knowledge.search(scope, &question, &[], 20).await.unwrap();
        for FoundPassage { place, text, .. } in &found {
            assert_eq!(*text, part(place.start, place.end), "{question}");
        }
    }
}

/// Returns the passages of a document, which have pages if the text is that of a PDF.
fn cut(document: &RandomDocument, characters: usize) -> Vec<NewPassage> {
    let mut starts: Vec<usize> = document.pages.iter().map(|start| start % (characters + 1)).collect();
    starts.sort_unstable();
    let pages = (1..).zip(starts).map(|(page, start)| PageStart { page, start }).collect();
    let text = DocumentText { text: document.text.clone(), pages };
    let spans = (0..).zip(passages(&text, document.media_type, document.most));
    spans
        .map(|(number, span)| NewPassage {
            number,
            start: span.start as u64,
            end: span.end as u64,
            page: span.page,
            heading: span.heading,
        })
        .collect()
}
