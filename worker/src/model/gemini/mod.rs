//! Gemini's protocol, at its own address, at a compatible one, and at Vertex AI.
//!
//! `rules` has what the provider demands, `body` writes requests, with `schema`, and `parser` reads answers.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use holdfast_shared::config::{ModelConfig, Provider};
use secrecy::ExposeSecret;

use super::{
    Error, Request,
    google::GoogleTokens,
    route::Route,
    stream,
    subject::Subject,
    upstream::{Upstream, UpstreamStream},
};

mod body;
mod parser;
mod rules;
mod schema;

use parser::GeminiParser;

/// A model of Gemini's protocol.
pub(super) struct Gemini {
    route: Route,
    /// Applies if the request sets no limit.
    max_tokens: Option<u32>,
    subject: Arc<Subject>,
}

impl Gemini {
    /// `tokens` are for Vertex AI.
    pub fn new(
        client: reqwest::Client,
        config: &ModelConfig,
        subject: Arc<Subject>,
        tokens: Option<&GoogleTokens>,
    ) -> Self {
        let method = "streamGenerateContent?alt=sse";
        let route = match subject.choice.provider {
            Provider::Vertex => {
                let path = format!("publishers/google/{}:{method}", path_of(&subject.choice.name));
                Route::to_vertex(client, config, Arc::clone(&subject), tokens, path)
            }
            provider => {
                let url = format!("{}{}:{method}", config.base_url(provider), path_of(&subject.choice.name));
                let key = subject.key.as_ref().map(|key| ("x-goog-api-key", key.expose_secret().to_owned()));
                Route::fixed(client, config, Arc::clone(&subject), url, key.into_iter().collect())
            }
        };
        Self { route, max_tokens: config.model_max_tokens, subject }
    }
}

/// Returns the path of a model; a name may be one already, such as `tunedModels/mine`.
pub(super) fn path_of(model: &str) -> String {
    if model.contains('/') { model.to_owned() } else { format!("models/{model}") }
}

impl Upstream for Gemini {
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<UpstreamStream, Error>> {
        let body = body::write(&self.subject.choice, request, self.max_tokens);
        stream::ask(self.route.clone(), body, GeminiParser::default()).boxed()
    }
}
