//! The parts of a run's message, in the order in which its reader has seen them.
//!
//! The database stores them when the run ends, so a history needs no log. They are short: a part refers to the message's
//! text by its length, and to a tool call by its id. The call's row has the input, the output and the duration.
//! `builder` folds a log into parts, and `change` applies its events other than deltas.

mod builder;
mod change;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    approval::ApprovalKind,
    citation::{AnswerSources, DroppedMark, NumberedCitation},
    event::{CitationAdded, ExecutedBy},
    storable::{storable, storable_json},
};

pub use builder::PartsBuilder;

/// The parts of one message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageParts {
    /// The time of the run's last event, in ms since the Unix epoch.
    pub ended_ms: i64,
    /// The parts, in order.
    pub parts: Vec<MessagePart>,
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessagePart {
    /// A step of the agent begins.
    Step,
    /// The next characters of the message's text.
    Text {
        /// Their number.
        chars: usize,
    },
    /// The model's reasoning.
    Reasoning {
        /// The complete text.
        text: String,
        /// The time from its first to its last event.
        duration_ms: u64,
    },
    /// A call of a tool.
    Call(ToolCallPart),
    /// The end of a call.
    CallEnd {
        /// The call.
        call_id: String,
    },
    /// A question to a human.
    Question(QuestionPart),
    /// The newest use of the model's context window: the payload of the event.
    Context {
        /// The payload.
        payload: Value,
    },
    /// A warning: the payload of the event.
    Warning {
        /// The payload.
        payload: Value,
    },
    /// A passage that the text before cites: the payload of the event.
    Source {
        /// The payload.
        payload: Value,
    },
    /// A mark that is not in the text: the payload of the event.
    Dropped {
        /// The payload.
        payload: Value,
    },
    /// Questions that end the run: the payload of the event.
    Questions {
        /// The payload.
        payload: Value,
    },
    /// A part of a later version.
    #[serde(other)]
    Unknown,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallPart {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// The party that executes it, if an event has told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ExecutedBy>,
    /// Its last state.
    pub state: CallProgress,
    /// Whether a worker executes it, and not the client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_worker: bool,
    /// The newest question about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<CallApproval>,
}

/// The last state of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallProgress {
    /// The model wrote these arguments, and did not complete them.
    Incomplete(String),
    /// It was started, or may be.
    Started,
    /// It waited for a human.
    Asked,
    /// The question about it was withdrawn.
    Withdrawn,
    /// It has an outcome.
    Ended,
}

/// A question about a call, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallApproval {
    /// The approval.
    pub id: Uuid,
    /// Whether the human has approved the call; absent before the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    /// The human's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A question to a human.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuestionPart {
    /// The approval.
    pub approval_id: Uuid,
    /// The call that the question is about.
    pub call_id: String,
    /// Why a human must decide.
    pub kind: ApprovalKind,
    /// When the approval counts as denied.
    pub expires_at: DateTime<Utc>,
    /// Whether the human has changed the input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

impl MessageParts {
    /// Returns the documents that the text cites, in the order of their numbers, and the marks that are not in it.
    pub fn sources(&self) -> AnswerSources {
        let mut sources = AnswerSources::default();
        for part in &self.parts {
            match part {
                MessagePart::Source { payload } => {
                    let Ok(CitationAdded { number, source }) = CitationAdded::deserialize(payload) else { continue };
                    if sources.documents.iter().all(|cited| cited.number != number) {
                        sources.documents.push(NumberedCitation { number, citation: source });
                    }
                }
                MessagePart::Dropped { payload } => sources.dropped.extend(DroppedMark::deserialize(payload).ok()),
                _ => {}
            }
        }
        sources.documents.sort_by_key(|cited| cited.number);
        sources
    }

    /// Adds characters of the text. Citations do not end a part of the text.
    fn push_text(&mut self, chars: usize) {
        let is_citation = |part: &&mut MessagePart| matches!(part, MessagePart::Source { .. });
        let cites = self.parts.last().is_some_and(|part| matches!(part, MessagePart::Source { .. }));
        match self.parts.iter_mut().rev().find(|part| !is_citation(part)) {
            Some(MessagePart::Text { chars: known }) if cites => *known += chars,
            _ => self.parts.push(MessagePart::Text { chars }),
        }
    }

    /// Returns the number of characters that the parts have of the message's text.
    pub fn text_chars(&self) -> usize {
        let chars = self.parts.iter().map(|part| if let MessagePart::Text { chars } = part { *chars } else { 0 });
        chars.sum()
    }

    /// Returns the number of bytes of the model's reasoning.
    pub fn reasoning_bytes(&self) -> usize {
        let bytes = |part: &MessagePart| if let MessagePart::Reasoning { text, .. } = part { text.len() } else { 0 };
        self.parts.iter().map(bytes).sum()
    }

    /// Appends the text that no delta has brought, because a run without deltas writes its text at the end.
    pub fn complete_text(&mut self, text: &str) {
        let chars = text.chars().count().saturating_sub(self.text_chars());
        if chars > 0 {
            self.parts.push(MessagePart::Text { chars });
        }
    }

    /// Returns the round of the questions that the message asks; 0 if it asks none.
    pub fn round_of_questions(&self) -> u32 {
        let round = self.parts.iter().rev().find_map(|part| match part {
            MessagePart::Questions { payload } => payload["round"].as_u64(),
            _ => None,
        });
        round.map_or(0, |round| u32::try_from(round).unwrap_or(u32::MAX))
    }

    /// Replaces the characters that no database can store.
    pub fn into_storable(self) -> Self {
        let storable_part = |part| match part {
            MessagePart::Reasoning { text, duration_ms } => {
                MessagePart::Reasoning { text: storable(text), duration_ms }
            }
            MessagePart::Call(mut call) => {
                if let CallProgress::Incomplete(text) = call.state {
                    call.state = CallProgress::Incomplete(storable(text));
                }
                if let Some(approval) = &mut call.approval {
                    approval.reason = approval.reason.take().map(storable);
                }
                MessagePart::Call(ToolCallPart { name: storable(call.name), ..call })
            }
            MessagePart::Context { payload } => MessagePart::Context { payload: storable_json(payload) },
            MessagePart::Warning { payload } => MessagePart::Warning { payload: storable_json(payload) },
            MessagePart::Source { payload } => MessagePart::Source { payload: storable_json(payload) },
            other => other,
        };
        Self { parts: self.parts.into_iter().map(storable_part).collect(), ..self }
    }

    fn call(&mut self, id: &str) -> Option<&mut ToolCallPart> {
        self.parts.iter_mut().rev().find_map(|part| match part {
            MessagePart::Call(call) if call.call_id == id => Some(call),
            _ => None,
        })
    }

    /// Returns the call, and adds it if no event has named it before.
    fn call_named(&mut self, id: &str, name: &str) -> &mut ToolCallPart {
        let is_it = |part: &MessagePart| matches!(part, MessagePart::Call(call) if call.call_id == id);
        let index = self.parts.iter().rposition(is_it).unwrap_or_else(|| {
            let (call_id, name, state) = (id.to_owned(), name.to_owned(), CallProgress::Incomplete(String::new()));
            self.parts.push(MessagePart::Call(ToolCallPart {
                call_id,
                name,
                by: None,
                state,
                by_worker: false,
                approval: None,
            }));
            self.parts.len() - 1
        });
        let MessagePart::Call(call) = &mut self.parts[index] else { unreachable!("the index is that of a call") };
        call
    }
}
