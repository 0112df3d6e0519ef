//! A client of A2A: a stream of updates of one task.

use reqwest::Method;
use serde_json::{Value, json};

use super::{ShownProgress, TALK, WireClient};
use crate::{
    a2a::KeptTask,
    support::{BlockStream, Client, StreamBlock},
};

pub struct A2aClient {
    name: String,
    task: KeptTask,
}

impl A2aClient {
    async fn send(&mut self, api: &Client, method: &str, params: Value) -> Option<BlockStream> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = api.request(Method::POST, "/a2a/agents/lead").header("accept", "text/event-stream");
        let response = request.json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        if response.headers().contains_key("x-run-id") {
            return Some(BlockStream::of(response));
        }
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer["error"]["code"], -32004, "only a task that has ended cannot be subscribed: {answer}");
        let body = json!({"jsonrpc": "2.0", "id": 2, "method": "GetTask", "params": {"id": self.task.id}});
        let response = api.request(Method::POST, "/a2a/agents/lead").json(&body).send().await.unwrap();
        let task: Value = response.json().await.unwrap();
        self.task.apply(&json!({"task": task["result"]}));
        None
    }
}

impl WireClient for A2aClient {
    fn new(name: String) -> Self {
        Self { name, task: KeptTask::default() }
    }

    async fn ask(&mut self, api: &Client) -> Option<BlockStream> {
        let message = json!({"messageId": self.name, "role": "ROLE_USER", "parts": [{"text": TALK}]});
        self.send(api, "SendStreamingMessage", json!({"message": message})).await
    }

    async fn approve(&mut self, api: &Client) -> Option<BlockStream> {
        // A call whose outcome is lost with its worker is a question, too.
        let approval_id = self.task.questions[0]["approvalId"].clone();
        let id = format!("{}-{}", self.name, approval_id.as_str().unwrap());
        "TASK_STATE_WORKING".clone_into(&mut self.task.state);
        let parts = json!([{"data": {"decision": "approve", "approvalId": approval_id}}]);
        let message = json!({"messageId": id, "role": "ROLE_USER", "taskId": self.task.id, "parts": parts});
        self.send(api, "SendStreamingMessage", json!({"message": message})).await
    }

    async fn come_back(&mut self, api: &Client) -> Option<BlockStream> {
        let params = json!({"id": self.task.id});
        self.send(api, "SubscribeToTask", params).await
    }

    fn take(&mut self, frame: &StreamBlock) {
        self.task.apply(&frame.json()["result"]);
    }

    fn progress(&self) -> ShownProgress {
        match self.task.state.as_str() {
            "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING" => ShownProgress::Streaming,
            "TASK_STATE_INPUT_REQUIRED" => ShownProgress::Asked,
            _ => ShownProgress::Ended,
        }
    }

    fn shown(&self) -> Value {
        json!({"state": self.task.state, "text": self.task.text})
    }
}
