//! A client of AG-UI: messages that events append to, and snapshots replace.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{ShownProgress, TALK, WireClient};
use crate::support::{BlockStream, Client, StreamBlock};

pub struct AgUiClient {
    name: String,
    /// The newest request, which a client repeats to continue.
    request: Value,
    last: Option<String>,
    messages: Vec<Value>,
    end: Value,
}

impl AgUiClient {
    fn message(&mut self, id: &Value) -> &mut Value {
        self.messages.iter_mut().find(|message| message["id"] == *id).unwrap_or_else(|| panic!("no message is {id}"))
    }

    async fn post(&mut self, api: &Client, run: &str, more: Value) -> Option<BlockStream> {
        self.end = Value::Null;
        let mut body = json!({"threadId": self.name, "runId": run, "protocolVersion": "1.0", "messages": [], "tools": [], "context": [], "state": {}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.request = body;
        open(self.repeated(api)).await
    }

    fn repeated(&self, api: &Client) -> RequestBuilder {
        api.request(Method::POST, "/ag-ui/agents/lead").json(&self.request)
    }
}

async fn open(request: RequestBuilder) -> Option<BlockStream> {
    let response = request.header("accept", "text/event-stream").send().await.unwrap();
    match response.status().as_u16() {
        204 => None,
        200 => Some(BlockStream::of(response)),
        status => panic!("{status}: {}", response.text().await.unwrap()),
    }
}

/// Appends a text to a field.
fn append(field: &mut Value, delta: &Value) {
    *field = format!("{}{}", field.as_str().unwrap_or_default(), delta.as_str().unwrap()).into();
}

impl WireClient for AgUiClient {
    fn new(name: String) -> Self {
        Self { name, request: Value::Null, last: None, messages: Vec::new(), end: Value::Null }
    }

    async fn ask(&mut self, api: &Client) -> Option<BlockStream> {
        let messages = json!([{"id": "m-1", "role": "user", "content": TALK}]);
        self.messages = messages.as_array().unwrap().clone();
        let run = format!("{}-first", self.name);
        self.post(api, &run, json!({ "messages": messages })).await
    }

    async fn approve(&mut self, api: &Client) -> Option<BlockStream> {
        let id = self.end["outcome"]["interrupts"][0]["id"].clone();
        let resume = json!([{"interruptId": id, "status": "resolved", "payload": {"approved": true}}]);
        let run = format!("{}-{}", self.name, id.as_str().expect("it has a question"));
        self.post(api, &run, json!({ "resume": resume })).await
    }

    async fn come_back(&mut self, api: &Client) -> Option<BlockStream> {
        open(self.repeated(api).header("last-event-id", self.last.as_ref().expect("it has a frame"))).await
    }

    fn take(&mut self, frame: &StreamBlock) {
        self.last = frame.id.clone();
        let event = frame.json();
        let id = &event["messageId"];
        match event["type"].as_str().unwrap() {
            "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START" => {
                // A snapshot may have the message that begins.
                let known = self.messages.iter().find(|message| message["id"] == *id);
                assert!(known.is_none_or(|message| message["content"] == ""), "{id} begins twice");
                if known.is_none() {
                    self.messages.push(json!({"id": id, "role": event["role"], "content": ""}));
                }
            }
            "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => {
                append(&mut self.message(id)["content"], &event["delta"]);
            }
            "TOOL_CALL_START" => {
                let call =
                    json!({"id": event["toolCallId"], "function": {"name": event["toolCallName"], "arguments": ""}});
                let parent = &event["parentMessageId"];
                match self.messages.iter_mut().find(|message| message["id"] == *parent) {
                    Some(message) if message["toolCalls"].is_array() => {
                        message["toolCalls"].as_array_mut().unwrap().push(call);
                    }
                    Some(message) => message["toolCalls"] = json!([call]),
                    None => self.messages.push(json!({"id": parent, "role": "assistant", "toolCalls": [call]})),
                }
            }
            "TOOL_CALL_ARGS" => {
                let calls =
                    self.messages.iter_mut().filter_map(|message| message["toolCalls"].as_array_mut()).flatten();
                let call = calls.into_iter().find(|call| call["id"] == event["toolCallId"]).expect("it has begun");
                append(&mut call["function"]["arguments"], &event["delta"]);
            }
            "TOOL_CALL_RESULT" => {
                self.messages.push(json!({"id": id, "role": "tool", "content": event["content"]}));
            }
            "MESSAGES_SNAPSHOT" => self.messages.clone_from(event["messages"].as_array().unwrap()),
            "RUN_FINISHED" | "RUN_ERROR" => self.end = event,
            _ => {}
        }
    }

    fn progress(&self) -> ShownProgress {
        match (self.end["type"].as_str(), self.end["outcome"]["type"].as_str()) {
            (None, _) => ShownProgress::Streaming,
            (_, Some("interrupt")) => ShownProgress::Asked,
            _ => ShownProgress::Ended,
        }
    }

    fn shown(&self) -> Value {
        let messages = self.messages.iter().filter(|message| message["role"] != "user");
        let without_ids = messages.map(|message| {
            let calls = message["toolCalls"].as_array().into_iter().flatten().map(|call| call["function"].clone());
            json!([message["role"], message["content"].as_str().unwrap_or_default(), calls.collect::<Vec<_>>()])
        });
        json!({"messages": without_ids.collect::<Vec<_>>(), "end": self.end["type"], "message": self.end["message"]})
    }
}
