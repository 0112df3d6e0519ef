//! The streams of a run's events on all wires: the view of a client, the client's cursor, and the headers.

use std::convert::Infallible;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::stream;
use holdfast_shared::{agent::StreamMode, event_id::EventId, run::Run, storage::StreamDefaults};
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    app::App,
    problem::Problem,
    relay::Subscriber,
    wire::{Detail, View, Wire},
};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct StreamQuery {
    /// The content of the stream: `events`, or only `messages` and the end of the run; the agent's mode by default.
    pub stream_mode: Option<StreamMode>,
}

/// Returns the stream of a run on any wire, or 204 if the client has all of it.
pub async fn stream_on(
    wire: Wire,
    app: &App,
    run: &Run,
    subscriber: Option<Subscriber>,
    requested: Option<StreamMode>,
) -> Result<Response, Problem> {
    Ok(stream_as(view_of(wire, app, run, requested).await?, subscriber, Vec::new()))
}

/// Returns the view of a run for a client of the wire: the requested mode, else the agent's.
pub async fn view_of(wire: Wire, app: &App, run: &Run, requested: Option<StreamMode>) -> Result<View, Problem> {
    let view = View::of(run, wire, detail_of(app, run, requested, wire == Wire::Native).await?);
    if wire != Wire::Agent {
        return Ok(view);
    }
    let plan = app.relay().earlier_plan(run).await?;
    Ok(View { plan, ..view })
}

/// Returns how much of a run a client sees: the requested mode, else the agent's. The native wire has `message.completed`, also if
/// the run writes no deltas.
pub async fn detail_of(
    app: &App,
    run: &Run,
    requested: Option<StreamMode>,
    is_native: bool,
) -> Result<Detail, Problem> {
    let defaults = match (requested, run.agent_id) {
        (Some(StreamMode::Messages), _) => StreamDefaults::default(),
        (Some(StreamMode::Events), _) | (None, None) if is_native => StreamDefaults::default(),
        _ => app.relay().stream_defaults(run.id).await?,
    };
    Ok(match Detail::from(requested.unwrap_or(defaults.mode)) {
        Detail::All if !is_native && !defaults.writes_deltas => Detail::NoDeltas,
        detail => detail,
    })
}

/// Returns the stream of a view after a prefix, or 204 if the client has all of it.
pub fn stream_as(view: View, subscriber: Option<Subscriber>, prefix: Vec<u8>) -> Response {
    let run_id = view.run_id;
    match subscriber {
        Some(subscriber) => event_stream(run_id, Body::from_stream(subscriber.into_frames(prefix, view))),
        None => (StatusCode::NO_CONTENT, [run_header(run_id)]).into_response(),
    }
}

/// Returns the body for an answer to HEAD. Its length is unknown, because an empty body would promise that GET has no
/// bytes.
pub fn unsent() -> Body {
    Body::from_stream(stream::empty::<Result<Bytes, Infallible>>())
}

/// Returns an event stream with frames of a run.
pub fn event_stream(run_id: Uuid, frames: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
        run_header(run_id),
    ];
    (headers, frames).into_response()
}

pub fn run_header(run_id: Uuid) -> (HeaderName, HeaderValue) {
    let value = HeaderValue::from_str(&run_id.to_string()).expect("an id is a header value");
    (HeaderName::from_static("x-run-id"), value)
}

/// Returns the client's cursor: `Last-Event-ID`, else the query's `after`, else the start. Fails if it is no event id.
pub fn cursor(headers: &HeaderMap, after: Option<&str>) -> Result<EventId, Problem> {
    let header = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("not text"));
    // Some clients send an empty header before their first event.
    let cursor = header.map(str::trim).filter(|text| !text.is_empty()).or(after);
    cursor.map_or(Ok(EventId::ORIGIN), str::parse).map_err(|error| Problem::malformed_event_id(&error))
}
