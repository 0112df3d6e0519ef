//! `/v1/stream/runs/{id}`: a run's events for clients of the Durable Streams protocol, which read and never write.

mod paging;

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use chrono::Utc;
use holdfast_shared::run::Run;
use serde::Deserialize;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    app::App,
    auth::Caller,
    event_stream::unsent,
    extract::{Query, RunId},
    problem::Problem,
    protocols::durable_streams::wire::{self as durable, DurablePage, Offset},
};
use paging::{LivePages, page_after, tail};

/// The route ignores other parameters, because clients may send their own.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct DurableStreamQuery {
    /// `-1` (the start), `now` (the end), or the `Stream-Next-Offset` of an answer. The start by default.
    offset: Option<String>,
    /// Whether to wait for further events: `long-poll` for one answer, `sse` for a stream.
    #[param(inline)]
    live: Option<Live>,
    /// `Stream-Cursor` of the previous answer.
    cursor: Option<String>,
}

#[derive(Clone, Copy, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Live {
    LongPoll,
    Sse,
}

/// Read a run's events as a Durable Stream.
#[utoipa::path(get, path = "/v1/stream/runs/{id}", operation_id = "read_stream", tag = "runs", params(("id" = Uuid, Path), DurableStreamQuery), responses(
    (status = 200, description = "The events after the offset, as a JSON array; with live=sse, as text/event-stream.", content(
        (Vec<Object> = "application/json"), (String = "text/event-stream")
    )),
    (status = 204, description = "With live=long-poll: no event arrived in time, or the run has ended."),
    (status = 304, description = "If-None-Match names the current answer."),
    (status = 400, body = Problem, description = "invalid_offset, invalid_event_id, invalid_query"),
    (status = 404, body = Problem, description = "run_not_found"),
    (status = 410, body = Problem, description = "events_gone")
))]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    RunId(id): RunId,
    headers: HeaderMap,
    query: Result<Query<DurableStreamQuery>, Problem>,
) -> Response {
    guarded(answer(&app, &caller, id, &headers, query).await)
}

/// Read the end of a run's Durable Stream.
#[utoipa::path(head, path = "/v1/stream/runs/{id}", operation_id = "find_stream_end", tag = "runs", params(("id" = Uuid, Path)), responses(
    (status = 200, description = "Stream-Next-Offset is the end; Stream-Closed says that it is final."), (status = 404, description = "run_not_found")
))]
pub async fn metadata(State(app): State<Arc<App>>, caller: Caller, RunId(id): RunId) -> Response {
    let end = async { tail(&app, &own_run(&app, &caller, id).await?).await };
    guarded(end.await.map(|tail| (position(&tail), [JSON, NO_STORE], unsent()).into_response()))
}

const JSON: (HeaderName, HeaderValue) = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
const NO_STORE: (HeaderName, HeaderValue) = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));

async fn answer(
    app: &App,
    caller: &Caller,
    id: Uuid,
    headers: &HeaderMap,
    query: Result<Query<DurableStreamQuery>, Problem>,
) -> Result<Response, Problem> {
    let Query(query) = query?;
    let run = Arc::new(own_run(app, caller, id).await?);
    let offset = match (&query.offset, query.live) {
        (Some(offset), _) => offset,
        (None, None) => "-1",
        (None, Some(_)) => return Err(Problem::missing_offset()),
    };
    let start = Offset::parse(offset).ok_or_else(|| Problem::invalid_offset(offset))?;
    let (begin, is_now) = match start {
        Offset::After(id) => (DurablePage::empty_after(id), false),
        Offset::Now => (tail(app, &run).await?, true),
    };
    let cursor = durable::cursor(Utc::now(), query.cursor.as_deref());
    match query.live {
        None if is_now => Ok((position(&begin), [JSON, NO_STORE], "[]").into_response()),
        None => Ok(catch_up(id, &begin, &page_after(app, id, begin.last).await?, headers)),
        Some(Live::LongPoll) => long_poll(app, caller, &run, begin, cursor).await,
        Some(Live::Sse) => sse(app, caller, &run, begin, cursor).await,
    }
}

async fn own_run(app: &App, caller: &Caller, id: Uuid) -> Result<Run, Problem> {
    app.storage().run_without_answer(&caller.owner, id).await?.ok_or_else(|| Problem::run_not_found(id))
}

/// Returns the events after the offset, up to the size limit, or 304 if the client has them already.
fn catch_up(id: Uuid, begin: &DurablePage, page: &DurablePage, headers: &HeaderMap) -> Response {
    // The tag is weak: two answers with equal offsets can differ in the events that a lost worker has not archived.
    let tag = format!("\"{id}:{}:{}\"", durable::offset(begin.last), durable::offset(page.last));
    // Caches must be private and must revalidate, because another caller may send the next request.
    let caching = [
        (header::ETAG, HeaderValue::from_str(&format!("W/{tag}")).expect("a tag is ASCII")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
    ];
    let etags = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    if etags.flat_map(|value| value.split(',')).any(|etag| etag.trim().trim_start_matches("W/") == tag) {
        return (StatusCode::NOT_MODIFIED, position(page), caching).into_response();
    }
    (position(page), caching, [JSON], durable::array(id, &page.events)).into_response()
}

/// Returns the events after the offset; without any, waits for further ones up to the `long_poll` setting.
async fn long_poll(
    app: &App,
    caller: &Caller,
    run: &Arc<Run>,
    begin: DurablePage,
    cursor: u64,
) -> Result<Response, Problem> {
    let until = caller.no_later_than(Instant::now() + app.config().long_poll);
    let page = match app.relay().open(&caller.owner, run, begin.last, app.streams().open(caller)?).await? {
        Some(subscriber) => LivePages::new(subscriber, until).next_page(app).await?,
        None => DurablePage::end_after(begin.last),
    };
    let cursor = [(HeaderName::from_static("stream-cursor"), HeaderValue::from(cursor)), NO_STORE];
    Ok(if page.events.is_empty() {
        (StatusCode::NO_CONTENT, position(&page), cursor).into_response()
    } else {
        (position(&page), cursor, [JSON], durable::array(run.id, &page.events)).into_response()
    })
}

/// Streams the events after the offset and all further ones as they arrive.
async fn sse(app: &App, caller: &Caller, run: &Arc<Run>, begin: DurablePage, cursor: u64) -> Result<Response, Problem> {
    let id = run.id;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    let body = match app.relay().open(&caller.owner, run, begin.last, app.streams().open(caller)?).await? {
        Some(subscriber) => {
            let until = caller.no_later_than(Instant::now() + app.config().durable_sse);
            let pages = LivePages::new(subscriber, until);
            Body::from_stream(pages.into_frames(move |page| durable::frames(id, page, cursor)))
        }
        None => Body::from(durable::frames(id, &DurablePage::end_after(begin.last), cursor)),
    };
    Ok((headers, body).into_response())
}

/// Returns the headers for the client's next offset, and whether further events exist.
fn position(page: &DurablePage) -> HeaderMap {
    let offset = HeaderValue::from_str(&durable::offset(page.last)).expect("an offset is a header value");
    let mut headers = HeaderMap::from_iter([(HeaderName::from_static("stream-next-offset"), offset)]);
    let flags = [("stream-up-to-date", page.up_to_date), ("stream-closed", page.closed)];
    for (name, _) in flags.into_iter().filter(|(_, is_so)| *is_so) {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static("true"));
    }
    headers
}

/// Adds the headers that the protocol requires for the safety of browsers, also to errors.
fn guarded(answer: Result<Response, Problem>) -> Response {
    let mut response = answer.unwrap_or_else(Problem::into_response);
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin"));
    response
}
