//! The deltas of a model's answer.

use futures::stream::BoxStream;
use holdfast_shared::{finish_reason::FinishReason, usage::Usage};
use serde_json::Value;

use super::Error;

/// The deltas of an answer in order. The last item is `AnswerDelta::End` or an error.
pub type AnswerStream = BoxStream<'static, Result<AnswerDelta, Error>>;

/// A piece of an answer, as the provider sent it; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerDelta {
    Text(String),
    Reasoning(String),
    Call(CallDelta),
    /// The model has drawn a picture, which no message can have.
    Picture,
    /// The provider reports the end of the answer, and why it ended.
    End(Usage, FinishReason),
}

/// A piece of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallDelta {
    /// Index of the call in this answer, from 0.
    pub index: usize,
    /// Only the first piece of a call has a name.
    pub name: Option<String>,
    /// JSON text, to be joined with the other pieces in order; no text at all means `{}`. The reader checks that the
    /// joined text is JSON and fits the tool.
    pub arguments: String,
    /// The provider needs it back with the call. At most one piece of a call has it.
    pub signature: Option<Value>,
}
