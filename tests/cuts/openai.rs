//! A client of OpenAI's responses: items that events append to.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{ShownProgress, TALK, WireClient};
use crate::support::{BlockStream, Client, StreamBlock};

#[derive(Default)]
pub struct ResponsesClient {
    /// The items of the ended responses.
    ended: Vec<Value>,
    id: Value,
    /// The number of the last event.
    last: u64,
    /// The items that have not ended, joined from pieces.
    open: Vec<Value>,
    end: Value,
}

impl ResponsesClient {
    async fn create(&mut self, api: &Client, body: Value) -> Option<BlockStream> {
        self.end = Value::Null;
        let request = api.request(Method::POST, "/openai/v1/responses").json(&body);
        Some(open(request).await.expect("the server takes the request"))
    }

    fn item(&mut self, id: &Value) -> &mut Value {
        self.open.iter_mut().find(|item| item["id"] == *id).unwrap_or_else(|| panic!("no open item is {id}"))
    }
}

/// Returns the stream, or the problem.
async fn open(request: RequestBuilder) -> Result<BlockStream, Value> {
    let response = request.header("accept", "text/event-stream").send().await.unwrap();
    match response.status().as_u16() {
        200 => Ok(BlockStream::of(response)),
        _ => Err(response.json().await.unwrap()),
    }
}

/// Returns an item's texts, name, arguments and output.
fn shown(item: &Value) -> Value {
    let texts = |field: &str| -> String {
        item[field].as_array().into_iter().flatten().map(|part| part["text"].as_str().unwrap()).collect()
    };
    json!([
        item["type"],
        texts("content"),
        texts("summary"),
        item["name"],
        item["arguments"],
        item["output"],
        item["status"]
    ])
}

impl WireClient for ResponsesClient {
    fn new(_name: String) -> Self {
        Self::default()
    }

    async fn ask(&mut self, api: &Client) -> Option<BlockStream> {
        self.create(api, json!({"model": "lead", "input": TALK, "stream": true})).await
    }

    async fn approve(&mut self, api: &Client) -> Option<BlockStream> {
        let asked = self.end["output"].as_array().unwrap().last().unwrap()["id"].clone();
        let approval = json!({"type": "mcp_approval_response", "approval_request_id": asked, "approve": true});
        self.ended.extend(self.end["output"].as_array().unwrap().iter().map(shown));
        let body = json!({"model": "lead", "input": [approval], "previous_response_id": self.id, "stream": true});
        self.create(api, body).await
    }

    async fn come_back(&mut self, api: &Client) -> Option<BlockStream> {
        let path = format!("/openai/v1/responses/{}?stream=true", self.id.as_str().expect("it has a response"));
        match open(api.request(Method::GET, &format!("{path}&starting_after={}", self.last))).await {
            Ok(stream) => Some(stream),
            Err(problem) => {
                assert_eq!(problem["error"]["code"], "response_taken_over", "{problem}");
                self.open.clear();
                Some(open(api.request(Method::GET, &path)).await.expect("the response comes again"))
            }
        }
    }

    fn take(&mut self, frame: &StreamBlock) {
        let event = frame.json();
        let number = event["sequence_number"].as_u64().unwrap();
        assert!(number == 0 || number == self.last + 1, "{number} follows {}", self.last);
        self.last = number;
        let id = &event["item_id"];
        match event["type"].as_str().unwrap() {
            "response.created" => self.id = event["response"]["id"].clone(),
            "response.output_item.added" => self.open.push(json!({"id": event["item"]["id"], "joined": ""})),
            "response.output_text.delta"
            | "response.reasoning_summary_text.delta"
            | "response.mcp_call_arguments.delta" => {
                let joined = &mut self.item(id)["joined"];
                *joined = format!("{}{}", joined.as_str().unwrap(), event["delta"].as_str().unwrap()).into();
            }
            "response.output_item.done" => {
                let joined = self.item(&event["item"]["id"])["joined"].as_str().unwrap().to_owned();
                self.open.retain(|item| item["id"] != event["item"]["id"]);
                let item = shown(&event["item"]);
                let is_whole = [&item[1], &item[2], &item[4]].into_iter().any(|field| *field == joined);
                assert!(is_whole || item[0] == "mcp_approval_request", "{joined:?} became {item}");
            }
            "response.completed" | "response.failed" | "response.incomplete" => self.end = event["response"].clone(),
            _ => {}
        }
    }

    fn progress(&self) -> ShownProgress {
        match self.end["status"].as_str() {
            None => ShownProgress::Streaming,
            Some("completed") => ShownProgress::Asked,
            Some(_) => ShownProgress::Ended,
        }
    }

    fn shown(&self) -> Value {
        let last = self.end["output"].as_array().unwrap().iter().map(shown);
        // A call whose outcome is lost with its worker is asked about, so a question may come twice.
        let items = self.ended.iter().cloned().chain(last).filter(|item| item[6] == "completed");
        json!({"items": items.collect::<Vec<_>>(), "status": self.end["status"], "error": self.end["error"]})
    }
}
