//! Every provider's protocol and its faults, against a provider that replays bytes.

mod calls;
mod choosing;
#[path = "../../../../tests/support/providers/claude_cache.rs"]
mod claude_cache;
#[path = "../../../../tests/support/providers/claude_rules.rs"]
mod claude_rules;
mod continuations;
mod conversations;
mod embeddings;
mod fallback;
mod faults;
mod files;
#[path = "../../../../tests/support/providers/gemini_rules.rs"]
mod gemini_rules;
mod google;
mod openai_rules;
mod protocols;
mod provider;
mod retries;
mod retry_policy;
mod rules;
mod tool_choice;
mod vertex;
mod wires;

use std::{sync::Arc, time::Duration};

use clap::Parser;
use futures::StreamExt;
use holdfast_shared::{
    agent::Profiles,
    config::{ModelConfig, ModelFileKind},
};
use tokio::time::timeout;

use super::{
    AnswerDelta, CallDelta, ConnectError, Error, Model, ModelFile, Models, Request, ToolRequest, ToolSpec, Turn,
    UserPart,
};
use provider::{FakeProvider, RecordedRequest, Reply};
use wires::{ProviderWire, wires};

#[derive(Parser)]
struct ModelFlags {
    #[command(flatten)]
    model: ModelConfig,
}

fn config(flags: &[&str]) -> ModelConfig {
    ModelFlags::try_parse_from([&["holdfast"], flags].concat()).unwrap_or_else(|error| panic!("{error}")).model
}

fn models(config: &ModelConfig) -> Result<Models, ConnectError> {
    Models::new(config, &[ModelFileKind::Auto])
}

/// Connects to the deployment's own model.
fn connect(config: &ModelConfig) -> Result<Arc<dyn Model>, ConnectError> {
    Ok(models(config)?.get(None, &Profiles::default())?.first.model)
}

fn user(text: &str) -> Turn {
    Turn::user(text)
}

fn assistant(text: &str) -> Turn {
    Turn::Assistant { text: text.to_owned(), calls: Vec::new() }
}

fn request() -> Request {
    let turns = vec![user("Hi"), assistant("Hello"), user("And now?")];
    Request { system: Some("Be brief.".to_owned()), turns, ..Request::default() }
}

/// The outcome of one request.
#[derive(Debug)]
struct AskOutcome {
    deltas: Vec<AnswerDelta>,
    error: Option<Error>,
    requests: Vec<RecordedRequest>,
}

impl AskOutcome {
    fn code(&self) -> Option<&'static str> {
        self.error.as_ref().map(Error::code)
    }

    fn message(&self) -> String {
        self.error.as_ref().map(Error::to_string).unwrap_or_default()
    }
}

/// Calls a model over this wire, with further flags, and reads the answer to its end. The end must come soon, because a
/// limit that applies too late does not apply.
async fn ask(wire: &ProviderWire, flags: &[&str], replies: Vec<Reply>) -> AskOutcome {
    timeout(Duration::from_secs(10), ask_without_deadline(wire, flags, replies)).await.expect("an end within 10 s")
}

async fn ask_without_deadline(wire: &ProviderWire, flags: &[&str], replies: Vec<Reply>) -> AskOutcome {
    ask_with(&request(), wire, flags, replies).await
}

async fn ask_with(request: &Request, wire: &ProviderWire, flags: &[&str], replies: Vec<Reply>) -> AskOutcome {
    let provider = FakeProvider::start(replies).await;
    let model = connect(&wire.config(&provider.url, flags)).unwrap();
    let (mut deltas, mut error) = (Vec::new(), None);
    match model.ask(request).await {
        Ok(mut answer) => {
            while let Some(item) = answer.next().await {
                assert!(error.is_none(), "an item follows the error");
                match item {
                    Ok(delta) => deltas.push(delta),
                    Err(failure) => error = Some(failure),
                }
            }
        }
        Err(failure) => error = Some(failure),
    }
    AskOutcome { deltas, error, requests: provider.requests() }
}
