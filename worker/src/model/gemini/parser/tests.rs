//! Answers as Gemini and its gateways send them, at the seams of the parser.

use serde_json::json;

use super::*;

fn chunk(parts: Value, reason: Option<&str>) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason}]})
}

fn text(text: &str) -> AnswerDelta {
    AnswerDelta::Text(text.to_owned())
}

/// Parses chunks as events, in one piece and byte by byte.
fn parse(chunks: &[Value]) -> (Vec<AnswerDelta>, Option<StreamFlaw>) {
    parse_body(&chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect::<String>())
}

fn parse_body(body: &str) -> (Vec<AnswerDelta>, Option<StreamFlaw>) {
    let parse_in = |size: usize| {
        let (mut parser, mut deltas) = (GeminiParser::default(), VecDeque::new());
        let fed = body.as_bytes().chunks(size).try_for_each(|piece| parser.feed(piece, &mut deltas));
        let flaw = fed.and_then(|()| parser.finish(&mut deltas)).err();
        (Vec::from(deltas), flaw)
    };
    let parsed = parse_in(body.len().max(1));
    assert_eq!(parse_in(1), parsed, "{body}");
    parsed
}

fn end(reason: FinishReason) -> AnswerDelta {
    AnswerDelta::End(Usage::default(), reason)
}

#[test]
fn only_the_end_of_the_body_ends_the_answer() {
    let each = ["One ", "two ", "three"].map(|word| chunk(json!([{"text": word}]), Some("STOP")));
    assert_eq!(parse(&each), (vec![text("One "), text("two "), text("three"), end(FinishReason::Stop)], None));
    let call = |name: &str| json!([{"functionCall": {"name": name, "args": {}}}]);
    let after = [chunk(json!([{"text": ""}]), Some("STOP")), chunk(call("a"), None), chunk(call("b"), Some("STOP"))];
    let (deltas, flaw) = parse(&after);
    let names: Vec<_> = deltas
        .iter()
        .filter_map(|delta| match delta {
            AnswerDelta::Call(call) => Some((call.index, call.name.as_deref()?)),
            _ => None,
        })
        .collect();
    assert_eq!((names, flaw), (vec![(0, "a"), (1, "b")], None));
    assert_eq!(deltas.last(), Some(&end(FinishReason::ToolCalls)));
    let cut = [chunk(json!([{"text": "One"}]), None)];
    assert_eq!(parse(&cut), (vec![text("One")], Some(StreamFlaw::Truncated)));
}

#[test]
fn another_reason_counts_more_than_stop() {
    let chunks = [chunk(json!([{"text": "a"}]), Some("MAX_TOKENS")), chunk(json!([]), Some("STOP"))];
    assert_eq!(parse(&chunks).0.last(), Some(&end(FinishReason::Length)));
    let chunks = [chunk(json!([{"text": "a"}]), Some("STOP")), chunk(json!([]), Some("SAFETY"))];
    assert_eq!(parse(&chunks).0.last(), Some(&end(FinishReason::ContentFilter)));
}

#[test]
fn chunks_without_candidates_and_parts_without_text_add_nothing() {
    let chunks = [
        json!({"usageMetadata": {"promptTokenCount": 9.0, "cachedContentTokenCount": 4}}),
        json!({"candidates": []}),
        json!({"candidates": [{}], "promptFeedback": {"safetyRatings": []}}),
        chunk(json!([{"thoughtSignature": "c2ln"}, {"executableCode": {"code": "1"}}, {"text": ""}, {}]), None),
        chunk(json!([{"text": "Hi"}]), Some("FINISH_REASON_UNSPECIFIED")),
        json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"candidatesTokenCount": 2, "thoughtsTokenCount": 3, "promptTokenCount": null}}),
    ];
    let usage = Usage { input_tokens: 9, output_tokens: 5, cached_tokens: 4, reasoning_tokens: 3 };
    assert_eq!(parse(&chunks), (vec![text("Hi"), AnswerDelta::End(usage, FinishReason::Stop)], None));
}

#[test]
fn a_list_of_chunks_and_a_single_one_are_answers_too() {
    let chunks = [chunk(json!([{"text": "Hello "}]), None), chunk(json!([{"text": "you"}]), Some("STOP"))];
    let list = serde_json::to_string_pretty(&chunks).unwrap();
    assert_eq!(parse_body(&list), (vec![text("Hello "), text("you"), end(FinishReason::Stop)], None));
    assert_eq!(parse_body(&chunks[1].to_string()).0, [text("you"), end(FinishReason::Stop)]);
    assert!(matches!(parse_body(r#"[{"error":{"code":400}}]"#).1, Some(StreamFlaw::ProviderError(_))));
    assert!(matches!(parse_body(r#"{"ok":true}"#).1, Some(StreamFlaw::NotAStream(_))));
}

#[test]
fn a_call_that_cannot_be_read_is_asked_for_again_after_thoughts_alone() {
    let malformed = chunk(json!([]), Some("MALFORMED_FUNCTION_CALL"));
    let failed = Some(StreamFlaw::FailedCall("MALFORMED_FUNCTION_CALL".to_owned()));
    assert_eq!(parse(std::slice::from_ref(&malformed)), (vec![], failed.clone()));
    let after_text = [chunk(json!([{"text": "So"}]), None), malformed.clone()];
    assert_eq!(parse(&after_text), (vec![text("So")], failed.clone()));

    let (mut parser, mut deltas, mut body) = (GeminiParser::default(), VecDeque::new(), json!({"contents": []}));
    let thought = chunk(json!([{"text": "hm", "thought": true}]), None);
    let bytes = format!("data: {thought}\n\ndata: {malformed}\n\n");
    parser.feed(bytes.as_bytes(), &mut deltas).unwrap();
    parser.finish(&mut deltas).unwrap();
    assert!(parser.continues(&mut body).is_some());
    assert_eq!(body, json!({"contents": []}), "the request is the same");
    parser.feed(bytes.as_bytes(), &mut deltas).unwrap();
    assert_eq!(parser.finish(&mut deltas).err(), failed, "two tries are enough");
}

#[test]
fn a_picture_that_the_model_draws_is_named() {
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "aW1n"}});
    let drawn = [chunk(json!([{"text": "Here"}, picture]), None), chunk(json!([]), Some("STOP"))];
    assert_eq!(parse(&drawn).0[..2], [text("Here"), AnswerDelta::Picture]);
}

#[test]
fn a_blocked_prompt_is_a_flaw_that_says_why() {
    let blocked = [json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})];
    assert_eq!(parse(&blocked), (vec![], Some(StreamFlaw::Blocked("PROHIBITED_CONTENT".to_owned()))));
}
