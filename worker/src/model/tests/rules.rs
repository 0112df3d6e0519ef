//! Requests against the rules of Anthropic and Gemini, as the providers' refusals state them.

use std::sync::Arc;

use holdfast_shared::{
    agent::{ModelOptions, ReasoningEffort},
    overrides::JsonFormat,
};
use serde_json::{Value, json};

use super::{
    Request, ToolRequest, ToolSpec, Turn, UserPart, ask_with, assistant,
    claude_cache::ClaudeCache,
    claude_rules, gemini_rules, user,
    wires::{ProviderWire, anthropic, gemini, vertex_claude, vertex_gemini},
};
use crate::model::{AnswerForm, ModelFile};

/// Returns the body of a request, which keeps the provider's rules.
async fn sent(request: &Request, wire: &ProviderWire) -> Value {
    let mut outcome = ask_with(request, wire, &[], vec![wire.complete_reply()]).await;
    assert!(outcome.error.is_none(), "{outcome:?}");
    let body = outcome.requests.remove(0).body;
    let kept = match wire.format {
        "anthropic" => claude_rules::check(&body),
        _ => gemini_rules::check(wire.model, &body),
    };
    assert_eq!(kept, Ok(()), "{body}");
    body
}

fn wires_with_rules() -> Vec<ProviderWire> {
    let models = |wire: fn() -> ProviderWire, models: &[&'static str]| {
        models.iter().map(|&model| ProviderWire { model, ..wire() }).collect::<Vec<_>>()
    };
    [
        models(anthropic, &["claude-sonnet-4-5", "claude-opus-4-7", "claude-3-5-haiku-latest", "glm-5"]),
        models(vertex_claude, &["claude-opus-4-6"]),
        models(gemini, &["gemini-2.0-flash", "gemini-2.5-pro", "gemini-3-pro"]),
        models(vertex_gemini, &["gemini-3-flash"]),
    ]
    .concat()
}

fn call(id: &str) -> ToolRequest {
    ToolRequest { id: id.into(), name: "kb__count".into(), input: json!("no object"), ..ToolRequest::default() }
}

fn outcome(id: &str, text: &str) -> Turn {
    Turn::Tool { call_id: id.into(), name: "kb__count".into(), text: text.into(), is_error: text.is_empty() }
}

fn tool(input_schema: Value) -> ToolSpec {
    ToolSpec { name: "kb__count".into(), description: String::new(), input_schema }
}

fn picture(data: String, instead: Option<&str>) -> UserPart {
    let (name, media_type) = ("a.png".into(), "image/png".into());
    UserPart::File(Arc::new(ModelFile { name, media_type, data: data.into(), instead: instead.map(Into::into) }))
}

/// Conversations that a provider refuses unless they are rewritten.
fn conversations() -> Vec<Vec<Turn>> {
    let calling = |text: &str, ids: &[&str]| Turn::Assistant {
        text: text.into(),
        calls: ids.iter().map(|id| call(id)).collect(),
    };
    let files = Turn::Files(vec![UserPart::Text("[a.png]".into()), picture("aW1n".into(), Some("[a.png]"))]);
    vec![
        vec![user("failed"), user("again")],
        vec![user("stopped"), assistant("  \n"), user("next")],
        vec![assistant("hello"), user(" ")],
        vec![user("q"), assistant("an answer that was cut \n")],
        vec![user("q"), calling(" ", &["c1", "c2"]), outcome("c1", "3"), outcome("c2", ""), files, user("hurry")],
        vec![user("q"), calling("so \n", &["c1"]), outcome("c1", " "), calling("", &["c2"]), outcome("c2", "4")],
        vec![Turn::User(vec![UserPart::Text("see".into()), picture("A".repeat(6 << 20), Some("[a.png]"))])],
    ]
}

fn schemas() -> [Value; 5] {
    [
        json!({}),
        json!({"type": "object", "$schema": "x", "properties": {"n": {"exclusiveMinimum": 0, "const": 1}}}),
        json!({"oneOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]}),
        json!({"type": "object", "required": ["$top"], "properties": {"$top": {"type": "integer", "minimum": 0, "exclusiveMinimum": true},
            "pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}}}),
        json!({"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "allOf": [{"not": {}}]}}}),
    ]
}

#[tokio::test]
async fn every_conversation_is_written_as_its_provider_takes_it() {
    for wire in wires_with_rules() {
        for turns in conversations() {
            for tools in [Vec::new(), schemas().map(tool).to_vec()] {
                sent(&Request { system: Some(" ".into()), turns: turns.clone(), tools, ..Request::default() }, &wire)
                    .await;
            }
        }
    }
}

#[tokio::test]
async fn every_option_is_written_as_its_provider_takes_it() {
    let effort = Some(ReasoningEffort::High);
    let all = [
        ModelOptions { temperature: Some(1.7), top_p: Some(0.5), stop: vec![" ".into()], ..ModelOptions::default() },
        ModelOptions { max_tokens: Some(500), reasoning_effort: effort, ..ModelOptions::default() },
        ModelOptions { temperature: Some(0.5), reasoning_effort: effort, ..ModelOptions::default() },
    ];
    let form = AnswerForm::Json(Arc::new(JsonFormat { name: "a".into(), schema: Some(json!({})), strict: true }));
    for wire in wires_with_rules() {
        for options in &all {
            // The last one, with a large picture, has no options to try.
            for turns in conversations().into_iter().take(6) {
                let (options, form, tools) = (options.clone(), form.clone(), vec![tool(json!({}))]);
                sent(&Request { turns, options, form, tools, ..Request::default() }, &wire).await;
            }
        }
    }
}

/// The request of a step in a loop: 4,000 tokens of instructions and tools, and an outcome of 300 tokens for each call before.
fn step(number: usize, calls: usize) -> Request {
    let mut turns = vec![user("Look into it.")];
    for n in 1..number {
        let ids: Vec<String> = (0..calls).map(|call| format!("call_{n}_{call}")).collect();
        turns.push(Turn::Assistant { text: format!("Step {n}."), calls: ids.iter().map(|id| call(id)).collect() });
        turns.extend(ids.iter().map(|id| outcome(id, &"found ".repeat(200))));
    }
    let tools = (0..10).map(|n| ToolSpec { name: format!("kb__{n}"), description: "x".repeat(800), ..tool(json!({})) });
    Request { system: Some("y".repeat(8_000)), turns, tools: tools.collect(), ..Request::default() }
}

#[tokio::test]
async fn a_loop_of_ten_steps_reads_most_of_its_input_from_the_cache() {
    // With thirty calls a step, a step has more blocks than the provider looks back over.
    for (calls, wire) in [(1, anthropic()), (30, anthropic()), (1, vertex_claude())] {
        let (mut cache, mut all, mut cached) = (ClaudeCache::default(), 0, 0);
        for number in 1..=10 {
            let usage = cache.usage(&sent(&step(number, calls), &wire).await);
            let tokens = |field: &str| usage[field].as_u64().unwrap();
            if number > 1 {
                cached += tokens("cache_read_input_tokens");
                all += ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]
                    .map(tokens)
                    .iter()
                    .sum::<u64>();
            }
        }
        // Of thirty outcomes a step, the newest ones are a larger part.
        let least = if calls == 1 { 0.85 } else { 0.75 };
        assert!(cached as f64 >= least * all as f64, "{calls} calls: {cached} of {all}");
    }
}

#[tokio::test]
async fn a_single_question_without_tools_pays_for_no_cache() {
    let request = Request { turns: vec![user("Hi")], ..Request::default() };
    assert!(!sent(&request, &anthropic()).await.to_string().contains("cache_control"));
}

#[tokio::test]
async fn a_picture_of_the_question_that_is_too_large_is_named() {
    let turns = vec![Turn::User(vec![picture("A".repeat(6 << 20), None)])];
    let request = Request { turns, ..Request::default() };
    let outcome = ask_with(&request, &anthropic(), &[], vec![anthropic().complete_reply()]).await;
    assert_eq!((outcome.code(), outcome.requests.len()), (Some("model_refused"), 0));
    assert!(
        outcome.message().contains("\"a.png\" is too large for it: a picture may have at most"),
        "{}",
        outcome.message()
    );
}
