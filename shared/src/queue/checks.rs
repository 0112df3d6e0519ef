//! A check of a definition on its way: each worker hears of it, one takes it and reports.

use tokio::sync::oneshot;

use super::{Error, redis::RedisQueue};
use crate::agent::{AgentCheck, CheckRequest};

/// A check that a process requests.
pub struct RequestedCheck {
    /// The definition, with the id of its check.
    pub request: CheckRequest,
    answer: AnswerPath,
}

enum AnswerPath {
    Memory(oneshot::Sender<AgentCheck>),
    Redis(RedisQueue),
}

impl RequestedCheck {
    pub(super) fn embedded(request: CheckRequest, answer: oneshot::Sender<AgentCheck>) -> Self {
        Self { request, answer: AnswerPath::Memory(answer) }
    }

    pub(super) fn scaled_out(request: CheckRequest, queue: RedisQueue) -> Self {
        Self { request, answer: AnswerPath::Redis(queue) }
    }

    /// Takes the check. Returns false if another worker has taken it.
    pub async fn take(&self) -> Result<bool, Error> {
        match &self.answer {
            // One worker alone receives it.
            AnswerPath::Memory(_) => Ok(true),
            AnswerPath::Redis(queue) => queue.take_check(self.request.id).await,
        }
    }

    /// Sends the report to the process that waits for it.
    pub async fn report(self, report: AgentCheck) -> Result<(), Error> {
        match self.answer {
            AnswerPath::Memory(answer) => {
                // The client may have gone.
                let _ = answer.send(report);
                Ok(())
            }
            AnswerPath::Redis(queue) => queue.report_check(self.request.id, &report).await,
        }
    }
}
