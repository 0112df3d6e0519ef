//! A complete answer, and the request for it.

use futures::StreamExt;
use holdfast_shared::{
    agent::{ModelOptions, ReasoningEffort},
    finish_reason::FinishReason,
};
use serde_json::{Value, json};

use super::{
    AnswerDelta, AskOutcome, FakeProvider, Reply, Request, ask, connect, user, wires,
    wires::{ProviderWire, anthropic, gemini, ollama, openai, vertex_claude, vertex_gemini},
};

async fn ask_complete(wire: &ProviderWire, flags: &[&str]) -> AskOutcome {
    let outcome = ask(wire, flags, vec![wire.complete_reply()]).await;
    assert_eq!(outcome.error.as_ref().map(ToString::to_string), None, "{}", wire.provider);
    outcome
}

#[tokio::test]
async fn deltas_come_in_order_one_by_one_with_reasoning_and_usage() {
    for wire in wires() {
        assert_eq!(ask_complete(&wire, &[]).await.deltas, wire.deltas(), "{}", wire.provider);
    }
}

#[tokio::test]
async fn an_answer_in_one_piece_or_byte_by_byte_is_the_same_answer() {
    for wire in wires() {
        let all = [&wire.begin[..], &wire.rest, &wire.end].concat().concat();
        let in_one_piece = ask(&wire, &[], vec![wire.reply().chunk(all.as_str())]).await;
        assert_eq!(in_one_piece.deltas, wire.deltas(), "{}", wire.provider);
        let characters: Vec<String> = all.chars().map(String::from).collect();
        let one_by_one = ask(&wire, &[], vec![wire.reply().chunks(&characters)]).await;
        assert_eq!(one_by_one.deltas, wire.deltas(), "{}", wire.provider);
    }
}

/// Checks the request line, a header, and the body of the request.
async fn check_request(wire: ProviderWire, flags: &[&str], line: &str, header: &str, body: Value) {
    let request = ask_complete(&wire, flags).await.requests.remove(0);
    assert_eq!(request.head.lines().next(), Some(line));
    assert!(request.head.contains(header), "{}", request.head);
    assert_eq!(request.body, body);
}

#[tokio::test]
async fn openai_is_asked_for_a_stream_with_usage() {
    let body = json!({
        "model": "some-model",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello"},
            {"role": "user", "content": "And now?"},
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 99,
    });
    let flags = ["--model-max-tokens=99"];
    check_request(openai(), &flags, "POST /chat/completions HTTP/1.1", "authorization: bearer secret-key", body).await;
}

/// Returns a block of Anthropic's with a text, up to which the provider keeps the prompt.
fn marked(text: &str) -> Value {
    json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}])
}

#[tokio::test]
async fn anthropic_is_asked_with_the_system_prompt_in_its_own_field() {
    let body = json!({
        "model": "some-model",
        "stream": true,
        "system": marked("Be brief."),
        "messages": [
            {"role": "user", "content": marked("Hi")},
            {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]},
            {"role": "user", "content": marked("And now?")},
        ],
        "max_tokens": 99,
    });
    let flags = ["--model-max-tokens=99"];
    check_request(anthropic(), &flags, "POST /v1/messages HTTP/1.1", "x-api-key: secret-key", body).await;
}

#[tokio::test]
async fn gemini_is_asked_with_the_system_prompt_as_an_instruction() {
    let body = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"text": "Hello"}]},
            {"role": "user", "parts": [{"text": "And now?"}]},
        ],
        "generationConfig": {"maxOutputTokens": 99},
    });
    let line = "POST /v1beta/models/some-model:streamGenerateContent?alt=sse HTTP/1.1";
    check_request(gemini(), &["--model-max-tokens=99"], line, "x-goog-api-key: secret-key", body).await;
}

const VERTEX_PATH: &str = "POST /v1/projects/a-project/locations/europe-west1/publishers";

#[tokio::test]
async fn vertex_is_asked_for_gemini_at_googles_address() {
    let body = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"text": "Hello"}]},
            {"role": "user", "parts": [{"text": "And now?"}]},
        ],
        "generationConfig": {"maxOutputTokens": 99},
    });
    let line = format!("{VERTEX_PATH}/google/models/gemini-some-model:streamGenerateContent?alt=sse HTTP/1.1");
    let flags = ["--model-max-tokens=99", "--vertex-location=europe-west1"];
    check_request(vertex_gemini(), &flags, &line, "authorization: bearer secret-key", body).await;
}

#[tokio::test]
async fn vertex_is_asked_for_claude_at_anthropics_address_without_the_name_of_the_model() {
    let body = json!({
        "anthropic_version": "vertex-2023-10-16",
        "stream": true,
        "system": marked("Be brief."),
        "messages": [
            {"role": "user", "content": marked("Hi")},
            {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]},
            {"role": "user", "content": marked("And now?")},
        ],
        "max_tokens": 99,
    });
    let line = format!("{VERTEX_PATH}/anthropic/models/claude-some-model:streamRawPredict HTTP/1.1");
    let flags = ["--model-max-tokens=99", "--vertex-location=europe-west1"];
    check_request(vertex_claude(), &flags, &line, "authorization: bearer secret-key", body).await;
}

#[tokio::test]
async fn ollama_is_asked_with_the_system_prompt_as_the_first_message() {
    let body = json!({
        "model": "some-model",
        "stream": true,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello"},
            {"role": "user", "content": "And now?"},
        ],
        "options": {"num_predict": 99},
    });
    check_request(ollama(), &["--model-max-tokens=99"], "POST /api/chat HTTP/1.1", "content-type", body).await;
}

#[tokio::test]
async fn a_slash_at_the_end_of_the_address_makes_no_difference() {
    for wire in wires() {
        let mut lines = Vec::new();
        for path in ["/proxy/v9", "/proxy/v9/"] {
            let provider = FakeProvider::start(vec![wire.complete_reply()]).await;
            let model = super::connect(&wire.config(&format!("{}{path}", provider.url), &[])).unwrap();
            let _answer = model.ask(&super::request()).await.unwrap_or_else(|error| panic!("{error}"));
            lines.push(provider.requests()[0].head.lines().next().unwrap().to_owned());
        }
        assert!(lines[0].starts_with("POST /proxy/v9/"), "{}", lines[0]);
        assert_eq!(lines[0], lines[1]);
    }
}

#[tokio::test]
async fn no_key_is_needed_at_a_configured_address() {
    for wire in wires() {
        let flag = format!("--{}-api-key=", wire.provider);
        if wire.provider == "ollama" {
            continue;
        }
        let provider = FakeProvider::start(vec![wire.complete_reply()]).await;
        let mut config = wire.config(&provider.url, &[]);
        (config.openai_api_key, config.anthropic_api_key, config.gemini_api_key) = (None, None, None);
        config.vertex.vertex_api_key = None;
        let model = super::connect(&config).unwrap_or_else(|error| panic!("{flag}: {error}"));
        let _answer = model.ask(&super::request()).await.unwrap_or_else(|error| panic!("{error}"));
        let head = &provider.requests()[0].head;
        assert!(!head.contains("authorization"), "{head}");
        let key = ask_complete(&wire, &[]).await.requests.remove(0);
        assert_eq!(head.lines().next(), key.head.lines().next(), "the key does not change the address");
    }
}

#[tokio::test]
async fn openais_answer_may_end_without_a_word_after_the_finish_reason() {
    let wire = openai();
    let replies = vec![wire.reply().chunks(&wire.begin).chunk(&wire.end[0])];
    let outcome = ask(&wire, &[], replies).await;
    assert!(matches!(outcome.deltas[..], [_, _, AnswerDelta::End(..)]), "{outcome:?}");
}

#[tokio::test]
async fn a_refusal_of_openais_is_text() {
    let wire = openai();
    let refusal = "data: {\"choices\":[{\"delta\":{\"refusal\":\"No.\"},\"finish_reason\":\"stop\"}]}\n\n";
    let outcome = ask(&wire, &[], vec![Reply::new(200, wire.content_type).chunk(refusal)]).await;
    assert_eq!(outcome.deltas[0], AnswerDelta::Text("No.".to_owned()));
}

/// Returns the finish reason of a wire's answer when its provider sends `raw` instead of its usual word.
async fn reason_of(wire: &super::ProviderWire, usual: &str, raw: &str) -> FinishReason {
    let end = wire.end.iter().map(|chunk| chunk.replace(&format!("\"{usual}\""), &format!("\"{raw}\"")));
    let replies = vec![wire.reply().chunks(&wire.begin).chunks(&end.collect::<Vec<_>>())];
    match ask(wire, &[], replies).await.deltas.pop() {
        Some(AnswerDelta::End(_, reason)) => reason,
        other => panic!("{} {raw}: {other:?}", wire.provider),
    }
}

#[tokio::test]
async fn every_provider_says_in_its_own_words_why_the_answer_ends() {
    use FinishReason::{ContentFilter, Length, Other, Stop, ToolCalls};
    let cases = [
        (
            openai(),
            "stop",
            vec![("stop", Stop), ("length", Length), ("tool_calls", ToolCalls), ("function_call", ToolCalls)],
        ),
        (openai(), "stop", vec![("content_filter", ContentFilter), ("max_tokens", Length), ("bored", Other)]),
        (anthropic(), "end_turn", vec![("end_turn", Stop), ("stop_sequence", Stop), ("max_tokens", Length)]),
        (anthropic(), "end_turn", vec![("refusal", ContentFilter), ("tool_use", ToolCalls), ("pause_turn", Other)]),
        (anthropic(), "end_turn", vec![("model_context_window_exceeded", Length), ("a_new_one", Other)]),
        (gemini(), "STOP", vec![("STOP", Stop), ("MAX_TOKENS", Length), ("SAFETY", ContentFilter)]),
        (gemini(), "STOP", vec![("PROHIBITED_CONTENT", ContentFilter), ("OTHER", Other)]),
        (ollama(), "stop", vec![("stop", Stop), ("length", Length), ("unload", Other)]),
    ];
    for (wire, usual, reasons) in cases {
        for (raw, expected) in reasons {
            assert_eq!(reason_of(&wire, usual, raw).await, expected, "{} says {raw}", wire.provider);
        }
    }
}

#[tokio::test]
async fn halves_of_a_character_in_two_pieces_are_one_character() {
    let pieces = [r"Hi \ud83d", r"\ude00 there"];
    let gemini_chunk = |text: &str| {
        format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}]}}}}]}}\r\n\r\n")
    };
    let anthropic_chunk = |text: &str| {
        format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
        )
    };
    let ollama_chunk = |text: &str| format!("{{\"message\":{{\"content\":\"{text}\"}},\"done\":false}}\n");
    let cases = [
        (gemini(), pieces.map(gemini_chunk)),
        (anthropic(), pieces.map(anthropic_chunk)),
        (ollama(), pieces.map(ollama_chunk)),
    ];
    for (wire, [first, second]) in cases {
        let outcome = ask(&wire, &["--model-retries=0"], vec![wire.reply().chunk(first).chunk(second)]).await;
        assert_eq!(text_of(&outcome.deltas), "Hi 😀 there", "{}", wire.provider);
    }
}

#[tokio::test]
async fn ollamas_models_may_write_their_reasoning_into_the_text() {
    let chunk = |text: &str| format!("{{\"message\":{{\"content\":\"{text}\"}},\"done\":false}}\n");
    let end = "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n";
    let reply = ollama().reply().chunk(chunk("<th")).chunk(chunk("ink>hm</think>Hello")).chunk(end);
    let outcome = ask(&ollama(), &[], vec![reply]).await;
    assert_eq!(outcome.deltas[0], AnswerDelta::Reasoning("hm".to_owned()));
    assert_eq!(text_of(&outcome.deltas), "Hello");
}

fn text_of(deltas: &[AnswerDelta]) -> String {
    let texts = deltas.iter().filter_map(|delta| match delta {
        AnswerDelta::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[tokio::test]
async fn an_answer_that_is_complete_but_for_its_end_mark_survives_a_lost_connection() {
    for (wire, without) in [(openai(), 1), (anthropic(), 1), (gemini(), 0)] {
        let end = &wire.end[..wire.end.len() - without];
        let reply = wire.reply().chunks(&wire.begin).chunks(&wire.rest).chunks(end).then_cut();
        let outcome = ask(&wire, &["--model-retries=0"], vec![reply]).await;
        assert_eq!(outcome.error.as_ref().map(ToString::to_string), None, "{}", wire.provider);
        assert_eq!(text_of(&outcome.deltas), "Hello wörld", "{}", wire.provider);
    }
}

#[tokio::test]
async fn an_ollama_model_that_cannot_think_is_asked_without_and_this_is_remembered() {
    let refused = Reply::json(400, r#"{"error":"\"llama3.2\" does not support thinking"}"#);
    let provider = FakeProvider::start(vec![refused, ollama().complete_reply(), ollama().complete_reply()]).await;
    let model = connect(&ollama().config(&provider.url, &["--model-retries=0"])).unwrap();
    let options = ModelOptions { reasoning_effort: Some(ReasoningEffort::High), ..ModelOptions::default() };
    let request = Request { turns: vec![user("Hi")], options, ..Request::default() };
    for _ in 0..2 {
        let answer = model.ask(&request).await.unwrap_or_else(|error| panic!("{error}"));
        let _: Vec<_> = answer.collect().await;
    }
    let thinks: Vec<bool> = provider.requests().iter().map(|request| request.body.get("think").is_some()).collect();
    assert_eq!(thinks, [true, false, false]);
}
