//! `/openai/v1/responses`: create, follow, read, cancel and delete responses.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Path, State},
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use holdfast_shared::{agent::StreamMode, event_id::EventId, overrides::Sampling, run::Run};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    answering::{Answered, Answering, answer},
    items::{item_of, list_of},
    posting::{RequestFields, checked_metadata, posting},
    repeated::RepeatedFields,
    request::ResponseRequest,
    respond::{
        ResponsePart, ended, expect_output, frames_up_to, head_of, part_of, refusal, seen_frames, state_of, streamed,
        whole,
    },
    turns::{OpenAiAction, Question},
};
use crate::{
    app::App,
    auth::Caller,
    event_stream::detail_of,
    extract::{JsonBody, Query},
    page_sizes::history_size,
    problem::Problem,
    protocols::openai::wire::{ResponseFold, ResponseId, ResponseState, ResponseView, parse_conversation_id},
    relay::{FoldStream, SeenFrames},
    run_request::WireQuery,
    thread::Outline,
};

/// How long the cancel of a response waits for its worker.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// The query of a response, which ignores unknown fields.
#[derive(Deserialize, utoipa::IntoParams)]
pub struct ResponseQuery {
    /// Whether to stream the events.
    #[serde(default)]
    stream: Option<bool>,
    /// The number of the last event that the client has.
    starting_after: Option<u64>,
    /// `events` or `messages`; the agent's mode by default.
    stream_mode: Option<StreamMode>,
}

/// Create a response: post a message, or answer the calls and the approvals of an earlier response.
#[utoipa::path(post, path = "/openai/v1/responses", operation_id = "create_response", tag = "openai", request_body = ResponseRequest,
    params(WireQuery, ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same response."),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last frame that the client has, for a repeated request.")),
    responses(
        (status = 200, description = "The response, or with `stream` its events.", content((Object = "application/json"), (String = "text/event-stream"))),
        (status = 400, body = Object, description = "invalid_body, empty_content, content_too_long, unsupported_part, too_many_attachments, invalid_client_tool, invalid_metadata; context_length_exceeded, model_refused, file_refused, tool_not_available: the model's provider refuses the request"),
        (status = 404, body = Object, description = "model_not_found, response_not_found, conversation_not_found"),
        (status = 409, body = Object, description = "run_not_waiting: the response waits for no such answer"),
        (status = 422, body = Object, description = "idempotency_key_reused"),
        (status = 429, body = Object, description = "rate_limit_exceeded: the model's provider takes no more requests for now"),
        (status = 500, body = Object, description = "run_failed"),
        (status = 503, body = Object, description = "model_unreachable, model_timeout, model_unavailable, model_broken_stream: the model's provider does not answer")
    )
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<WireQuery>,
    JsonBody(body): JsonBody<ResponseRequest>,
) -> Result<Response, Problem> {
    let previous = body.previous_response_id.as_deref().map(response_id).transpose()?;
    conversation_of(&body)?;
    let (turns, form) = (
        body.turns()?,
        ResponseForm { streams: body.stream == Some(true), in_background: body.background == Some(true) },
    );
    let fields = fields_of(body, previous)?;
    let action = OpenAiAction::of(turns, fields.has_history())?;
    action.expect_run(previous)?;
    match action {
        OpenAiAction::Ask(question) => ask(&app, &caller, &headers, &query, form, question, fields).await,
        OpenAiAction::Answer(given) => match answer(&app, &caller, given, &fields).await? {
            Answering::Apart(question) => ask(&app, &caller, &headers, &query, form, *question, fields).await,
            Answering::Continued(answered) => respond(&app, &caller, &headers, &query, form, *answered).await,
        },
    }
}

/// How the client wishes a response.
#[derive(Clone, Copy)]
struct ResponseForm {
    streams: bool,
    in_background: bool,
}

/// Responds with the part of a run after the answers of the request.
async fn respond(
    app: &Arc<App>,
    caller: &Caller,
    headers: &HeaderMap,
    query: &WireQuery,
    ResponseForm { streams, in_background }: ResponseForm,
    answered: Answered,
) -> Result<Response, Problem> {
    let Answered { run, mut subscriber, pauses_before, after, until } = answered;
    let id = ResponseId { run_id: run.id, pauses_before };
    let detail = detail_of(app, &run, query.stream_mode, false).await?;
    let head = Arc::new(head_of(app, &run, id).await?);
    let part = ResponsePart { view: ResponseView { detail, head, after: Some(after) }, until };
    if streams {
        if !in_background {
            expect_output(app, &run, &mut subscriber, Some(after), true).await?;
        }
        return Ok(streamed(part, subscriber, seen_frames(headers, None)?));
    }
    if in_background {
        let (run, id) = find(app, caller, &id.to_string()).await?;
        return Ok(Json(whole(app, caller, &run, id).await?).into_response());
    }
    let stream = FoldStream::new(part.view, ResponseFold::of_run(run.id)).until(part.until);
    ended(stream, subscriber, run.id).await?;
    ended_response(app, caller, id).await
}

/// Posts the message of a request, and responds as the client wishes: with a stream, at once, or at the end.
async fn ask(
    app: &Arc<App>,
    caller: &Caller,
    headers: &HeaderMap,
    query: &WireQuery,
    ResponseForm { streams, in_background }: ResponseForm,
    question: Question,
    fields: RequestFields,
) -> Result<Response, Problem> {
    let posting = posting(app, caller, headers, question, fields).await?;
    if in_background && !streams {
        let run = app.post(caller, posting).await?.run;
        return Ok(Json(whole(app, caller, &run, ResponseId::first_of(run.id)).await?).into_response());
    }
    let (committed, subscriber) = app.post_and_follow(caller, posting, EventId::ORIGIN).await?;
    let run = committed.run;
    let id = ResponseId::first_of(run.id);
    let mut subscriber = subscriber.ok_or_else(|| Problem::events_gone(run.id))?;
    if streams && !in_background {
        expect_output(app, &run, &mut subscriber, None, false).await?;
    }
    let part = part_of(app, &run, id, query.stream_mode).await?;
    if streams {
        return Ok(streamed(part, subscriber, seen_frames(headers, None)?));
    }
    let stream = FoldStream::new(part.view, ResponseFold::of_run(run.id)).until(part.until);
    ended(stream, subscriber, run.id).await?;
    ended_response(app, caller, id).await
}

/// Returns a response whose part of the run has ended. Fails if the run has failed without any output.
async fn ended_response(app: &App, caller: &Caller, id: ResponseId) -> Result<Response, Problem> {
    let (run, id) = find(app, caller, &id.to_string()).await?;
    let response = whole(app, caller, &run, id).await?;
    if run.error.is_none() || response["output"].as_array().is_some_and(|output| !output.is_empty()) {
        return Ok(Json(response).into_response());
    }
    // The event of the end has the time after which the provider takes requests again.
    match state_of(app, &run, &part_of(app, &run, id, None).await?).await?.state() {
        ResponseState::Failed(error) => Err(refusal(&run, error, id.pauses_before > 0)),
        _ => Ok(Json(response).into_response()),
    }
}

/// Returns the conversation that a request names. Fails if the text is no id.
fn conversation_of(body: &ResponseRequest) -> Result<Option<Uuid>, Problem> {
    let conversation = body.conversation().map(|id| {
        let label: String = id.chars().take(64).collect();
        parse_conversation_id(id).ok_or_else(|| Problem::conversation_not_found(label))
    });
    conversation.transpose()
}

fn fields_of(body: ResponseRequest, previous: Option<ResponseId>) -> Result<RequestFields, Problem> {
    let conversation = conversation_of(&body)?;
    if conversation.is_some() && previous.is_some() {
        return Err(Problem::invalid_body("A request has conversation or previous_response_id, not both."));
    }
    let metadata = checked_metadata(body.metadata.clone())?;
    let repeated = RepeatedFields::of(&body, previous, metadata);
    Ok(RequestFields {
        client_tools: body.client_tools(),
        tool_choice: body.tool_choice()?,
        options: body.options(),
        sampling: Sampling::default(),
        format: body.format(),
        model: body.model,
        instructions: body.instructions,
        repeated,
        conversation,
        after: previous.map(|id| id.run_id),
        hides: body.store == Some(false),
    })
}

/// Read a response, or follow it with `stream=true`: its events after `starting_after`, then new ones.
#[utoipa::path(get, path = "/openai/v1/responses/{id}", operation_id = "read_response", tag = "openai",
    params(("id" = String, Path, description = "The id of a response."), ResponseQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last frame that the client has; it wins over `starting_after`.")),
    responses(
        (status = 200, description = "The response, or with `stream` its events.", content((Object = "application/json"), (String = "text/event-stream"))),
        (status = 404, body = Object, description = "response_not_found"),
        (status = 409, body = Object, description = "response_taken_over: numbers after a worker's death are not those of the client"),
        (status = 410, body = Object, description = "events_gone: the events have expired")
    )
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Query(query): Query<ResponseQuery>,
) -> Result<Response, Problem> {
    let (run, id) = find(&app, &caller, &id).await?;
    if query.stream != Some(true) {
        return Ok(Json(whole(&app, &caller, &run, id).await?).into_response());
    }
    let seen = seen_frames(&headers, query.starting_after)?;
    let part = part_of(&app, &run, id, query.stream_mode).await?;
    if let SeenFrames::First(frames @ 1..) = seen {
        expect_countable(&app, &caller, &run, &part, frames).await?;
    }
    let permit = app.streams().open(&caller)?;
    let subscriber = app.relay().resume(&caller.owner, &run, EventId::ORIGIN, permit).await?;
    let subscriber = subscriber.ok_or_else(|| Problem::events_gone(run.id))?;
    Ok(streamed(part, subscriber, seen))
}

/// Fails if the client may have events that the log has lost with a worker, because then it has counted others.
async fn expect_countable(
    app: &App,
    caller: &Caller,
    run: &Run,
    part: &ResponsePart,
    seen: u64,
) -> Result<(), Problem> {
    let outline = Outline::read_in_turn(app, caller, run.id).await?;
    let is_in_part = |takeover: &&EventId| part.view.after.is_none_or(|pause| **takeover > pause);
    let Some(first) = outline.takeovers.iter().find(is_in_part).copied() else { return Ok(()) };
    let frames = frames_up_to(app, run, &part.view, first).await?;
    if seen <= frames { Ok(()) } else { Err(Problem::response_taken_over(frames.saturating_sub(1))) }
}

/// Cancel a response. Its output so far stays.
#[utoipa::path(post, path = "/openai/v1/responses/{id}/cancel", operation_id = "cancel_response", tag = "openai",
    params(("id" = String, Path, description = "The id of a response.")),
    responses((status = 200, body = Object, description = "The response."), (status = 404, body = Object, description = "response_not_found"))
)]
pub async fn cancel(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let (run, id) = find(&app, &caller, &id).await?;
    if !run.status.is_terminal() {
        let permit = app.streams().open(&caller)?;
        let cancelled = app.cancel(&caller.owner, run.id).await?;
        let subscriber = app.relay().open(&caller.owner, &run, cancelled.last_event_id, permit).await?;
        if let Some(subscriber) = subscriber {
            subscriber.await_end(CANCEL_WAIT).await;
        }
    }
    let _turn = app.read_limit().begin(&caller).await?;
    let (run, id) = find(&app, &caller, &id.to_string()).await?;
    let mut response = whole(&app, &caller, &run, id).await?;
    // Its worker may not have noticed yet.
    if !run.status.is_terminal() {
        response["status"] = ResponseState::Cancelled.name().into();
    }
    Ok(Json(response))
}

/// Delete a response with its conversation. A response in a conversation with others cannot be deleted alone.
#[utoipa::path(delete, path = "/openai/v1/responses/{id}", operation_id = "delete_response", tag = "openai",
    params(("id" = String, Path, description = "The id of a response.")),
    responses(
        (status = 200, body = Object, description = "The response is deleted."),
        (status = 404, body = Object, description = "response_not_found"),
        (status = 409, body = Object, description = "response_in_conversation: the conversation has other messages")
    )
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let (run, id) = find(&app, &caller, &id).await?;
    let _turn = app.read_limit().begin(&caller).await?;
    let size = history_size(&app);
    let _assembled = app.unread_answers().assemble(&caller, size.bytes)?;
    let history = app.storage().history(&caller.owner, run.conversation_id, size).await?;
    let is_other = |message: Uuid| message != run.input_message_id && message != run.output_message_id;
    if history.iter().any(|history| is_other(history.message.id)) {
        return Err(Problem::response_in_conversation());
    }
    app.delete_conversation(&caller.owner, run.conversation_id).await?;
    Ok(Json(json!({"id": id.to_string(), "object": "response", "deleted": true})))
}

/// List the input of a response.
#[utoipa::path(get, path = "/openai/v1/responses/{id}/input_items", operation_id = "list_input_items", tag = "openai",
    params(("id" = String, Path, description = "The id of a response.")),
    responses((status = 200, body = Object, description = "The list of items."), (status = 404, body = Object, description = "response_not_found"))
)]
pub async fn input_items(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let (run, _) = find(&app, &caller, &id).await?;
    let size = history_size(&app);
    let _assembled = app.unread_answers().assemble(&caller, size.bytes)?;
    let history = app.storage().history(&caller.owner, run.conversation_id, size).await?;
    let asked = history.into_iter().map(|history| history.message).find(|message| message.id == run.input_message_id);
    let items: Vec<Value> = asked.iter().map(item_of).collect();
    Ok(Json(list_of(items, false)))
}

/// Returns the run of a response.
async fn find(app: &App, caller: &Caller, id: &str) -> Result<(Arc<Run>, ResponseId), Problem> {
    let id = response_id(id)?;
    let run = app.storage().run_without_answer(&caller.owner, id.run_id).await?;
    let run = run.ok_or_else(|| Problem::response_not_found(id.to_string()))?;
    Ok((Arc::new(run), id))
}

fn response_id(id: &str) -> Result<ResponseId, Problem> {
    ResponseId::parse(id).ok_or_else(|| Problem::response_not_found(id.chars().take(64).collect()))
}
