//! Every text is cut within the rules, and along its structure where it has one.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const MARKDOWN: &str = "text/markdown";

fn document(text: &str) -> DocumentText {
    DocumentText { text: text.to_owned(), pages: Vec::new() }
}

/// The passages' texts and headings.
fn cut(text: &str, media_type: &str, max: usize) -> Vec<(String, Option<String>)> {
    let document = document(text);
    let text_of = |span: &PassageSpan| text.chars().skip(span.start).take(span.end - span.start).collect();
    passages(&document, media_type, max).into_iter().map(|span| (text_of(&span), span.heading)).collect()
}

fn texts(text: &str, media_type: &str, max: usize) -> Vec<String> {
    cut(text, media_type, max).into_iter().map(|(text, _)| text).collect()
}

fn hold_the_rules(document: &DocumentText, media_type: &str, max: usize) {
    let characters: Vec<char> = document.text.chars().collect();
    let spans = passages(document, media_type, max);
    let mut end = 0;
    for span in &spans {
        assert!(end <= span.start && span.start < span.end && span.end <= characters.len(), "{span:?} after {end}");
        assert!(span.end - span.start <= max, "{span:?} is longer than {max}");
        assert!(characters[end..span.start].iter().all(|c| c.is_whitespace()), "text before {span:?} is missing");
        assert!(!characters[span.start].is_whitespace() && !characters[span.end - 1].is_whitespace());
        let page = document.pages.iter().rev().find(|page| page.start <= span.start).map(|page| page.page);
        assert_eq!(span.page, page);
        end = span.end;
    }
    assert!(characters[end..].iter().all(|c| c.is_whitespace()), "text after {end} is missing");
}

/// Texts with the marks at which they are cut.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z]{1,12}",
        "[ \n\t]{1,3}",
        Just("\n\n".to_owned()),
        Just("\n# Title\n".to_owned()),
        Just("\n## *Part* ##\n\n".to_owned()),
        Just("Under\n=====\n".to_owned()),
        Just("\n---\n".to_owned()),
        Just("\n```\n".to_owned()),
        Just("\n~~~~\n".to_owned()),
        Just("- item\n".to_owned()),
        Just("| a | b |\n".to_owned()),
        Just("A sentence. ".to_owned()),
        Just("文です。".to_owned()),
        Just("e\u{301}👩‍👩‍👧\u{2003}".to_owned()),
        "\\PC{0,8}",
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn passages_are_in_order_within_their_length_and_have_all_of_the_text(
        text in any_text(),
        max in 1_usize..80,
        starts in proptest::collection::btree_set(0_usize..200, 0..5),
        media_type in prop_oneof![Just(MARKDOWN), Just("text/plain"), Just("text/csv"), Just("application/pdf")],
    ) {
        let scalars = text.chars().count();
        let starts = starts.into_iter().filter(|start| *start <= scalars);
        let pages = starts.zip(1..).map(|(start, page)| PageStart { page, start }).collect();
        hold_the_rules(&DocumentText { text, pages }, media_type, max);
    }
}

#[test]
fn a_short_text_is_one_passage_and_white_space_is_none() {
    assert_eq!(texts(" a b\n", "text/plain", 10), ["a b"]);
    assert_eq!(texts("", "text/plain", 10), [""; 0]);
    assert_eq!(texts(" \n\n", "text/plain", 1), [""; 0]);
}

#[test]
fn a_passage_has_the_headings_above_it() {
    let text = "Before all, a text.\n\n# Install\n\nFirst of all, read.\n\n## Linux\n\nUse the package.\n\n\
                ## Mac\n\nUse the other package.\n\n# Use\n\nStart the program.\n";
    let expected = [
        ("Before all, a text.", None),
        ("# Install\n\nFirst of all, read.", Some("Install")),
        ("## Linux\n\nUse the package.", Some("Install > Linux")),
        ("## Mac\n\nUse the other package.", Some("Install > Mac")),
        ("# Use\n\nStart the program.", Some("Use")),
    ];
    let expected: Vec<_> = expected.iter().map(|(text, path)| ((*text).to_owned(), path.map(str::to_owned))).collect();
    assert_eq!(cut(text, MARKDOWN, 40), expected);
}

#[test]
fn short_sections_share_a_passage_under_their_common_heading() {
    let text = "# Names\n\n## A\n\none\n\n## B\n\ntwo\n";
    assert_eq!(cut(text, MARKDOWN, 400), [(text.trim().to_owned(), Some("Names".to_owned()))]);
    let one = "# Names\n\n## A\n\none\n";
    assert_eq!(cut(one, MARKDOWN, 400), [(one.trim().to_owned(), Some("Names > A".to_owned()))]);
}

#[test]
fn a_mark_in_code_is_no_heading() {
    let headings = |text: &str| cut(text, MARKDOWN, 400).remove(0).1;
    assert_eq!(headings("```sh\n# not\n```\nx"), None);
    assert_eq!(headings("~~~\n```\n# not\n~~~"), None);
    assert_eq!(headings("~~~\n```\n~~~\n# yes\nx"), None, "the code is above the heading, too");
    assert_eq!(headings("    # not\nx"), None);
    assert_eq!(headings("#not\nx"), None);
    assert_eq!(headings("####### not\nx"), None);
    assert_eq!(headings("Title\n=====\nx"), Some("Title".to_owned()));
    assert_eq!(headings("two\nlines\n-----\nx"), None);
    assert_eq!(headings("## **Bold** ##\nx"), Some("Bold".to_owned()));
}

#[test]
fn a_text_is_cut_at_its_best_place() {
    let check = |text: &str, media_type: &str, expected: &[&str]| assert_eq!(texts(text, media_type, 20), expected);
    check("one two three\n\nfour five six seven", "text/plain", &["one two three", "four five six seven"]);
    check("One is this. Two is that one.", "text/plain", &["One is this.", "Two is that one."]);
    check(
        "一つの長い文があります。二つの長い文があります。",
        "text/plain",
        &["一つの長い文があります。", "二つの長い文があります。"],
    );
    check("abcdef ghijkl mnopqr stuvwx", "text/plain", &["abcdef ghijkl", "mnopqr stuvwx"]);
    check("id,name\n1,first row\n2,second row\n", "text/csv", &["id,name\n1,first row", "2,second row"]);
    check("| a | bbbbbb |\n| c. d | eeeeeee |", MARKDOWN, &["| a | bbbbbb |", "| c. d | eeeeeee |"]);
    check("- first item\n- second item", MARKDOWN, &["- first item", "- second item"]);
    check(&"x".repeat(45), "text/plain", &["x".repeat(20).as_str(), "x".repeat(20).as_str(), "xxxxx"]);
}

#[test]
fn a_passage_ends_before_a_page() {
    let text = "The first page.\n\nThe second page.";
    let pages = vec![PageStart { page: 1, start: 0 }, PageStart { page: 2, start: 17 }];
    let document = DocumentText { text: text.to_owned(), pages };
    let spans = passages(&document, "application/pdf", 40);
    assert_eq!(spans.iter().map(|span| (span.start, span.page)).collect::<Vec<_>>(), [(0, Some(1)), (17, Some(2))]);
}

#[test]
fn a_hostile_text_is_cut_in_linear_time() {
    let hostile = ["a".repeat(1_000_000), "# a\n".repeat(250_000), "a. ".repeat(300_000), "\n".repeat(1_000_000)];
    let started = Instant::now();
    for text in hostile {
        let mut document = document(&text);
        document.pages = (0..10_000).map(|page| PageStart { page: page + 1, start: page as usize * 100 }).collect();
        hold_the_rules(&document, MARKDOWN, 1200);
    }
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}
