//! Answers as Anthropic and compatible servers send them, at the seams of the parser.

use holdfast_shared::finish_reason::FinishReason;

use super::*;

fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default())
}

fn start(index: u64, block: Value) -> String {
    event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn delta(index: u64, delta: Value) -> String {
    event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn stop(index: u64) -> String {
    event(&json!({"type": "content_block_stop", "index": index}))
}

fn end(reason: &str) -> String {
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}});
    event(&delta) + &event(&json!({"type": "message_stop"}))
}

/// Parses a body, in one piece and byte by byte, and returns its deltas without the end's tokens.
fn parse(body: &str) -> (Vec<AnswerDelta>, Option<StreamFlaw>) {
    let parse_in = |size: usize| {
        let (mut parser, mut deltas) = (ClaudeParser::default(), VecDeque::new());
        let fed = body.as_bytes().chunks(size).try_for_each(|piece| parser.feed(piece, &mut deltas));
        let flaw = fed.and_then(|()| parser.finish(&mut deltas)).err();
        (Vec::from(deltas), flaw)
    };
    let parsed = parse_in(body.len().max(1));
    assert_eq!(parse_in(1), parsed, "{body}");
    parsed
}

/// Returns the joined arguments of each call, by its name.
fn calls_of(body: &str) -> Vec<(String, String)> {
    let (deltas, flaw) = parse(body);
    assert_eq!(flaw, None, "{body}");
    let mut calls: Vec<(String, String)> = Vec::new();
    for delta in deltas {
        if let AnswerDelta::Call(CallDelta { index, name, arguments, .. }) = delta {
            if let Some(name) = name {
                assert_eq!(index, calls.len());
                calls.push((name, String::new()));
            }
            calls[index].1.push_str(&arguments);
        }
    }
    calls
}

fn call(name: &str, arguments: &str) -> (String, String) {
    (name.to_owned(), arguments.to_owned())
}

#[test]
fn an_input_that_comes_with_its_call_counts_unless_pieces_follow() {
    let tool = |input: Value| json!({"type": "tool_use", "id": "t", "name": "f", "input": input});
    let whole = start(0, tool(json!({"of": 1}))) + &stop(0) + &end("tool_use");
    assert_eq!(calls_of(&whole), [call("f", r#"{"of":1}"#)]);
    let text = start(0, tool(json!("{\"of\": 1}"))) + &end("tool_use");
    assert_eq!(calls_of(&text), [call("f", r#"{"of": 1}"#)], "without an end of the block");
    let piece = delta(0, json!({"type": "input_json_delta", "partial_json": "{\"of\":2}"}));
    let both = start(0, tool(json!({"of": 1}))) + &piece + &stop(0) + &end("tool_use");
    assert_eq!(calls_of(&both), [call("f", r#"{"of":2}"#)]);
    let empty_piece = delta(0, json!({"type": "input_json_delta", "partial_json": ""}));
    let empty = start(0, tool(json!({"of": 1}))) + &empty_piece + &stop(0) + &end("tool_use");
    assert_eq!(calls_of(&empty), [call("f", r#"{"of":1}"#)]);
    let none = start(0, json!({"type": "tool_use", "name": "f"})) + &stop(0) + &end("tool_use");
    assert_eq!(calls_of(&none), [call("f", "")]);
    let object = delta(0, json!({"type": "input_json_delta", "partial_json": {"of": 3}}));
    assert_eq!(calls_of(&(start(0, tool(json!({}))) + &object + &end("tool_use"))), [call("f", r#"{"of":3}"#)]);
}

#[test]
fn pieces_of_two_calls_may_alternate() {
    let tool = |name: &str| json!({"type": "tool_use", "id": name, "name": name, "input": {}});
    let piece = |index: u64, text: &str| delta(index, json!({"type": "input_json_delta", "partial_json": text}));
    let body = start(0, tool("a")) + &start(1, tool("b")) + &piece(0, "{\"x\"") + &piece(1, "{}") + &piece(0, ":1}");
    assert_eq!(calls_of(&(body + &stop(0) + &stop(1) + &end("tool_use"))), [call("a", "{\"x\":1}"), call("b", "{}")]);
}

#[test]
fn each_call_has_the_thinking_before_it() {
    let thinking = |text: &str| json!({"type": "thinking", "thinking": text, "signature": text});
    let tool = json!({"type": "tool_use", "id": "t", "name": "f", "input": {}});
    let body = start(0, thinking("a")) + &stop(0) + &start(1, json!({"type": "redacted_thinking", "data": "b"}));
    let body = body
        + &start(2, tool.clone())
        + &stop(2)
        + &start(3, thinking("c"))
        + &start(4, tool.clone())
        + &start(5, tool);
    let signatures: Vec<Option<Value>> = parse(&(body + &end("tool_use")))
        .0
        .into_iter()
        .filter_map(|delta| match delta {
            AnswerDelta::Call(call) => Some(call.signature),
            _ => None,
        })
        .collect();
    let first = json!([thinking("a"), {"type": "redacted_thinking", "data": "b"}]);
    assert_eq!(signatures, [Some(first), Some(json!([thinking("c")])), None]);
}

#[test]
fn an_answer_that_is_one_message_is_read() {
    let message = json!({"type": "message", "role": "assistant", "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 6},
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hi"}, {"type": "tool_use", "name": "f", "input": {"a": 1}}]});
    let body = serde_json::to_string_pretty(&message).unwrap();
    let (deltas, flaw) = parse(&body);
    assert_eq!(flaw, None);
    let usage = Usage { input_tokens: 14, output_tokens: 4, cached_tokens: 5, reasoning_tokens: 0 };
    assert_eq!(deltas[..2], [AnswerDelta::Reasoning("hm".into()), AnswerDelta::Text("Hi".into())]);
    assert_eq!(deltas.last(), Some(&AnswerDelta::End(usage, FinishReason::ToolCalls)));
    assert_eq!(calls_of(&body), [call("f", r#"{"a":1}"#)]);
    assert!(matches!(parse(r#"{"error":{"message":"no"}}"#).1, Some(StreamFlaw::ProviderError(_))));
    assert!(matches!(parse("<html>").1, Some(StreamFlaw::NotAStream(_))));
}

#[test]
fn deltas_without_types_starts_and_indices_are_read() {
    let body = "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"Hi\"}}\n\n\
                data: {\"type\":\"ping\"}\n\ndata: {\"type\":\"new_kind\",\"x\":1}\n\n\
                data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n";
    let (deltas, flaw) = parse(body);
    assert_eq!(flaw, None, "a stop reason is an end, even without `message_stop`");
    assert_eq!(deltas, [AnswerDelta::Text("Hi".into()), AnswerDelta::End(Usage::default(), FinishReason::Stop)]);
}

#[test]
fn a_call_without_a_name_is_a_flaw() {
    let nameless = start(0, json!({"type": "tool_use", "input": {}}));
    assert_eq!(parse(&nameless).1, Some(StreamFlaw::NamelessCall));
    let piece = delta(0, json!({"type": "input_json_delta", "partial_json": "{}"}));
    assert_eq!(parse(&piece).1, Some(StreamFlaw::NamelessCall));
}

#[test]
fn tools_that_the_provider_executes_are_no_calls_of_ours() {
    let search = start(0, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}));
    let query = delta(0, json!({"type": "input_json_delta", "partial_json": "{\"query\":1}"}));
    let found = start(1, json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []}));
    assert_eq!(calls_of(&(search + &query + &stop(0) + &found + &stop(1) + &end("end_turn"))), []);
}

#[test]
fn a_paused_answer_continues_with_what_came() {
    let mut parser = ClaudeParser::default();
    let mut deltas = VecDeque::new();
    let search = start(1, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}));
    let query = delta(1, json!({"type": "input_json_delta", "partial_json": "{\"query\":1}"}));
    let text = |text: &str| start(0, json!({"type": "text", "text": text}));
    let paused = text("Let me see. ") + &search + &query + &end("pause_turn");
    parser.feed(paused.as_bytes(), &mut deltas).unwrap();
    parser.finish(&mut deltas).unwrap();
    let asked = json!({"role": "user", "content": "q"});
    let mut body = json!({"messages": [asked]});
    assert!(parser.continues(&mut body).is_some());
    let written = json!([{"type": "text", "text": "Let me see."},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": 1}}]);
    assert_eq!(body["messages"], json!([asked, {"role": "assistant", "content": written}]));
    parser.feed((text(" ") + &end("pause_turn")).as_bytes(), &mut deltas).unwrap();
    assert!(parser.continues(&mut body).is_some());
    assert_eq!(body["messages"].as_array().unwrap().len(), 2, "the answer so far is one message");
    parser.feed((text("Found.") + &end("end_turn")).as_bytes(), &mut deltas).unwrap();
    assert!(parser.continues(&mut body).is_none());
    let usage = Usage { output_tokens: 21, ..Usage::default() };
    assert_eq!(deltas.back(), Some(&AnswerDelta::End(usage, FinishReason::Stop)));
}
