//! The model behind a run: one trait, a file per way of reaching a model.
//!
//! `connect` chooses from the configuration. An `Upstream` (`openai`, `gateway`) makes one try at one answer; `Patience`
//! makes a `Model` of it by adding time-outs and retries. `Scripted` is a `Model` by itself. Nothing here knows of runs,
//! logs or databases.

mod error;
mod gateway;
mod openai;
mod patience;
pub mod scripted;
mod subject;
#[cfg(test)]
mod tests;
mod upstream;

use std::sync::Arc;

use futures::{future::BoxFuture, stream::BoxStream};
use holdfast_shared::{
    config::{self, ModelConfig, Provider},
    usage::Usage,
};

pub use error::{Error, Phase};
pub use scripted::Scripted;

use gateway::Gateway;
use openai::OpenAi;
use patience::{Limits, Patience};
use subject::Subject;

/// A source of answers.
pub trait Model: Send + Sync {
    /// Asks for one answer. The future resolves when the first delta is at hand, after all retries; an error of it means
    /// that nothing of the answer was received. Dropping it, or the stream, cancels the request.
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<Answer, Error>>;
}

/// The deltas of an answer in order. The last item is `Delta::End` or an error, and nothing comes after it.
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

/// A piece of an answer, as the provider cut it; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    /// The provider says that the answer is complete.
    End(Usage),
}

/// Why no model could be set up.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error("cannot set up the HTTP client for the model")]
    Client(#[from] reqwest::Error),
}

/// The model that the configuration chooses. No request is made yet.
pub fn connect(config: &ModelConfig) -> Result<Arc<dyn Model>, ConnectError> {
    let choice = config.choice()?;
    let provider = choice.provider;
    if provider == Provider::Scripted {
        return Ok(Arc::new(Scripted));
    }
    let client = upstream::client(config)?;
    let limits = Limits::of(config);
    let subject = Arc::new(Subject::new(choice, config.key(provider).cloned()));
    Ok(match provider {
        Provider::OpenAi => Arc::new(Patience::new(OpenAi::new(client, config, subject.clone()), limits, subject)),
        _ => Arc::new(Patience::new(Gateway::new(client, config, subject.clone()), limits, subject)),
    })
}
