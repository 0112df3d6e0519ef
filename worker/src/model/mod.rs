//! The model behind a run: one trait, a file per way of reaching a model.
//!
//! A `Request` is asked, an `Answer` comes in deltas. `Models` (`connect`) sets up what the configuration and the agents
//! choose. An `Upstream` (`openai`, `gateway`) makes one try at one answer; `Patience` makes a `Model` of it by adding
//! time-outs and retries. `Scripted` is a `Model` by itself. Nothing here knows of runs, logs or databases, and no tool
//! is executed.

mod answer;
mod connect;
mod error;
mod gateway;
mod openai;
mod request;
mod retry_policy;
pub mod scripted;
mod subject;
#[cfg(test)]
mod tests;
mod upstream;

use futures::future::BoxFuture;

pub use answer::{AnswerDelta, AnswerStream, CallDelta};
pub use connect::{ChosenModel, ConnectError, Models};
pub use error::{Error, Phase};
pub use request::{Options, Request, ToolRequest, ToolSpec, Turn};
pub use scripted::ScriptedModel;

/// A source of answers.
pub trait Model: Send + Sync {
    /// Asks for one answer. The future resolves when the first delta is at hand, after all retries; an error of it means
    /// that nothing of the answer was received. Dropping it, or the stream, cancels the request.
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<AnswerStream, Error>>;
}
