//! Every provider's protocol, and every way in which it goes wrong, against a provider that replays bytes.

mod calls;
mod choosing;
mod conversations;
mod faults;
mod patience;
mod protocols;
mod provider;
mod retries;
mod wires;

use std::{sync::Arc, time::Duration};

use clap::Parser;
use futures::StreamExt;
use holdfast_shared::config::ModelConfig;
use tokio::time::timeout;

use super::{CallDelta, ConnectError, Delta, Error, Model, Models, Options, Request, ToolRequest, ToolSpec, Turn};
use provider::{Provider, Reply, Seen};
use wires::{Wire, wires};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    model: ModelConfig,
}

fn config(flags: &[&str]) -> ModelConfig {
    Cli::try_parse_from([&["holdfast"], flags].concat()).unwrap_or_else(|error| panic!("{error}")).model
}

/// The deployment's own model.
fn connect(config: &ModelConfig) -> Result<Arc<dyn Model>, ConnectError> {
    Ok(Models::new(config)?.get(None)?.model)
}

fn user(text: &str) -> Turn {
    Turn::User(text.to_owned())
}

fn assistant(text: &str) -> Turn {
    Turn::Assistant { text: text.to_owned(), calls: Vec::new() }
}

fn request() -> Request {
    let turns = vec![user("Hi"), assistant("Hello"), user("And now?")];
    Request { system: Some("Be brief.".to_owned()), turns, ..Request::default() }
}

/// What came of one question.
#[derive(Debug)]
struct Outcome {
    deltas: Vec<Delta>,
    error: Option<Error>,
    seen: Vec<Seen>,
}

impl Outcome {
    fn code(&self) -> Option<&'static str> {
        self.error.as_ref().map(Error::code)
    }

    fn message(&self) -> String {
        self.error.as_ref().map(Error::to_string).unwrap_or_default()
    }
}

/// Asks a model behind this wire, with further flags, and reads the answer until its end, which must come soon: a limit
/// that is kept too late is not kept.
async fn ask(wire: &Wire, flags: &[&str], replies: Vec<Reply>) -> Outcome {
    timeout(Duration::from_secs(10), ask_at_leisure(wire, flags, replies)).await.expect("an end within 10 s")
}

async fn ask_at_leisure(wire: &Wire, flags: &[&str], replies: Vec<Reply>) -> Outcome {
    ask_this(&request(), wire, flags, replies).await
}

async fn ask_this(request: &Request, wire: &Wire, flags: &[&str], replies: Vec<Reply>) -> Outcome {
    let provider = Provider::start(replies).await;
    let model = connect(&wire.config(&provider.url, flags)).unwrap();
    let (mut deltas, mut error) = (Vec::new(), None);
    match model.ask(request).await {
        Ok(mut answer) => {
            while let Some(item) = answer.next().await {
                assert!(error.is_none(), "something comes after the error");
                match item {
                    Ok(delta) => deltas.push(delta),
                    Err(failure) => error = Some(failure),
                }
            }
        }
        Err(failure) => error = Some(failure),
    }
    Outcome { deltas, error, seen: provider.seen() }
}
