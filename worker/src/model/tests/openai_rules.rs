//! Requests that an address of OpenAI's protocol takes: parameters, tools, and signatures.

use std::sync::Arc;

use futures::StreamExt;
use holdfast_shared::agent::{ModelOptions, ModelSettings, Profiles};
use serde_json::{Value, json};

use super::{
    AnswerDelta, FakeProvider, Model, Reply, Request, ToolRequest, ToolSpec, Turn, ask, connect, user,
    wires::{ProviderWire, anthropic, openai},
};

fn options() -> ModelOptions {
    ModelOptions {
        temperature: Some(0.2),
        max_tokens: Some(500),
        stop: vec!["END".to_owned()],
        ..ModelOptions::default()
    }
}

fn refusal(parameter: &str, message: &str) -> Reply {
    let error = json!({"message": message, "type": "invalid_request_error", "param": parameter, "code": "unsupported_parameter"});
    Reply::json(400, &json!({"error": error}).to_string())
}

/// Asks once, and expects an answer.
async fn answer(model: &Arc<dyn Model>, request: &Request) {
    let answer = model.ask(request).await.unwrap_or_else(|error| panic!("{error}"));
    let deltas: Vec<_> = answer.collect().await;
    assert!(matches!(deltas.last(), Some(Ok(AnswerDelta::End(..)))), "{deltas:?}");
}

fn fields(body: &Value) -> Vec<&str> {
    let usual = ["model", "messages", "stream"];
    let names = body.as_object().unwrap().keys().map(String::as_str);
    let mut names: Vec<&str> = names.filter(|name| !usual.contains(name)).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn a_refused_parameter_is_left_out_and_remembered() {
    let limit =
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    let replies = vec![
        refusal("max_tokens", limit),
        refusal("temperature", "Unsupported value: 'temperature' does not support 0.2 with this model."),
        openai().complete_reply(),
    ];
    let provider = FakeProvider::start(replies).await;
    let model = connect(&openai().config(&provider.url, &["--model-retries=0"])).unwrap();
    let request = Request { turns: vec![user("Hi")], options: options(), ..Request::default() };
    answer(&model, &request).await;
    answer(&model, &request).await;
    let requests = provider.requests();
    let sent: Vec<Vec<&str>> = requests.iter().map(|request| fields(&request.body)).collect();
    let learned = vec!["max_completion_tokens", "stop", "stream_options"];
    assert_eq!(
        sent,
        [
            vec!["max_tokens", "stop", "stream_options", "temperature"],
            vec!["max_completion_tokens", "stop", "stream_options", "temperature"],
            learned.clone(),
            learned,
        ]
    );
}

#[tokio::test]
async fn a_refusal_of_anything_else_is_not_tried_again() {
    let replies = vec![refusal("messages", "This model does not support images."), openai().complete_reply()];
    let outcome = ask(&openai(), &["--model-max-tokens=9"], replies).await;
    assert_eq!((outcome.code(), outcome.requests.len()), (Some("model_refused"), 1));
}

#[tokio::test]
async fn a_limit_for_which_the_context_has_no_room_is_left_out_of_this_request_alone() {
    let message = "'max_tokens' or 'max_completion_tokens' is too large: 500. This model's maximum context length is 512 tokens and your request has 40 input tokens (500 > 512 - 40).";
    let refused = || refusal("max_tokens", message);
    let provider = FakeProvider::start(vec![refused(), openai().complete_reply(), openai().complete_reply()]).await;
    let model = connect(&openai().config(&provider.url, &["--model-retries=0"])).unwrap();
    let request = Request { turns: vec![user("Hi")], options: options(), ..Request::default() };
    answer(&model, &request).await;
    answer(&model, &request).await;
    let limits: Vec<Value> = provider.requests().iter().map(|request| request.body["max_tokens"].clone()).collect();
    assert_eq!(limits, [json!(500), Value::Null, json!(500)]);

    let of_input = "This model's maximum context length is 512 tokens. However, you requested 1100 tokens (600 in the messages, 500 in the completion).";
    let outcome = ask(&openai(), &["--model-max-tokens=500"], vec![refusal("messages", of_input)]).await;
    assert_eq!((outcome.code(), outcome.requests.len()), (Some("model_context_exceeded"), 1));
}

#[tokio::test]
async fn a_server_that_demands_reasoning_before_each_call_gets_some() {
    let message = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1";
    let provider = FakeProvider::start(vec![refusal("messages", message), openai().complete_reply()]).await;
    let model = connect(&openai().config(&provider.url, &["--model-retries=0"])).unwrap();
    let call = ToolRequest { id: "c".into(), name: "t".into(), input: json!({}), ..ToolRequest::default() };
    let outcome = Turn::Tool { call_id: "c".into(), name: "t".into(), text: "x".into(), is_error: false };
    let turns = vec![user("Hi"), Turn::Assistant { text: String::new(), calls: vec![call] }, outcome];
    answer(&model, &Request { turns, ..Request::default() }).await;
    let sent: Vec<Value> =
        provider.requests().iter().map(|request| request.body["messages"][1]["reasoning_content"].clone()).collect();
    assert_eq!(sent, [Value::Null, json!(" ")]);
}

#[tokio::test]
async fn a_server_that_refuses_and_demands_one_field_in_turn_is_not_asked_for_ever() {
    let refused = |_| refusal("reasoning_content", "reasoning_content is not supported, but it must be sent");
    let provider = FakeProvider::start((0..40).map(refused).collect()).await;
    let model = connect(&openai().config(&provider.url, &["--model-retries=0"])).unwrap();
    let signature = Some(json!({"reasoning_content": "I think."}));
    let call = ToolRequest { id: "c".into(), name: "t".into(), input: json!({}), signature, ..ToolRequest::default() };
    let outcome = Turn::Tool { call_id: "c".into(), name: "t".into(), text: "x".into(), is_error: false };
    let turns = vec![user("Hi"), Turn::Assistant { text: String::new(), calls: vec![call] }, outcome];
    assert!(model.ask(&Request { turns, ..Request::default() }).await.is_err());
    assert_eq!(provider.requests().len(), 12);
}

#[tokio::test]
async fn reasoning_models_of_openai_get_what_they_take_under_any_address() {
    let wire = ProviderWire { model: "gpt-5-mini", ..openai() };
    let provider = FakeProvider::start(vec![wire.complete_reply()]).await;
    let model = connect(&wire.config(&provider.url, &[])).unwrap();
    answer(&model, &Request { turns: vec![user("Hi")], options: options(), ..Request::default() }).await;
    assert_eq!(fields(&provider.requests()[0].body), ["max_completion_tokens", "stream_options"]);
}

fn tool(name: impl Into<String>) -> ToolSpec {
    ToolSpec { name: name.into(), description: String::new(), input_schema: json!({"type": "object"}) }
}

/// Asks the model of this wire, and returns the body and the names of the tools that were left out.
async fn sent(wire: &ProviderWire, request: Request) -> (Value, Vec<String>) {
    let provider = FakeProvider::start(vec![wire.complete_reply()]).await;
    let models = super::models(&wire.config(&provider.url, &[])).unwrap();
    let model = models.get(Some(&ModelSettings::default()), &Profiles::default()).unwrap();
    let answer = model.ask(request).await.unwrap_or_else(|error| panic!("{error}"));
    let _: Vec<_> = answer.deltas.collect().await;
    (provider.requests().remove(0).body, answer.left_out_tools)
}

#[tokio::test]
async fn tools_beyond_the_128_that_addresses_take_are_left_out_by_name() {
    let request = |count: usize| Request {
        turns: vec![user("Hi")],
        tools: (0..count).map(|n| tool(format!("t{n}"))).collect(),
        ..Request::default()
    };
    let (body, left_out) = sent(&openai(), request(128)).await;
    assert_eq!((body["tools"].as_array().unwrap().len(), left_out.len()), (128, 0));
    let (body, left_out) = sent(&openai(), request(130)).await;
    assert_eq!((body["tools"].as_array().unwrap().len(), left_out), (128, vec!["t128".into(), "t129".into()]));
    let (body, left_out) = sent(&anthropic(), request(130)).await;
    assert_eq!((body["tools"].as_array().unwrap().len(), left_out.len()), (130, 0));
}

#[tokio::test]
async fn a_signature_goes_back_only_to_the_model_that_wrote_it() {
    let calling = |by: Option<&str>| {
        let call = ToolRequest {
            id: "c".into(),
            name: "t".into(),
            input: json!({}),
            signature: Some(json!({"reasoning_content": "I think."})),
            signed_by: by.map(str::to_owned),
        };
        let outcome = Turn::Tool { call_id: "c".into(), name: "t".into(), text: "x".into(), is_error: false };
        let turns = vec![user("Hi"), Turn::Assistant { text: String::new(), calls: vec![call] }, outcome];
        Request { turns, ..Request::default() }
    };
    for (by, is_sent) in [
        (Some("openai/some-model"), true),
        // The trace of a version before names no model.
        (None, true),
        (Some("openai/another-model"), false),
        (Some("gemini/some-model"), false),
    ] {
        let (body, _) = sent(&openai(), calling(by)).await;
        let expected = if is_sent { json!("I think.") } else { Value::Null };
        assert_eq!(body["messages"][1]["reasoning_content"], expected, "{by:?}");
    }
}
