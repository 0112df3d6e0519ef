//! OpenAI's wire as Open WebUI calls it: a list of models, streamed answers to a page that has the history, and titles.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    in_either_mode,
    support::{BlockStream, Client, Deployment},
};

in_either_mode!(a_chat_of_open_webui_is_answered_and_named);

fn request(client: &Client, method: Method, path: &str) -> RequestBuilder {
    let request = client.request(method, &format!("/openai/v1{path}"));
    request.header("x-openwebui-user-id", "u1").header("x-openwebui-user-name", "Ann")
}

/// Streams the answer to the messages of a page. Its backend sends the page's settings, and asks for the usage.
async fn answer(client: &Client, model: &str, messages: &[Value]) -> (String, Value) {
    let body = json!({
        "model": model, "messages": messages, "stream": true, "stream_options": {"include_usage": true},
        "temperature": 0.5, "max_tokens": 100, "seed": 1, "stop": ["END"], "frequency_penalty": 0
    });
    let stream = request(client, Method::POST, "/chat/completions").json(&body);
    let frames = BlockStream::open(stream).await.rest().await;
    let (done, chunks) = frames.split_last().unwrap();
    assert_eq!(done.data, "[DONE]");
    let chunks: Vec<Value> = chunks.iter().map(|chunk| chunk.json()).collect();
    let text = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    let usage = chunks.last().unwrap();
    assert_eq!(usage["choices"], json!([]), "the last chunk has the usage only");
    (text, usage["usage"].clone())
}

async fn a_chat_of_open_webui_is_answered_and_named(mut deployment: Deployment) {
    let client = deployment.client();
    let listed: Value = request(&client, Method::GET, "/models").send().await.unwrap().json().await.unwrap();
    let model = listed["data"][0]["id"].as_str().unwrap().to_owned();
    let mut messages = vec![json!({"role": "user", "content": "[tokens=3] hello"})];
    let (first, usage) = answer(&client, &model, &messages).await;
    assert!(!first.is_empty());
    messages.push(json!({"role": "assistant", "content": first}));
    messages.push(json!({"role": "user", "content": [{"type": "text", "text": "[tokens=3] and now"}]}));
    let (second, longer) = answer(&client, &model, &messages).await;
    assert!(!second.is_empty());
    assert!(longer["prompt_tokens"].as_u64() > usage["prompt_tokens"].as_u64(), "the model reads the history");
    let title = json!({
        "model": model, "stream": false, "max_completion_tokens": 1000,
        "messages": [{"role": "user", "content": "[tokens=3] Name this chat: <chat_history>…</chat_history>"}]
    });
    let named = request(&client, Method::POST, "/chat/completions").json(&title).send().await.unwrap();
    let named: Value = named.json().await.unwrap();
    assert!(!named["choices"][0]["message"]["content"].as_str().unwrap().is_empty(), "{named}");
    // The page keeps the chat, so the server lists none of its requests.
    assert_eq!(client.get("/v1/conversations").await.unwrap()["items"], json!([]));
}
