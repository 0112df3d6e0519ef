//! The client's choice of tools, as the provider reads it in each step.

use serde_json::{Value, json};

use super::{call, completion};
use crate::support::{
    Client, Embedded, Holdfast, agent,
    providers::{OPENAI, Part, RuledProvider, ScriptedReply},
    tools::ToolServer,
};

/// Starts the program on a provider with this script.
async fn start(script: Vec<ScriptedReply>) -> (Holdfast, Client, RuledProvider) {
    let provider = RuledProvider::start(OPENAI, script).await;
    let mut embedded = Embedded::new().with("HOLDFAST_MODEL_RETRIES", 0);
    embedded.settings.extend(provider.settings());
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    (holdfast, client, provider)
}

fn functions() -> Value {
    let function =
        |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
    json!([function("ask"), function("look")])
}

/// Returns the choices that the provider has read, one for each step.
fn choices(provider: &RuledProvider) -> Vec<Value> {
    assert_eq!(provider.refused().len(), 0, "{:#?}", provider.refused());
    provider.taken().iter().map(|request| request.body["tool_choice"].clone()).collect()
}

#[tokio::test]
async fn a_demand_holds_until_the_first_call_of_a_server() {
    let calls = ScriptedReply::call("kb__count", json!({}));
    let (_holdfast, client, provider) = start(vec![calls, ScriptedReply::text("There are two.")]).await;
    let tools = ToolServer::answering_at_once().await;
    agent(&client, json!([tools.describe()]), json!({})).await;
    let body =
        json!({"model": "tester", "messages": [{"role": "user", "content": "How many?"}], "tool_choice": "required"});
    let (status, answer) = call(completion(&client, &body)).await;
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!("There are two.")), "{answer}");
    assert_eq!(choices(&provider), [json!("required"), Value::Null]);
}

#[tokio::test]
async fn each_request_with_results_makes_a_choice_of_its_own() {
    let replies = || {
        let calls = [ScriptedReply::call("ask", json!({})), ScriptedReply::call("ask", json!({}))];
        calls.into_iter().chain([ScriptedReply::text("Teal.")])
    };
    let (_holdfast, client, provider) = start(replies().collect()).await;
    let named = json!({"type": "function", "function": {"name": "ask"}});
    let mut messages = vec![json!({"role": "user", "content": "Which colour?"})];
    let mut answers = Vec::new();
    for choice in [json!("required"), named.clone(), Value::Null] {
        let body = json!({"messages": messages, "tools": functions(), "tool_choice": choice});
        let (status, answer) = call(completion(&client, &body)).await;
        assert_eq!(status, 200, "{answer}");
        let message = &answer["choices"][0]["message"];
        messages.push(message.clone());
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        messages.extend(calls.map(|call| json!({"role": "tool", "tool_call_id": call["id"], "content": "teal"})));
        answers.push(answer["choices"][0]["finish_reason"].clone());
    }
    assert_eq!(answers, ["tool_calls", "tool_calls", "stop"]);
    assert_eq!(choices(&provider), [json!("required"), named, Value::Null]);
}

#[tokio::test]
async fn the_tools_that_a_request_allows_are_the_only_ones() {
    let (_holdfast, client, provider) = start(vec![ScriptedReply::text("Fine."); 2]).await;
    let allowed = json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]});
    let tools = json!([{"type": "function", "name": "ask"}, {"type": "function", "name": "look"}]);
    let body = json!({"input": "Hi", "tools": tools, "tool_choice": allowed});
    let (status, response) = call(super::create(&client, &body)).await;
    assert_eq!((status, &response["tool_choice"]), (200, &allowed), "{response}");
    let body = json!({"input": "Hi", "tools": tools, "tool_choice": "none"});
    assert_eq!(call(super::create(&client, &body)).await.0, 200);
    assert_eq!(choices(&provider), [Value::Null, json!("none")]);
    let names = |at: usize| {
        let tools = provider.taken()[at].body["tools"].as_array().unwrap().clone();
        tools.into_iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names(0), names(1).len()), (vec!["look".to_owned()], 2));
}

#[tokio::test]
async fn a_call_that_the_request_does_not_allow_is_not_made() {
    let script = [ScriptedReply::call("ask", json!({})), ScriptedReply::text("Then not.")];
    let (_holdfast, client, provider) = start([script.clone(), script].concat()).await;
    let allowed = json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]});
    let tools = json!([{"type": "function", "name": "ask"}, {"type": "function", "name": "look"}]);
    for choice in [&allowed, &json!("none")] {
        let body = json!({"input": "Hi", "tools": tools, "tool_choice": choice});
        let (status, response) = call(super::create(&client, &body)).await;
        let last = response["output"].as_array().unwrap().last().unwrap();
        assert_eq!((status, &last["content"][0]["text"]), (200, &json!("Then not.")), "{response}");
    }
    let told = provider.taken()[1].messages().to_string();
    assert!(told.contains("there is no tool") && told.contains("there are: look"), "{told}");
}

#[tokio::test]
async fn a_function_of_a_namespace_is_called_by_both_of_its_names() {
    let calls = ScriptedReply::call("mcp__files__read", json!({}));
    let (_holdfast, client, provider) = start(vec![calls, ScriptedReply::text("Teal.")]).await;
    let read = json!({"type": "function", "name": "read", "parameters": {"type": "object"}});
    let tools = json!([{"type": "namespace", "name": "mcp__files__", "tools": [read]}]);
    let (status, first) = call(super::create(&client, &json!({"input": "x", "tools": tools}))).await;
    let item = &first["output"][0];
    assert_eq!((status, &item["namespace"], &item["name"]), (200, &json!("mcp__files__"), &json!("read")), "{first}");
    assert_eq!(
        (&first["tools"][0]["type"], &first["tools"][0]["tools"][0]["name"]),
        (&json!("namespace"), &json!("read"))
    );
    let output = json!({"type": "function_call_output", "call_id": item["call_id"], "output": "teal"});
    let next = json!({"input": [output], "previous_response_id": first["id"], "tools": tools});
    let (status, second) = call(super::create(&client, &next)).await;
    assert_eq!((status, &second["status"]), (200, &json!("completed")), "{second}");
    assert_eq!(provider.refused().len(), 0);
}

#[tokio::test]
async fn a_tool_that_the_run_does_not_have_is_refused_before_the_provider_is_asked() {
    let (_holdfast, client, provider) = start(Vec::new()).await;
    let named = json!({"type": "function", "function": {"name": "nothing"}});
    let with_tools =
        json!({"messages": [{"role": "user", "content": "x"}], "tools": functions(), "tool_choice": named});
    let without = json!({"messages": [{"role": "user", "content": "x"}], "tool_choice": "required"});
    for body in [with_tools, without] {
        let (status, answer) = call(completion(&client, &body)).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("tool_not_available")), "{answer}");
    }
    let unknown = json!({"messages": [{"role": "user", "content": "x"}], "tool_choice": "often"});
    assert_eq!(call(completion(&client, &unknown)).await.0, 400);
    assert_eq!(provider.taken().len(), 0);
}

#[tokio::test]
async fn a_step_makes_one_call_if_the_client_wants_one_at_a_time() {
    let two = || {
        let part = |tool: &'static str| Part::Call { tool, arguments: json!({"a": 1}) };
        ScriptedReply::Answer(vec![part("ask"), part("look")])
    };
    let (_holdfast, client, provider) = start(vec![two(), two()]).await;
    for (parallel, expected) in [(true, vec!["ask", "look"]), (false, vec!["ask"])] {
        let messages = json!([{"role": "user", "content": "x"}]);
        let body = json!({"messages": messages, "tools": functions(), "parallel_tool_calls": parallel});
        let (_, answer) = call(completion(&client, &body)).await;
        let calls = answer["choices"][0]["message"]["tool_calls"].as_array().unwrap().clone();
        let names: Vec<&str> = calls.iter().map(|call| call["function"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected);
    }
    let sent: Vec<Value> = provider.taken().iter().map(|request| request.body["parallel_tool_calls"].clone()).collect();
    assert_eq!(sent, [json!(true), json!(false)]);
}
