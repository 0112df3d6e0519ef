//! What a model answers, piece by piece.

use futures::stream::BoxStream;
use holdfast_shared::{finish_reason::FinishReason, usage::Usage};
use serde_json::Value;

use super::Error;

/// The deltas of an answer in order. The last item is `Delta::End` or an error, and nothing comes after it.
pub type AnswerStream = BoxStream<'static, Result<AnswerDelta, Error>>;

/// A piece of an answer, as the provider cut it; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerDelta {
    Text(String),
    Reasoning(String),
    Call(CallDelta),
    /// The provider says that this is all, and why.
    End(Usage, FinishReason),
}

/// A piece of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallDelta {
    /// Which call of this answer, from 0.
    pub index: usize,
    /// Comes with the first piece of the call, and only with it.
    pub name: Option<String>,
    /// JSON text, to be joined with that of the other pieces in order; none at all stands for `{}`. Whether the whole is
    /// JSON, and what the tool takes, is for the reader to check.
    pub arguments: String,
    /// To be sent back with the call; comes with any piece, but once.
    pub signature: Option<Value>,
}
