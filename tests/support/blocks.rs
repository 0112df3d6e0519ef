//! A stream of the chat wire or the text wire as a client receives it: blocks of lines, byte for byte.

use std::pin::Pin;

use futures::{Stream, StreamExt};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::{Client, TIMEOUT, UncleanEnd};

/// The lines between two blank lines.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamBlock {
    pub id: Option<String>,
    pub event: Option<String>,
    /// The `data:` lines, joined by the rules of SSE.
    pub data: String,
    pub comments: Vec<String>,
    pub raw: String,
}

impl StreamBlock {
    fn read(raw: &str) -> Self {
        let lines = |name: &'static str| raw.lines().filter_map(move |line| line.strip_prefix(name)).map(str::to_owned);
        let data: Vec<String> = lines("data: ").collect();
        let first = |name| lines(name).next();
        Self {
            id: first("id: "),
            event: first("event: "),
            data: data.join("\n"),
            comments: lines(": ").collect(),
            raw: raw.to_owned(),
        }
    }

    /// Returns the frame of a chat stream.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {:?}", self.raw))
    }
}

/// An open stream.
pub struct BlockStream {
    /// Empty for a stream of several runs.
    pub run_id: String,
    bytes: Pin<Box<dyn Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    buffer: Vec<u8>,
}

impl BlockStream {
    /// Sends a request for a stream.
    pub async fn open(request: RequestBuilder) -> Self {
        let response = request.header("accept", "text/event-stream").send().await.unwrap();
        let status = response.status();
        if status != 200 {
            panic!("{status}: {}", response.text().await.unwrap());
        }
        Self::of(response)
    }

    /// Wraps a response that is a stream.
    pub fn of(response: reqwest::Response) -> Self {
        let run_id = response.headers().get("x-run-id").map_or("", |id| id.to_str().unwrap()).to_owned();
        Self { run_id, bytes: Box::pin(response.bytes_stream()), buffer: Vec::new() }
    }

    /// Rejoins a run on a wire; `None` if the client has all of it.
    pub async fn rejoin(client: &Client, run_id: &str, query: &str, after: Option<&str>) -> Option<Self> {
        let mut request = client.request(Method::GET, &format!("/v1/runs/{run_id}/events?{query}"));
        if let Some(id) = after {
            request = request.header("last-event-id", id);
        }
        let is_over = request.try_clone().unwrap().send().await.unwrap().status() == 204;
        if is_over {
            return None;
        }
        Some(Self::open(request).await)
    }

    /// Returns the next block, or `None` at a clean end.
    pub async fn next(&mut self) -> Result<Option<StreamBlock>, UncleanEnd> {
        let next = async {
            loop {
                if let Some(end) = self.buffer.windows(2).position(|two| two == b"\n\n") {
                    let raw = String::from_utf8(self.buffer.drain(..end + 2).collect()).unwrap();
                    match StreamBlock::read(raw.trim_end_matches('\n')) {
                        block if block.raw.starts_with("retry: ") => continue,
                        block => return Ok(Some(block)),
                    }
                }
                match self.bytes.next().await {
                    Some(Ok(bytes)) => self.buffer.extend_from_slice(&bytes),
                    Some(Err(_)) => return Err(UncleanEnd),
                    None => return Ok(None),
                }
            }
        };
        tokio::time::timeout(TIMEOUT, next).await.expect("the stream went silent")
    }

    /// Returns the next `count` blocks.
    pub async fn take(&mut self, count: usize) -> Vec<StreamBlock> {
        let mut blocks = Vec::new();
        while blocks.len() < count {
            blocks.push(self.next().await.expect("the stream was broken off").expect("the stream has ended"));
        }
        blocks
    }

    /// Waits until the server has sent this text, also within an incomplete block.
    pub async fn until_sent(&mut self, text: &str) {
        let sent = async {
            while !String::from_utf8_lossy(&self.buffer).contains(text) {
                let bytes = self.bytes.next().await.expect("the stream has ended").expect("the stream was broken off");
                self.buffer.extend_from_slice(&bytes);
            }
        };
        tokio::time::timeout(TIMEOUT, sent).await.expect("the stream went silent");
    }

    /// Returns all blocks up to the clean end.
    pub async fn rest(mut self) -> Vec<StreamBlock> {
        let mut blocks = Vec::new();
        while let Some(block) = self.next().await.expect("the stream was broken off") {
            blocks.push(block);
        }
        assert!(self.buffer.is_empty(), "the stream ended in mid-frame: {:?}", String::from_utf8_lossy(&self.buffer));
        blocks
    }
}
