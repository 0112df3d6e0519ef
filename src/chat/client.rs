//! The requests that the chat makes, and what a failure means: worth another try, or an answer for the reader.
//!
//! One try per call; `stream` and `answer` decide when the next one comes.

use std::{
    error::Error,
    sync::{Arc, OnceLock},
    time::Duration,
};

use holdfast_shared::{event_id::EventId, finish_reason::FinishReason};
use reqwest::{
    RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, SET_COOKIE},
};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::call::one_line;

/// Heartbeats come every 15 s, so after this long without a byte nobody is there.
pub const SILENCE: Duration = Duration::from_secs(45);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For answers that are not streams.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Pauses between the tries of the very first connection.
const FIRST_PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(1000)];

/// A Holdfast server, as one user.
#[derive(Debug, Clone)]
pub struct ChatClient {
    http: reqwest::Client,
    url: String,
    identity: ClientIdentity,
    /// The secret of the anonymous user that this is, once the server has told it.
    anonymous: Arc<OnceLock<SecretString>>,
}

/// Who is speaking, and how the server is told.
#[derive(Debug, Clone)]
pub enum ClientIdentity {
    /// A server that checks its users is shown a token.
    Token(SecretString),
    /// A server in development mode believes a name.
    Name(String),
    /// Nobody in particular. A server that knows such users tells which one it is with the first answer.
    Anonymous,
}

/// Why there was no useful answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestFailure {
    /// The server is away, or not well: the same request may succeed later.
    Away(String),
    /// The server has answered, and would answer the same again.
    Refused(ProblemDetails),
}

/// Why the server does not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ProblemDetails {
    /// For programs; empty where none was given.
    #[serde(default)]
    pub code: String,
    /// For people.
    pub detail: String,
}

/// A message on its way; sent twice under its key it is still one message.
#[derive(Debug, Clone)]
pub struct Post {
    /// If absent, the session that the client names, or the speaker's own.
    pub conversation: Option<Uuid>,
    /// The agent of a conversation that is made.
    pub agent: Option<Uuid>,
    pub text: String,
    pub key: Uuid,
}

/// A run that is followed. Without a stream it has ended, and nothing is to come.
pub struct RunStream {
    pub run: Uuid,
    pub stream: Option<Response>,
}

/// A message of a session's history.
#[derive(Debug, Clone, Deserialize)]
pub struct HistoryLine {
    role: String,
    content: String,
}

impl HistoryLine {
    /// Its beginning, and who has said it.
    pub fn summary(&self) -> String {
        let author = if self.role == "User" { "you" } else { "answer" };
        format!("[{author}: {}]", one_line(&self.content))
    }
}

/// A run, as far as the chat shows it.
#[derive(Debug, Clone, Deserialize)]
pub struct RunResult {
    pub status: String,
    pub finish_reason: Option<FinishReason>,
    pub output_message: Option<OutputMessage>,
    pub error: Option<RunFailure>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct OutputMessage {
    pub content: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct RunFailure {
    pub code: String,
    pub message: String,
}

impl ClientIdentity {
    /// A token goes before a name, which a server that checks its users refuses.
    pub fn of(token: Option<SecretString>, username: Option<String>) -> Self {
        match (token, username) {
            (Some(token), _) => Self::Token(token),
            (None, Some(name)) => Self::Name(name),
            (None, None) => Self::Anonymous,
        }
    }

    fn header(&self) -> Result<Option<(HeaderName, HeaderValue)>, &'static str> {
        match self {
            Self::Token(token) => {
                let bearer = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()));
                let mut bearer = bearer.map_err(|_| "--token: a token has no control characters")?;
                bearer.set_sensitive(true);
                Ok(Some((AUTHORIZATION, bearer)))
            }
            Self::Name(name) => {
                let name = HeaderValue::from_bytes(name.as_bytes());
                let name = name.map_err(|_| "--username: a name has no control characters")?;
                Ok(Some((HeaderName::from_static("x-user"), name)))
            }
            Self::Anonymous => Ok(None),
        }
    }
}

impl ChatClient {
    /// A client that talks in this session, or else in the one that is the speaker's by default.
    pub fn new(url: &Url, identity: ClientIdentity, session: Option<&str>) -> Result<Self, String> {
        let mut headers = HeaderMap::from_iter(identity.header()?);
        if let Some(name) = session {
            let name = HeaderValue::from_bytes(name.as_bytes());
            let name = name.map_err(|_| "--session: a name has no control characters")?;
            headers.insert(HeaderName::from_static("x-session-id"), name);
        }
        let http = reqwest::Client::builder().default_headers(headers).connect_timeout(CONNECT_TIMEOUT).build();
        let http = http.map_err(|error| format!("could not prepare requests: {}", cause(&error)))?;
        let url = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { http, url, identity, anonymous: Arc::default() })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Finds out whether somebody is there, and whether the conversation exists. Gives up after three tries: only a
    /// server that has answered before is worth waiting for.
    pub async fn connect(&self, conversation: Option<Uuid>) -> Result<(), String> {
        let path = conversation.map_or("/healthz".to_owned(), |id| format!("/v1/conversations/{id}"));
        let mut pauses = FIRST_PAUSES.into_iter();
        loop {
            let request = self.get_request(&path).timeout(ANSWER_TIMEOUT);
            let reason = match send(request).await {
                Ok(_) => return Ok(()),
                Err(RequestFailure::Refused(problem)) => return Err(problem.detail),
                Err(RequestFailure::Away(reason)) => reason,
            };
            let Some(pause) = pauses.next() else {
                let url = &self.url;
                return Err(format!("could not reach {url} ({reason}): start it with `holdfast`, or give --url"));
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Says something, and follows the run that answers from its first event on.
    pub async fn post(&self, post: &Post) -> Result<RunStream, RequestFailure> {
        // Questions are events, so the agent's own mode of streaming will not do.
        let (path, body) = match (post.conversation, post.agent) {
            (Some(id), _) => {
                (format!("/v1/conversations/{id}/messages?stream_mode=events"), json!({"content": post.text}))
            }
            (None, None) => ("/v1/sessions/-/messages?stream_mode=events".to_owned(), json!({"content": post.text})),
            // The routes of sessions name no agent.
            (None, agent) => ("/v1/runs?stream_mode=events".to_owned(), json!({"input": post.text, "agent_id": agent})),
        };
        let request = self.post_request(&path).header("idempotency-key", post.key.to_string()).json(&body);
        let run_stream = open(request).await?;
        if let Some(answer) = &run_stream.stream {
            self.remember_user(answer.headers());
        }
        Ok(run_stream)
    }

    /// What was said in the session before, oldest first.
    pub async fn history(&self) -> Result<Vec<HistoryLine>, RequestFailure> {
        let response = send(self.get_request("/v1/sessions/-/history").timeout(ANSWER_TIMEOUT)).await?;
        self.remember_user(response.headers());
        response.json().await.map_err(|error| RequestFailure::Away(cause(&error)))
    }

    /// Follows a run from the first event after the cursor on.
    pub async fn resume(&self, run: Uuid, cursor: EventId) -> Result<RunStream, RequestFailure> {
        let request = self.get_request(&format!("/v1/runs/{run}/events?stream_mode=events"));
        open(request.header("last-event-id", cursor.to_string())).await
    }

    pub async fn read(&self, run: Uuid) -> Result<RunResult, RequestFailure> {
        let request = self.get_request(&format!("/v1/runs/{run}")).timeout(ANSWER_TIMEOUT);
        let response = send(request).await?;
        response.json().await.map_err(|error| RequestFailure::Away(cause(&error)))
    }

    /// Asks for the end of a run; its events tell when it has come.
    pub async fn cancel(&self, run: Uuid) -> Result<(), RequestFailure> {
        let request = self.post_request(&format!("/v1/runs/{run}/cancel")).timeout(ANSWER_TIMEOUT);
        send(request).await.map(|_| ())
    }

    /// Answers what a run has asked.
    pub async fn answer(&self, run: Uuid, path: &str, answer: &Value) -> Result<(), RequestFailure> {
        let request = self.post_request(&format!("/v1/runs/{run}/{path}")).timeout(ANSWER_TIMEOUT);
        send(request.json(answer)).await.map(|_| ())
    }

    /// The command that sends an answer from a shell.
    pub fn curl(&self, run: Uuid, path: &str, answer: &Value) -> String {
        let quoted = |text: &str| text.replace('\'', r"'\''");
        let user = match &self.identity {
            // The token stays where it is.
            ClientIdentity::Token(_) => r#" -H "authorization: Bearer $HOLDFAST_TOKEN""#.to_owned(),
            ClientIdentity::Name(name) => format!(" -H 'x-user: {}'", quoted(name)),
            // Nobody else has it, and without it the run can be answered by nobody.
            ClientIdentity::Anonymous => self
                .anonymous
                .get()
                .map_or_else(String::new, |secret| format!(" -H 'authorization: Bearer {}'", secret.expose_secret())),
        };
        let (url, answer) = (self.at(&format!("/v1/runs/{run}/{path}")), quoted(&answer.to_string()));
        format!("curl '{}' -H 'content-type: application/json'{user} -d '{answer}'", quoted(&url))
    }

    /// Stays the anonymous user that the server has made of it: its conversations are that user's.
    fn remember_user(&self, headers: &HeaderMap) {
        if let Some(secret) = secret_cookie(headers) {
            let _ = self.anonymous.set(secret);
        }
    }

    fn get_request(&self, path: &str) -> RequestBuilder {
        self.as_user(self.http.get(self.at(path)))
    }

    fn post_request(&self, path: &str) -> RequestBuilder {
        self.as_user(self.http.post(self.at(path)))
    }

    fn as_user(&self, request: RequestBuilder) -> RequestBuilder {
        match self.anonymous.get() {
            Some(secret) => request.bearer_auth(secret.expose_secret()),
            None => request,
        }
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }
}

/// What a browser would keep as a cookie.
fn secret_cookie(headers: &HeaderMap) -> Option<SecretString> {
    let pairs = headers.get_all(SET_COOKIE).iter().filter_map(|cookie| cookie.to_str().ok()?.split(';').next());
    pairs.filter_map(|pair| pair.strip_prefix("__Host-holdfast_user=")).next().map(SecretString::from)
}

async fn open(request: RequestBuilder) -> Result<RunStream, RequestFailure> {
    let sent = send(request.header(ACCEPT, "text/event-stream"));
    let response = tokio::time::timeout(SILENCE, sent).await.map_err(|_| silent())??;
    let headers = response.headers();
    let run = headers.get("x-run-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let is_stream = headers
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.to_str().is_ok_and(|value| value.starts_with("text/event-stream")));
    match (run, response.status()) {
        (Some(run), StatusCode::NO_CONTENT) => Ok(RunStream { run, stream: None }),
        (Some(run), _) if is_stream => Ok(RunStream { run, stream: Some(response) }),
        _ => {
            let url = response.url();
            Err(refused(format!("{url} did not answer with a run's events: is it a Holdfast server?")))
        }
    }
}

/// The answer, if it is one of success.
async fn send(request: RequestBuilder) -> Result<Response, RequestFailure> {
    let response = request.send().await.map_err(|error| match error.is_builder() || error.is_redirect() {
        true => refused(cause(&error)),
        false => RequestFailure::Away(cause(&error)),
    })?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let url = response.url().clone();
    let problem = response.json::<ProblemDetails>().await.ok();
    if status.is_server_error() {
        let detail = problem.map_or_else(|| format!("it answers {status}"), |problem| problem.detail);
        return Err(RequestFailure::Away(detail));
    }
    Err(match problem {
        Some(problem) => RequestFailure::Refused(problem),
        None => refused(format!("{url} answers {status}: is it a Holdfast server?")),
    })
}

fn refused(detail: String) -> RequestFailure {
    RequestFailure::Refused(ProblemDetails { code: String::new(), detail })
}

pub fn silent() -> RequestFailure {
    RequestFailure::Away(format!("nothing came for {} s", SILENCE.as_secs()))
}

/// The innermost reason: what the network said, rather than who heard it.
pub fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
