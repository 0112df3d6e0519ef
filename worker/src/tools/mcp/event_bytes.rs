//! The bytes of a stream of events, with memory for each large event before its bytes pass.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use super::{
    characters::ChunkMender,
    exchange::McpExchange,
    intake::{Intake, SMALL_BYTES},
};
use crate::memory_budget::MemoryGuard;

/// Why a stream was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    #[error("the event is too large")]
    TooLarge,
    #[error("the end of a large event did not arrive in time")]
    Slow,
    #[error(transparent)]
    Broken(reqwest::Error),
}

/// The memory of the event that arrives.
#[derive(Clone, Default)]
pub struct EventMemory(Arc<Mutex<Option<MemoryGuard>>>);

impl EventMemory {
    /// Returns the memory of the event that has arrived.
    pub fn take(&self) -> Option<MemoryGuard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, memory: MemoryGuard) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(memory);
    }
}

/// Counts the bytes since the last blank line, which ends an event.
struct EventBytes {
    bytes: usize,
    is_line_blank: bool,
}

impl EventBytes {
    fn add(&mut self, chunk: &[u8]) {
        for line in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.bytes += line.len();
            self.is_line_blank &= line.iter().all(|byte| b"\r\n".contains(byte));
            if line.ends_with(b"\n") && std::mem::replace(&mut self.is_line_blank, true) {
                self.bytes = 0;
            }
        }
    }
}

struct Body {
    chunks: BoxStream<'static, reqwest::Result<Bytes>>,
    characters: ChunkMender,
    event: EventBytes,
    has_memory: bool,
    /// Until when the rest of a large event must arrive, if no call bounds it.
    until: Option<Instant>,
    intake: Intake,
    exchange: Option<McpExchange>,
    memory: EventMemory,
}

/// Returns the bytes of a stream, and the memory of its events.
pub fn of(
    response: Response,
    intake: Intake,
    exchange: Option<McpExchange>,
) -> (BoxStream<'static, Result<Bytes, StreamError>>, EventMemory) {
    let memory = EventMemory::default();
    let body = Body {
        chunks: response.bytes_stream().boxed(),
        characters: ChunkMender::default(),
        event: EventBytes { bytes: 0, is_line_blank: true },
        has_memory: false,
        until: None,
        intake,
        exchange,
        memory: memory.clone(),
    };
    let bytes = stream::try_unfold(body, async |mut body| {
        let chunk = body.next().await?;
        Ok(chunk.map(|chunk| (chunk, body)))
    });
    (bytes.boxed(), memory)
}

impl Body {
    async fn next(&mut self) -> Result<Option<Bytes>, StreamError> {
        let chunk = match self.until {
            Some(until) => timeout_at(until, self.chunks.next()).await.map_err(|_| StreamError::Slow)?,
            None => self.chunks.next().await,
        };
        let chunk = chunk.transpose().map_err(|error| StreamError::Broken(error.without_url()))?;
        let chunk = chunk.map(|chunk| self.characters.mend(chunk));
        self.event.add(chunk.as_deref().unwrap_or_default());
        if self.event.bytes > self.intake.limits.bytes {
            return Err(StreamError::TooLarge);
        }
        if self.event.bytes <= SMALL_BYTES {
            (self.has_memory, self.until) = (false, None);
        } else if !self.has_memory {
            self.memory.set(self.intake.reserve(self.exchange.as_ref(), self.intake.limits.bytes).await);
            self.has_memory = true;
            self.until = self.exchange.is_none().then(|| Instant::now() + self.intake.patience);
        }
        Ok(chunk)
    }
}
