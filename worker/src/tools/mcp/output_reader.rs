//! Reads the output of a child: each line is a message, and an answer belongs to the request that waits for it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::model::{RequestId, ServerJsonRpcMessage};
use tokio::{io::AsyncRead, sync::mpsc, time::timeout};

use super::{
    answer::{self, MessageHead},
    exchange::McpExchange,
    intake::{Intake, SMALL_BYTES},
    lines::{LineReader, OutputLine},
    transport_failure::TransportFailure,
};
use crate::memory_budget::MemoryGuard;

/// The requests of one connection whose answer may still arrive; cheap to clone.
#[derive(Clone, Default)]
pub struct SentRequests(Arc<Mutex<PendingRequests>>);

#[derive(Default)]
struct PendingRequests {
    waiting: Vec<(RequestId, Option<McpExchange>)>,
    /// The latest cancelled requests; late answers to them are dropped.
    cancelled: VecDeque<RequestId>,
}

const CANCELLED: usize = 64;

impl SentRequests {
    /// Notes a request that is about to be sent.
    pub fn expect(&self, id: RequestId, exchange: Option<McpExchange>) {
        self.lock().waiting.push((id, exchange));
    }

    pub fn cancel(&self, cancelled: &RequestId) {
        let mut pending = self.lock();
        pending.waiting.retain(|(id, _)| id != cancelled);
        pending.cancelled.push_back(cancelled.clone());
        if pending.cancelled.len() > CANCELLED {
            pending.cancelled.pop_front();
        }
    }

    /// Removes and returns the request whose answer has this id. An answer without a matching request counts for the
    /// only waiting one, if there is exactly one.
    fn take(&self, found: Option<&RequestId>) -> Option<(RequestId, Option<McpExchange>)> {
        let is = |id: &RequestId| found.is_some_and(|found| answer::same_id(id, found));
        let mut pending = self.lock();
        if pending.cancelled.iter().any(is) {
            return None;
        }
        let only = (pending.waiting.len() == 1).then_some(0);
        let at = pending.waiting.iter().position(|(id, _)| is(id)).or(only)?;
        Some(pending.waiting.remove(at))
    }

    fn lock(&self) -> MutexGuard<'_, PendingRequests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads messages until the output ends. It is a task, because rmcp drops the future of `receive` at any time.
pub struct OutputReader<R> {
    lines: LineReader<R>,
    intake: Intake,
    requests: SentRequests,
}

impl<R: AsyncRead + Unpin> OutputReader<R> {
    pub fn new(output: R, intake: Intake, requests: SentRequests) -> Self {
        Self { lines: LineReader::new(output, intake.limits.bytes), intake, requests }
    }

    /// Sends all messages, one at a time. Ends with the output, or with the receiver.
    pub async fn read(mut self, messages: mpsc::Sender<ServerJsonRpcMessage>) {
        let mut memory = None;
        loop {
            let line = match &memory {
                // The child must not hold the memory of a line that it never ends.
                Some(_) => timeout(self.intake.patience, self.lines.next()).await.unwrap_or(OutputLine::End),
                None => self.lines.next().await,
            };
            let message = match line {
                OutputLine::Complete(line) => self.message(line, memory.take()).await,
                OutputLine::Large => {
                    memory = Some(self.intake.reserve(None, self.intake.limits.bytes).await);
                    continue;
                }
                OutputLine::TooLong => {
                    memory = None;
                    let request = self.requests.take(None);
                    request.map(|(id, _)| TransportFailure::too_large(self.intake.limits.bytes).into_answer(id))
                }
                OutputLine::End => return,
            };
            if let Some(message) = message
                && messages.send(message).await.is_err()
            {
                return;
            }
        }
    }

    /// Parses one line as a message. A line that is no message of JSON-RPC 2.0 is noise, which some servers print. It must not end
    /// a call that may have taken effect.
    async fn message(&self, line: Vec<u8>, memory: Option<MemoryGuard>) -> Option<ServerJsonRpcMessage> {
        let (is_small, requests) = (line.len() <= SMALL_BYTES, self.requests.clone());
        let parse = move |line: &[u8], within: Result<(), _>| {
            let line = line.trim_ascii();
            let head = MessageHead::of(line);
            if !head.is_message() {
                return None;
            }
            if head.is_call() {
                // The client listens to no large request or notification, but each request needs an answer.
                let call = if is_small && within.is_ok() {
                    serde_json::from_slice(line).ok()
                } else {
                    head.bare_request().and_then(|request| serde_json::from_str(&request).ok())
                };
                return call.map(|call| (call, None));
            }
            let (id, exchange) = requests.take(head.id.as_ref())?;
            let answer = within.and_then(|()| answer::read(line, &id));
            Some((answer.unwrap_or_else(|failure| failure.into_answer(id)), exchange))
        };
        let taken = self.intake.read(line, None, memory, parse).await;
        let (message, exchange) = taken.parsed?;
        if let Some(exchange) = exchange {
            exchange.deposit(taken.size, taken.memory, None);
        }
        Some(message)
    }
}
