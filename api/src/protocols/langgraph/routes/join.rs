//! Joins a run: its stream, or its end.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, Method},
    response::{IntoResponse, Response},
};
use holdfast_shared::{conversation::Conversation, event_id::EventId};
use serde::Deserialize;
use serde_json::Value;

use super::{
    request::modes_of,
    segment::{RunSegment, read_segment},
    stream::{Following, seen_frames},
    thread_named,
};
use crate::{
    app::App,
    auth::Caller,
    event_stream::{event_stream, unsent},
    extract::Query,
    problem::Problem,
    protocols::langgraph::wire::LangModes,
    relay::SeenFrames,
};

/// Modes of a client that joins a run and names none.
const JOINED_MODES: [&str; 4] = ["values", "messages-tuple", "updates", "custom"];

/// How a client joins a run.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct JoinQuery {
    /// Whether the run ends when the client disconnects.
    cancel_on_disconnect: Option<String>,
}

impl JoinQuery {
    fn cancels(&self) -> bool {
        self.cancel_on_disconnect.as_deref().is_some_and(is_true)
    }
}

/// Follow a run: all its frames after the cursor, then new ones as they arrive.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}/runs/{run_id}/stream", operation_id = "join_stream", tag = "langgraph",
    params(("thread_id" = String, Path), ("run_id" = String, Path), JoinQuery,
        ("stream_mode" = Option<String>, Query, description = "A mode, or a JSON list of modes; also several times."),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last frame that the client has; -1, or none, for all.")),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The frames of the run; none, if it has ended and the client has its last frame."),
        (status = 400, body = Problem, description = "invalid_event_id"),
        (status = 404, body = Problem, description = "conversation_not_found, run_not_found"),
        (status = 410, body = Problem, description = "events_gone: the events have expired"),
        (status = 422, body = Problem, description = "not_supported: an unknown mode")
    )
)]
pub async fn follow(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((thread_id, run_id)): Path<(String, String)>,
    method: Method,
    headers: HeaderMap,
    Query(fields): Query<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let joining = Joining::of(&headers, &fields)?;
    let thread = thread_named(&app, &caller, &thread_id).await?;
    let segment = read_segment(&app, &caller, &thread, &run_id).await?;
    if method == Method::HEAD {
        return Ok(event_stream(segment.run.id, unsent()));
    }
    joining.stream(&app, caller, (thread, thread_id), segment).await
}

/// How a client follows a run.
pub struct Joining {
    modes: LangModes,
    seen: SeenFrames,
    cancels: bool,
}

impl Joining {
    /// Reads the query and the cursor. Fails if a mode or the cursor is none.
    pub fn of(headers: &HeaderMap, fields: &[(String, String)]) -> Result<Self, Problem> {
        let cancels = fields.iter().any(|(name, value)| name == "cancel_on_disconnect" && is_true(value));
        Ok(Self { modes: modes_in(fields)?, seen: seen_frames(headers)?, cancels })
    }

    /// Returns the stream of a run to a client of a thread, which knows it by this name.
    pub async fn stream(
        self,
        app: &Arc<App>,
        caller: Caller,
        (thread, thread_id): (Conversation, String),
        segment: RunSegment,
    ) -> Result<Response, Problem> {
        let Self { modes, seen, cancels } = self;
        let permit = app.streams().open(&caller)?;
        let subscriber = app.relay().resume(&caller.owner, &segment.run, EventId::ORIGIN, permit).await?;
        let subscriber = subscriber.ok_or_else(|| Problem::events_gone(segment.run.id))?;
        let query = query_of(modes, cancels);
        Following { caller, thread, thread_id, segment, modes, seen, cancels, query }.stream(app, subscriber).await
    }
}

pub fn is_true(value: &str) -> bool {
    matches!(value, "1" | "true")
}

/// Returns the modes of a query: one or several fields, each a mode or a JSON list of modes.
fn modes_in(fields: &[(String, String)]) -> Result<LangModes, Problem> {
    let mut names: Vec<String> = Vec::new();
    // The SDK for Python sends an empty field for none.
    for (_, value) in fields.iter().filter(|(name, value)| name == "stream_mode" && !value.is_empty()) {
        match serde_json::from_str::<Vec<String>>(value) {
            Ok(list) => names.extend(list),
            Err(_) => names.push(value.clone()),
        }
    }
    if names.is_empty() { modes_of(JOINED_MODES) } else { modes_of(names.iter().map(String::as_str)) }
}

/// Wait until a run ends or waits. Returns the values of its thread.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}/runs/{run_id}/join", operation_id = "join_run", tag = "langgraph",
    params(("thread_id" = String, Path), ("run_id" = String, Path), JoinQuery),
    responses(
        (status = 200, body = Object, description = "The values, or `__error__` of a failed run."),
        (status = 404, body = Problem, description = "conversation_not_found, run_not_found"),
        (status = 410, body = Problem, description = "events_gone: the events have expired")
    )
)]
pub async fn join(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((thread_id, run_id)): Path<(String, String)>,
    method: Method,
    Query(query): Query<JoinQuery>,
) -> Result<Response, Problem> {
    let cancels = query.cancels();
    let thread = thread_named(&app, &caller, &thread_id).await?;
    let segment = read_segment(&app, &caller, &thread, &run_id).await?;
    if method == Method::HEAD {
        return Ok(Json(Value::Null).into_response());
    }
    let permit = app.streams().open(&caller)?;
    let subscriber = app.relay().open(&caller.owner, &segment.run, EventId::ORIGIN, permit).await?;
    let subscriber = subscriber.ok_or_else(|| Problem::events_gone(segment.run.id))?;
    let (modes, query) = (LangModes::default(), String::new());
    let following = Following { caller, thread, thread_id, segment, modes, seen: SeenFrames::NONE, cancels, query };
    Ok(following.values(&app, subscriber))
}

/// Returns the query with which a client follows a run again as before.
pub fn query_of(modes: LangModes, cancels: bool) -> String {
    let modes = modes.names().map(|name| format!("stream_mode={name}"));
    modes.chain(cancels.then(|| "cancel_on_disconnect=1".to_owned())).collect::<Vec<_>>().join("&")
}
