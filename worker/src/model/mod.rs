//! The model behind a run: one trait, a file per way of reaching a model.
//!
//! `connect` chooses from the configuration. A `Model` makes one try at one answer; `patience` adds time-outs and retries
//! to any of them. Nothing here knows of runs, logs or databases.

use futures::{future::BoxFuture, stream::BoxStream};
use holdfast_shared::usage::Usage;

/// A source of answers.
pub trait Model: Send + Sync {
    /// Asks for one answer. The future resolves when the provider has accepted the request; dropping it, or the
    /// stream, cancels the request.
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<Answer, Error>>;
}

/// The deltas of an answer in order. The last item is `Delta::End` or an error; a stream that ends without either was
/// truncated.
pub type Answer = BoxStream<'static, Result<Delta, Error>>;

/// What a model is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Instructions, sent in the provider's own place for them.
    pub system: Option<String>,
    /// The conversation, oldest first; the last turn is the user's.
    pub turns: Vec<Turn>,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub speaker: Speaker,
    pub text: String,
}

/// The only roles that are ever sent inside the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    User,
    Assistant,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    /// The provider says that the answer is complete.
    End(Usage),
}

/// TO BE DONE
#[derive(Debug, thiserror::Error)]
#[error("")]
pub struct Error;
