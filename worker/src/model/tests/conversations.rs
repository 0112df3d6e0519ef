//! Requests with tools: declarations, calls, outcomes and options, in the format of each provider.

use std::sync::Arc;

use holdfast_shared::{
    agent::{ModelOptions, ReasoningEffort},
    overrides::JsonFormat,
};
use serde_json::{Value, json};

use super::{
    Request, ToolRequest, ToolSpec, Turn, ask_with, user, wires,
    wires::{ProviderWire, anthropic, gemini, ollama, openai, vertex_claude, vertex_gemini},
};
use crate::model::AnswerForm;

fn call(id: &str, name: &str, input: Value) -> ToolRequest {
    ToolRequest { id: id.to_owned(), name: name.to_owned(), input, ..ToolRequest::default() }
}

/// Returns the model of a wire, as calls name it.
fn model_of(wire: &ProviderWire) -> String {
    format!("{}/{}", wire.provider, wire.model)
}

fn outcome(call: &ToolRequest, text: &str, is_error: bool) -> Turn {
    Turn::Tool { call_id: call.id.clone(), name: call.name.clone(), text: text.to_owned(), is_error }
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"of": {"type": "string"}}})
}

/// A step with two calls, one of which failed, and a step with a call and no words. This model has signed the first call.
fn conversation(signature: Value, signed_by: &str) -> Request {
    let signed = (Some(signature), Some(signed_by.to_owned()));
    let count = call("call_1", "kb__count", json!({"of": "files"}));
    let count = ToolRequest { signature: signed.0, signed_by: signed.1, ..count };
    let list = call("call_2", "kb__list", json!("not an object"));
    let again = call("call_3", "kb__count", json!({}));
    let turns = vec![
        user("How many?"),
        Turn::Assistant { text: "Let me see.".to_owned(), calls: vec![count.clone(), list.clone()] },
        outcome(&count, "3", false),
        outcome(&list, "no such list", true),
        Turn::Assistant { text: String::new(), calls: vec![again.clone()] },
        outcome(&again, "4", false),
    ];
    let description = "Counts.".to_owned();
    let tools = vec![ToolSpec { name: "kb__count".to_owned(), description, input_schema: schema() }];
    Request { turns, tools, ..Request::default() }
}

fn options() -> ModelOptions {
    ModelOptions {
        temperature: Some(0.5),
        top_p: Some(0.25),
        max_tokens: Some(33),
        stop: vec!["END".to_owned()],
        reasoning_effort: Some(ReasoningEffort::High),
        ..ModelOptions::default()
    }
}

/// Names the calls of a request by their order. Returns the ids that they had, each once.
fn short_ids(body: &mut Value) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let mut name = |id: &mut Value| {
        let old = id.as_str().unwrap().to_owned();
        let at = ids.iter().position(|known| *known == old).unwrap_or_else(|| {
            ids.push(old);
            ids.len() - 1
        });
        *id = json!(format!("call_{}", at + 1));
    };
    for message in body["messages"].as_array_mut().unwrap() {
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten();
        calls.for_each(|call| name(&mut call["id"]));
        message.get_mut("tool_call_id").into_iter().for_each(&mut name);
    }
    ids
}

/// Returns the body of the request.
async fn sent(request: &Request, wire: &ProviderWire) -> Value {
    let mut outcome = ask_with(request, wire, &["--model-max-tokens=99"], vec![wire.complete_reply()]).await;
    assert!(outcome.error.is_none(), "{outcome:?}");
    outcome.requests.remove(0).body
}

#[tokio::test]
async fn openai_gets_tool_calls_and_tool_messages() {
    let signature = json!({"google": {"thought_signature": "c2ln"}});
    let mut body = sent(&conversation(signature.clone(), "openai/some-model"), &openai()).await;
    let ids = short_ids(&mut body);
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert!(ids.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())), "{ids:?}");
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let mut first = call("call_1", "kb__count", r#"{"of":"files"}"#);
    first["extra_content"] = signature;
    let messages = json!([
        {"role": "user", "content": "How many?"},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [first, call("call_2", "kb__list", "{}")]},
        {"role": "tool", "tool_call_id": "call_1", "content": "3"},
        {"role": "tool", "tool_call_id": "call_2", "content": "no such list"},
        {"role": "assistant", "content": null, "tool_calls": [call("call_3", "kb__count", "{}")]},
        {"role": "tool", "tool_call_id": "call_3", "content": "4"},
    ]);
    assert_eq!(body["messages"], messages);
    let function = json!({"name": "kb__count", "description": "Counts.", "parameters": schema()});
    assert_eq!(body["tools"], json!([{"type": "function", "function": function}]));
}

#[tokio::test]
async fn an_answer_of_a_schema_is_asked_for_in_the_field_of_the_provider() {
    let format =
        |schema: Option<Value>| AnswerForm::Json(Arc::new(JsonFormat { name: "person".into(), schema, strict: true }));
    let asked = |schema| Request { turns: vec![Turn::user("Who?")], form: format(schema), ..Request::default() };
    let body = sent(&asked(Some(schema())), &openai()).await;
    let expected =
        json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema(), "strict": true}});
    assert_eq!(body["response_format"], expected);
    assert_eq!(sent(&asked(None), &openai()).await["response_format"], json!({"type": "json_object"}));
    let body = sent(&asked(Some(schema())), &gemini()).await;
    assert_eq!(body["generationConfig"]["responseMimeType"], "application/json", "{body}");
    assert!(
        body["generationConfig"].get("responseSchema").or(body["generationConfig"].get("responseJsonSchema")).is_some(),
        "{body}"
    );
}

#[tokio::test]
async fn anthropic_gets_the_thinking_back_and_the_outcomes_of_a_turn_in_one_message() {
    let thinking = json!([
        {"type": "redacted_thinking", "data": "ZGF0YQ"},
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    ]);
    let tool_use =
        |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let mark = json!({"type": "ephemeral"});
    let messages = json!([
        {"role": "user", "content": [{"type": "text", "text": "How many?"}]},
        {"role": "assistant", "content": [
            thinking[0],
            thinking[1],
            {"type": "text", "text": "Let me see."},
            tool_use("call_1", "kb__count", json!({"of": "files"})),
            tool_use("call_2", "kb__list", json!({})),
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "call_1", "content": "3"},
            {"type": "tool_result", "tool_use_id": "call_2", "content": "no such list", "is_error": true, "cache_control": mark},
        ]},
        {"role": "assistant", "content": [tool_use("call_3", "kb__count", json!({}))]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_3", "content": "4", "cache_control": mark}]},
    ]);
    let tool = json!({"name": "kb__count", "description": "Counts.", "input_schema": schema(), "cache_control": mark});
    for wire in [anthropic(), vertex_claude()] {
        let body = sent(&conversation(thinking.clone(), &model_of(&wire)), &wire).await;
        assert_eq!(body["messages"], messages, "{}", wire.provider);
        assert_eq!(body["tools"], json!([tool]), "{}", wire.provider);
        assert_eq!(body.get("tool_choice"), None, "{}", wire.provider);
    }
}

#[tokio::test]
async fn gemini_gets_the_thought_signature_back_and_the_outcomes_of_a_turn_in_one_message() {
    let call = |id: &str, name: &str, args: Value| json!({"functionCall": {"id": id, "name": name, "args": args}});
    let response = |id: &str, name: &str, field: &str, text: &str| json!({"functionResponse": {"id": id, "name": name, "response": {field: text}}});
    let mut first = call("call_1", "kb__count", json!({"of": "files"}));
    first["thoughtSignature"] = json!("c2ln");
    let contents = json!([
        {"role": "user", "parts": [{"text": "How many?"}]},
        {"role": "model", "parts": [{"text": "Let me see."}, first, call("call_2", "kb__list", json!({}))]},
        {"role": "user", "parts": [
            response("call_1", "kb__count", "output", "3"),
            response("call_2", "kb__list", "error", "no such list"),
        ]},
        {"role": "model", "parts": [call("call_3", "kb__count", json!({}))]},
        {"role": "user", "parts": [response("call_3", "kb__count", "output", "4")]},
    ]);
    let function = json!({"name": "kb__count", "description": "Counts.", "parametersJsonSchema": schema()});
    for wire in [gemini(), vertex_gemini()] {
        let body = sent(&conversation(json!("c2ln"), &model_of(&wire)), &wire).await;
        assert_eq!(body["contents"], contents, "{}", wire.provider);
        assert_eq!(body["tools"], json!([{"functionDeclarations": [function]}]), "{}", wire.provider);
    }
}

#[tokio::test]
async fn ollama_gets_each_outcome_in_a_message_of_its_own() {
    let body = sent(&conversation(json!("c2ln"), "ollama/some-model"), &ollama()).await;
    let call = |name: &str, arguments: Value| json!({"function": {"name": name, "arguments": arguments}});
    let messages = json!([
        {"role": "user", "content": "How many?"},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [
            call("kb__count", json!({"of": "files"})),
            call("kb__list", json!({})),
        ]},
        {"role": "tool", "tool_name": "kb__count", "content": "3"},
        {"role": "tool", "tool_name": "kb__list", "content": "no such list"},
        {"role": "assistant", "tool_calls": [call("kb__count", json!({}))]},
        {"role": "tool", "tool_name": "kb__count", "content": "4"},
    ]);
    assert_eq!(body["messages"], messages);
    let function = json!({"name": "kb__count", "description": "Counts.", "parameters": schema()});
    assert_eq!(body["tools"], json!([{"type": "function", "function": function}]));
}

#[tokio::test]
async fn a_signature_of_another_model_is_not_sent() {
    let own = |wire: &ProviderWire| match wire.format {
        "openai" => json!({"google": 1}),
        "anthropic" => json!([{"type": "thinking", "thinking": "", "signature": "c2ln"}]),
        _ => json!("c2ln"),
    };
    for wire in wires() {
        for other in wires().iter().filter(|other| other.format != wire.format) {
            let body = sent(&conversation(own(other), &model_of(other)), &wire).await.to_string();
            let leaked = ["google", "c2ln", "thinking"].into_iter().find(|part| body.contains(part));
            assert_eq!(leaked, None, "{}: {body}", wire.provider);
        }
    }
    for wire in [anthropic(), vertex_claude(), gemini(), vertex_gemini()] {
        let older = format!("{}/an-older-model", wire.provider);
        assert!(
            !sent(&conversation(own(&wire), &older), &wire).await.to_string().contains("c2ln"),
            "{}",
            wire.provider
        );
    }
}

#[tokio::test]
async fn without_tools_the_earlier_calls_stay_and_none_can_be_called() {
    let without_tools = || Request { tools: Vec::new(), ..conversation(json!(null), "") };
    for wire in [openai(), gemini(), ollama(), vertex_gemini()] {
        let body = sent(&without_tools(), &wire).await;
        assert_eq!(body.get("tools"), None, "{}", wire.provider);
    }
    // Anthropic requires declared tools where there are calls.
    for wire in [anthropic(), vertex_claude()] {
        let body = sent(&without_tools(), &wire).await;
        let names: Vec<_> = body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, ["kb__count", "kb__list"]);
        assert_eq!(body["tool_choice"], json!({"type": "none"}));
    }
}

/// Returns the fields of the body, without those that every request has.
async fn sent_for(options: ModelOptions, wire: &ProviderWire) -> Value {
    let request = Request { turns: vec![user("Hi")], options, ..Request::default() };
    let mut body = sent(&request, wire).await;
    for field in ["model", "messages", "contents", "stream", "stream_options", "anthropic_version"] {
        body.as_object_mut().unwrap().remove(field);
    }
    body
}

#[tokio::test]
async fn options_reach_every_provider() {
    let expected =
        json!({"temperature": 0.5, "top_p": 0.25, "max_tokens": 33, "stop": ["END"], "reasoning_effort": "high"});
    assert_eq!(sent_for(options(), &openai()).await, expected);
    // Of the temperature and `top_p`, Claude takes one, and 33 tokens leave no room for thinking.
    let expected = json!({"temperature": 0.5, "max_tokens": 33, "stop_sequences": ["END"]});
    assert_eq!(sent_for(options(), &anthropic()).await, expected);
    let longer = || ModelOptions { max_tokens: Some(10_000), ..options() };
    let expected = json!({"max_tokens": 10_000, "stop_sequences": ["END"], "thinking": {"type": "enabled", "budget_tokens": 9_999}});
    assert_eq!(sent_for(longer(), &anthropic()).await, expected);
    let expected = json!({"max_tokens": 33, "stop_sequences": ["END"],
        "thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "high"}});
    assert_eq!(sent_for(options(), &vertex_claude()).await, expected);
    let expected = json!({"generationConfig": {"temperature": 0.5, "topP": 0.25, "maxOutputTokens": 33, "stopSequences": ["END"],
        "thinkingConfig": {"thinkingBudget": 24000, "includeThoughts": true}}});
    assert_eq!(sent_for(options(), &gemini()).await, expected);
    assert_eq!(sent_for(options(), &vertex_gemini()).await, expected);
    let expected =
        json!({"options": {"temperature": 0.5, "top_p": 0.25, "num_predict": 33, "stop": ["END"]}, "think": "high"});
    assert_eq!(sent_for(options(), &ollama()).await, expected);
}

#[tokio::test]
async fn without_options_only_the_deployments_limit_is_sent() {
    assert_eq!(sent_for(ModelOptions::default(), &openai()).await, json!({"max_tokens": 99}));
    assert_eq!(sent_for(ModelOptions::default(), &anthropic()).await, json!({"max_tokens": 99}));
    assert_eq!(
        sent_for(ModelOptions::default(), &gemini()).await,
        json!({"generationConfig": {"maxOutputTokens": 99}})
    );
    assert_eq!(sent_for(ModelOptions::default(), &ollama()).await, json!({"options": {"num_predict": 99}}));
}

#[tokio::test]
async fn roles_alternate_but_for_ollama() {
    let answer = |text: &str| Turn::Assistant { text: text.to_owned(), calls: Vec::new() };
    let turns = vec![answer("old"), user("card"), user("why?"), answer("so"), answer("and so"), user("thanks")];
    let request = Request { turns, ..Request::default() };
    let roles = |body: &Value, list: &str| {
        let messages = body[list].as_array().unwrap().iter();
        messages.map(|message| message["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let body = sent(&request, &anthropic()).await;
    assert_eq!(roles(&body, "messages"), ["user", "assistant", "user"]);
    assert!(body["messages"][0].to_string().contains("card\\n\\nwhy?"), "{body}");
    assert_eq!(roles(&sent(&request, &gemini()).await, "contents"), ["user", "model", "user"]);
    let all = ["assistant", "user", "user", "assistant", "assistant", "user"];
    let alternating = ["user", "assistant", "user", "assistant", "user"];
    assert_eq!(roles(&sent(&request, &openai()).await, "messages"), alternating);
    assert_eq!(roles(&sent(&request, &ollama()).await, "messages"), all);
}

#[tokio::test]
async fn ollama_is_sent_the_known_budget_of_the_conversation() {
    let request = Request { turns: vec![user("Hi")], context_tokens: Some(16_000), ..Request::default() };
    assert_eq!(sent(&request, &ollama()).await["options"], json!({"num_predict": 99, "num_ctx": 16_000}));
    for wire in [openai(), anthropic(), gemini()] {
        assert!(!sent(&request, &wire).await.to_string().contains("16000"), "{}", wire.provider);
    }
}

#[tokio::test]
async fn a_form_is_sent_to_gemini_and_ollama_only_where_it_excludes_no_tools() {
    let form = AnswerForm::Json(Arc::new(JsonFormat { name: "a".into(), schema: Some(schema()), strict: true }));
    let with_tools = Request { form, ..conversation(json!(null), "") };
    let without = Request { tools: Vec::new(), ..with_tools.clone() };
    assert_eq!(sent(&with_tools, &ollama()).await.get("format"), None);
    assert_eq!(sent(&without, &ollama()).await["format"], schema());
    assert_eq!(sent(&with_tools, &gemini()).await["generationConfig"].get("responseMimeType"), None);
    let newer = ProviderWire { model: "gemini-3-pro", ..gemini() };
    assert_eq!(sent(&with_tools, &newer).await["generationConfig"]["responseMimeType"], "application/json");
}

#[tokio::test]
async fn newer_models_of_gemini_get_a_mark_for_calls_of_another_model() {
    let newer = ProviderWire { model: "gemini-3-pro", ..gemini() };
    let body = sent(&conversation(json!("c2ln"), "gemini/gemini-2.5-pro"), &newer).await;
    let signatures = |content: usize| {
        let parts = body["contents"][content]["parts"].as_array().unwrap().iter();
        parts
            .filter(|part| part.get("functionCall").is_some())
            .map(|part| part["thoughtSignature"].clone())
            .collect::<Vec<_>>()
    };
    let skipped = json!("skip_thought_signature_validator");
    assert_eq!(signatures(1), [skipped.clone(), Value::Null], "the first call of an answer needs one");
    assert_eq!(signatures(3), [skipped]);
}
