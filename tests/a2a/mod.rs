//! A2A's wire: its own clients, and requests one by one.

mod clients;
mod methods;
mod streams;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{BlockStream, Client, StreamBlock};

/// A run with reasoning, a call, an approval and a text.
const TALK: &str = r#"[think] [call=scripted__echo {"text":"hi"}] [approval] [tokens=12] hello"#;

/// Returns the parameters of a message.
fn message(id: &str, text: &str) -> Value {
    json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}})
}

/// Returns the parameters of a decision about a task.
fn decision(id: &str, task_id: &str, data: Value) -> Value {
    json!({"message": {"messageId": id, "role": "ROLE_USER", "taskId": task_id, "parts": [{"data": data}]}})
}

fn request(client: &Client, method: &str, params: &Value) -> RequestBuilder {
    let body = json!({"jsonrpc": "2.0", "id": "r-1", "method": method, "params": params});
    client.request(Method::POST, "/a2a").json(&body)
}

async fn call(client: &Client, method: &str, params: Value) -> Value {
    let response = request(client, method, &params).send().await.unwrap();
    assert_eq!(response.status(), 200, "{method} {params}");
    let response: Value = response.json().await.unwrap();
    assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!("r-1")), "{response}");
    response
}

/// Returns the result of a call.
async fn result(client: &Client, method: &str, params: Value) -> Value {
    let response = call(client, method, params).await;
    assert!(response.get("error").is_none(), "{response}");
    response["result"].clone()
}

/// Returns the code of the error of a call.
async fn error(client: &Client, method: &str, params: Value) -> i64 {
    let response = call(client, method, params).await;
    response["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method} gave {response}"))
}

async fn frames(request: RequestBuilder) -> Vec<StreamBlock> {
    BlockStream::open(request).await.rest().await
}

/// Returns the ids and the results of frames.
fn results(frames: &[StreamBlock]) -> Vec<(String, Value)> {
    let result = |frame: &StreamBlock| {
        let response = frame.json();
        assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!("r-1")), "{response}");
        (frame.id.clone().expect("each frame has an id"), response["result"].clone())
    };
    frames.iter().map(result).collect()
}

/// A task as a client keeps it: its state, its question and its text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeptTask {
    pub id: String,
    pub state: String,
    pub questions: Vec<Value>,
    pub text: String,
}

impl KeptTask {
    /// Returns the task after some results.
    fn of(results: &[(String, Value)]) -> Self {
        let mut task = Self::default();
        results.iter().for_each(|(_, result)| task.apply(result));
        task
    }

    pub fn apply(&mut self, result: &Value) {
        if let Some(task) = result.get("task") {
            let artifacts = task["artifacts"].as_array().unwrap();
            *self = Self { id: text(&task["id"]), text: artifacts.iter().map(text_of).collect(), ..Self::default() };
            self.status(&task["status"]);
        } else if let Some(update) = result.get("statusUpdate") {
            self.status(&update["status"]);
        } else {
            let update = &result["artifactUpdate"];
            if update["append"] == false {
                self.text.clear();
            }
            self.text += &text_of(&update["artifact"]);
        }
    }

    fn status(&mut self, status: &Value) {
        self.state = text(&status["state"]);
        let parts = status["message"]["parts"].as_array().into_iter().flatten();
        self.questions = parts.filter_map(|part| part.get("data").cloned()).collect();
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn text_of(artifact: &Value) -> String {
    artifact["parts"].as_array().unwrap().iter().map(|part| text(&part["text"])).collect()
}
