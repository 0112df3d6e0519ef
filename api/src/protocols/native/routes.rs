//! `/v1/runs/{id}/events`: a run's events, as a stream or as a page of JSON, optionally after a snapshot of the message
//! so far.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, Method, header},
    response::{IntoResponse, Response},
};
use holdfast_shared::{agent::StreamMode, event_id::EventId, page::PageSize, run::Run, snapshot::Snapshot};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::snapshot::RunFold;
use crate::{
    app::App,
    auth::Caller,
    event_stream::{cursor, event_stream, stream_as, stream_on, unsent, view_of},
    extract::{Query, RunId, accepts_event_stream, accepts_json},
    page_sizes::page_size,
    problem::Problem,
    streams::OpenStream,
    wire::{Wire, event_json},
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

/// Returns the headers of a run's events for HEAD, without opening a stream or reading an event.
fn head(run_id: Uuid, is_json: bool) -> Response {
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    if is_json { (json, unsent()).into_response() } else { event_stream(run_id, unsent()) }
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
        event_json::write(&mut body, run_id, event);
    }
    body.extend(format!(r#"],"last_event_id":"{last}","complete":{complete}}}"#).bytes());
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response())
}
