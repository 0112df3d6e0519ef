//! The HTTP requests of the chat. A failure says whether a retry may succeed or the reader must know.
//!
//! Each function sends one request; `stream`, `answer_state` and `cancel` decide when to retry.

use std::{
    error::Error,
    sync::{Arc, OnceLock},
    time::Duration,
};

use holdfast_shared::{event_id::EventId, finish_reason::FinishReason, run::RunError};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{
    RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, SET_COOKIE},
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    call::one_line,
    upload::{UPLOAD_TIMEOUT, UploadedFile},
};

/// The server sends a heartbeat every 15 s, so a stream is dead after this time without a byte.
pub const SILENCE: Duration = Duration::from_secs(45);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time-out of responses that are no streams.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Pauses between the attempts of the first connection.
const FIRST_PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(1000)];

/// A client of a Holdfast server, as one user.
#[derive(Debug, Clone)]
pub struct ChatClient {
    http: reqwest::Client,
    url: String,
    identity: ClientIdentity,
    /// The secret of the anonymous user, from the first response of the server.
    anonymous: Arc<OnceLock<SecretString>>,
}

/// The identity of the user, as the client sends it to the server.
#[derive(Debug, Clone)]
pub enum ClientIdentity {
    /// A token, for a server that checks tokens.
    Token(SecretString),
    /// A name, for a server in development mode.
    Name(String),
    /// No identity. A server with anonymous users sends a secret with its first response.
    Anonymous,
}

/// The reason for which a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestFailure {
    /// The server is away or has failed; a retry may succeed.
    Away(String),
    /// The server refused the request, and would refuse a retry.
    Refused(ProblemDetails),
}

/// The problem of a refused request (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ProblemDetails {
    /// Code for programs; empty if the server sent none.
    #[serde(default)]
    pub code: String,
    /// Text for people.
    pub detail: String,
}

/// A message to send. The server stores it once, even if the client sends it twice under its key.
#[derive(Debug, Clone)]
pub struct Post {
    /// If absent, the message goes to the client's session, or to the user's own session.
    pub conversation: Option<Uuid>,
    /// The agent of a new conversation.
    pub agent: Option<Uuid>,
    pub text: String,
    /// Files that were uploaded for the message.
    pub files: Vec<Uuid>,
    pub key: Uuid,
    pub mode: PostMode,
}

impl Post {
    /// Returns the content of the message: its files, and its text after them.
    fn content(&self) -> Value {
        if self.files.is_empty() {
            return json!(self.text);
        }
        let files = self.files.iter().map(|id| json!({"type": "file", "file_id": id}));
        files.chain([json!({"type": "text", "text": self.text})]).collect()
    }
}

/// The effect of a message while a run answers another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PostMode {
    /// It waits for its turn.
    Enqueue,
    /// It joins the run before the next model call.
    Steer,
}

/// A run and its stream of events. Without a stream, the run has ended and the client has all its events.
pub struct RunStream {
    pub run: Uuid,
    pub stream: Option<Response>,
}

/// A message of a session's history.
#[derive(Debug, Clone, Deserialize)]
pub struct ChatHistoryLine {
    role: String,
    content: String,
}

impl ChatHistoryLine {
    /// Returns the author and the beginning of the message.
    pub fn summary(&self) -> String {
        let author = if self.role == "User" { "you" } else { "answer" };
        format!("[{author}: {}]", one_line(&self.content))
    }
}

/// The part of a run that the chat shows.
#[derive(Debug, Clone, Deserialize)]
pub struct RunResult {
    pub status: String,
    pub finish_reason: Option<FinishReason>,
    pub output_message: Option<OutputMessage>,
    pub error: Option<RunError>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct OutputMessage {
    pub content: String,
}

impl ClientIdentity {
    /// Prefers the token, because a server that checks tokens refuses a name.
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
    /// Returns a client that uses this session, or else the user's default session. Fails if a name has characters that a
    /// header cannot carry.
    pub fn new(url: &Url, identity: ClientIdentity, session: Option<&str>) -> Result<Self, String> {
        let mut headers = HeaderMap::from_iter(identity.header()?);
        if let Some(name) = session {
            let name = HeaderValue::from_bytes(name.as_bytes());
            let name = name.map_err(|_| "--session: a name has no control characters")?;
            headers.insert(HeaderName::from_static("x-session-id"), name);
        }
        let http = reqwest::Client::builder().default_headers(headers).connect_timeout(CONNECT_TIMEOUT).build();
        let http = http.map_err(|error| format!("failed to prepare requests: {}", cause(&error)))?;
        let url = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { http, url, identity, anonymous: Arc::default() })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Checks that the server responds and that the conversation exists. Fails after three attempts: the chat waits only
    /// for a server that has responded before.
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
                return Err(format!("failed to reach {url} ({reason}): start it with `holdfast`, or give --url"));
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Sends a message. Returns the run that answers it, with a stream from its first event on.
    pub async fn post(&self, post: &Post) -> Result<RunStream, RequestFailure> {
        // The stream needs all events, because questions are events; the agent's own stream mode may omit them.
        let (path, body) = match (post.conversation, post.agent) {
            (Some(id), _) => (
                format!("/v1/conversations/{id}/messages?stream_mode=events"),
                json!({"content": post.content(), "mode": post.mode}),
            ),
            (None, None) => {
                ("/v1/sessions/-/messages?stream_mode=events".to_owned(), json!({"content": post.content()}))
            }
            // The routes of sessions name no agent.
            (None, agent) => {
                ("/v1/runs?stream_mode=events".to_owned(), json!({"input": post.content(), "agent_id": agent}))
            }
        };
        let request = self.post_request(&path).header("idempotency-key", post.key.to_string()).json(&body);
        let run_stream = open(request).await?;
        if let Some(answer) = &run_stream.stream {
            self.remember_user(answer.headers());
        }
        Ok(run_stream)
    }

    /// Uploads a file.
    pub async fn upload(&self, name: &str, contents: Vec<u8>) -> Result<UploadedFile, RequestFailure> {
        let disposition = format!("attachment; filename*=UTF-8''{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
        let request = self.post_request("/v1/files").timeout(UPLOAD_TIMEOUT);
        let request = request.header("idempotency-key", Uuid::now_v7().to_string());
        let response = send(request.header("content-disposition", disposition).body(contents)).await?;
        self.remember_user(response.headers());
        response.json().await.map_err(|error| RequestFailure::Away(cause(&error)))
    }

    /// Returns the messages of the session, oldest first.
    pub async fn history(&self) -> Result<Vec<ChatHistoryLine>, RequestFailure> {
        let response = send(self.get_request("/v1/sessions/-/history").timeout(ANSWER_TIMEOUT)).await?;
        self.remember_user(response.headers());
        response.json().await.map_err(|error| RequestFailure::Away(cause(&error)))
    }

    /// Returns a stream of the run's events after the cursor.
    pub async fn resume(&self, run: Uuid, cursor: EventId) -> Result<RunStream, RequestFailure> {
        let request = self.get_request(&format!("/v1/runs/{run}/events?stream_mode=events"));
        open(request.header("last-event-id", cursor.to_string())).await
    }

    pub async fn read(&self, run: Uuid) -> Result<RunResult, RequestFailure> {
        let request = self.get_request(&format!("/v1/runs/{run}")).timeout(ANSWER_TIMEOUT);
        let response = send(request).await?;
        response.json().await.map_err(|error| RequestFailure::Away(cause(&error)))
    }

    /// Requests the cancellation of a run; the run's events report its end.
    pub async fn cancel(&self, run: Uuid) -> Result<(), RequestFailure> {
        let request = self.post_request(&format!("/v1/runs/{run}/cancel")).timeout(ANSWER_TIMEOUT);
        send(request).await.map(|_| ())
    }

    /// Sends the answer to a question of the run.
    pub async fn answer(&self, run: Uuid, path: &str, answer: &Value) -> Result<(), RequestFailure> {
        let request = self.post_request(&format!("/v1/runs/{run}/{path}")).timeout(ANSWER_TIMEOUT);
        send(request.json(answer)).await.map(|_| ())
    }

    /// Returns a shell command that sends an answer.
    pub fn curl(&self, run: Uuid, path: &str, answer: &Value) -> String {
        let quoted = |text: &str| text.replace('\'', r"'\''");
        let user = match &self.identity {
            // The command names the variable, so that it does not show the token.
            ClientIdentity::Token(_) => r#" -H "authorization: Bearer $HOLDFAST_TOKEN""#.to_owned(),
            ClientIdentity::Name(name) => format!(" -H 'x-user: {}'", quoted(name)),
            // Only this process has the secret, and an answer needs it.
            ClientIdentity::Anonymous => self
                .anonymous
                .get()
                .map_or_else(String::new, |secret| format!(" -H 'authorization: Bearer {}'", secret.expose_secret())),
        };
        let (url, answer) = (self.at(&format!("/v1/runs/{run}/{path}")), quoted(&answer.to_string()));
        format!("curl '{}' -H 'content-type: application/json'{user} -d '{answer}'", quoted(&url))
    }

    /// Keeps the secret of the anonymous user, who owns the conversations of this client.
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

/// Returns the secret of an anonymous user from the cookies of a response.
fn secret_cookie(headers: &HeaderMap) -> Option<SecretString> {
    let pairs = headers.get_all(SET_COOKIE).iter().filter_map(|cookie| cookie.to_str().ok()?.split(';').next());
    pairs.filter_map(|pair| pair.strip_prefix("__Host-holdfast_user=")).next().map(SecretString::from)
}

async fn open(request: RequestBuilder) -> Result<RunStream, RequestFailure> {
    let sent = send(request.header(ACCEPT, "text/event-stream"));
    let response = tokio::time::timeout(SILENCE, sent).await.map_err(|_| RequestFailure::Away(silence()))??;
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
            Err(refused(format!("{url} did not respond with a run's events: is it a Holdfast server?")))
        }
    }
}

/// Returns the response if its status is a success; otherwise fails with its problem.
async fn send(request: RequestBuilder) -> Result<Response, RequestFailure> {
    let response = request.send().await.map_err(|error| {
        if error.is_builder() || error.is_redirect() {
            refused(cause(&error))
        } else {
            RequestFailure::Away(cause(&error))
        }
    })?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let url = response.url().clone();
    let problem = response.json::<ProblemDetails>().await.ok();
    if status.is_server_error() {
        let detail = problem.map_or_else(|| format!("it responds with {status}"), |problem| problem.detail);
        return Err(RequestFailure::Away(detail));
    }
    Err(match problem {
        Some(problem) => RequestFailure::Refused(problem),
        None => refused(format!("{url} responds with {status}: is it a Holdfast server?")),
    })
}

fn refused(detail: String) -> RequestFailure {
    RequestFailure::Refused(ProblemDetails { code: String::new(), detail })
}

pub fn silence() -> String {
    format!("nothing came for {} s", SILENCE.as_secs())
}

/// Returns the innermost cause of an error, which is the network's own message.
pub fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
