//! The end of a run: its terminal status, its last events, and the status of its message.

use uuid::Uuid;

use crate::{
    event::{EventBody, MessageCompleted, RunCancelled, RunCompleted, RunFailed},
    event_id::EventId,
    message::{Message, MessageStatus},
    run::{RunError, RunStatus},
    usage::Usage,
};

/// How a run ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// The model gave a complete answer.
    Completed,
    /// The run broke off; the error has a code and a sentence for the reader.
    Failed(RunError),
    /// An owner, a new message or an operator stopped the run.
    Cancelled,
}

impl Ending {
    /// Returns the terminal status for this end.
    pub const fn status(&self) -> RunStatus {
        match self {
            Self::Completed => RunStatus::Completed,
            Self::Failed(_) => RunStatus::Failed,
            Self::Cancelled => RunStatus::Cancelled,
        }
    }

    /// Returns the status of the message that the run wrote.
    pub const fn message_status(&self) -> MessageStatus {
        match self {
            Self::Completed => MessageStatus::Complete,
            Self::Failed(_) => MessageStatus::Failed,
            Self::Cancelled => MessageStatus::Cancelled,
        }
    }

    /// Returns the error of a failed run.
    pub const fn error(&self) -> Option<&RunError> {
        match self {
            Self::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the last events of the run in order: `message.completed` if there is a message, then the terminal event.
    /// The first of them carries `base`, which is set if these events begin an attempt.
    pub fn closing_bodies(
        &self,
        base: Option<EventId>,
        message: Option<Message>,
        message_id: Uuid,
        usage: Usage,
    ) -> Vec<EventBody<'static>> {
        let terminal_base = if message.is_some() { None } else { base };
        let finish_reason = message.as_ref().and_then(|message| message.finish_reason);
        let stored_id = message.is_some().then_some(message_id);
        let terminal = match self {
            Self::Completed => EventBody::RunCompleted(RunCompleted { message_id, usage, finish_reason }),
            Self::Failed(error) => EventBody::RunFailed(RunFailed { base: terminal_base, error: error.clone(), usage }),
            Self::Cancelled => {
                EventBody::RunCancelled(RunCancelled { base: terminal_base, message_id: stored_id, usage })
            }
        };
        let completed =
            message.map(|message| EventBody::MessageCompleted(MessageCompleted { base, message: message.into() }));
        completed.into_iter().chain([terminal]).collect()
    }
}
