//! The way of a call to its provider: the address, and the key or the token.

use std::sync::Arc;

use genai::{
    Headers, ModelIden, ServiceTarget,
    resolver::{AuthData, Endpoint},
};
use holdfast_shared::config::{ModelConfig, Provider};
use secrecy::{ExposeSecret, SecretString};

use super::dialect::Dialect;
use crate::model::{
    google::{GoogleToken, GoogleTokens, TokenFailure},
    subject::Subject,
};

/// The way to a provider.
#[derive(Clone)]
pub(super) enum Route {
    /// One target for all calls.
    Fixed(Box<ServiceTarget>),
    /// Vertex AI, with a token that ends.
    Google(Arc<GoogleRoute>),
}

/// The way to Vertex AI by Google's tokens.
pub(super) struct GoogleRoute {
    tokens: GoogleTokens,
    config: ModelConfig,
    model: ModelIden,
}

/// A token, and the target that takes it.
pub(super) struct Pass {
    pub target: ServiceTarget,
    token: Arc<GoogleToken>,
}

impl Route {
    /// Makes a complete target, with which genai looks up nothing in names or in the environment.
    pub fn new(config: &ModelConfig, subject: &Subject, tokens: Option<&GoogleTokens>) -> Self {
        let choice = &subject.choice;
        let (adapter, dialect) = Dialect::of(choice);
        let model = ModelIden::new(adapter, choice.name.as_str());
        let url = match choice.provider {
            Provider::Vertex => {
                if let Some(tokens) = tokens {
                    let (tokens, config) = (tokens.clone(), config.clone());
                    return Self::Google(Arc::new(GoogleRoute { tokens, config, model }));
                }
                config.vertex_url(config.vertex.project().unwrap_or_default())
            }
            provider => config.base_url(provider),
        };
        let auth = match &subject.key {
            Some(key) => AuthData::from_single(key.expose_secret()),
            // genai would send a bearer token of no characters.
            None if choice.provider == Provider::Vertex => {
                let url = format!("{url}{}", dialect.path_at_vertex(&choice.name));
                AuthData::RequestOverride { url, headers: Headers::default() }
            }
            None => AuthData::from_single(""),
        };
        Self::Fixed(Box::new(ServiceTarget { endpoint: Endpoint::from_owned(url), auth, model }))
    }
}

impl GoogleRoute {
    pub async fn pass(&self) -> Result<Pass, TokenFailure> {
        Ok(self.with(self.tokens.get().await?))
    }

    /// Returns a pass in place of one that Vertex AI has refused.
    pub async fn other_pass(&self, refused: &Pass) -> Result<Pass, TokenFailure> {
        Ok(self.with(self.tokens.replace(&refused.token).await?))
    }

    /// Returns the headers beside the token.
    pub fn headers(&self) -> Option<Headers> {
        self.tokens.quota_project().map(|project| Headers::from(("x-goog-user-project", project)))
    }

    fn with(&self, token: Arc<GoogleToken>) -> Pass {
        let endpoint = Endpoint::from_owned(self.config.vertex_url(&token.project));
        let auth = AuthData::from_single(token.secret.expose_secret());
        Pass { target: ServiceTarget { endpoint, auth, model: self.model.clone() }, token }
    }
}

impl Pass {
    pub fn secret(&self) -> &SecretString {
        &self.token.secret
    }
}
