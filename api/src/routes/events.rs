//! `/v1/runs/{id}/events`: a run's events, as a stream or as a page of JSON, optionally after a snapshot of the message
//! so far.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Json,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::stream;
use holdfast_shared::{
    agent::StreamMode, event_id::EventId, page::PageSize, run::Run, snapshot::Snapshot, storage::StreamDefaults,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{page_size, snapshot::RunFold};
use crate::{
    app::App,
    auth::Caller,
    extract::{Query, RunId, accepts_event_stream, accepts_json},
    problem::Problem,
    relay::Subscriber,
    streams::OpenStream,
    wire::{Detail, View, Wire, native},
};

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct EventsQuery {
    /// The last event id that the client has; the header `Last-Event-ID` wins.
    after: Option<String>,
    /// Most events of a JSON page.
    limit: Option<usize>,
    /// `events` or `messages`; the agent's mode by default.
    stream_mode: Option<StreamMode>,
    /// The protocol of the stream: `native`, `chat`, `text`, `agent` or `ai-sdk`; native by default. A JSON page is
    /// always native.
    #[serde(default)]
    wire: Wire,
    /// Whether to begin with the message so far, as one `run.snapshot`, instead of all its events. The server ignores
    /// it with a cursor.
    #[serde(default)]
    snapshot: bool,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct StreamQuery {
    /// The content of the stream: `events`, or only `messages` and the end of the run; the agent's mode by default.
    pub stream_mode: Option<StreamMode>,
}

#[derive(Serialize)]
struct SnapshotResponse {
    snapshot: Snapshot,
    last_event_id: EventId,
}

/// Follow a run: all events after the cursor, then new ones as they arrive. With `Accept: application/json`, a page of
/// them.
#[utoipa::path(get, path = "/v1/runs/{id}/events", tag = "runs",
    params(("id" = Uuid, Path), EventsQuery, ("Last-Event-ID" = Option<String>, Header, description = "The last event id that the client has.")),
    responses(
        (status = 200, description = "The events; the stream ends with the run. With `Accept: application/json`, a page of them.", content(
            (String = "text/event-stream"), (Object = "application/json")
        )),
        (status = 204, description = "The run has ended and the client has all its events."),
        (status = 400, body = Problem, description = "invalid_event_id, invalid_query"),
        (status = 404, body = Problem, description = "run_not_found"),
        (status = 410, body = Problem, description = "events_gone: the events have expired; `run` links to the result.")
    )
)]
pub async fn follow(
    State(app): State<Arc<App>>,
    caller: Caller,
    RunId(id): RunId,
    method: Method,
    headers: HeaderMap,
    Query(query): Query<EventsQuery>,
) -> Result<Response, Problem> {
    let size = page_size(&app, query.limit)?;
    let run = app.run_to_stream(&caller.owner, id).await?;
    let cursor = cursor(&headers, query.after.as_deref())?;
    if query.snapshot && query.wire != Wire::Native {
        return Err(Problem::no_snapshot_on_this_wire());
    }
    let wants_json = accepts_json(&headers) && !accepts_event_stream(&headers);
    if method == Method::HEAD {
        return Ok(head(id, wants_json));
    }
    let stream = if wants_json { None } else { Some(app.streams().open(&caller)?) };
    // A reconnecting browser repeats its URL. It has the snapshot already and needs only the events after its cursor.
    if query.snapshot && cursor == EventId::ORIGIN {
        let _assembled = app.unread_answers().assemble(&caller, size.bytes)?;
        return match stream {
            None => snapshot_as_json(&app, id).await,
            Some(stream) => snapshot_and_tail(&app, &caller.owner, &run, query.stream_mode, stream).await,
        };
    }
    let Some(stream) = stream else {
        let _assembled = app.unread_answers().assemble(&caller, size.bytes)?;
        return page(&app, id, cursor, size).await;
    };
    let subscriber = app.relay().resume(&caller.owner, &run, cursor, stream).await?;
    stream_on(query.wire, &app, &run, subscriber, query.stream_mode).await
}

/// Streams the message so far, then the tail. For an ended run the tail is its last event, because clients wait for
/// that.
async fn snapshot_and_tail(
    app: &App,
    owner: &str,
    run: &Arc<Run>,
    mode: Option<StreamMode>,
    stream: OpenStream,
) -> Result<Response, Problem> {
    let fold = RunFold::before_end(app, run.id).await?;
    let subscriber = app.relay().open(owner, run, fold.last, stream).await?;
    let view = view_of(Wire::Native, app, run, mode).await?;
    Ok(stream_as(view, subscriber, fold.into_frame(run.id)))
}

/// Returns `{snapshot, last_event_id}`, which includes the end of an ended run.
async fn snapshot_as_json(app: &App, run_id: Uuid) -> Result<Response, Problem> {
    let fold = RunFold::to_end(app, run_id).await?;
    let last_event_id = fold.last;
    Ok(Json(SnapshotResponse { snapshot: fold.into_snapshot(), last_event_id }).into_response())
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
fn stream_as(view: View, subscriber: Option<Subscriber>, prefix: Vec<u8>) -> Response {
    let run_id = view.run_id;
    match subscriber {
        Some(subscriber) => event_stream(run_id, Body::from_stream(subscriber.into_frames(prefix, view))),
        None => (StatusCode::NO_CONTENT, [run_header(run_id)]).into_response(),
    }
}

/// Returns the headers of a run's events for HEAD, without opening a stream or reading an event.
fn head(run_id: Uuid, is_json: bool) -> Response {
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    if is_json { (json, unsent()).into_response() } else { event_stream(run_id, unsent()) }
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

/// About how many bytes an event of a JSON page is longer than its line.
const ENVELOPE: usize = 128;

/// Returns `{events, last_event_id, complete}`. `complete` is true if the run has ended and these are its last events.
async fn page(app: &App, run_id: Uuid, cursor: EventId, size: PageSize) -> Result<Response, Problem> {
    let (mut events, mut bytes, mut log) = (Vec::new(), 0, app.relay().pages(run_id, cursor));
    while events.len() < size.items
        && bytes < size.bytes
        && let Some(more) = log.next().await?
    {
        for event in more {
            if events.len() == size.items || bytes >= size.bytes {
                break;
            }
            bytes += event.line().len() + ENVELOPE;
            events.push(event);
        }
    }
    let last = events.last().map_or(cursor, |event| event.id);
    let complete = log.has_ended && last == log.last;
    let mut body = br#"{"events":["#.to_vec();
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        native::json(&mut body, run_id, event);
    }
    body.extend(format!(r#"],"last_event_id":"{last}","complete":{complete}}}"#).bytes());
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response())
}

/// Returns the client's cursor: `Last-Event-ID`, else the query's `after`, else the start. Fails if it is no event id.
pub fn cursor(headers: &HeaderMap, after: Option<&str>) -> Result<EventId, Problem> {
    let header = headers.get("last-event-id").map(|value| value.to_str().unwrap_or("not text"));
    // Some clients send an empty header before their first event.
    let cursor = header.map(str::trim).filter(|text| !text.is_empty()).or(after);
    cursor.map_or(Ok(EventId::ORIGIN), str::parse).map_err(|error| Problem::malformed_event_id(&error))
}
