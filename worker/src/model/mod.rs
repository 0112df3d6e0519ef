//! The clients of model providers: one trait, and a file for each kind of provider.
//!
//! A `Request` goes to a model; an `AnswerStream` of deltas comes back. `Models` (`connect`) sets up the models that
//! the configuration, the agents and the profiles choose, and `fallback` asks one after the other. An `Upstream` (`openai`, `anthropic`, `gemini`, `ollama`) makes one try at one answer, by its `route` and the `stream` of its body;
//! `RetryModel` adds time-outs and retries to it, `tool_names` and `tool_schema` write tools as providers take them, and `google` the tokens of Vertex AI. `ScriptedModel` needs neither. Nothing here knows runs, logs or
//! databases, or executes tools.

mod alternation;
mod answer;
mod anthropic;
mod connect;
mod embedder;
mod error;
mod fallback;
mod gemini;
mod google;
mod ollama;
mod openai;
mod request;
mod retry_policy;
mod route;
pub mod scripted;
mod stream;
mod subject;
#[cfg(test)]
mod tests;
mod tool_names;
mod tool_schema;
mod upstream;

use futures::future::BoxFuture;

pub use answer::{AnswerDelta, AnswerStream, CallDelta};
pub use connect::{ConnectError, Models, NOT_CONFIGURED, TrialFailure};
pub use embedder::Embedder;
pub use error::{Error, Phase};
pub use fallback::{ChosenModel, ModelAnswer};
pub use request::{AnswerForm, ModelFile, Request, ToolRequest, ToolSpec, Turn, UserPart};
pub use scripted::ScriptedModel;

/// A source of answers.
pub trait Model: Send + Sync {
    /// Requests one answer. The future resolves with the first delta, after all retries; if it fails, nothing of the
    /// answer was received. Dropping the future or the stream cancels the request.
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<AnswerStream, Error>>;

    /// Returns how many tools of a request the model takes.
    fn max_tools(&self) -> usize {
        usize::MAX
    }

    /// Returns whether the model has a field for the names of speakers.
    fn takes_names(&self) -> bool {
        false
    }
}
