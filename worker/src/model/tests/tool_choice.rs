//! The demand of a call, as each provider reads it.

use holdfast_shared::{
    agent::{ModelOptions, ReasoningEffort},
    tool_choice::ToolMode,
};
use serde_json::{Value, json};

use super::{
    FakeProvider, Request, ToolSpec, ask_with, claude_rules, connect, user,
    wires::{ProviderWire, anthropic, gemini, ollama, openai},
};

fn request(tool_mode: ToolMode, parallel_calls: Option<bool>) -> Request {
    let tool = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object", "properties": {}}),
    };
    let tools = vec![tool("look"), tool("ask.me")];
    Request { turns: vec![user("Hi")], tools, tool_mode, parallel_calls, ..Request::default() }
}

async fn sent(wire: &ProviderWire, request: &Request) -> Value {
    let mut outcome = ask_with(request, wire, &[], vec![wire.complete_reply()]).await;
    assert!(outcome.error.is_none(), "{outcome:?}");
    outcome.requests.remove(0).body
}

#[tokio::test]
async fn each_provider_reads_the_demand_in_its_own_field() {
    let named = || ToolMode::Named("look".to_owned());
    let of_openai = [
        (ToolMode::Auto, Value::Null),
        (ToolMode::None, json!("none")),
        (ToolMode::Required, json!("required")),
        (named(), json!({"type": "function", "function": {"name": "look"}})),
    ];
    for (mode, expected) in of_openai {
        assert_eq!(sent(&openai(), &request(mode, None)).await["tool_choice"], expected);
    }
    let of_anthropic = [
        (ToolMode::Auto, Value::Null),
        (ToolMode::None, json!({"type": "none"})),
        (ToolMode::Required, json!({"type": "any"})),
        (named(), json!({"type": "tool", "name": "look"})),
    ];
    for (mode, expected) in of_anthropic {
        assert_eq!(sent(&anthropic(), &request(mode, None)).await["tool_choice"], expected);
    }
    let of_gemini = [
        (ToolMode::Auto, Value::Null),
        (ToolMode::None, json!({"mode": "NONE"})),
        (ToolMode::Required, json!({"mode": "ANY"})),
        (named(), json!({"mode": "ANY", "allowedFunctionNames": ["look"]})),
    ];
    for (mode, expected) in of_gemini {
        let body = sent(&gemini(), &request(mode, None)).await;
        assert_eq!(body["toolConfig"]["functionCallingConfig"], expected);
    }
}

#[tokio::test]
async fn a_provider_without_the_field_reads_the_demand_in_words() {
    let body = sent(&ollama(), &request(ToolMode::Named("look".to_owned()), None)).await;
    let names: Vec<&Value> = body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["look"]);
    assert_eq!(body["messages"][0]["content"], "Answer with a call of the tool look, not in words.");
    assert_eq!(sent(&ollama(), &request(ToolMode::None, None)).await["tools"], Value::Null);
    assert_eq!(sent(&ollama(), &request(ToolMode::Auto, None)).await["messages"][0]["role"], "user");
}

#[tokio::test]
async fn a_demand_that_an_address_refuses_is_repeated_in_words() {
    let refusal = json!({"error": {"message": "deepseek-reasoner does not support this tool_choice"}});
    let replies = vec![super::Reply::json(400, &refusal.to_string()), openai().complete_reply()];
    let provider = FakeProvider::start(replies).await;
    let model = connect(&openai().config(&provider.url, &["--model-retries=0"])).unwrap();
    assert!(model.ask(&request(ToolMode::Required, None)).await.is_ok());
    let requests = provider.requests();
    assert_eq!(
        (&requests[0].body["tool_choice"], &requests[1].body["tool_choice"]),
        (&json!("required"), &Value::Null)
    );
    assert_eq!(requests[1].body["messages"][0]["content"], "Answer with a call of one of the tools, not in words.");
}

#[tokio::test]
async fn a_model_that_must_call_a_tool_does_not_think_first() {
    let wire = ProviderWire { model: "claude-sonnet-4-5", ..anthropic() };
    let options = ModelOptions { reasoning_effort: Some(ReasoningEffort::Low), ..ModelOptions::default() };
    for mode in [ToolMode::Auto, ToolMode::Required] {
        let must_call = mode == ToolMode::Required;
        let mut request = Request { options: options.clone(), ..request(mode, None) };
        // The provider refuses the other tool's name.
        request.tools.truncate(1);
        let body = sent(&wire, &request).await;
        assert_eq!((body["thinking"].is_null(), claude_rules::check(&body)), (must_call, Ok(())), "{body}");
    }
}

#[tokio::test]
async fn one_call_at_a_time_is_asked_of_the_providers_that_know_it() {
    for parallel in [true, false] {
        let body = sent(&openai(), &request(ToolMode::Auto, Some(parallel))).await;
        assert_eq!(body["parallel_tool_calls"], json!(parallel));
    }
    let body = sent(&anthropic(), &request(ToolMode::Auto, Some(false))).await;
    assert_eq!(body["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
    let without_tools = Request { tools: Vec::new(), ..request(ToolMode::Required, Some(false)) };
    for wire in [openai(), anthropic(), gemini(), ollama()] {
        let body = sent(&wire, &without_tools).await;
        let fields = ["tool_choice", "parallel_tool_calls", "toolConfig"];
        assert!(fields.iter().all(|field| body[field].is_null()), "{}: {body}", wire.provider);
    }
}

#[tokio::test]
async fn the_tool_that_a_request_demands_is_among_the_first() {
    let mut request = request(ToolMode::Named("ask.me".to_owned()), None);
    assert_eq!(request.limit_tools(1), ["look"]);
    assert_eq!(request.tools[0].name, "ask.me");
}
