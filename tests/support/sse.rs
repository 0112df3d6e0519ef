//! A stream of events as a client receives it, byte for byte.

use futures::{Stream, StreamExt};
use serde_json::Value;

use super::TIMEOUT;

/// One frame, with its raw lines.
#[derive(Debug, Clone, PartialEq)]
pub struct EventFrame {
    pub id: String,
    pub event: String,
    pub data: Value,
    pub raw: String,
}

impl EventFrame {
    pub fn is_terminal(&self) -> bool {
        matches!(self.event.as_str(), "run.completed" | "run.failed" | "run.cancelled")
    }

    /// Returns attempt and number.
    pub fn position(&self) -> (u32, u32) {
        let (attempt, n) = self.id.split_once('-').expect("an event id has a dash");
        (attempt.parse().unwrap(), n.parse().unwrap())
    }
}

/// The connection ended without the end of the chunked body.
#[derive(Debug)]
pub struct UncleanEnd;

/// An open stream.
pub struct EventStream {
    pub run_id: String,
    bytes: std::pin::Pin<Box<dyn Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    buffer: String,
    /// The first bytes of a character whose other bytes have not arrived.
    partial: Vec<u8>,
}

impl EventStream {
    pub fn new(response: reqwest::Response) -> Self {
        let run_id = response.headers()["x-run-id"].to_str().unwrap().to_owned();
        Self { run_id, bytes: Box::pin(response.bytes_stream()), buffer: String::new(), partial: Vec::new() }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        let valid = match std::str::from_utf8(&self.partial) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = self.partial.split_off(valid);
        self.buffer.push_str(std::str::from_utf8(&self.partial).expect("it was just checked"));
        self.partial = rest;
    }

    /// Returns the next event, or `None` at a clean end.
    pub async fn next(&mut self) -> Result<Option<EventFrame>, UncleanEnd> {
        let next = async {
            loop {
                if let Some((block, rest)) = self.buffer.split_once("\n\n") {
                    let frame = parse(block);
                    self.buffer = rest.to_owned();
                    match frame {
                        Some(frame) => return Ok(Some(frame)),
                        None => continue,
                    }
                }
                match self.bytes.next().await {
                    Some(Ok(bytes)) => self.take(&bytes),
                    Some(Err(_)) => return Err(UncleanEnd),
                    None => return Ok(None),
                }
            }
        };
        tokio::time::timeout(TIMEOUT, next).await.expect("the stream went silent")
    }

    /// Returns the received part of an incomplete block.
    pub fn unfinished(&self) -> &str {
        &self.buffer
    }

    /// Returns all events up to the clean end.
    pub async fn rest(mut self) -> Vec<EventFrame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await.expect("the stream was broken off") {
            frames.push(frame);
        }
        frames
    }

    /// Returns all events until the server breaks the stream off, and the incomplete rest. Fails at a clean end in mid-run,
    /// which clients would take for the end of the run.
    pub async fn until_broken(mut self) -> (Vec<EventFrame>, String) {
        let mut frames = Vec::new();
        loop {
            match self.next().await {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => panic!("the stream ended cleanly in mid-run, after {:?}", frames.last()),
                Err(UncleanEnd) => return (frames, self.unfinished().to_owned()),
            }
        }
    }

    /// Returns the events up to the first one of a kind, inclusive.
    pub async fn up_to(&mut self, event: &str) -> Vec<EventFrame> {
        self.up_to_nth(event, 1).await
    }

    /// Returns the events up to the n-th one of a kind, inclusive.
    pub async fn up_to_nth(&mut self, event: &str, mut n: usize) -> Vec<EventFrame> {
        let mut frames = Vec::new();
        while n > 0 {
            let frame = self
                .next()
                .await
                .expect("the stream was broken off")
                .unwrap_or_else(|| panic!("the stream ended without {event}: {frames:?}"));
            n -= usize::from(frame.event == event);
            frames.push(frame);
        }
        frames
    }
}

/// Parses a block; `None` for heartbeats and `retry:`.
fn parse(block: &str) -> Option<EventFrame> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let data: Value = serde_json::from_str(&field("data: ")?).expect("data is one line of JSON");
    let lines: Vec<&str> = block.lines().filter(|line| !line.starts_with(':')).collect();
    Some(EventFrame { id: field("id: ")?, event: field("event: ")?, data, raw: lines.join("\n") })
}

/// Returns the text that a client shows in the end. Fails where the ids do not prove that no event is missing.
pub fn fold(frames: &[EventFrame]) -> String {
    let deltas = without_superseded(frames).into_iter().filter(|frame| frame.event == "message.delta");
    deltas.map(|frame| frame.data["text"].as_str().unwrap()).collect()
}

/// Returns the frames that no later attempt has superseded. Fails where the ids do not prove that no event is missing.
pub fn without_superseded(frames: &[EventFrame]) -> Vec<&EventFrame> {
    let mut current: Vec<&EventFrame> = Vec::new();
    let mut cursor = (0, 0);
    for frame in frames {
        let at = frame.position();
        assert!(at > cursor, "{at:?} came after {cursor:?}");
        let base = frame.data["base"].as_str().map(|base| {
            let (attempt, n) = base.split_once('-').unwrap();
            (attempt.parse().unwrap(), n.parse().unwrap())
        });
        let continues = at.0 == cursor.0 && at.1 == cursor.1 + 1;
        assert!(
            continues || at.1 == 1 && base.is_some_and(|base| cursor >= base),
            "{at:?} (base {base:?}) does not follow {cursor:?}"
        );
        if let Some(base) = base {
            current.retain(|frame| frame.position() <= base);
        }
        current.push(frame);
        cursor = at;
    }
    current
}
