//! The way of a foreign message from its bytes to its parsed form: memory first, then its size, then the parser.
//!
//! A large message takes memory of the budget of this process before its bytes arrive, and is parsed off the runtime's
//! threads. Limits refuse it before it is parsed.

use std::time::Duration;

use holdfast_shared::{
    config::ToolsConfig,
    json_size::{JsonSize, VALUE_BYTES},
};
use tokio::task::spawn_blocking;

use super::{characters, exchange::McpExchange, transport_failure::TransportFailure};
use crate::memory_budget::{MemoryBudget, MemoryGuard, MemoryShare};

/// A message with at most this many bytes and values takes no memory of the budget.
pub const SMALL_BYTES: usize = 64 * 1024;
const SMALL_VALUES: usize = 1_000;

/// Memory for each byte of a message: its own, its copy in a text, and a buffer that grows.
const COPIES: u64 = 3;

/// The limits of one answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswerLimits {
    pub bytes: usize,
    pub values: usize,
    pub text_bytes: usize,
}

/// Takes in the messages of one server; cheap to clone.
#[derive(Clone)]
pub struct Intake {
    pub limits: AnswerLimits,
    /// Longest time from the beginning of a large message to its end, if no call bounds it.
    pub patience: Duration,
    memory: MemoryBudget,
    server: MemoryShare,
}

/// A message that was read.
pub struct MeasuredMessage<T> {
    pub parsed: T,
    pub size: JsonSize,
    /// The memory of a large message.
    pub memory: Option<MemoryGuard>,
}

impl AnswerLimits {
    pub fn new(config: &ToolsConfig) -> Self {
        Self { bytes: config.mcp_max_bytes, values: config.mcp_max_values, text_bytes: config.mcp_text_bytes }
    }

    fn check(&self, bytes: usize, size: JsonSize) -> Result<(), TransportFailure> {
        if bytes > self.bytes {
            return Err(TransportFailure::too_large(self.bytes));
        }
        if size.values > self.values {
            return Err(TransportFailure::too_many_values(self.values));
        }
        if size.text_bytes > self.text_bytes {
            return Err(TransportFailure::too_much_text(self.text_bytes));
        }
        Ok(())
    }
}

impl Intake {
    pub fn new(config: &ToolsConfig, memory: MemoryBudget, server: &str) -> Self {
        let (limits, patience) = (AnswerLimits::new(config), config.mcp_timeout);
        Self { limits, patience, memory, server: MemoryShare::of_server(server) }
    }

    /// Waits for the memory of a message of at most this many bytes, of which no value was counted.
    pub async fn reserve(&self, exchange: Option<&McpExchange>, bytes: usize) -> MemoryGuard {
        let owner = exchange.and_then(McpExchange::owner).map(MemoryShare::of_owner);
        let shares: Vec<MemoryShare> = owner.into_iter().chain([self.server.clone()]).collect();
        self.memory.take(&shares, cost(bytes, self.limits.values.min(bytes))).await
    }

    /// Measures a message, repairs its characters and parses it; `parse` also gets what the limits say. `memory` is what was
    /// reserved for it.
    pub async fn read<T: Send + 'static>(
        &self,
        text: Vec<u8>,
        exchange: Option<&McpExchange>,
        memory: Option<MemoryGuard>,
        parse: impl FnOnce(&[u8], Result<(), TransportFailure>) -> T + Send + 'static,
    ) -> MeasuredMessage<T> {
        let limits = self.limits;
        if text.len() <= SMALL_BYTES {
            let size = JsonSize::of(&text);
            if size.values <= SMALL_VALUES {
                let within = limits.check(text.len(), size);
                return MeasuredMessage { parsed: parse(&characters::mend(text), within), size, memory: None };
            }
        }
        let memory = match memory {
            Some(memory) => memory,
            None => self.reserve(exchange, text.len()).await,
        };
        // The guard moves along: a caller that stops waiting does not free the memory of a parser at work.
        let parsing = spawn_blocking(move || {
            let size = JsonSize::of(&text);
            let mut memory = memory;
            memory.shrink(cost(text.len(), size.values));
            let within = limits.check(text.len(), size);
            MeasuredMessage { parsed: parse(&characters::mend(text), within), size, memory: Some(memory) }
        });
        parsing.await.expect("the parsing of a message ends")
    }
}

fn cost(bytes: usize, values: usize) -> u64 {
    bytes as u64 * COPIES + (values * VALUE_BYTES) as u64
}
