//! One request for an access token: the JWT bearer grant of a service account (RFC 7523), the refresh token grant of a
//! user (RFC 6749, 6), or the metadata server's answer to a machine. It does not retry, and it sets no time limit.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast_shared::config;
use jsonwebtoken::{Algorithm, Header, encode};
use reqwest::{RequestBuilder, Response, StatusCode, redirect::Policy};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::credentials::{GoogleCredentials, GoogleUser, ServiceAccount};
use crate::model::{connect::ConnectError, error::innermost, upstream::read_short_body};

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Longest time that Google lets an assertion be valid.
const ASSERTION_SECONDS: u64 = 3600;
/// Most characters of Google's words that a failure quotes.
const QUOTED_CHARS: usize = 300;
/// The header of the metadata server, in requests against forgery and in answers as its sign.
const FLAVOR: &str = "metadata-flavor";

/// Requests tokens with credentials.
pub(super) struct Granter {
    client: reqwest::Client,
    credentials: GoogleCredentials,
    /// `None` if the metadata server knows it.
    project: Option<String>,
}

/// A new token.
pub(super) struct Grant {
    pub token: SecretString,
    pub lasts: Duration,
    pub project: String,
}

/// Why there is no token.
#[derive(Debug, Clone, thiserror::Error)]
pub(in crate::model) enum TokenFailure {
    /// Google or the metadata server rejects the credentials.
    #[error("the request for an access token was refused (status {status}): {message}")]
    Refused { status: u16, message: String },
    #[error("an access token cannot be requested now: {message}")]
    Unavailable { message: String },
    #[error("the request for an access token took longer than {} ms", limit.as_millis())]
    TimedOut { limit: Duration },
}

impl TokenFailure {
    /// Returns the failure of a request whose task has ended without a result.
    pub fn lost() -> Self {
        Self::Unavailable { message: "the request was lost".to_owned() }
    }
}

#[derive(Serialize)]
struct AssertionClaims<'a> {
    iss: &'a str,
    scope: &'a str,
    aud: &'a str,
    iat: u64,
    exp: u64,
}

#[derive(Deserialize)]
struct GrantBody {
    access_token: String,
    expires_in: u64,
}

impl Granter {
    /// Fails if neither the settings nor the credentials name a project.
    pub fn new(
        credentials: GoogleCredentials,
        project: Option<&str>,
        connect_limit: Duration,
    ) -> Result<Self, ConnectError> {
        let project = project.or(credentials.project()).map(str::to_owned);
        let is_machine = matches!(credentials, GoogleCredentials::Machine { .. });
        if project.is_none() && !is_machine {
            let problem = "is needed for vertex, because the credentials name no project";
            return Err(config::Error::new("VERTEX_PROJECT_ID", problem).into());
        }
        let client = reqwest::Client::builder().connect_timeout(connect_limit).redirect(Policy::none());
        // The metadata server is a neighbour, which no proxy can reach.
        let client = if is_machine { client.no_proxy() } else { client };
        Ok(Self { client: client.build()?, credentials, project })
    }

    pub async fn request(&self) -> Result<Grant, TokenFailure> {
        let response = match &self.credentials {
            GoogleCredentials::ServiceAccount(account) => send(self.bearer_grant(account)?).await?,
            GoogleCredentials::User(user) => send(self.refresh_grant(user)).await?,
            GoogleCredentials::Machine { metadata_host } => {
                self.ask_neighbour(metadata_host, "instance/service-accounts/default/token").await?
            }
        };
        let body = read_short_body(response).await;
        let GrantBody { access_token, expires_in } = serde_json::from_str(&body)
            .map_err(|_| TokenFailure::Unavailable { message: "the answer contains no token".to_owned() })?;
        let project = match (&self.project, &self.credentials) {
            (None, GoogleCredentials::Machine { metadata_host }) => {
                let response = self.ask_neighbour(metadata_host, "project/project-id").await?;
                let project = read_short_body(response).await;
                Some(project.trim().to_owned()).filter(|project| !project.is_empty()).ok_or_else(|| {
                    TokenFailure::Unavailable { message: "the metadata server knows no project".to_owned() }
                })?
            }
            (project, _) => project.clone().unwrap_or_default(),
        };
        Ok(Grant { token: access_token.into(), lasts: Duration::from_secs(expires_in), project })
    }

    fn bearer_grant(&self, account: &ServiceAccount) -> Result<RequestBuilder, TokenFailure> {
        let iat = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let (iss, aud) = (account.email.as_str(), account.token_uri.as_str());
        let claims = AssertionClaims { iss, scope: SCOPE, aud, iat, exp: iat + ASSERTION_SECONDS };
        let header = Header { kid: account.key_id.clone(), ..Header::new(Algorithm::RS256) };
        let assertion = encode(&header, &claims, &account.key)
            .map_err(|error| TokenFailure::Unavailable { message: format!("signing failed ({error})") })?;
        Ok(self.client.post(aud).form(&[("grant_type", JWT_BEARER), ("assertion", assertion.as_str())]))
    }

    fn refresh_grant(&self, user: &GoogleUser) -> RequestBuilder {
        self.client.post(&user.token_uri).form(&[
            ("grant_type", "refresh_token"),
            ("client_id", user.client_id.as_str()),
            ("client_secret", user.client_secret.expose_secret()),
            ("refresh_token", user.refresh_token.expose_secret()),
        ])
    }

    /// Asks the metadata server.
    async fn ask_neighbour(&self, host: &str, path: &str) -> Result<Response, TokenFailure> {
        let url = format!("http://{host}/computeMetadata/v1/{path}");
        let response = send(self.client.get(url).header(FLAVOR, "Google")).await.map_err(|failure| match failure {
            TokenFailure::Unavailable { message } => TokenFailure::Unavailable {
                message: format!("there are no credentials in the settings, and the metadata server: {message}"),
            },
            failure => failure,
        })?;
        if response.headers().get(FLAVOR).is_none_or(|flavor| flavor != "Google") {
            let message = "the answer is not one of the metadata server".to_owned();
            return Err(TokenFailure::Refused { status: response.status().as_u16(), message });
        }
        Ok(response)
    }
}

/// Sends a request. Returns the response if its status is 2xx.
async fn send(request: RequestBuilder) -> Result<Response, TokenFailure> {
    let response = request.send().await.map_err(|error| {
        let cause = innermost(&error);
        let verb = if error.is_connect() { "cannot connect" } else { "no answer to the request" };
        TokenFailure::Unavailable { message: format!("{verb} ({cause})") }
    })?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let message = words(&read_short_body(response).await);
    let may_pass =
        status.is_server_error() || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
    Err(if may_pass {
        TokenFailure::Unavailable { message: format!("{message} (status {})", status.as_u16()) }
    } else {
        TokenFailure::Refused { status: status.as_u16(), message }
    })
}

/// Returns the words of an error's body, whose form is `{"error", "error_description"}` (RFC 6749, 5.2) or a text.
fn words(body: &str) -> String {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let field = |name: &str| json.get(name).and_then(Value::as_str);
    let message = match (field("error"), field("error_description")) {
        (Some(error), Some(description)) => format!("{error}: {description}"),
        (Some(error), None) => error.to_owned(),
        _ => body.trim().to_owned(),
    };
    match message.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None if message.is_empty() => "no explanation".to_owned(),
        None => message,
    }
}
