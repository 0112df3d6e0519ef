//! The state of one question to the reader, from the prompt until the run has the answer. The chat asks one question at a
//! time.

use std::time::Duration;

use holdfast_shared::event_id::EventId;
use serde_json::Value;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{
    client::{ChatClient, ProblemDetails, RequestFailure},
    question::RunQuestion,
    stream::reconnections,
};

#[derive(Default)]
pub enum AnswerState {
    #[default]
    Idle,
    /// The chat waits for the reader's answer.
    Open(RunQuestion),
    /// The chat is sending the answer.
    Sent(EventId, JoinHandle<Result<(), ProblemDetails>>),
    /// The server has an answer, but its event has not arrived. The chat does not repeat the question meanwhile.
    Acknowledged(EventId),
}

/// The server's response to an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum AnswerReceipt {
    Accepted,
    /// Another answer or the end of the wait came first.
    TooLate(String),
    /// The server refused the answer, and the question is still open.
    Refused(String),
}

impl AnswerState {
    pub fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// Returns the question that waits for the reader.
    pub fn open(&self) -> Option<&RunQuestion> {
        match self {
            Self::Open(question) => Some(question),
            Self::Idle | Self::Sent(..) | Self::Acknowledged(_) => None,
        }
    }

    /// Sends the reader's line as the answer to the open question, if there is one.
    pub fn send(&mut self, client: &ChatClient, run: Uuid, line: &str) {
        if let Self::Open(question) = self {
            let task = tokio::spawn(send(client.clone(), run, question.path(), question.answer(line)));
            *self = Self::Sent(question.id, task);
        }
    }

    /// Waits for the server's response to a sent answer; for ever, if the reader has sent none.
    pub async fn receipt(&mut self) -> AnswerReceipt {
        let Self::Sent(id, task) = self else { return std::future::pending().await };
        let receipt = match task.await {
            Ok(Ok(())) => AnswerReceipt::Accepted,
            Ok(Err(problem)) => AnswerReceipt::from(problem),
            Err(error) => AnswerReceipt::Refused(format!("failed to send the answer: {error}")),
        };
        *self = match receipt {
            AnswerReceipt::Accepted | AnswerReceipt::TooLate(_) => Self::Acknowledged(*id),
            AnswerReceipt::Refused(_) => Self::Idle,
        };
        receipt
    }

    /// Waits up to `time` for the response to an answer that is still on its way when the run has ended.
    pub async fn final_receipt(&mut self, time: Duration) -> Option<AnswerReceipt> {
        match self {
            Self::Sent(..) => tokio::time::timeout(time, self.receipt()).await.ok(),
            Self::Idle | Self::Open(_) | Self::Acknowledged(_) => None,
        }
    }

    /// Compares the state with the questions that are still open. Returns whether the reader's question is no longer open.
    pub fn settle(&mut self, questions: &[RunQuestion]) -> bool {
        let is_asked = |id: EventId| questions.iter().any(|question| question.id == id);
        match self {
            Self::Open(question) if !is_asked(question.id) => {
                *self = Self::Idle;
                true
            }
            Self::Acknowledged(id) if !is_asked(*id) => {
                *self = Self::Idle;
                false
            }
            // The chat still reports the response to a sent answer.
            Self::Idle | Self::Open(_) | Self::Sent(..) | Self::Acknowledged(_) => false,
        }
    }
}

impl Drop for AnswerState {
    fn drop(&mut self) {
        if let Self::Sent(_, task) = self {
            task.abort();
        }
    }
}

impl From<ProblemDetails> for AnswerReceipt {
    fn from(problem: ProblemDetails) -> Self {
        match problem.code.as_str() {
            "already_decided" | "already_completed" => {
                Self::TooLate("another client has answered already; the first answer counts".to_owned())
            }
            "expired" | "run_not_waiting" => Self::TooLate(problem.detail),
            _ => Self::Refused(problem.detail),
        }
    }
}

/// Sends an answer, and retries while the server is away. Fails if the server refuses the answer.
async fn send(client: ChatClient, run: Uuid, path: String, answer: Value) -> Result<(), ProblemDetails> {
    let mut backoff = reconnections();
    loop {
        match client.answer(run, &path, &answer).await {
            Ok(()) => return Ok(()),
            Err(RequestFailure::Refused(problem)) => return Err(problem),
            Err(RequestFailure::Away(_)) => backoff.pause().await,
        }
    }
}
