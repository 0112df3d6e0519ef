//! A client of LangGraph: messages that are joined from pieces, and values that replace them.

use std::collections::HashMap;

use reqwest::Method;
use serde_json::{Value, json};

use super::{ShownProgress, TALK, WireClient};
use crate::support::{BlockStream, Client, StreamBlock};

pub struct LangGraphClient {
    name: String,
    /// The path at which the newest request's stream continues.
    location: String,
    last: Option<String>,
    /// The joined pieces of each message since the values before, by the id of the pieces.
    pieces: HashMap<String, String>,
    /// The newest pieces of each message, by the message's id.
    newest: HashMap<String, String>,
    /// The texts that hold of a lost worker's messages.
    held: HashMap<String, String>,
    is_taken_over: bool,
    values: Value,
    error: Value,
    has_ended: bool,
}

impl LangGraphClient {
    async fn post(&mut self, api: &Client, more: Value) -> Option<BlockStream> {
        let modes = json!(["values", "messages-tuple", "updates"]);
        let mut body = json!({"assistant_id": "lead", "stream_mode": modes, "if_not_exists": "create"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let request = api.request(Method::POST, &format!("/langgraph/threads/{}/runs/stream", self.name));
        let response = request.json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.headers()["location"].to_str().unwrap().clone_into(&mut self.location);
        self.has_ended = false;
        Some(BlockStream::of(response))
    }
}

impl WireClient for LangGraphClient {
    fn new(name: String) -> Self {
        Self {
            name,
            location: String::new(),
            last: None,
            pieces: HashMap::new(),
            newest: HashMap::new(),
            held: HashMap::new(),
            is_taken_over: false,
            values: Value::Null,
            error: Value::Null,
            has_ended: false,
        }
    }

    async fn ask(&mut self, api: &Client) -> Option<BlockStream> {
        self.post(api, json!({"input": {"messages": [{"role": "user", "content": TALK}]}})).await
    }

    async fn approve(&mut self, api: &Client) -> Option<BlockStream> {
        self.post(api, json!({"command": {"resume": {"approved": true}}})).await
    }

    async fn come_back(&mut self, api: &Client) -> Option<BlockStream> {
        let request = api.request(Method::GET, &format!("/langgraph{}", self.location));
        let response =
            request.header("last-event-id", self.last.as_ref().expect("it has a frame")).send().await.unwrap();
        match response.status().as_u16() {
            200 => Some(BlockStream::of(response)),
            204 => None,
            status => panic!("{status}: {}", response.text().await.unwrap()),
        }
    }

    fn take(&mut self, frame: &StreamBlock) {
        self.last = frame.id.clone();
        match frame.event.as_deref().expect("a frame has a kind") {
            "metadata" => self.is_taken_over = true,
            "messages" => {
                let piece = &frame.json()[0];
                let id = piece["id"].as_str().unwrap();
                self.newest.insert(id.split('~').next().unwrap().to_owned(), id.to_owned());
                self.pieces.entry(id.to_owned()).or_default().push_str(piece["content"].as_str().unwrap());
            }
            "values" => {
                self.values = frame.json();
                let messages = self.values["messages"].as_array().unwrap();
                let text_of = |message: &Value| message["content"].as_str().unwrap().to_owned();
                let of_message = |message: &Value| (message["id"].as_str().unwrap().to_owned(), text_of(message));
                // The client keeps the pieces of a lost worker until the next values.
                if std::mem::take(&mut self.is_taken_over) {
                    self.held = messages.iter().map(of_message).collect();
                    self.newest.clear();
                    return;
                }
                for (id, text) in messages.iter().map(of_message) {
                    if let Some(pieces) = self.newest.get(&id) {
                        let held = self.held.get(&id).map_or("", String::as_str);
                        assert_eq!(text, format!("{held}{}", self.pieces[pieces]), "{id}");
                    }
                }
                self.held.clear();
                self.newest.clear();
                self.pieces.clear();
            }
            "error" => self.error = frame.json(),
            "end" => self.has_ended = true,
            _ => {}
        }
    }

    fn progress(&self) -> ShownProgress {
        match (self.has_ended, &self.error) {
            (_, Value::Object(_)) => ShownProgress::Ended,
            (true, _) if self.values["__interrupt__"].is_array() => ShownProgress::Asked,
            (true, _) => ShownProgress::Ended,
            (false, _) => ShownProgress::Streaming,
        }
    }

    fn shown(&self) -> Value {
        let messages = self.values["messages"].as_array().unwrap().iter();
        let without_ids = messages.map(|message| {
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            let calls: Vec<Value> = calls.map(|call| json!([call["name"], call["args"]])).collect();
            json!([message["type"], message["content"], calls])
        });
        json!({"messages": without_ids.collect::<Vec<_>>(), "error": self.error})
    }
}
