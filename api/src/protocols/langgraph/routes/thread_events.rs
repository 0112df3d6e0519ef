//! `/langgraph/threads/{thread_id}/stream/events`: the events of all runs of a thread, for the channels that a client wants.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde::Deserialize;

use super::{thread_named, thread_stream::ThreadStream};
use crate::{app::App, auth::Caller, extract::JsonBody, problem::Problem, protocols::langgraph::wire::Channels};

/// Most channels of one stream.
const MAX_CHANNELS: usize = 64;

/// The events that a client wants. The route ignores unknown fields.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = LangGraphEventFilter)]
pub struct EventFilter {
    /// `lifecycle`, `input`, `values`, `messages`, `tools`, `checkpoints`, `custom` or `custom:<kind>`; other channels have no events.
    channels: Vec<String>,
    /// Prefixes of paths in the graph; all paths without them. The events of a run are at the root, `[]`.
    namespaces: Option<Vec<Vec<String>>>,
    /// The `seq` of the last event that the client has.
    since: Option<u64>,
}

impl EventFilter {
    /// Returns the channels of the stream: none, if the client wants no events at the root.
    fn channels(&self) -> Result<Channels, Problem> {
        if self.channels.len() > MAX_CHANNELS {
            return Err(Problem::invalid_body(format!("channels has at most {MAX_CHANNELS} names.")));
        }
        let has_root = |paths: &Vec<Vec<String>>| paths.is_empty() || paths.iter().any(Vec::is_empty);
        if !self.namespaces.as_ref().is_none_or(has_root) {
            return Ok(Channels::default());
        }
        Ok(Channels::of(self.channels.iter().map(String::as_str)))
    }
}

/// Follow a thread: the events of its runs, one after the other. The stream stays open between them.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/stream/events", operation_id = "follow_thread_events", tag = "langgraph",
    params(("thread_id" = String, Path)), request_body = EventFilter,
    responses(
        (status = 200, content_type = "text/event-stream", description = "The events, from those after `since`, else from the start of the run that has not ended, else of the newest one."),
        (status = 400, body = Problem, description = "invalid_body"),
        (status = 404, body = Problem, description = "conversation_not_found"),
        (status = 429, body = Problem, description = "too_many_streams, too_many_answers"),
        (status = 503, body = Problem, description = "reads_busy, answers_busy")
    )
)]
pub async fn follow(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread_id): Path<String>,
    JsonBody(filter): JsonBody<EventFilter>,
) -> Result<Response, Problem> {
    let channels = filter.channels()?;
    if filter.since.is_some_and(|since| i64::try_from(since).is_err()) {
        return Err(Problem::invalid_body(format!("since is a whole number from 0 to {}.", i64::MAX)));
    }
    let thread = thread_named(&app, &caller, &thread_id).await?;
    let stream = ThreadStream::begin(&app, caller, thread, channels, filter.since).await?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((headers, Body::from_stream(stream.into_bytes())).into_response())
}
