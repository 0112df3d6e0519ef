//! The streams of events of streamable HTTP, as rmcp reads them.
//!
//! rmcp would parse each event on a thread of the runtime. So a large answer is parsed here and left in its exchange, and rmcp
//! reads an empty answer. The client listens to no large notification of a server, so they are dropped; of a large request, rmcp
//! reads what it needs to refuse it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{StreamExt, stream::BoxStream};
use reqwest::Response;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use serde_json::json;
use sse_stream::{Error as SseError, Sse, SseStream};

use super::{
    answer::{self, MessageHead},
    characters,
    event_bytes::{self, StreamError},
    exchange::{McpExchange, WeakExchange},
    intake::{Intake, SMALL_BYTES},
    transport_failure::{TransportFailure, TransportFailureKind},
};
use crate::memory_budget::MemoryGuard;

pub type McpEventStream = BoxStream<'static, Result<Sse, SseError>>;

/// Requests in flight, whose answer may come on a stream that was resumed.
type ExpectedAnswers = Mutex<Vec<(RequestId, WeakExchange)>>;

/// Takes in the events of one connection; cheap to clone.
#[derive(Clone)]
pub struct EventIntake {
    pub intake: Intake,
    expected: Arc<ExpectedAnswers>,
}

/// The request that a stream answers; none for the standing stream and a resumed one.
#[derive(Clone, Default)]
struct AnsweredRequest {
    id: Option<RequestId>,
    exchange: Option<McpExchange>,
}

impl EventIntake {
    pub fn new(intake: Intake) -> Self {
        Self { intake, expected: Arc::default() }
    }

    /// Notes a request that is about to be sent.
    pub fn expect(&self, message: &ClientJsonRpcMessage, exchange: Option<&McpExchange>) {
        if let (ClientJsonRpcMessage::Request(request), Some(exchange)) = (message, exchange) {
            let mut expected = lock(&self.expected);
            expected.retain(|(_, exchange)| !exchange.is_gone());
            expected.push((request.id.clone(), exchange.downgrade()));
        }
    }

    /// Returns the stream that answers the request `id`. A message that is no JSON-RPC or too large becomes an answer. rmcp
    /// itself reports a stream that ends without an answer.
    pub fn of_post(&self, response: Response, id: RequestId, exchange: Option<McpExchange>) -> McpEventStream {
        self.events(response, AnsweredRequest { id: Some(id), exchange })
    }

    /// Returns the standing stream of a session, or one that was resumed.
    pub fn of_get(&self, response: Response) -> McpEventStream {
        self.events(response, AnsweredRequest::default())
    }

    fn events(&self, response: Response, answered: AnsweredRequest) -> McpEventStream {
        let (bytes, memory) = event_bytes::of(response, self.intake.clone(), answered.exchange.clone());
        let this = self.clone();
        let checked = SseStream::from_bytes_stream(bytes).then(move |event| {
            let (this, answered, memory) = (this.clone(), answered.clone(), memory.take());
            async move {
                let error = match event {
                    Ok(event) => return Ok(this.check(event, answered, memory).await),
                    Err(error) => error,
                };
                match (this.failure(&error), answered.id) {
                    (Some(failure), Some(id)) => Ok(Sse::default().data(text_of(&failure.into_answer(id)))),
                    // A broken connection stays an error, so that rmcp may resume the stream.
                    _ => Err(error),
                }
            }
        });
        checked.boxed()
    }

    /// Returns the event as rmcp should read it.
    async fn check(&self, event: Sse, answered: AnsweredRequest, memory: Option<MemoryGuard>) -> Sse {
        let Sse { event: kind, data, id: event_id, retry } = event;
        let passed_on = |data: Option<String>| Sse { event: kind, data, id: event_id, retry };
        let Some(text) = data.filter(|data| !data.trim().is_empty()) else { return passed_on(None) };
        let mended = |text: String| String::from_utf8(characters::mend(text.into_bytes())).unwrap_or_default();
        let small = (text.len() <= SMALL_BYTES).then(|| mended(text.clone()));
        let (expected, of_stream) = (Arc::clone(&self.expected), answered.id.clone());
        let parse = move |text: &[u8], within: Result<(), _>| {
            let head = MessageHead::of(text);
            if head.is_call() {
                return Err(head.bare_request());
            }
            let (id, exchange) = match of_stream {
                Some(id) => (id, None),
                None => head.id.as_ref().and_then(|id| find(&expected, id)).ok_or(None)?,
            };
            Ok((within.and_then(|()| answer::read(text, &id)), id, exchange))
        };
        let taken = self.intake.read(text.into_bytes(), answered.exchange.as_ref(), memory, parse).await;
        let (answer, id, found) = match taken.parsed {
            Ok(parsed) => parsed,
            Err(request) => return passed_on(small.or(request)),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => return passed_on(Some(text_of(&failure.into_answer(id)))),
        };
        match (answered.exchange.or(found), small) {
            (Some(exchange), Some(small)) => {
                exchange.deposit(taken.size, taken.memory, None);
                passed_on(Some(small))
            }
            (Some(exchange), None) => {
                exchange.deposit(taken.size, taken.memory, Some(answer));
                passed_on(Some(json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string()))
            }
            // The answer to the handshake, which rmcp makes by itself.
            (None, small) => passed_on(small.or_else(|| Some(text_of(&answer)))),
        }
    }

    /// Returns the failure that a stream's error is; `None` if the connection broke.
    fn failure(&self, error: &SseError) -> Option<TransportFailure> {
        let SseError::Body(body) = error else {
            let problem = format!("the stream of events cannot be read: {error}");
            return Some(TransportFailure::new(TransportFailureKind::Malformed, problem));
        };
        match body.downcast_ref()? {
            StreamError::TooLarge => Some(TransportFailure::too_large(self.intake.limits.bytes)),
            StreamError::Slow | StreamError::Broken(_) => None,
        }
    }
}

/// Returns the request that expects the answer with this id.
fn find(expected: &ExpectedAnswers, found: &RequestId) -> Option<(RequestId, Option<McpExchange>)> {
    let expected = lock(expected);
    let (id, exchange) = expected.iter().find(|(id, _)| answer::same_id(id, found))?;
    Some((id.clone(), Some(exchange.upgrade()?)))
}

fn text_of(answer: &ServerJsonRpcMessage) -> String {
    serde_json::to_string(answer).expect("a parsed answer is JSON")
}

fn lock(expected: &ExpectedAnswers) -> MutexGuard<'_, Vec<(RequestId, WeakExchange)>> {
    expected.lock().unwrap_or_else(PoisonError::into_inner)
}
