//! The parser alone: the same deltas however the bytes are cut.

use proptest::prelude::*;

use super::*;

/// Feeds the bytes cut at these places, and returns the deltas with the flaw that ended them.
fn parse(bytes: &[u8], cuts: &[usize]) -> (Vec<Delta>, Option<Flaw>) {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).chain([0, bytes.len()]).collect();
    cuts.sort_unstable();
    let (mut parser, mut deltas) = (Parser::default(), VecDeque::new());
    let mut parsed = Ok(());
    for pair in cuts.windows(2) {
        parsed = parsed.and_then(|()| parser.feed(&bytes[pair[0]..pair[1]], &mut deltas));
    }
    parsed = parsed.and_then(|()| parser.finish(&mut deltas));
    (deltas.into(), parsed.err())
}

fn line() -> impl Strategy<Value = String> {
    let piece = |field: &'static str| {
        "[a-zé\u{1F600}\"\n ]{0,8}"
            .prop_map(move |text| format!("data: {}", serde_json::json!({"choices": [{"delta": {field: text}}]})))
    };
    prop_oneof![
        8 => piece("content"),
        3 => piece("reasoning_content"),
        1 => Just("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}".to_owned()),
        1 => Just("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}".to_owned()),
        1 => Just(": comment".to_owned()),
        1 => Just("event: message".to_owned()),
        1 => Just(String::new()),
        1 => Just("data: [DONE]".to_owned()),
        1 => Just("data: {\"choices\":[{".to_owned()),
        1 => Just("data: {\"error\":{\"message\":\"no\"}}".to_owned()),
    ]
}

proptest! {
    #[test]
    fn cuts_make_no_difference(
        lines in prop::collection::vec((line(), prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n")]), 0..20),
        cuts in prop::collection::vec(any::<usize>(), 0..40),
        end in 0..4_usize,
    ) {
        let mut text: String = lines.into_iter().flat_map(|(line, end)| [line, end.to_owned()]).collect();
        // Sometimes the body ends in the middle of a line.
        text.truncate(text.floor_char_boundary(text.len().saturating_sub(end)));
        prop_assert_eq!(parse(text.as_bytes(), &cuts), parse(text.as_bytes(), &[]));
    }
}

#[test]
fn every_byte_alone_gives_the_same_as_all_at_once() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"é😀\"}}]}\r\n\r\ndata: [DONE]\r\n\r\n";
    let every: Vec<usize> = (0..text.len()).collect();
    let expected = (vec![Delta::Text("é😀".to_owned()), Delta::End(Usage::default())], None);
    assert_eq!(parse(text.as_bytes(), &every), expected);
    assert_eq!(parse(text.as_bytes(), &[]), expected);
}

#[test]
fn a_server_that_sends_reasoning_under_both_names_is_read_once() {
    let text =
        "data: {\"choices\":[{\"delta\":{\"reasoning\":\"hm\",\"reasoning_content\":\"hm\",\"content\":\"x\"}}]}\n";
    let (deltas, flaw) = parse(text.as_bytes(), &[]);
    assert_eq!(deltas, [Delta::Reasoning("hm".to_owned()), Delta::Text("x".to_owned())]);
    assert_eq!(flaw, Some(Flaw::Truncated));
}

#[test]
fn the_last_line_may_lack_its_end_but_not_its_contents() {
    let finished = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}";
    assert_eq!(parse(finished.as_bytes(), &[]), (vec![Delta::End(Usage::default())], None));
    let cut_off = &finished[..finished.len() - 5];
    assert_eq!(parse(cut_off.as_bytes(), &[]), (vec![], Some(Flaw::Truncated)));
}

#[test]
fn nothing_counts_after_the_end() {
    let (deltas, flaw) = parse(b"data: [DONE]\ndata: [DONE]\ndata: {\n<html>\n", &[]);
    assert_eq!((deltas.len(), flaw), (1, None));
}

#[test]
fn a_line_may_be_long_but_not_endless() {
    let of_length = |length: usize| format!("data: {}\n", " ".repeat(length - 6));
    assert_eq!(parse(of_length(LINE_BYTES).as_bytes(), &[]).1, Some(Flaw::Truncated));
    for cuts in [&[][..], &[5, 1000, 500_000]] {
        assert_eq!(parse(of_length(LINE_BYTES + 1).as_bytes(), cuts).1, Some(Flaw::LongLine));
    }
}
