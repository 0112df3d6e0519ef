//! The client of one server, as one user.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::{Stream, stream::BoxStream};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, RequestBuilder};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use crate::{
    error::{Error, Problem},
    event::{Event, EventId},
    follower::Follower,
    pauses::Pauses,
    upload::Upload,
    wire::{
        AcceptedMessage, AcceptedRun, Approvals, ContentInput, Conversation, DecisionBody, Message, NewConversation,
        NewMessageBody, NewRunBody, Run, Snapshot, StoredFile, SubmitMode, Verdict,
    },
};

/// The server answers within 30 s, `wait` too.
const CALL_SILENCE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(120);

/// Methods repeat a request while the server is away, for the client's patience, if a repetition has no second effect.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Arc<str>,
    token: Option<Arc<str>>,
    time_zone: Option<Arc<str>>,
    patience: Duration,
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token is a secret.
        formatter.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}

/// Whether a repetition of a request has no second effect.
#[derive(Clone, Copy, PartialEq)]
enum Repetition {
    Harmless,
    Harmful,
}

#[derive(Deserialize)]
struct Page<T> {
    items: VecDeque<T>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct SnapshotPage {
    snapshot: Snapshot,
    last_event_id: EventId,
}

/// Returns the machine's zone. UTC is none: most servers have it, and it says nothing about their users.
fn own_zone() -> Option<Arc<str>> {
    let zone = iana_time_zone::get_timezone().ok()?;
    (zone.contains('/') && !zone.starts_with("Etc/")).then(|| zone.into())
}

impl Client {
    /// Returns a client of the server at this address.
    pub fn new(base_url: &str) -> Self {
        Self::with_http(reqwest::Client::new(), base_url)
    }

    /// Returns a client with the connections, the proxy and the headers of `http`, which needs no time-out.
    pub fn with_http(http: reqwest::Client, base_url: &str) -> Self {
        Self {
            http,
            base: base_url.trim_end_matches('/').into(),
            token: None,
            time_zone: own_zone(),
            patience: PATIENCE,
        }
    }

    /// Sends this bearer token with every request.
    #[must_use]
    pub fn with_token(self, token: &str) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    /// Sets the time zone of the user, an IANA name; by default it is that of the machine. An empty name sends none.
    #[must_use]
    pub fn with_time_zone(self, name: &str) -> Self {
        Self { time_zone: (!name.is_empty()).then(|| name.into()), ..self }
    }

    /// Sets how long the client waits for a server that is away; 120 s by default.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Posts a message; without `conversation_id`, in a new conversation.
    pub async fn start_run(&self, body: &NewRunBody) -> Result<AcceptedRun, Error> {
        self.start_run_once(body, &Uuid::now_v7().to_string()).await
    }

    /// Posts a message with an idempotency key of the caller: a program that starts again makes no second run.
    pub async fn start_run_once(&self, body: &NewRunBody, key: &str) -> Result<AcceptedRun, Error> {
        self.json(|| self.message("/v1/runs", key).json(body)).await
    }

    /// Posts a message to a conversation. `replace_from` names the message that it replaces.
    pub async fn post_message(&self, conversation_id: &str, body: &NewMessageBody) -> Result<AcceptedMessage, Error> {
        let path = format!("/v1/conversations/{}/messages", escaped(conversation_id));
        let key = Uuid::now_v7().to_string();
        self.json(|| self.message(&path, &key).json(body)).await
    }

    /// Posts a message that joins the live run before its next model call.
    pub async fn steer(&self, conversation_id: &str, content: &str) -> Result<AcceptedMessage, Error> {
        let mode = Some(SubmitMode::Steer);
        let body = NewMessageBody { content: Some(content.into()), mode, ..NewMessageBody::default() };
        self.post_message(conversation_id, &body).await
    }

    /// Returns the events of a run, each once and in order, up to the terminal event. Another connection replaces a lost one.
    /// The stream ends only after the end of the run, or with an error.
    pub fn events(&self, run_id: &str) -> BoxStream<'static, Result<Event, Error>> {
        self.events_after(run_id, EventId::ORIGIN)
    }

    /// Returns the events after a cursor.
    pub fn events_after(&self, run_id: &str, cursor: EventId) -> BoxStream<'static, Result<Event, Error>> {
        // An agent may prefer a stream of complete messages, whose order a client cannot check.
        let path = format!("/v1/runs/{}/events?stream_mode=events", escaped(run_id));
        let follower = Follower::new(self.clone(), path, cursor);
        let next = |mut follower: Follower| async { Ok(follower.next().await?.map(|event| (event, follower))) };
        Box::pin(futures::stream::try_unfold(follower, next))
    }

    /// Returns the message so far, and the cursor after which `events_after` continues it.
    pub async fn snapshot(&self, run_id: &str) -> Result<(Snapshot, EventId), Error> {
        let path = format!("/v1/runs/{}/events?snapshot=true", escaped(run_id));
        let page: SnapshotPage =
            self.json(|| self.request(Method::GET, &path).header("accept", "application/json")).await?;
        Ok((page.snapshot, page.last_event_id))
    }

    pub async fn run(&self, run_id: &str) -> Result<Run, Error> {
        self.get(&format!("/v1/runs/{}", escaped(run_id))).await
    }

    /// Returns the run after its end, however long that takes.
    pub async fn wait(&self, run_id: &str) -> Result<Run, Error> {
        let path = format!("/v1/runs/{}/wait?timeout_ms=30000", escaped(run_id));
        loop {
            let run: Run = self.get(&path).await?;
            if run.finished_at.is_some() {
                return Ok(run);
            }
        }
    }

    pub async fn cancel(&self, run_id: &str) -> Result<Run, Error> {
        let path = format!("/v1/runs/{}/cancel", escaped(run_id));
        self.json(|| self.request(Method::POST, &path)).await
    }

    pub async fn approvals(&self, run_id: &str) -> Result<Approvals, Error> {
        self.get(&format!("/v1/runs/{}/approvals", escaped(run_id))).await
    }

    /// Answers a question. The first answer counts: a later one is refused with the code `already_decided`.
    pub async fn decide(&self, run_id: &str, approval_id: &str, body: &DecisionBody) -> Result<Run, Error> {
        self.post(&format!("/v1/runs/{}/approvals/{}", escaped(run_id), escaped(approval_id)), body).await
    }

    /// Returns the result of a tool of this client: its output, or the reason why there is none.
    pub async fn return_result(
        &self,
        run_id: &str,
        call_id: &str,
        result: Result<Value, String>,
    ) -> Result<Run, Error> {
        let body = match result {
            Ok(output) => json!({ "output": output }),
            Err(error) => json!({ "error": error }),
        };
        self.post(&format!("/v1/runs/{}/tool_results/{}", escaped(run_id), escaped(call_id)), &body).await
    }

    /// The route has no idempotency key, so the client sends the request once.
    pub async fn create_conversation(&self, body: &NewConversation) -> Result<Conversation, Error> {
        let request = || self.request(Method::POST, "/v1/conversations").json(body);
        Ok(serde_json::from_slice(&self.send(request, Repetition::Harmful).await?)?)
    }

    pub async fn conversation(&self, conversation_id: &str) -> Result<Conversation, Error> {
        self.get(&format!("/v1/conversations/{}", escaped(conversation_id))).await
    }

    /// Returns the conversations, newest activity first.
    pub fn conversations(&self) -> BoxStream<'static, Result<Conversation, Error>> {
        Box::pin(self.items("/v1/conversations".to_owned()))
    }

    /// Returns the messages of a conversation, oldest first.
    pub fn messages(&self, conversation_id: &str) -> BoxStream<'static, Result<Message, Error>> {
        Box::pin(self.items(format!("/v1/conversations/{}/messages", escaped(conversation_id))))
    }

    pub async fn delete_conversation(&self, conversation_id: &str) -> Result<(), Error> {
        self.delete(&format!("/v1/conversations/{}", escaped(conversation_id))).await
    }

    /// Uploads a file in pieces. After a lost connection, the upload continues where the server has it. It fails after the
    /// client's patience without a new byte.
    pub async fn upload(&self, contents: impl Into<Bytes>, name: &str) -> Result<StoredFile, Error> {
        let mut upload = Upload::new(contents.into(), name);
        let mut pauses = Pauses::new(self.patience);
        loop {
            let stored: Result<StoredFile, Error> = self.piece(&upload).await;
            match stored {
                Ok(file) if file.sha256.is_some() => return Ok(file),
                Ok(file) => {
                    if upload.stored(file.id, usize::try_from(file.received).unwrap_or(usize::MAX)) {
                        pauses.succeed();
                    }
                }
                Err(error) => {
                    let retry_after = self.continues(error)?;
                    pauses.next(retry_after, None).await?;
                    self.find_offset(&mut upload).await;
                }
            }
        }
    }

    /// Returns the files of the caller, newest first.
    pub fn files(&self) -> BoxStream<'static, Result<StoredFile, Error>> {
        Box::pin(self.items("/v1/files".to_owned()))
    }

    pub async fn download(&self, file_id: &str) -> Result<Bytes, Error> {
        let path = format!("/v1/files/{}", escaped(file_id));
        self.send(|| self.request(Method::GET, &path), Repetition::Harmless).await
    }

    pub async fn delete_file(&self, file_id: &str) -> Result<(), Error> {
        self.delete(&format!("/v1/files/{}", escaped(file_id))).await
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Returns a request with a message, whose model reads the date where the user is.
    fn message(&self, path: &str, key: &str) -> RequestBuilder {
        let request = self.request(Method::POST, path).header("idempotency-key", key);
        match &self.time_zone {
            Some(zone) => request.header("time-zone", &**zone),
            None => request,
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn piece(&self, upload: &Upload) -> Result<StoredFile, Error> {
        Ok(serde_json::from_slice(&self.send(|| upload.piece(self), Repetition::Harmful).await?)?)
    }

    /// Asks the server how much of the file it has. Without an answer, the next request finds out.
    async fn find_offset(&self, upload: &mut Upload) {
        let Some(id) = &upload.file_id else { return };
        let request = self.request(Method::HEAD, &format!("/v1/files/{id}")).timeout(CALL_SILENCE);
        let Ok(response) = request.send().await else { return };
        if response.status() == reqwest::StatusCode::NOT_FOUND {
            return upload.restart();
        }
        let offset = response.headers().get("upload-offset").and_then(|value| value.to_str().ok()?.parse().ok());
        upload.received = offset.unwrap_or(upload.received);
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.json(|| self.request(Method::GET, path)).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Error> {
        self.json(|| self.request(Method::POST, path).json(body)).await
    }

    async fn delete(&self, path: &str) -> Result<(), Error> {
        self.send(|| self.request(Method::DELETE, path), Repetition::Harmless).await.map(drop)
    }

    async fn json<T: DeserializeOwned>(&self, request: impl Fn() -> RequestBuilder) -> Result<T, Error> {
        Ok(serde_json::from_slice(&self.send(request, Repetition::Harmless).await?)?)
    }

    /// Returns the items of all pages.
    fn items<T: DeserializeOwned + Send + 'static>(
        &self,
        path: String,
    ) -> impl Stream<Item = Result<T, Error>> + Send + use<T> {
        let first = Page { items: VecDeque::new(), next: Some(String::new()) };
        futures::stream::try_unfold((self.clone(), path, first), |(client, path, mut page)| async move {
            loop {
                if let Some(item) = page.items.pop_front() {
                    return Ok(Some((item, (client, path, page))));
                }
                let Some(cursor) = page.next else { return Ok(None) };
                let query = if cursor.is_empty() { String::new() } else { format!("?cursor={}", escaped(&cursor)) };
                page = client.get::<Page<T>>(&format!("{path}{query}")).await?;
            }
        })
    }

    /// Sends a request until the server has answered it completely. Returns the body.
    async fn send(&self, request: impl Fn() -> RequestBuilder, repetition: Repetition) -> Result<Bytes, Error> {
        let mut pauses = Pauses::new(self.patience);
        loop {
            let error = match exchange(request()).await {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            let retry_after = match &error {
                // A fault of the server stays one.
                Error::Refused(problem) if repetition == Repetition::Harmless && problem.status != 500 => {
                    problem.may_pass_within(self.patience).then_some(problem.retry_after)
                }
                // A request that found no server had no effect.
                Error::Request(error) if repetition == Repetition::Harmless || error.is_connect() => Some(None),
                Error::Silent if repetition == Repetition::Harmless => Some(None),
                _ => None,
            };
            let Some(retry_after) = retry_after else { return Err(error) };
            pauses.next(retry_after, None).await?;
        }
    }

    /// Returns how long an upload waits before it continues, or its error.
    fn continues(&self, error: Error) -> Result<Option<Duration>, Error> {
        match &error {
            Error::Refused(problem) => {
                let is_offset = matches!(problem.code.as_str(), "upload_offset" | "upload_broken");
                let may_continue = is_offset || problem.may_pass_within(self.patience);
                if may_continue { Ok(problem.retry_after) } else { Err(error) }
            }
            Error::Request(_) | Error::Silent => Ok(None),
            _ => Err(error),
        }
    }
}

/// Sends a request and reads the whole answer, which may take long, but is never silent for long.
async fn exchange(request: RequestBuilder) -> Result<Bytes, Error> {
    let mut response = timeout(CALL_SILENCE, request.send()).await.map_err(|_| Error::Silent)??;
    if !response.status().is_success() {
        return Err(Error::Refused(Box::new(Problem::of(response).await)));
    }
    let mut body = BytesMut::new();
    while let Some(piece) = timeout(CALL_SILENCE, response.chunk()).await.map_err(|_| Error::Silent)?? {
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

/// Escapes a part of a path or a value of a query.
fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

impl NewRunBody {
    /// Returns a message in a new conversation.
    pub fn of(input: impl Into<ContentInput>) -> Self {
        Self { input: input.into(), ..Self::default() }
    }
}

impl DecisionBody {
    pub fn of(decision: Verdict) -> Self {
        Self { decision, edited_input: None, reason: None }
    }
}

impl Default for ContentInput {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<&str> for ContentInput {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for ContentInput {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
