//! One request as its transport sees it: the owner whose memory the answer takes, and what rmcp cannot carry to the caller.
//!
//! It travels to the transport in the request's extensions, which are no part of the message.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use holdfast_shared::json_size::JsonSize;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, ServerJsonRpcMessage};

use crate::memory_budget::MemoryGuard;

#[derive(Clone, Default)]
pub struct McpExchange(Arc<ExchangeState>);

#[derive(Default)]
struct ExchangeState {
    /// The owner of the run; `None` for what all runs share, such as the list of tools.
    owner: Option<String>,
    answer: Mutex<Deposit>,
}

/// The answer as a transport leaves it for the caller.
#[derive(Default)]
pub struct Deposit {
    pub size: JsonSize,
    pub memory: Option<MemoryGuard>,
    /// The answer, if rmcp would have parsed it again; rmcp then carries an empty one.
    pub message: Option<ServerJsonRpcMessage>,
}

/// An exchange that does not outlive its caller.
pub struct WeakExchange(Weak<ExchangeState>);

impl McpExchange {
    pub fn new(owner: Option<&str>) -> Self {
        Self(Arc::new(ExchangeState { owner: owner.map(str::to_owned), answer: Mutex::default() }))
    }

    /// Returns the exchange of a request; `None` for rmcp's own requests and for other messages.
    pub fn of(message: &ClientJsonRpcMessage) -> Option<Self> {
        let ClientJsonRpcMessage::Request(request) = message else { return None };
        request.request.extensions().get::<Self>().cloned()
    }

    pub fn owner(&self) -> Option<&str> {
        self.0.owner.as_deref()
    }

    pub fn deposit(&self, size: JsonSize, memory: Option<MemoryGuard>, message: Option<ServerJsonRpcMessage>) {
        *self.lock() = Deposit { size, memory, message };
    }

    /// Returns what the transport has left.
    pub fn collect(&self) -> Deposit {
        std::mem::take(&mut self.lock())
    }

    pub fn downgrade(&self) -> WeakExchange {
        WeakExchange(Arc::downgrade(&self.0))
    }

    fn lock(&self) -> MutexGuard<'_, Deposit> {
        self.0.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WeakExchange {
    pub fn upgrade(&self) -> Option<McpExchange> {
        self.0.upgrade().map(McpExchange)
    }

    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}
