//! Requests with answers: the run continues as the newest of them says, or the request is a question with a history.

use serde_json::{Value, json};

use super::{call, completion, create, get, text};
use crate::{
    support::{
        Client, Embedded, Holdfast,
        providers::{OPENAI, ProviderRefusal, RuledProvider, ScriptedReply},
    },
    tool_files::BASE64,
};

async fn start(script: Vec<ScriptedReply>) -> (Holdfast, Client, RuledProvider) {
    let provider = RuledProvider::start(OPENAI, script).await;
    let mut embedded = Embedded::new().with("HOLDFAST_MODEL_RETRIES", 0).with("HOLDFAST_MODEL_FILES", "image");
    embedded.settings.extend(provider.settings());
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    (holdfast, client, provider)
}

fn ask_then(text: &'static str) -> Vec<ScriptedReply> {
    vec![ScriptedReply::call("ask", json!({})), ScriptedReply::text(text)]
}

/// Returns a function in the form of completions.
fn of_completions(name: &str) -> Value {
    json!([{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}])
}

/// Returns a function in the form of responses.
fn of_responses(name: &str) -> Value {
    json!([{"type": "function", "name": name, "parameters": {"type": "object"}}])
}

/// Returns the messages and the names of the tools in the newest request to the provider.
fn newest(provider: &RuledProvider) -> (String, Vec<String>) {
    assert_eq!(provider.refused().len(), 0, "{:#?}", provider.refused());
    let taken = provider.taken();
    let request = taken.last().unwrap();
    let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
    let names = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    (request.messages().to_string(), names.collect())
}

fn answer_of(completion: &Value) -> &str {
    completion["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("{completion}"))
}

/// Asks a question by a completion whose answer is a call, and returns the messages with the call's result.
async fn asked(client: &Client, model: &str, system: &str) -> Vec<Value> {
    let mut messages = vec![json!({"role": "system", "content": system}), json!({"role": "user", "content": "Where?"})];
    let body = json!({"model": model, "messages": messages, "tools": of_completions("ask")});
    let (status, answer) = call(completion(client, &body)).await;
    let message = answer["choices"][0]["message"].clone();
    let id = message["tool_calls"][0]["id"].clone();
    assert_eq!((status, id.is_string()), (200, true), "{answer}");
    messages.extend([message, json!({"role": "tool", "tool_call_id": id, "content": "teal"})]);
    messages
}

#[tokio::test]
async fn the_rest_of_a_completion_has_the_instructions_and_tools_of_its_newest_request() {
    let (_holdfast, client, provider) = start(ask_then("Paid.")).await;
    let mut messages = asked(&client, "default", "TRIAGE").await;
    messages[0]["content"] = json!("BILLING");
    let body = json!({"messages": messages, "tools": of_completions("refund")});
    let (_, second) = call(completion(&client, &body)).await;
    assert_eq!(answer_of(&second), "Paid.");
    let (sent, tools) = newest(&provider);
    assert!(sent.contains("BILLING") && !sent.contains("TRIAGE") && sent.contains("teal"), "{sent}");
    assert_eq!(tools, ["refund"]);
    let (_, again) = call(completion(&client, &body)).await;
    assert_eq!(
        (&again["choices"], provider.taken().len()),
        (&second["choices"], 2),
        "a repeated request asks no model"
    );
    provider.reply_with([ScriptedReply::text("Refused.")]);
    let mut other = body.clone();
    other["messages"][0]["content"] = json!("STRICT");
    assert_eq!(
        answer_of(&call(completion(&client, &other)).await.1),
        "Refused.",
        "other instructions are another step"
    );
    let without = json!({"messages": [{"role": "user", "content": "Hi"}]});
    provider.reply_with([ScriptedReply::text("Hi.")]);
    assert_eq!(answer_of(&call(completion(&client, &without)).await.1), "Hi.");
}

#[tokio::test]
async fn the_rest_of_a_response_has_the_instructions_and_tools_of_its_newest_request() {
    let (_holdfast, client, provider) = start(ask_then("Paid.")).await;
    let input = json!([{"role": "developer", "content": "BRIEF"}, {"role": "user", "content": "Where?"}]);
    let body = json!({"input": input, "instructions": "TRIAGE", "tools": of_responses("ask")});
    let (_, first) = call(create(&client, &body)).await;
    let result = json!({"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "teal"});
    let body = json!({
        "input": [result], "previous_response_id": first["id"], "instructions": "BILLING", "tools": of_responses("refund")
    });
    let (_, second) = call(create(&client, &body)).await;
    assert_eq!((text(&second).as_str(), &second["instructions"]), ("Paid.", &json!("BILLING")), "{second}");
    assert_eq!(second["tools"][0]["name"], "refund");
    let (sent, tools) = newest(&provider);
    assert!(sent.contains("BILLING") && !sent.contains("TRIAGE"), "{sent}");
    assert!(sent.contains("BRIEF"), "the input of the first response stays: {sent}");
    assert_eq!(tools, ["refund"]);
}

#[tokio::test]
async fn results_for_another_model_are_a_question_to_that_model() {
    let (_holdfast, client, provider) = start(ask_then("Sun.")).await;
    for (name, prompt) in [("small", "SMALL"), ("large", "LARGE")] {
        client.post("/v1/agents", json!({"name": name, "system_prompt": prompt})).await.unwrap();
    }
    let messages = asked(&client, "small", "Be brief.").await;
    let body = json!({"model": "large", "messages": messages, "tools": of_completions("ask")});
    let (_, second) = call(completion(&client, &body)).await;
    assert_eq!((answer_of(&second), &second["model"]), ("Sun.", &json!("large")));
    let (sent, _) = newest(&provider);
    assert!(sent.contains("LARGE") && !sent.contains("SMALL") && sent.contains("teal"), "{sent}");
}

#[tokio::test]
async fn the_model_is_asked_again_after_a_failure_or_with_another_result() {
    let (_holdfast, client, provider) = start(vec![ScriptedReply::call("ask", json!({}))]).await;
    let mut messages = asked(&client, "default", "Be brief.").await;
    let away = json!("overloaded");
    provider.reply_with([ScriptedReply::Refuse(ProviderRefusal::of_openai(503, "Overloaded.", Value::Null, away))]);
    let body = |messages: &[Value]| json!({"messages": messages, "tools": of_completions("ask")});
    assert_eq!(call(completion(&client, &body(&messages))).await.0, 503);
    provider.reply_with([ScriptedReply::text("Teal it is.")]);
    let (_, second) = call(completion(&client, &body(&messages))).await;
    assert_eq!(answer_of(&second), "Teal it is.");

    provider.reply_with(ask_then("Teal."));
    messages = asked(&client, "default", "Be brief.").await;
    assert_eq!(answer_of(&call(completion(&client, &body(&messages))).await.1), "Teal.");
    provider.reply_with([ScriptedReply::text("Red.")]);
    messages.last_mut().unwrap()["content"] = json!("red");
    assert_eq!(answer_of(&call(completion(&client, &body(&messages))).await.1), "Red.");
    let sent = provider.taken().last().unwrap().messages().to_string();
    assert!(sent.contains("red") && !sent.contains("teal"), "{sent}");
}

#[tokio::test]
async fn a_message_beside_the_results_joins_the_response() {
    let (_holdfast, client, provider) = start(ask_then("Both.")).await;
    let (_, first) = call(create(&client, &json!({"input": "Where?", "tools": of_responses("ask")}))).await;
    let result = json!({"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "teal"});
    let user = json!({"role": "user", "content": "And when?"});
    let body =
        |input: Value| json!({"input": input, "previous_response_id": first["id"], "tools": of_responses("ask")});
    let (_, second) = call(create(&client, &body(json!([result, user])))).await;
    assert_eq!(text(&second), "Both.", "{second}");
    let (sent, _) = newest(&provider);
    assert!(sent.find("teal").unwrap() < sent.find("And when?").unwrap(), "{sent}");
    let (_, again) = call(create(&client, &body(json!([result, user])))).await;
    assert_eq!((&again["output"], provider.taken().len()), (&second["output"], 2));
    provider.reply_with([ScriptedReply::text("Soon.")]);
    let later = json!({"role": "user", "content": "Really?"});
    let (_, third) = call(create(&client, &body(json!([result, later])))).await;
    assert_eq!((text(&third).as_str(), &third["conversation"]), ("Soon.", &first["conversation"]), "{third}");
    let picture = json!({"type": "input_image", "image_url": format!("data:image/png;base64,{BASE64}")});
    provider.reply_with([ScriptedReply::call("ask", json!({}))]);
    let (_, first) = call(create(&client, &json!({"input": "Where?", "tools": of_responses("ask")}))).await;
    let result = json!({"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "x"});
    let input = json!([result, {"role": "user", "content": [picture]}]);
    let (status, refused) = call(create(&client, &json!({"input": input, "previous_response_id": first["id"]}))).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("invalid_body")), "{refused}");
}

#[tokio::test]
async fn the_beginning_of_an_answer_is_continued() {
    let (_holdfast, client, provider) = start(vec![ScriptedReply::text("three four")]).await;
    let messages = json!([{"role": "user", "content": "Count."}, {"role": "assistant", "content": "one two"}]);
    let (_, answer) = call(completion(&client, &json!({"messages": messages}))).await;
    assert_eq!(answer_of(&answer), "three four");
    let taken = provider.taken();
    let sent = taken[0].messages().as_array().unwrap();
    let at = sent.iter().position(|message| message["role"] == "assistant").unwrap();
    assert!(sent[at].to_string().contains("one two") && sent[at + 1]["role"] == "user", "{sent:?}");
}

#[tokio::test]
async fn the_items_of_a_conversation_have_its_pictures() {
    let (_holdfast, client, provider) = start(vec![ScriptedReply::text("A dot."); 2]).await;
    let parts = json!([
        {"type": "input_text", "text": "Look"},
        {"type": "input_image", "image_url": format!("data:image/png;base64,{BASE64}")}
    ]);
    let (_, first) = call(create(&client, &json!({"input": [{"role": "user", "content": parts}]}))).await;
    let conversation = first["conversation"]["id"].as_str().unwrap();
    let (_, items) = call(get(&client, &format!("/conversations/{conversation}/items?order=asc"))).await;
    let content = items["data"][0]["content"].clone();
    assert_eq!((&content[0]["text"], &content[1]["type"]), (&json!("Look"), &json!("input_image")), "{items}");
    let again = json!([{"role": "user", "content": content}, {"role": "user", "content": "Which colour?"}]);
    assert_eq!(call(create(&client, &json!({"input": again}))).await.0, 200);
    let (sent, _) = newest(&provider);
    assert!(sent.contains(BASE64), "{sent}");
}

#[tokio::test]
async fn the_model_sees_a_picture_that_a_tool_returns() {
    let (_holdfast, client, provider) = start(vec![ScriptedReply::call("ask", json!({}))]).await;
    let user = json!({"role": "user", "content": "What is on my screen?"});
    let (_, first) = call(create(&client, &json!({"input": [user], "tools": of_responses("ask")}))).await;
    let function_call = first["output"].as_array().unwrap().last().unwrap().clone();
    let id = &function_call["call_id"];
    let picture = json!([{"type": "input_image", "image_url": format!("data:image/png;base64,{BASE64}")}]);
    let result = json!({"type": "function_call_output", "call_id": id, "output": picture});
    let body = json!({"input": [user, function_call, result], "tools": of_responses("ask")});
    let away = json!("overloaded");
    provider.reply_with([ScriptedReply::Refuse(ProviderRefusal::of_openai(503, "Overloaded.", Value::Null, away))]);
    assert_eq!(call(create(&client, &body)).await.0, 503);
    provider.reply_with([ScriptedReply::text("A dot.")]);
    assert_eq!(text(&call(create(&client, &body)).await.1), "A dot.", "the model is asked again after a failure");
    let sent: Vec<bool> =
        provider.taken().iter().map(|request| request.messages().to_string().contains(BASE64)).collect();
    assert_eq!(sent, [false, true, true]);
}
