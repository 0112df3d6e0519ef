//! Streamed tool calls in the format of each provider.

use serde_json::{Value, json};

use super::{
    AnswerDelta, AskOutcome, CallDelta, Reply, ask, wires,
    wires::{ProviderWire, anthropic, gemini, ollama, openai},
};

/// Two calls, and a third one without arguments.
fn calling(wire: &ProviderWire) -> Vec<String> {
    match wire.format {
        "openai" => {
            let chunk = |calls: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{calls}]}}}}]}}\n\n");
            vec![
                chunk(
                    r#"{"index":0,"id":"c1","type":"function","function":{"name":"kb__count","arguments":""},"extra_content":{"google":{"thought_signature":"c2ln"}}}"#,
                ),
                chunk(r#"{"index":0,"function":{"arguments":"{\"of\":"}}"#),
                chunk(r#"{"index":0,"function":{"arguments":"\"é😀\"}"}}"#),
                chunk(
                    r#"{"index":1,"id":"c2","type":"function","function":{"name":"kb__count","arguments":"{\"of\":"}}"#,
                ),
                chunk(r#"{"index":1,"function":{"arguments":"1}"}}"#),
                chunk(r#"{"index":2,"id":"c3","type":"function","function":{"name":"kb__list"}}"#),
                "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n".to_owned(),
            ]
        }
        "anthropic" => {
            let event = |kind: &str, fields: &str| format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{fields}}}\n\n");
            let start = |index: u8, block: &str| {
                event("content_block_start", &format!(r#","index":{index},"content_block":{block}"#))
            };
            let delta =
                |index: u8, delta: &str| event("content_block_delta", &format!(r#","index":{index},"delta":{delta}"#));
            let stop = |index: u8| event("content_block_stop", &format!(r#","index":{index}"#));
            vec![
                start(0, r#"{"type":"thinking","thinking":"","signature":""}"#),
                delta(0, r#"{"type":"thinking_delta","thinking":"hm"}"#),
                delta(0, r#"{"type":"signature_delta","signature":"c2ln"}"#),
                stop(0),
                start(1, r#"{"type":"redacted_thinking","data":"ZGF0YQ"}"#),
                stop(1),
                start(2, r#"{"type":"tool_use","id":"toolu_1","name":"kb__count","input":{}}"#),
                delta(2, r#"{"type":"input_json_delta","partial_json":""}"#),
                delta(2, r#"{"type":"input_json_delta","partial_json":"{\"of\":"}"#),
                delta(2, r#"{"type":"input_json_delta","partial_json":"\"é😀\"}"}"#),
                stop(2),
                start(3, r#"{"type":"tool_use","id":"toolu_2","name":"kb__count","input":{}}"#),
                delta(3, r#"{"type":"input_json_delta","partial_json":"{\"of\":"}"#),
                delta(3, r#"{"type":"input_json_delta","partial_json":"1}"}"#),
                stop(3),
                start(4, r#"{"type":"tool_use","id":"toolu_3","name":"kb__list","input":{}}"#),
                stop(4),
                event("message_delta", r#","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}"#),
                event("message_stop", ""),
            ]
        }
        "gemini" => {
            let parts = |parts: &str, rest: &str| {
                format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{parts}]}}{rest}}}]}}\r\n\r\n")
            };
            vec![
                // Both come without an id.
                parts(r#"{"functionCall":{"name":"kb__count","args":{"of":"é😀"}},"thoughtSignature":"c2ln"}"#, ""),
                parts(
                    r#"{"functionCall":{"name":"kb__count","args":{"of":1}}},{"functionCall":{"name":"kb__list"}}"#,
                    r#","finishReason":"STOP""#,
                ),
            ]
        }
        _ => {
            let line = |calls: &str, rest: &str| {
                format!("{{\"message\":{{\"content\":\"\",\"tool_calls\":[{calls}]}},{rest}}}\n")
            };
            vec![
                line(r#"{"function":{"name":"kb__count","arguments":{"of":"é😀"}}}"#, r#""done":false"#),
                line(
                    r#"{"function":{"name":"kb__count","arguments":{"of":1}}},{"function":{"name":"kb__list","arguments":{}}}"#,
                    r#""done":false"#,
                ),
                "{\"message\":{\"content\":\"\"},\"done\":true,\"eval_count\":7}\n".to_owned(),
            ]
        }
    }
}

fn call_start(index: usize, name: &str, arguments: &str) -> AnswerDelta {
    let name = Some(name.to_owned());
    AnswerDelta::Call(CallDelta { index, name, arguments: arguments.to_owned(), signature: None })
}

fn call_piece(index: usize, arguments: &str) -> AnswerDelta {
    AnswerDelta::Call(CallDelta { index, arguments: arguments.to_owned(), ..CallDelta::default() })
}

/// Returns the delta with the data that the provider needs back.
fn with_signature(delta: AnswerDelta, signature: Value) -> AnswerDelta {
    match delta {
        AnswerDelta::Call(delta) => AnswerDelta::Call(CallDelta { signature: Some(signature), ..delta }),
        _ => delta,
    }
}

fn expected(wire: &ProviderWire) -> Vec<AnswerDelta> {
    let streamed = [
        call_start(0, "kb__count", ""),
        call_piece(0, r#"{"of":"#),
        call_piece(0, r#""é😀"}"#),
        call_start(1, "kb__count", r#"{"of":"#),
        call_piece(1, "1}"),
        call_start(2, "kb__list", ""),
    ];
    match wire.format {
        "openai" => {
            let mut deltas = streamed.to_vec();
            let signature = json!({"extra_content": {"google": {"thought_signature": "c2ln"}}});
            deltas.push(with_signature(call_piece(0, ""), signature));
            deltas
        }
        "anthropic" => {
            let mut deltas = vec![AnswerDelta::Reasoning("hm".to_owned())];
            deltas.extend(streamed);
            deltas[4] = call_start(1, "kb__count", "");
            deltas.insert(5, call_piece(1, r#"{"of":"#));
            let thinking = json!([
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "ZGF0YQ"},
            ]);
            deltas[1] = with_signature(deltas[1].clone(), thinking);
            deltas
        }
        "gemini" => vec![
            with_signature(call_start(0, "kb__count", r#"{"of":"é😀"}"#), json!("c2ln")),
            call_start(1, "kb__count", r#"{"of":1}"#),
            call_start(2, "kb__list", ""),
        ],
        _ => vec![
            call_start(0, "kb__count", r#"{"of":"é😀"}"#),
            call_start(1, "kb__count", r#"{"of":1}"#),
            call_start(2, "kb__list", "{}"),
        ],
    }
}

/// Returns the deltas of a complete answer, without its end.
#[track_caller]
fn complete_deltas(mut outcome: AskOutcome, provider: &str) -> Vec<AnswerDelta> {
    assert!(outcome.error.is_none(), "{provider}: {outcome:?}");
    assert!(matches!(outcome.deltas.pop(), Some(AnswerDelta::End(..))), "{provider}");
    outcome.deltas
}

#[tokio::test]
async fn calls_arrive_in_the_providers_pieces() {
    for wire in wires() {
        let outcome = ask(&wire, &[], vec![wire.reply().chunks(&calling(&wire))]).await;
        assert_eq!(complete_deltas(outcome, wire.provider), expected(&wire), "{}", wire.provider);
    }
}

#[tokio::test]
async fn calls_in_one_chunk_or_byte_by_byte_are_the_same_calls() {
    for wire in wires() {
        let all = calling(&wire).concat();
        let characters: Vec<String> = all.chars().map(String::from).collect();
        for reply in [wire.reply().chunk(all.as_str()), wire.reply().chunks(&characters)] {
            let outcome = ask(&wire, &[], vec![reply]).await;
            assert_eq!(complete_deltas(outcome, wire.provider), expected(&wire), "{}", wire.provider);
        }
    }
}

#[tokio::test]
async fn a_truncated_call_is_an_error_at_every_offset() {
    for wire in wires() {
        let all = calling(&wire);
        // Anthropic's last event but one has the reason of the end already.
        let complete = if wire.format == "anthropic" { all.len() - 1 } else { all.len() };
        for count in 1..complete {
            let outcome = ask(&wire, &["--model-retries=0"], vec![wire.reply().chunks(&all[..count])]).await;
            assert_eq!(outcome.code(), Some("model_broken_stream"), "{} {count}: {outcome:?}", wire.provider);
            let expected = expected(&wire);
            assert!(count + 1 < all.len() || !outcome.deltas.is_empty(), "{}: no delta was returned", wire.provider);
            assert!(expected.starts_with(&outcome.deltas), "{} {count}: {outcome:?}", wire.provider);
        }
    }
}

#[tokio::test]
async fn an_argument_named_error_is_no_provider_error() {
    let truncated = [
        (gemini(), r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"log","args":{"error":"x"}}}]}}]}"#.to_owned() + "\r\n\r\n"),
        (ollama(), r#"{"message":{"tool_calls":[{"function":{"name":"log","arguments":{"error":"x"}}}]},"done":false}"#.to_owned() + "\n"),
        (openai(), r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"log","arguments":{"error":"x"}}}]}}]}"#.to_owned() + "\n\n"),
    ];
    for (wire, chunk) in truncated {
        let outcome = ask(&wire, &[], vec![wire.reply().chunk(chunk)]).await;
        assert_eq!(outcome.deltas, [call_start(0, "log", r#"{"error":"x"}"#)], "{}", wire.provider);
        assert_eq!(outcome.code(), Some("model_broken_stream"), "{}: {}", wire.provider, outcome.message());
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_are_passed_on_as_they_are() {
    let malformed = r#"{\"of\": oops"#;
    let openai_chunks = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"c\",\"function\":{{\"name\":\"t\",\"arguments\":\"{malformed}\"}}}}]}},\"finish_reason\":\"length\"}}]}}\n\n"
    );
    let outcome = ask(&openai(), &[], vec![openai().reply().chunk(openai_chunks)]).await;
    assert_eq!(complete_deltas(outcome, "openai"), [call_start(0, "t", r#"{"of": oops"#)]);

    let anthropic_chunks = format!(
        "event: content_block_start\ndata: {{\"index\":0,\"content_block\":{{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"t\",\"input\":{{}}}}}}\n\nevent: content_block_delta\ndata: {{\"index\":0,\"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":\"{malformed}\"}}}}\n\nevent: message_stop\ndata: {{}}\n\n"
    );
    let outcome = ask(&anthropic(), &[], vec![anthropic().reply().chunk(anthropic_chunks)]).await;
    assert_eq!(complete_deltas(outcome, "anthropic"), [call_start(0, "t", ""), call_piece(0, r#"{"of": oops"#)]);
}

#[tokio::test]
async fn a_call_that_gemini_could_not_parse_is_retried() {
    let failed = Reply::new(200, "text/event-stream")
        .chunk("data: {\"candidates\":[{\"content\":{},\"finishReason\":\"MALFORMED_FUNCTION_CALL\"}]}\r\n\r\n");
    let outcome = ask(&gemini(), &[], vec![failed.clone(), gemini().complete_reply()]).await;
    assert_eq!(outcome.deltas, gemini().deltas());
    let outcome = ask(&gemini(), &["--model-retries=0"], vec![failed]).await;
    assert_eq!(outcome.code(), Some("model_broken_stream"));
    assert!(outcome.message().contains("MALFORMED_FUNCTION_CALL"), "{}", outcome.message());
}
