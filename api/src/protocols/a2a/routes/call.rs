//! A call of a method, and what the methods share: the view of a run, the task of a run, and responses.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Json,
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::stream;
use holdfast_shared::{event_id::EventId, message::Message, run::Run};
use serde_json::Value;
use uuid::Uuid;

use super::super::problem::form;
use super::request::RpcRequest;
use crate::{
    anonymous_limits::RefusedWrite,
    app::App,
    auth::Caller,
    event_stream::{detail_of, event_stream},
    extract,
    in_flight::InFlightGuard,
    problem::Problem,
    protocols::a2a::wire::{A2aFold, A2aStatus, A2aTask, A2aVersion, A2aView, response},
    relay::{FoldStream, SeenFrames, Subscriber},
    thread::{FILES, truncated_id},
    wire::{Detail, FrameId, with_client_bytes},
};

/// Time after which a client that waits for a response gets a byte, so that it does not give up.
const SIGN_OF_LIFE: Duration = Duration::from_secs(3);

/// A call of a method by a caller.
pub struct A2aCall<'a> {
    pub app: &'a Arc<App>,
    pub caller: &'a Caller,
    pub headers: &'a HeaderMap,
    /// The address of this server.
    pub origin: &'a str,
    pub request: &'a RpcRequest,
    pub version: A2aVersion,
    /// The agent of a new conversation.
    pub agent_id: Option<Uuid>,
}

impl A2aCall<'_> {
    /// Returns the caller's task. Fails with `task_not_found`, also for a task of another user.
    pub async fn find(&self, id: &str) -> Result<Run, Problem> {
        let unknown = || Problem::task_not_found(truncated_id(id));
        let run_id = extract::id(id).map_err(|_| unknown())?;
        self.app.storage().run(&self.caller.owner, run_id).await?.ok_or_else(unknown)
    }

    /// Returns the client's name for a conversation, or its id.
    pub async fn context_of(&self, conversation_id: Uuid) -> Result<String, Problem> {
        let mut names = self.app.storage().chat_names(&self.caller.owner, vec![conversation_id]).await?;
        Ok(names.remove(&conversation_id).unwrap_or_else(|| conversation_id.to_string()))
    }

    /// Returns the part of a run that the client sees.
    pub async fn view(&self, run: &Run, context_id: String, after: Option<EventId>) -> Result<A2aView, Problem> {
        Ok(A2aView { detail: detail_of(self.app, run, None, false).await?, after, ..self.plain_view(run, context_id) })
    }

    /// Returns the view of a task that the client does not stream.
    pub fn plain_view(&self, run: &Run, context_id: String) -> A2aView {
        A2aView {
            version: self.version,
            detail: Detail::All,
            task_id: run.id,
            context_id,
            artifact_id: run.output_message_id,
            files: format!("{}{FILES}", self.origin),
            after: None,
        }
    }

    /// Returns the last frame that the client has.
    pub fn cursor(&self) -> Result<FrameId, Problem> {
        let header = self.headers.get("last-event-id").map(|value| value.to_str().unwrap_or("not text").trim());
        let cursor = header.filter(|text| !text.is_empty());
        cursor.map_or(Ok(FrameId::START), str::parse).map_err(|error| Problem::malformed_event_id(&error))
    }

    /// Returns the response with a result.
    pub fn respond_with(&self, result: Value) -> Response {
        Json(response(&self.request.response_id(), result)).into_response()
    }

    /// Returns the stream of a run, after a prefix that stands for the frames that the client has.
    pub fn stream(&self, run_id: Uuid, subscriber: Subscriber, prefix: &[u8], stream: FoldStream<A2aFold>) -> Response {
        let request_id = self.request.response_id().to_string().into_bytes();
        let prefix = with_client_bytes(prefix, &request_id);
        let frames = subscriber.into_frames(prefix, stream.with_client_bytes(request_id));
        event_stream(run_id, Body::from_stream(frames))
    }

    /// Returns the response with a result for which the client may have to wait.
    pub fn respond_later(&self, result: impl Future<Output = Result<Value, Problem>> + Send + 'static) -> Response {
        let (app, caller, request_id) = (Arc::clone(self.app), self.caller.clone(), self.request.response_id());
        let work = async move {
            let response = match result.await {
                Ok(result) => response(&request_id, result),
                Err(problem) => form(&problem, &request_id),
            };
            HeldResponse::of(&app, &caller, &request_id, response.to_string())
        };
        let body = stream::unfold(Some(Box::pin(work)), |work| async {
            let mut work = work?;
            // Blanks may stand before JSON.
            Some(match tokio::time::timeout(SIGN_OF_LIFE, &mut work).await {
                Ok(response) => (Ok::<_, Infallible>(Bytes::from_owner(response)), None),
                Err(_) => (Ok(Bytes::from_static(b" ")), Some(work)),
            })
        });
        ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], Body::from_stream(body))
            .into_response()
    }
}

/// A response that counts for its caller until the client's socket has it.
struct HeldResponse {
    text: String,
    _guard: Option<InFlightGuard>,
}

impl HeldResponse {
    /// Admits a response. One that has no room becomes a refusal, which needs none.
    fn of(app: &App, caller: &Caller, request_id: &Value, text: String) -> Self {
        match app.unread_answers().hold(caller, text.len()) {
            Ok(guard) => Self { text, _guard: Some(guard) },
            Err(problem) => Self { text: form(&problem, request_id).to_string(), _guard: None },
        }
    }
}

impl AsRef<[u8]> for HeldResponse {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// Returns the task of a run, with its answer so far.
pub async fn task_of(app: &App, view: &A2aView, run: &Run) -> Result<A2aTask, Problem> {
    if run.status.is_terminal() {
        let text = run.output_message.as_ref().map(|message| message.content.to_stored()).unwrap_or_default();
        return Ok(A2aTask { status: A2aStatus::of(run), text: Some(text), history: Vec::new() });
    }
    Ok(folded(app, view, run.id).await?.task())
}

/// Returns the state of a task after all events of its run.
pub async fn folded(app: &App, view: &A2aView, run_id: Uuid) -> Result<A2aFold, Problem> {
    let (mut fold, mut log) = (A2aFold::default(), app.relay().pages(run_id, EventId::ORIGIN));
    while let Some(events) = log.next().await? {
        for event in &events {
            fold.push(view, event);
        }
    }
    Ok(fold)
}

/// Returns the messages of a task: the one that has started it, if it is still part of the conversation.
pub async fn history_of(app: &App, owner: &str, run: &Run) -> Result<Vec<Message>, Problem> {
    let id = run.input_message_id.to_string();
    Ok(app.storage().message_called(owner, run.conversation_id, &id).await?.into_iter().collect())
}

/// Returns the stream of a view for a client with the frame `seen`.
pub fn fold_stream(view: A2aView, seen: FrameId) -> FoldStream<A2aFold> {
    // No frame has a file, so clients that know this server by different addresses share frames.
    let view = A2aView { files: String::new(), ..view };
    FoldStream::new(view, A2aFold::default()).after(SeenFrames::UpTo(seen))
}

/// Returns the response to a request that has failed. The status is 200 unless it is meant for programs that do not know the protocol.
pub fn refusal(problem: Problem, request_id: &Value) -> Response {
    let body = Json(form(&problem, request_id)).into_response().into_body();
    let (mut parts, _) = problem.into_response().into_parts();
    parts.extensions.remove::<Arc<Problem>>();
    if parts.status == StatusCode::BAD_REQUEST {
        parts.extensions.insert(RefusedWrite);
    }
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.remove(header::CONTENT_LENGTH);
    let is_kept = matches!(
        parts.status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::MISDIRECTED_REQUEST
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE
    );
    if !is_kept {
        parts.status = StatusCode::OK;
    }
    Response::from_parts(parts, body)
}
