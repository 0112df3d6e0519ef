//! The parser alone: the deltas do not depend on where the bytes are split.

use proptest::prelude::*;

use super::*;
use crate::model::CallDelta;

mod answers;

/// Parses the bytes, split at these offsets. Returns the deltas, and the flaw that ended them.
fn parse(bytes: &[u8], splits: &[usize]) -> (Vec<AnswerDelta>, Option<Flaw>) {
    let mut splits: Vec<usize> = splits.iter().map(|split| split % (bytes.len() + 1)).chain([0, bytes.len()]).collect();
    splits.sort_unstable();
    let (mut parser, mut deltas) = (StreamParser::new(false), VecDeque::new());
    let mut result = Ok(());
    for pair in splits.windows(2) {
        result = result.and_then(|()| parser.feed(&bytes[pair[0]..pair[1]], &mut deltas));
    }
    result = result.and_then(|()| parser.finish(&mut deltas));
    (deltas.into(), result.err())
}

fn line() -> impl Strategy<Value = String> {
    let piece = |field: &'static str| {
        "[a-zé\u{1F600}\"\n ]{0,8}"
            .prop_map(move |text| format!("data: {}", serde_json::json!({"choices": [{"delta": {field: text}}]})))
    };
    prop_oneof![
        8 => piece("content"),
        3 => piece("reasoning_content"),
        3 => call_piece(),
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

fn call_piece() -> impl Strategy<Value = String> {
    let index = prop::option::of(0..3_u64);
    let id = prop::option::of("[ab]?");
    let name = prop::option::of("[xy]?");
    let arguments = prop::option::of(r#"[{}\[\]"\\a: é]{0,6}"#);
    (index, id, name, arguments).prop_map(|(index, id, name, arguments)| {
        let call = serde_json::json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}});
        format!("data: {}", serde_json::json!({"choices": [{"delta": {"tool_calls": [call]}}]}))
    })
}

proptest! {
    #[test]
    fn every_call_starts_with_its_name_exactly_once(
        lines in prop::collection::vec(call_piece(), 0..12),
    ) {
        let (deltas, flaw) = parse(lines.join("\n").as_bytes(), &[]);
        prop_assert!(matches!(flaw, Some(Flaw::Truncated | Flaw::NamelessCall)));
        let mut started = 0;
        for delta in deltas {
            let AnswerDelta::Call(delta) = delta else { panic!("{delta:?}") };
            prop_assert_eq!(delta.index == started, delta.name.is_some(), "{:?}", delta);
            prop_assert!(delta.index <= started);
            started += usize::from(delta.name.is_some());
        }
    }

    #[test]
    fn splits_make_no_difference(
        lines in prop::collection::vec((line(), prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n")]), 0..20),
        splits in prop::collection::vec(any::<usize>(), 0..40),
        end in 0..4_usize,
    ) {
        let mut text: String = lines.into_iter().flat_map(|(line, end)| [line, end.to_owned()]).collect();
        // Sometimes the body ends in the middle of a line.
        text.truncate(text.floor_char_boundary(text.len().saturating_sub(end)));
        prop_assert_eq!(parse(text.as_bytes(), &splits), parse(text.as_bytes(), &[]));
    }
}

#[test]
fn every_byte_alone_gives_the_same_as_all_at_once() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"é😀\"}}]}\r\n\r\ndata: [DONE]\r\n\r\n";
    let every: Vec<usize> = (0..text.len()).collect();
    let expected =
        (vec![AnswerDelta::Text("é😀".to_owned()), AnswerDelta::End(Usage::default(), FinishReason::Other)], None);
    assert_eq!(parse(text.as_bytes(), &every), expected);
    assert_eq!(parse(text.as_bytes(), &[]), expected);
}

/// Checks the calls that pieces with these fields make, as `name(arguments)`, whether all at once or byte by byte.
#[track_caller]
fn check_calls(chunks: &[&str], expected: &[&str]) {
    let chunk = |pieces: &&str| format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{pieces}]}}}}]}}\n");
    let text = chunks.iter().map(chunk).chain(["data: [DONE]\n".to_owned()]).collect::<String>();
    let every: Vec<usize> = (0..text.len()).collect();
    for splits in [&[][..], &every] {
        let (deltas, flaw) = parse(text.as_bytes(), splits);
        assert_eq!(flaw, None, "{chunks:?}");
        let mut calls: Vec<String> = Vec::new();
        for delta in deltas {
            let AnswerDelta::Call(CallDelta { index, name, arguments, .. }) = delta else { continue };
            calls.extend(name.map(|name| format!("{name}(")));
            calls[index] += &arguments;
        }
        let calls: Vec<String> = calls.into_iter().map(|call| call + ")").collect();
        assert_eq!(calls, expected, "{chunks:?}");
    }
}

#[test]
fn pieces_find_their_call_even_if_fields_are_missing_or_repeated() {
    // As OpenAI sends them, in turn and interleaved.
    check_calls(
        &[
            r#"{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}"#,
            r#"{"index":0,"function":{"arguments":"{\"x\":"}},{"index":1,"id":"b","function":{"name":"f","arguments":"{"}}"#,
            r#"{"index":0,"function":{"arguments":"1}"}}"#,
            r#"{"index":1,"function":{"arguments":"}"}}"#,
        ],
        &[r#"f({"x":1})"#, "f({})"],
    );
    // Complete calls without an index, with and without ids, in one chunk and in several.
    check_calls(
        &[
            r#"{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"id":"c","function":{"name":"g","arguments":"{}"}}"#,
        ],
        &[r#"f({"x":1})"#, "f()", "g()"],
    );
    check_calls(
        &[
            r#"{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"f","arguments":"{}"}}"#,
            r#"{"function":{"name":"f","arguments":"{}"}}"#,
        ],
        &["f()", "f()", "f()"],
    );
    // Pieces without an index.
    check_calls(
        &[
            r#"{"id":"a","function":{"name":"f","arguments":"{\"x\""}}"#,
            r#"{"id":"a","function":{"arguments":":1"}}"#,
            r#"{"function":{"arguments":"}"}}"#,
        ],
        &[r#"f({"x":1})"#],
    );
    // All calls at index 0, as Google's endpoint sends them.
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"id":"","function":{"name":"g","arguments":"{}"}}"#,
        ],
        &["f()", "f()", "g()"],
    );
    // The name in each piece, and a new id for each piece; brackets and quotes in strings end no arguments.
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"\\\"}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{\""}}"#,
            r#"{"index":0,"function":{"name":"f","arguments":"}"}}"#,
            r#"{"index":0,"function":{"name":"f","arguments":""}}"#,
        ],
        &[r#"f({"x":"\"}{"})"#],
    );
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}"#,
            r#"{"index":0,"id":"b","function":{"arguments":"}"}}"#,
        ],
        &["f({})"],
    );
    // No arguments, null, and JSON in place of its text.
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":null}}"#,
            r#"{"index":2,"id":"c","function":{"name":"h","arguments":{"x":[1]}}}"#,
        ],
        &["f()", "g()", r#"h({"x":[1]})"#],
    );
    // A placeholder before the real arguments, and after them nothing.
    check_calls(
        &[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"function":{"arguments":"{\"x\":"}}"#,
            r#"{"index":0,"function":{"arguments":"{}}"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}"#,
            r#"{"index":1,"function":{"arguments":""}}"#,
            r#"{"index":2.0,"id":7,"type":[],"function":{"name":"h","arguments":{}}}"#,
            r#"{"index":2,"function":{"arguments":{"x":1}}}"#,
        ],
        &[r#"f({"x":{}})"#, "g()", r#"h({"x":1})"#],
    );
    // The id before the name.
    check_calls(
        &[r#"{"index":0,"id":"a","type":"function"}"#, r#"{"index":0,"function":{"name":"f","arguments":"{}"}}"#],
        &["f()"],
    );
}

#[test]
fn arguments_for_no_tool_are_a_flaw() {
    let text = r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}"#;
    assert_eq!(parse(format!("{text}\n").as_bytes(), &[]), (vec![], Some(Flaw::NamelessCall)));
}

#[test]
fn a_server_that_sends_reasoning_under_both_names_is_read_once() {
    let text =
        "data: {\"choices\":[{\"delta\":{\"reasoning\":\"hm\",\"reasoning_content\":\"hm\",\"content\":\"x\"}}]}\n";
    let (deltas, flaw) = parse(text.as_bytes(), &[]);
    assert_eq!(deltas, [AnswerDelta::Reasoning("hm".to_owned()), AnswerDelta::Text("x".to_owned())]);
    assert_eq!(flaw, Some(Flaw::Truncated));
}

#[test]
fn the_last_line_may_lack_its_end_but_not_its_contents() {
    let finished = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}";
    assert_eq!(parse(finished.as_bytes(), &[]), (vec![AnswerDelta::End(Usage::default(), FinishReason::Stop)], None));
    let truncated = &finished[..finished.len() - 5];
    assert_eq!(parse(truncated.as_bytes(), &[]), (vec![], Some(Flaw::Truncated)));
}

#[test]
fn lines_after_the_end_are_ignored() {
    let (deltas, flaw) = parse(b"data: [DONE]\ndata: [DONE]\ndata: {\n<html>\n", &[]);
    assert_eq!((deltas.len(), flaw), (1, None));
}

#[test]
fn a_line_may_be_long_but_not_endless() {
    let of_length = |length: usize| format!("data: {}\n", " ".repeat(length - 6));
    assert_eq!(parse(of_length(LINE_BYTES).as_bytes(), &[]).1, Some(Flaw::Truncated));
    for splits in [&[][..], &[5, 1000, 500_000]] {
        assert_eq!(parse(of_length(LINE_BYTES + 1).as_bytes(), splits).1, Some(Flaw::Long(LINE_BYTES)));
    }
}

#[test]
fn a_picture_that_the_model_draws_is_named() {
    let url = "data:image/png;base64,aW1n";
    let picture = serde_json::json!({"type": "image_url", "image_url": {"url": url}});
    let drawn = serde_json::json!({"choices": [{"delta": {"content": "", "images": [picture]}}]});
    let (deltas, _) = parse(format!("data: {drawn}\n\n").as_bytes(), &[]);
    assert_eq!(deltas, [AnswerDelta::Picture]);
}
