//! What an event tells a reader: the part of a run that the chat, the text and the agent wire show.

use std::borrow::Cow;

use holdfast_shared::{
    event::{
        AGENT_STATE, CONTEXT_USAGE, Event, MESSAGE_COMPLETED, MESSAGE_DELTA, RUN_CANCELLED, RUN_COMPLETED, RUN_FAILED,
        RUN_QUEUED, STEP_STARTED, TOOL_CALL_COMPLETED, TOOL_CALL_STARTED,
    },
    event_id::EventId,
    finish_reason::FinishReason,
    usage::Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Shows, View};

/// What an event tells.
#[derive(Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// The run has begun.
    Begun,
    /// The model is being asked.
    Thinking,
    /// Something else that the run is at, by its name.
    State(Cow<'a, str>),
    /// A piece of the answer; all of it, where there are no pieces.
    Text(Cow<'a, str>),
    /// A tool is being called, by its name; the input is JSON.
    Called { id: Cow<'a, str>, tool: Cow<'a, str>, input: &'a str },
    /// A tool has answered: its output, or why there is none.
    Answered {
        id: Cow<'a, str>,
        tool: Cow<'a, str>,
        /// The input of a call that was refused before it began, by a rule or by a human.
        refused: Option<&'a str>,
        outcome: Result<Cow<'a, str>, Cow<'a, str>>,
    },
    /// How much of its budget the conversation takes, in tokens.
    Context { tokens: u64, budget: u64, compressed: bool },
    /// The run has failed, which is also its end.
    Failed(Cow<'a, str>),
    /// The run has ended, completed or cancelled; where it completed, the reason is the model's.
    Ended(Usage, Option<FinishReason>),
    /// Nothing that a reader is shown.
    Nothing,
}

/// The mark of what a reader may have been shown and is taken back: what came after `base`.
#[derive(Debug, Serialize)]
pub struct Superseded {
    superseded: bool,
    base: EventId,
}

impl Superseded {
    /// What an event takes back of the view, if it does.
    pub fn by(event: &Event, before: EventId, view: &View) -> Option<Self> {
        let base = event.base.filter(|_| view.is_taken_back_by(event, before))?;
        Some(Self { superseded: true, base })
    }
}

#[derive(Deserialize)]
struct State<'a> {
    #[serde(borrow)]
    state: Cow<'a, str>,
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
    call_id: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    input: &'a RawValue,
}

#[derive(Deserialize)]
struct Completed<'a> {
    #[serde(borrow)]
    call_id: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<Cow<'a, str>>,
    #[serde(borrow)]
    error: Option<Reason<'a>>,
}

#[derive(Deserialize)]
struct ContextUsage {
    tokens: u64,
    budget: u64,
    compressed: bool,
}

#[derive(Deserialize)]
struct End {
    usage: Usage,
    finish_reason: Option<FinishReason>,
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
            (TOOL_CALL_STARTED, Shows::Everything | Shows::Whole) => payload::<Call>(event)?.into(),
            (TOOL_CALL_COMPLETED, Shows::Everything | Shows::Whole) => payload::<Completed>(event)?.into(),
            (STEP_STARTED, Shows::Everything | Shows::Whole) => Self::Thinking,
            (AGENT_STATE, Shows::Everything | Shows::Whole) => Self::State(payload::<State>(event)?.state),
            (CONTEXT_USAGE, Shows::Everything | Shows::Whole) => payload::<ContextUsage>(event)?.into(),
            (RUN_QUEUED, _) => Self::Begun,
            // However they are written: the client must learn of the end.
            (RUN_COMPLETED | RUN_CANCELLED, _) => {
                let end = payload::<End>(event).ok();
                Self::Ended(
                    end.as_ref().map(|end| end.usage).unwrap_or_default(),
                    end.and_then(|end| end.finish_reason),
                )
            }
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
        Self::Called { id: call.call_id, tool: call.name, input: call.input.get() }
    }
}

impl From<ContextUsage> for Said<'_> {
    fn from(ContextUsage { tokens, budget, compressed }: ContextUsage) -> Self {
        Self::Context { tokens, budget, compressed }
    }
}

impl<'a> From<Completed<'a>> for Said<'a> {
    fn from(call: Completed<'a>) -> Self {
        let outcome = match call.error {
            Some(reason) => Err(reason.message),
            None => Ok(call.output.unwrap_or_default()),
        };
        Self::Answered { id: call.call_id, tool: call.name, outcome, refused: call.input.map(RawValue::get) }
    }
}

fn payload<'a, T: Deserialize<'a>>(event: &'a Event) -> serde_json::Result<T> {
    serde_json::from_slice(event.payload())
}
