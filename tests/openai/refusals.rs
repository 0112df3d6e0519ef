//! Refusals of the model's provider, as the statuses by which OpenAI's clients decide whether they repeat a request.

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::{call, completion, create};
use crate::support::{
    Embedded,
    providers::{OPENAI, Part, ProviderRefusal, RuledProvider, ScriptedReply},
};

/// Returns the status, the headers that concern a repetition, and the error of a response.
async fn refusal(request: RequestBuilder) -> (u16, Option<String>, Option<String>, Value) {
    let response = request.send().await.unwrap();
    let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let (should_retry, retry_after) = (header("x-should-retry"), header("retry-after"));
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    (status, should_retry, retry_after, body["error"].clone())
}

#[tokio::test]
async fn a_refusal_of_the_provider_has_its_status_on_both_routes_and_in_streams() {
    let provider = RuledProvider::start(OPENAI, []).await;
    let mut embedded = Embedded::new().with("HOLDFAST_MODEL_RETRIES", 0);
    embedded.settings.extend(provider.settings());
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let too_long =
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9100 tokens.";
    // The status and the words of the provider, then the status, the code, the type, and the header of the response.
    let table = [
        (
            400,
            too_long,
            "context_length_exceeded",
            400,
            "context_length_exceeded",
            "invalid_request_error",
            Some("false"),
        ),
        (
            400,
            "Your input was flagged.",
            "invalid_prompt",
            400,
            "model_refused",
            "invalid_request_error",
            Some("false"),
        ),
        (
            404,
            "There is no such model.",
            "model_not_found",
            404,
            "model_not_found",
            "invalid_request_error",
            Some("false"),
        ),
        (429, "Please slow down.", "rate_limit_exceeded", 429, "rate_limit_exceeded", "rate_limit_error", None),
        (503, "Overloaded.", "overloaded", 503, "model_unavailable", "server_error", None),
        (401, "Wrong key.", "invalid_api_key", 500, "run_failed", "server_error", Some("false")),
    ];
    for (status, words, code, expected, expected_code, kind, should_retry) in table {
        let refused = || ScriptedReply::Refuse(ProviderRefusal::of_openai(status, words, Value::Null, json!(code)));
        for stream in [false, true] {
            let message = json!([{"role": "user", "content": "x"}]);
            let requests = [
                completion(&client, &json!({"messages": message, "stream": stream})),
                create(&client, &json!({"input": "x", "stream": stream})),
            ];
            for request in requests {
                // A request that is too long is asked once more, without what came before.
                provider.reply_with((0..4).map(|_| refused()));
                let (found, header, retry_after, error) = refusal(request).await;
                assert_eq!((found, error["code"].as_str()), (expected, Some(expected_code)), "{words}: {error}");
                assert_eq!((error["type"].as_str(), header.as_deref()), (Some(kind), should_retry), "{words}: {error}");
                assert_eq!(retry_after.is_some(), [429, 503].contains(&expected), "{words}: {retry_after:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_provider_that_is_away_is_503() {
    let mut embedded = Embedded::new().with("HOLDFAST_MODEL_RETRIES", 0);
    embedded.settings.extend((OPENAI.settings)("http://127.0.0.1:1"));
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let (status, _, retry_after, error) =
        refusal(completion(&client, &json!({"messages": [{"role": "user", "content": "x"}]}))).await;
    assert_eq!((status, error["code"].as_str()), (503, Some("model_unreachable")), "{error}");
    assert!(retry_after.is_some());
}

#[tokio::test]
async fn a_failure_after_the_first_words_ends_the_stream_with_an_error() {
    let provider = RuledProvider::start(OPENAI, []).await;
    provider.reply_with([ScriptedReply::Answer(vec![Part::Text("One."), Part::Text("Two.")])]);
    let mut embedded = Embedded::new().with("HOLDFAST_MODEL_RETRIES", 0).with("HOLDFAST_MAX_ANSWER_BYTES", 5);
    embedded.settings.extend(provider.settings());
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let body = json!({"messages": [{"role": "user", "content": "x"}], "stream": true});
    let text = completion(&client, &body).send().await.unwrap().text().await.unwrap();
    assert!(text.contains("One.") && text.contains(r#""code":"run_failed""#), "{text}");
}

#[tokio::test]
async fn a_refusal_after_the_result_of_a_call_has_its_status() {
    let provider = RuledProvider::start(OPENAI, []).await;
    let mut embedded = Embedded::new().with("HOLDFAST_MODEL_RETRIES", 0);
    embedded.settings.extend(provider.settings());
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let parameters = json!({"type": "object", "properties": {}});
    let of_completions = json!([{"type": "function", "function": {"name": "ask", "parameters": parameters}}]);
    let of_responses = json!([{"type": "function", "name": "ask", "parameters": parameters}]);
    let slow = || {
        let code = json!("rate_limit_exceeded");
        ScriptedReply::Refuse(ProviderRefusal::of_openai(429, "Please slow down.", Value::Null, code))
    };
    let code = json!("rate_limit_exceeded");
    // A repeated completion is a question of its own; a repeated answer to a response finds its run again.
    let (of_completion, of_response) = ((429, None, code.clone()), (429, Some("false".to_owned()), code));
    for stream in [false, true] {
        provider.reply_with([ScriptedReply::call("ask", json!({})), slow()]);
        let mut messages = vec![json!({"role": "user", "content": "x"})];
        let body =
            |messages: &[Value], stream: bool| json!({"messages": messages, "tools": of_completions, "stream": stream});
        let (_, asked) = call(completion(&client, &body(&messages, false))).await;
        let message = asked["choices"][0]["message"].clone();
        let id = message["tool_calls"][0]["id"].clone();
        messages.extend([message, json!({"role": "tool", "tool_call_id": id, "content": "teal"})]);
        let (status, header, _, error) = refusal(completion(&client, &body(&messages, stream))).await;
        assert_eq!((status, header, error["code"].clone()), of_completion, "{error}");

        provider.reply_with([ScriptedReply::call("ask", json!({})), slow()]);
        let (_, asked) = call(create(&client, &json!({"input": "x", "tools": of_responses}))).await;
        let id = asked["output"].as_array().unwrap().last().unwrap()["call_id"].clone();
        let answered = |model: Value, choice: Value| {
            let result = json!({"type": "function_call_output", "call_id": id, "output": "teal"});
            json!({"input": [result], "tools": of_responses, "stream": stream, "model": model, "tool_choice": choice})
        };
        let (status, _, _, error) = refusal(create(&client, &answered(json!("nobody"), json!("auto")))).await;
        assert_eq!((status, &error["code"]), (404, &json!("model_not_found")), "an answer names a model, too: {error}");
        let choice = json!({"type": "function", "name": "ask", "namespace": "\u{0}"});
        let (status, _, _, error) = refusal(create(&client, &answered(Value::Null, choice))).await;
        assert_eq!((status, &error["code"]), (400, &json!("invalid_body")), "{error}");
        let (status, header, _, error) = refusal(create(&client, &answered(Value::Null, json!("auto")))).await;
        assert_eq!((status, header, error["code"].clone()), of_response, "{error}");
    }
}

#[tokio::test]
async fn a_conflict_is_not_repeated() {
    let mut holdfast = Embedded::new().start();
    let client = holdfast.client();
    let (status, should_retry, _, error) = refusal(create(&client, &json!({"input": ""}))).await;
    assert_eq!((status, should_retry.as_deref(), error["code"].as_str()), (400, Some("false"), Some("empty_content")));
}
