//! The way of a request to its provider: the address, and the key or the token.

use std::{sync::Arc, time::Duration};

use holdfast_shared::config::ModelConfig;
use reqwest::{Response, StatusCode};
use secrecy::ExposeSecret;
use serde_json::Value;

use super::{
    Error,
    google::{GoogleToken, GoogleTokens},
    subject::Subject,
    upstream,
};

/// The way to one model.
#[derive(Clone)]
pub(super) struct Route {
    client: reqwest::Client,
    connect_limit: Duration,
    way: Way,
}

#[derive(Clone)]
enum Way {
    /// One address and one key for all requests.
    Fixed { url: String, headers: Vec<(&'static str, String)>, subject: Arc<Subject> },
    /// Vertex AI, with a token that ends.
    Google(Arc<GoogleWay>),
}

/// The way to Vertex AI by Google's tokens.
struct GoogleWay {
    tokens: GoogleTokens,
    config: ModelConfig,
    /// The rest of the path, after the address of the project.
    path: String,
    subject: Arc<Subject>,
}

/// A response with status 2xx, and the subject of its errors.
pub(super) struct OpenAnswer {
    pub response: Response,
    pub subject: Arc<Subject>,
}

impl Route {
    /// `headers` come with every request; the key is among them.
    pub fn fixed(
        client: reqwest::Client,
        config: &ModelConfig,
        subject: Arc<Subject>,
        url: String,
        headers: Vec<(&'static str, String)>,
    ) -> Self {
        Self { client, connect_limit: config.model_connect, way: Way::Fixed { url, headers, subject } }
    }

    /// Returns the way to a model at Vertex AI, whose `path` follows the project. Without tokens, the key of the settings is the
    /// token.
    pub fn to_vertex(
        client: reqwest::Client,
        config: &ModelConfig,
        subject: Arc<Subject>,
        tokens: Option<&GoogleTokens>,
        path: String,
    ) -> Self {
        let Some(tokens) = tokens else {
            let url = config.vertex_url(config.vertex.project().unwrap_or_default()) + &path;
            let bearer = subject.key.as_ref().map(|key| ("authorization", format!("Bearer {}", key.expose_secret())));
            return Self::fixed(client, config, subject, url, bearer.into_iter().collect());
        };
        let way = GoogleWay { tokens: tokens.clone(), config: config.clone(), path, subject };
        Self { client, connect_limit: config.model_connect, way: Way::Google(Arc::new(way)) }
    }

    /// Sends a body. Fails unless the response has a status of success.
    pub async fn open(&self, body: &Value) -> Result<OpenAnswer, Error> {
        let (response, subject) = match &self.way {
            Way::Fixed { url, headers, subject } => {
                (self.post(url, headers, body, subject).await?, Arc::clone(subject))
            }
            Way::Google(way) => self.post_with_token(way, body).await?,
        };
        let status = response.status();
        if status.is_success() {
            return Ok(OpenAnswer { response, subject });
        }
        let headers = response.headers().clone();
        let body = upstream::read_short_body(response).await;
        Err(Error::from_status(&subject, status, &headers, &body))
    }

    pub fn transport_error(&self, subject: &Subject, error: &reqwest::Error) -> Error {
        Error::from_transport(subject, error, self.connect_limit)
    }

    async fn post(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        body: &Value,
        subject: &Subject,
    ) -> Result<Response, Error> {
        let request = self.client.post(url).json(body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
        request.send().await.map_err(|error| self.transport_error(subject, &error))
    }

    /// Sends a body with Google's token. If Vertex AI refuses the token, sends it once more with another one.
    async fn post_with_token(&self, way: &GoogleWay, body: &Value) -> Result<(Response, Arc<Subject>), Error> {
        let no_token = |failure| Error::from_token_failure(&way.subject, failure);
        let token = way.tokens.get().await.map_err(no_token)?;
        let (response, subject) = self.post_with(way, &token, body).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok((response, subject));
        }
        let token = way.tokens.replace(&token).await.map_err(no_token)?;
        self.post_with(way, &token, body).await
    }

    async fn post_with(
        &self,
        way: &GoogleWay,
        token: &GoogleToken,
        body: &Value,
    ) -> Result<(Response, Arc<Subject>), Error> {
        let url = way.config.vertex_url(&token.project) + &way.path;
        let mut headers = vec![("authorization", format!("Bearer {}", token.secret.expose_secret()))];
        headers.extend(way.tokens.quota_project().map(|project| ("x-goog-user-project", project.to_owned())));
        // Errors hide the token of this request.
        let subject = Arc::new(Subject::new(way.subject.choice.clone(), Some(token.secret.clone())));
        let response = self.post(&url, &headers, body, &subject).await?;
        Ok((response, subject))
    }
}
