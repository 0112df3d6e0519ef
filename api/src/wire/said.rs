//! What an event tells a reader: the part of a run that the chat wire and the text wire show.

use std::borrow::Cow;

use holdfast_shared::event::{
    Event, MESSAGE_COMPLETED, MESSAGE_DELTA, RUN_CANCELLED, RUN_COMPLETED, RUN_FAILED, RUN_QUEUED, TOOL_CALL_COMPLETED,
    TOOL_CALL_STARTED,
};
use serde::Deserialize;

use super::Shows;

/// What an event tells.
#[derive(Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// The run has begun.
    Begun,
    /// A piece of the answer; all of it, where there are no pieces.
    Text(Cow<'a, str>),
    /// A tool is being called, by its name.
    Called(Cow<'a, str>),
    /// A tool has answered: its output, or why there is none.
    Answered { tool: Cow<'a, str>, outcome: Result<Cow<'a, str>, Cow<'a, str>> },
    /// The run has failed, which is also its end.
    Failed(Cow<'a, str>),
    /// The run has ended, completed or cancelled.
    Ended,
    /// Nothing that a reader is shown.
    Nothing,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow)]
    message: Content<'a>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    output: Option<Cow<'a, str>>,
    #[serde(borrow)]
    error: Option<Reason<'a>>,
}

#[derive(Deserialize)]
struct Failure<'a> {
    #[serde(borrow)]
    error: Reason<'a>,
}

#[derive(Deserialize)]
struct Reason<'a> {
    #[serde(borrow)]
    message: Cow<'a, str>,
}

impl<'a> Said<'a> {
    /// Reads an event. What cannot be read, because a newer version wrote it, tells nothing.
    pub fn by(event: &'a Event, shows: Shows) -> Self {
        Self::read(event, shows).unwrap_or(Self::Nothing)
    }

    fn read(event: &'a Event, shows: Shows) -> serde_json::Result<Self> {
        Ok(match (event.kind(), shows) {
            (MESSAGE_DELTA, Shows::Everything) => Self::Text(payload::<Piece>(event)?.text),
            (MESSAGE_COMPLETED, Shows::Whole | Shows::Messages) => Self::Text(payload::<Whole>(event)?.message.content),
            (TOOL_CALL_STARTED, Shows::Everything | Shows::Whole) => Self::Called(payload::<Call>(event)?.name),
            (TOOL_CALL_COMPLETED, Shows::Everything | Shows::Whole) => payload::<Call>(event)?.into(),
            (RUN_QUEUED, _) => Self::Begun,
            (RUN_COMPLETED | RUN_CANCELLED, _) => Self::Ended,
            // However it is written: the client must learn of the end.
            (RUN_FAILED, _) => Self::Failed(
                payload::<Failure>(event)
                    .map_or_else(|_| Cow::Borrowed("the run has failed"), |failure| failure.error.message),
            ),
            _ => Self::Nothing,
        })
    }
}

impl<'a> From<Call<'a>> for Said<'a> {
    fn from(call: Call<'a>) -> Self {
        let outcome = match call.error {
            Some(reason) => Err(reason.message),
            None => Ok(call.output.unwrap_or_default()),
        };
        Self::Answered { tool: call.name, outcome }
    }
}

fn payload<'a, T: Deserialize<'a>>(event: &'a Event) -> serde_json::Result<T> {
    serde_json::from_slice(event.payload())
}
