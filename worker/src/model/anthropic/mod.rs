//! Anthropic's messages, at its own address, at a compatible one, and at Vertex AI.
//!
//! `rules` has what the provider demands, `body` writes requests, with `pictures`, `schema` and `cache`, and `parser` reads answers.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use holdfast_shared::config::{ModelConfig, Provider};
use secrecy::ExposeSecret;
use serde_json::json;

use super::{
    Error, Request,
    google::GoogleTokens,
    route::Route,
    stream,
    subject::Subject,
    upstream::{Upstream, UpstreamStream},
};

mod body;
mod cache;
mod parser;
mod pictures;
mod rules;
mod schema;

use parser::ClaudeParser;
use rules::{VERSION, VERSION_AT_VERTEX};

/// A model of Anthropic's protocol.
pub(super) struct Anthropic {
    route: Route,
    /// Applies if the request sets no limit.
    max_tokens: Option<u32>,
    subject: Arc<Subject>,
}

impl Anthropic {
    /// `tokens` are for Vertex AI.
    pub fn new(
        client: reqwest::Client,
        config: &ModelConfig,
        subject: Arc<Subject>,
        tokens: Option<&GoogleTokens>,
    ) -> Self {
        let route = match subject.choice.provider {
            Provider::Vertex => {
                let path = format!("publishers/anthropic/models/{}:streamRawPredict", subject.choice.name);
                Route::to_vertex(client, config, Arc::clone(&subject), tokens, path)
            }
            provider => {
                let url = format!("{}messages", config.base_url(provider));
                let key = subject.key.as_ref().map(|key| ("x-api-key", key.expose_secret().to_owned()));
                let headers = [("anthropic-version", VERSION.to_owned())].into_iter().chain(key).collect();
                Route::fixed(client, config, Arc::clone(&subject), url, headers)
            }
        };
        Self { route, max_tokens: config.model_max_tokens, subject }
    }
}

impl Upstream for Anthropic {
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<UpstreamStream, Error>> {
        let choice = &self.subject.choice;
        let body = body::write(&self.subject, request, self.max_tokens).map(|mut body| {
            match choice.provider {
                // The address names the model there.
                Provider::Vertex => body["anthropic_version"] = json!(VERSION_AT_VERTEX),
                _ => body["model"] = json!(choice.name),
            }
            body
        });
        let (route, parser) = (self.route.clone(), ClaudeParser::new(rules::of(&choice.name)));
        async move { stream::ask(route, body?, parser).await }.boxed()
    }
}
