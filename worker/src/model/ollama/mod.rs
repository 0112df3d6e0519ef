//! Ollama's own protocol, whose answers are lines of JSON.
//!
//! `body` writes requests, and `parser` reads answers. The rules that differ from those of other providers: a call's outcome names
//! its tool and no id, files are pictures, `num_ctx` bounds what the server reads, and a form excludes tools.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use futures::{FutureExt, future::BoxFuture};
use holdfast_shared::config::ModelConfig;

use super::{
    Error, Request,
    route::Route,
    stream,
    subject::Subject,
    upstream::{Upstream, UpstreamStream},
};

mod body;
mod parser;

use parser::OllamaParser;

/// A model of Ollama.
pub(super) struct Ollama {
    route: Route,
    /// Applies if the request sets no limit.
    max_tokens: Option<u32>,
    subject: Arc<Subject>,
    /// Set when the model has refused to think.
    never_thinks: Arc<AtomicBool>,
}

/// The words of a refusal to think.
const NO_THINKING: &str = "does not support thinking";

impl Ollama {
    pub fn new(client: reqwest::Client, config: &ModelConfig, subject: Arc<Subject>) -> Self {
        let url = format!("{}api/chat", config.base_url(subject.choice.provider));
        let route = Route::fixed(client, config, Arc::clone(&subject), url, Vec::new());
        Self { route, max_tokens: config.model_max_tokens, subject, never_thinks: Arc::default() }
    }
}

impl Upstream for Ollama {
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<UpstreamStream, Error>> {
        let mut body = body::write(&self.subject.choice.name, request, self.max_tokens);
        let (route, never_thinks) = (self.route.clone(), Arc::clone(&self.never_thinks));
        async move {
            if never_thinks.load(Relaxed) {
                body::leave_thinking_out(&mut body);
            }
            let answer = stream::ask(route.clone(), body.clone(), OllamaParser::default()).await;
            match answer {
                Err(error) if error.words().is_some_and(|words| words.contains(NO_THINKING)) => {
                    if !body::leave_thinking_out(&mut body) {
                        return Err(error);
                    }
                    never_thinks.store(true, Relaxed);
                    stream::ask(route, body, OllamaParser::default()).await
                }
                answer => answer,
            }
        }
        .boxed()
    }
}
