//! Where the asking of the reader stands: one question at a time, whose answer the server has to hear.

use std::time::Duration;

use holdfast_shared::event_id::EventId;
use serde_json::Value;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{
    client::{Client, Failure, Problem},
    question::Question,
    stream::Backoff,
};

#[derive(Default)]
pub enum Asking {
    #[default]
    Idle,
    /// The reader is to answer.
    Open(Question),
    /// The answer is on its way.
    Sent(EventId, JoinHandle<Result<(), Problem>>),
    /// The server has an answer; the event that says so is to come. Until then the question is not asked again.
    Heard(EventId),
}

/// How the server has taken an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Hearing {
    Accepted,
    /// Another answer, or the end of the wait, came before it.
    TooLate(String),
    /// It cannot be used: the question stands.
    Refused(String),
}

impl Asking {
    pub fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// What the reader is to answer.
    pub fn open(&self) -> Option<&Question> {
        match self {
            Self::Open(question) => Some(question),
            Self::Idle | Self::Sent(..) | Self::Heard(_) => None,
        }
    }

    /// Sends the reader's line as the answer to what is open.
    pub fn answer(&mut self, client: &Client, run: Uuid, line: &str) {
        if let Self::Open(question) = self {
            let task = tokio::spawn(send(client.clone(), run, question.path(), question.answer(line)));
            *self = Self::Sent(question.id, task);
        }
    }

    /// Waits until the server has heard the answer that is on its way.
    pub async fn heard(&mut self) -> Hearing {
        let Self::Sent(id, task) = self else { return std::future::pending().await };
        let hearing = match task.await {
            Ok(Ok(())) => Hearing::Accepted,
            Ok(Err(problem)) => Hearing::from(problem),
            Err(error) => Hearing::Refused(format!("could not send the answer: {error}")),
        };
        *self = match hearing {
            Hearing::Accepted | Hearing::TooLate(_) => Self::Heard(*id),
            Hearing::Refused(_) => Self::Idle,
        };
        hearing
    }

    /// What the server says to an answer that is still on its way when the run has ended.
    pub async fn last_words(&mut self, time: Duration) -> Option<Hearing> {
        match self {
            Self::Sent(..) => tokio::time::timeout(time, self.heard()).await.ok(),
            Self::Idle | Self::Open(_) | Self::Heard(_) => None,
        }
    }

    /// Takes note of what is still asked; whether a question that the reader was to answer is closed by it.
    pub fn settle(&mut self, questions: &[Question]) -> bool {
        let is_asked = |id: EventId| questions.iter().any(|question| question.id == id);
        match self {
            Self::Open(question) if !is_asked(question.id) => {
                *self = Self::Idle;
                true
            }
            Self::Heard(id) if !is_asked(*id) => {
                *self = Self::Idle;
                false
            }
            // What becomes of an answer on its way is worth knowing, whatever has come before it.
            Self::Idle | Self::Open(_) | Self::Sent(..) | Self::Heard(_) => false,
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Self::Sent(_, task) = self {
            task.abort();
        }
    }
}

impl From<Problem> for Hearing {
    fn from(problem: Problem) -> Self {
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
async fn send(client: Client, run: Uuid, path: String, answer: Value) -> Result<(), Problem> {
    let mut backoff = Backoff::default();
    loop {
        match client.answer(run, &path, &answer).await {
            Ok(()) => return Ok(()),
            Err(Failure::Refused(problem)) => return Err(problem),
            Err(Failure::Away(_)) => tokio::time::sleep(backoff.next_pause()).await,
        }
    }
}
