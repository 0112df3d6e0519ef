//! Where the asking of the reader stands: one question at a time, whose answer the server has to hear.

use std::time::Duration;

use holdfast_shared::event_id::EventId;
use serde_json::Value;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{
    client::{ChatClient, ProblemDetails, RequestFailure},
    question::RunQuestion,
    stream::Backoff,
};

#[derive(Default)]
pub enum AnswerState {
    #[default]
    Idle,
    /// The reader is to answer.
    Open(RunQuestion),
    /// The answer is on its way.
    Sent(EventId, JoinHandle<Result<(), ProblemDetails>>),
    /// The server has an answer; the event that says so is to come. Until then the question is not asked again.
    Acknowledged(EventId),
}

/// How the server has taken an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum AnswerReceipt {
    Accepted,
    /// Another answer, or the end of the wait, came before it.
    TooLate(String),
    /// It cannot be used: the question stands.
    Refused(String),
}

impl AnswerState {
    pub fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// What the reader is to answer.
    pub fn open(&self) -> Option<&RunQuestion> {
        match self {
            Self::Open(question) => Some(question),
            Self::Idle | Self::Sent(..) | Self::Acknowledged(_) => None,
        }
    }

    /// Sends the reader's line as the answer to what is open.
    pub fn answer(&mut self, client: &ChatClient, run: Uuid, line: &str) {
        if let Self::Open(question) = self {
            let task = tokio::spawn(send(client.clone(), run, question.path(), question.answer(line)));
            *self = Self::Sent(question.id, task);
        }
    }

    /// Waits until the server has heard the answer that is on its way.
    pub async fn receipt(&mut self) -> AnswerReceipt {
        let Self::Sent(id, task) = self else { return std::future::pending().await };
        let receipt = match task.await {
            Ok(Ok(())) => AnswerReceipt::Accepted,
            Ok(Err(problem)) => AnswerReceipt::from(problem),
            Err(error) => AnswerReceipt::Refused(format!("could not send the answer: {error}")),
        };
        *self = match receipt {
            AnswerReceipt::Accepted | AnswerReceipt::TooLate(_) => Self::Acknowledged(*id),
            AnswerReceipt::Refused(_) => Self::Idle,
        };
        receipt
    }

    /// What the server says to an answer that is still on its way when the run has ended.
    pub async fn final_receipt(&mut self, time: Duration) -> Option<AnswerReceipt> {
        match self {
            Self::Sent(..) => tokio::time::timeout(time, self.receipt()).await.ok(),
            Self::Idle | Self::Open(_) | Self::Acknowledged(_) => None,
        }
    }

    /// Takes note of what is still asked; whether a question that the reader was to answer is closed by it.
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
            // What becomes of an answer on its way is worth knowing, whatever has come before it.
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
                Self::TooLate("somebody has answered already; the first answer counts".to_owned())
            }
            "expired" | "run_not_waiting" => Self::TooLate(problem.detail),
            _ => Self::Refused(problem.detail),
        }
    }
}

/// Sends an answer until the server has heard it.
async fn send(client: ChatClient, run: Uuid, path: String, answer: Value) -> Result<(), ProblemDetails> {
    let mut backoff = Backoff::default();
    loop {
        match client.answer(run, &path, &answer).await {
            Ok(()) => return Ok(()),
            Err(RequestFailure::Refused(problem)) => return Err(problem),
            Err(RequestFailure::Away(_)) => tokio::time::sleep(backoff.next_pause()).await,
        }
    }
}
