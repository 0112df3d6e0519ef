//! `/ag-ui`: the routes for the clients of the AG-UI protocol (`HttpAgent`, CopilotKit).
//!
//! `request` reads a body, and `stream` is a client's stream. A client that has lost its stream sends its request again, or asks for
//! the run by its own name for it, with the id of its last frame. A client that comes back without anything asks for the thread:
//! it gets the messages (`history`), and the rest of the answer; `reload` has both in the form of TanStack AI.

mod history;
pub mod reload;
mod request;
mod stream;

use std::{error::Error, sync::Arc};

use axum::{
    extract::{Path, State},
    http::{HeaderMap, Method, StatusCode},
    response::{IntoResponse, Response},
};
use holdfast_shared::{
    agent::StreamMode,
    conversation::Handle,
    event_id::EventId,
    idempotency::IdempotencyKey,
    run::{Run, RunStatus},
    storage::{MessageInput, Target},
};
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    app::{App, Posting, fingerprint},
    auth::{Caller, is_name},
    event_stream::{detail_of, event_stream, run_header, unsent},
    extract::{self, JsonBody, Query, idempotency_key},
    problem::Problem,
    protocols::ag_ui::wire::{AgUiEvent, AgUiOutcome, AgUiVersion, AgUiView, write_frames},
    run_request::checked_options,
    thread::{
        GivenHistoryOfThread, NamedPlace, Outline, PartAnswer, UiPart, answer_questions, content_of, current_run,
        find_thread, key_in_thread, last_frame, named_key, replaced_at, takes_history, truncated_id,
    },
    wire::FrameId,
};
use request::{AgUiAction, RunAgentInput, key_of};
use stream::AgUiStream;

/// The query of these routes, which ignore unknown fields.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(rename_all = "camelCase")]
pub struct AgUiQuery {
    /// The id of the last frame that the client has; the header `Last-Event-ID` wins.
    after: Option<String>,
    /// `events` or `messages`; the agent's mode by default.
    #[serde(rename = "stream_mode")]
    #[param(rename = "stream_mode")]
    stream_mode: Option<StreamMode>,
    /// The client's name for the thread, for the first and the last event of a run.
    thread_id: Option<String>,
    /// The version of the protocol, as in a request's body. Clients before 1.0 declare none.
    protocol_version: Option<String>,
}

/// Post a user's message, return the results of the front end's tools, or answer the interrupts of a thread. Returns the events of
/// the run.
///
/// A repeated request with the same `runId` gets the same run.
#[utoipa::path(post, path = "/ag-ui", operation_id = "run", tag = "ag-ui", request_body = RunAgentInput,
    params(AgUiQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run. Without it, `runId` does."),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last frame that the client has, for a repeated request.")),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The events of the protocol; the header `x-run-id` names the run."),
        (status = 204, description = "The client of a repeated request has all events."),
        (status = 400, body = Problem, description = "invalid_body, invalid_json, invalid_event_id, invalid_content, empty_content, content_too_long, unsupported_part, too_many_attachments, invalid_client_tool, agent_not_found, invalid_idempotency_key"),
        (status = 404, body = Problem, description = "conversation_not_found: an answer to a thread that does not exist"),
        (status = 409, body = Problem, description = "run_not_waiting: the thread waits for no such answer; nothing_to_run: the newest message asks for nothing"),
        (status = 422, body = Problem, description = "idempotency_key_reused: another request of the thread had this `runId`")
    )
)]
pub async fn post(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<AgUiQuery>,
    JsonBody(body): JsonBody<RunAgentInput>,
) -> Result<Response, Problem> {
    run(&app, &caller, &headers, &query, &body, None).await
}

/// Run an agent: as `POST /ag-ui`, with the agent of a new thread.
#[utoipa::path(post, path = "/ag-ui/agents/{name}", operation_id = "run_agent", tag = "ag-ui", request_body = RunAgentInput,
    params(("name" = String, Path, description = "The name or the id of the agent."), AgUiQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "As for `POST /ag-ui`."),
        ("Last-Event-ID" = Option<String>, Header, description = "As for `POST /ag-ui`.")),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The events of the protocol; the header `x-run-id` names the run."),
        (status = 204, description = "The client of a repeated request has all events."),
        (status = 400, body = Problem, description = "As for `POST /ag-ui`."),
        (status = 404, body = Problem, description = "conversation_not_found, agent_not_found"),
        (status = 409, body = Problem, description = "run_not_waiting, nothing_to_run; thread_of_another_agent: the first run's agent stays"),
        (status = 422, body = Problem, description = "idempotency_key_reused")
    )
)]
pub async fn post_to_agent(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    Query(query): Query<AgUiQuery>,
    JsonBody(body): JsonBody<RunAgentInput>,
) -> Result<Response, Problem> {
    let unknown = || Problem::no_such_agent(truncated_id(&name));
    if !is_name(&name) {
        return Err(unknown());
    }
    let agent_id = app.agent_named(&caller, &name).await?.ok_or_else(unknown)?;
    run(&app, &caller, &headers, &query, &body, Some(agent_id)).await
}

/// Follow a run by the client's name for it, or by its id: all its events after the cursor, then new ones as they arrive.
#[utoipa::path(get, path = "/ag-ui/runs/{id}", operation_id = "follow_run", tag = "ag-ui",
    params(("id" = String, Path, description = "The `runId` of the request that has started the run or answered its questions, or the run's id. `threadId` says which run is meant, where several threads have one `runId`."), AgUiQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last frame that the client has.")),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The events of the protocol."),
        (status = 204, description = "The run has ended and the client has all its events."),
        (status = 400, body = Problem, description = "invalid_event_id"),
        (status = 404, body = Problem, description = "run_not_found"),
        (status = 410, body = Problem, description = "events_gone: the events have expired")
    )
)]
pub async fn follow_run(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    method: Method,
    headers: HeaderMap,
    Query(query): Query<AgUiQuery>,
) -> Result<Response, Problem> {
    let seen = last_frame(&headers, query.after.as_deref())?.unwrap_or(FrameId::START);
    let unknown = || Problem::run_not_found(truncated_id(&id));
    if !is_name(&id) {
        return Err(unknown());
    }
    let thread_id = query.thread_id.clone().filter(|id| is_name(id));
    let (run_id, pause) = part_named(&app, &caller, &id, thread_id.as_deref()).await?.ok_or_else(unknown)?;
    let run = app.run_to_stream(&caller.owner, run_id).await?;
    if method == Method::HEAD {
        return Ok(event_stream(run.id, unsent()));
    }
    let thread_id = thread_id.unwrap_or_else(|| run.conversation_id.to_string());
    let detail = detail_of(&app, &run, query.stream_mode, false).await?;
    let version = AgUiVersion::declared(query.protocol_version.as_deref());
    let view = AgUiView { detail, thread_id, run_id: id, after: pause, version };
    let stream = AgUiStream::after(seen, &app, &caller.owner, &run, view).beyond_pause().await?;
    follow(&app, &caller, stream, &run).await
}

/// Returns the run that the client calls so, and the pause after which it does; or the run of this id. A thread's own names go
/// before those of other threads.
async fn part_named(
    app: &App,
    caller: &Caller,
    name: &str,
    thread: Option<&str>,
) -> Result<Option<(Uuid, Option<EventId>)>, Problem> {
    let (owner, key) = (&caller.owner, key_of(name));
    let mut conversation = None;
    if let Some(thread) = thread {
        if let Some(run_id) = app.storage().run_of_key(owner, &named_key(thread, &key)).await? {
            return Ok(Some((run_id, None)));
        }
        conversation = find_thread(app, caller, thread).await?.map(|thread| thread.id);
    }
    if let Some(conversation) = conversation
        && let Some((run_id, pause)) = app.storage().pause_named(owner, name, Some(conversation)).await?
    {
        return Ok(Some((run_id, Some(pause))));
    }
    if let Some(run_id) = app.storage().run_of_key(owner, &key).await? {
        return Ok(Some((run_id, None)));
    }
    if let Some((run_id, pause)) = app.storage().pause_named(owner, name, None).await? {
        return Ok(Some((run_id, Some(pause))));
    }
    Ok(extract::id(name).ok().map(|run_id| (run_id, None)))
}

/// Follow a thread by the client's name for it, or by its conversation's id: its messages, then the rest of its newest run.
#[utoipa::path(get, path = "/ag-ui/threads/{id}", operation_id = "follow_thread", tag = "ag-ui",
    params(("id" = String, Path, description = "The `threadId`, or the id of the conversation."), AgUiQuery),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The events of the protocol, with a `MESSAGES_SNAPSHOT` second."),
        (status = 204, description = "The thread does not exist, or has no run."),
        (status = 400, body = Problem, description = "invalid_event_id"),
    )
)]
pub async fn follow_thread(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    method: Method,
    headers: HeaderMap,
    Query(query): Query<AgUiQuery>,
) -> Result<Response, Problem> {
    let seen = last_frame(&headers, query.after.as_deref())?.unwrap_or(FrameId::START);
    let Some(conversation) = find_thread(&app, &caller, &id).await? else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let Some(run) = current_run(&app, &caller, &conversation).await? else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    if method == Method::HEAD {
        return Ok(event_stream(run.id, unsent()));
    }
    let detail = detail_of(&app, &run, query.stream_mode, false).await?;
    let version = AgUiVersion::declared(query.protocol_version.as_deref());
    let view = AgUiView { detail, thread_id: id, run_id: run.id.to_string(), after: None, version };
    let _assembled = app.unread_answers().assemble(&caller, app.config().max_page_bytes)?;
    if run.status.is_terminal() {
        return ended_thread(&app, &caller, &run, &view, seen).await;
    }
    let run = Arc::new(run);
    let before = history::stored(&app, &caller.owner, conversation.id, Some(&run)).await?;
    let stream = AgUiStream::after(seen, &app, &caller.owner, &run, view).with_history(before);
    let stream = stream.beyond_pause().await?;
    follow(&app, &caller, stream, &run).await
}

/// Returns the events of a thread whose newest run has ended: its messages, and how the run has ended.
async fn ended_thread(
    app: &App,
    caller: &Caller,
    run: &Run,
    view: &AgUiView,
    seen: FrameId,
) -> Result<Response, Problem> {
    let had = if seen.event == run.last_event_id { seen.number.saturating_add(1).min(3) } else { 0 };
    if had == 3 {
        return Ok((StatusCode::NO_CONTENT, [run_header(run.id)]).into_response());
    }
    let messages = history::stored(app, &caller.owner, run.conversation_id, None).await?;
    let end = match (&run.status, &run.error) {
        (RunStatus::Failed, Some(error)) => {
            AgUiEvent::RunError { message: error.message.clone(), code: error.code.clone() }
        }
        (RunStatus::Cancelled, _) => view.finished(AgUiOutcome::Cancelled),
        _ => view.finished(AgUiOutcome::Success { pending_tool_call_ids: Vec::new() }),
    };
    let mut frames = Vec::new();
    let first = FrameId { event: run.last_event_id, number: had };
    let all = [view.started(), view.snapshot(messages), end];
    write_frames(&mut frames, first, &all[had as usize..]);
    Ok(event_stream(run.id, frames.into()))
}

async fn run(
    app: &Arc<App>,
    caller: &Caller,
    headers: &HeaderMap,
    query: &AgUiQuery,
    body: &RunAgentInput,
    agent_id: Option<Uuid>,
) -> Result<Response, Problem> {
    let (action, seen) = (body.action()?, last_frame(headers, query.after.as_deref())?.unwrap_or(FrameId::START));
    match action {
        AgUiAction::Ask { message_id, parts } => {
            let posting = posting(app, caller, headers, body, agent_id, message_id, parts).await?;
            let names_run = !headers.contains_key("idempotency-key");
            let answer = ask(app, caller, query, body, posting, seen).await;
            answer.map_err(|problem| if names_run { problem.about_id("runId", "thread") } else { problem })
        }
        AgUiAction::Answer(answers) => answer(app, caller, query, body, answers, seen).await,
    }
}

/// Returns the message that a request posts.
async fn posting(
    app: &Arc<App>,
    caller: &Caller,
    headers: &HeaderMap,
    body: &RunAgentInput,
    agent_id: Option<Uuid>,
    message_id: Option<String>,
    parts: Vec<UiPart>,
) -> Result<Posting, Problem> {
    let mut options = checked_options(app, None, body.client_tools(), None, body.agent_context())?;
    options.overrides.instructions = body.instructions(app.config().max_content_bytes)?;
    let content = content_of(app, caller, parts).await?;
    let fingerprint = ["ag-ui", &body.thread_id, &fingerprint(&content)];
    let key = match idempotency_key(headers, &fingerprint, &options)? {
        Some(key) => key,
        None => {
            let key = key_in_thread(app, caller, &body.thread_id, key_of(&body.run_id)).await?;
            IdempotencyKey::new(key, &fingerprint)
        }
    };
    let conversation = find_thread(app, caller, &body.thread_id).await?;
    if let (Some(conversation), Some(agent_id)) = (&conversation, agent_id)
        && !app.gives_agent(caller, conversation, agent_id).await?
    {
        return Err(Problem::thread_of_another_agent(&truncated_id(&body.thread_id)));
    }
    // A client runs its last message again after a failure, under another name of the run.
    let before = body.id_before_newest();
    let place = NamedPlace { own: message_id.as_deref(), before: before.as_deref() };
    let input = match replaced_at(app, caller, conversation.as_ref(), place).await? {
        Some(replace_from) => MessageInput::Edit { content, replace_from },
        None => MessageInput::New(content),
    };
    let given = if takes_history(conversation.as_ref()) {
        GivenHistoryOfThread::of(app, caller, body.history(), message_id.as_deref()).await?
    } else {
        GivenHistoryOfThread::default()
    };
    options.overrides.left_out = given.left_out;
    let target = match conversation {
        Some(conversation) if extract::id(&body.thread_id) == Ok(conversation.id) => Target::Existing(conversation.id),
        _ => Target::Named { handle: Handle::Chat(body.thread_id.clone()), agent_id },
    };
    let posting = Posting { given: given.messages, ..Posting::new(target, input) };
    Ok(Posting { client_message_id: message_id, mode: body.mode(), options, key: Some(key), ..posting })
}

/// Posts a message, and streams its run up to its first pause.
async fn ask(
    app: &Arc<App>,
    caller: &Caller,
    query: &AgUiQuery,
    body: &RunAgentInput,
    posting: Posting,
    seen: FrameId,
) -> Result<Response, Problem> {
    let (committed, subscriber) = app.post_and_follow(caller, posting, EventId::ORIGIN).await?;
    let run = Arc::new(committed.run);
    let subscriber = subscriber.ok_or_else(|| Problem::events_gone(run.id))?;
    // A repeated request finds the pause that the run has passed; a new run has none.
    let pauses = if run.attempt == 0 { Vec::new() } else { Outline::read(app, run.id).await?.pauses };
    let passed = pauses.into_iter().find(|pause| *pause >= seen.event);
    let view = view(app, &run, query, body, None).await?;
    let stream = AgUiStream::after(seen, app, &caller.owner, &run, view).until(passed);
    stream.into_response(subscriber).await
}

/// Answers the open questions of the thread's newest run, and streams the run from the pause at which it has asked them.
async fn answer(
    app: &Arc<App>,
    caller: &Caller,
    query: &AgUiQuery,
    body: &RunAgentInput,
    answers: Vec<PartAnswer>,
    seen: FrameId,
) -> Result<Response, Problem> {
    let conversation = find_thread(app, caller, &body.thread_id).await?;
    let conversation = conversation.ok_or_else(|| Problem::conversation_not_found(truncated_id(&body.thread_id)))?;
    let run = current_run(app, caller, &conversation).await?;
    let run = Arc::new(run.ok_or_else(|| Problem::conversation_not_found(truncated_id(&body.thread_id)))?);
    let outline = Outline::read(app, run.id).await?;
    let questions: Vec<String> = answers.iter().map(PartAnswer::question).collect();
    let pauses_before = outline.pauses_up_to(&questions).ok_or_else(|| Problem::run_not_waiting(run.id))?;
    // Order matters: the limit on streams refuses the request before the first answer.
    let permit = app.streams().open(caller)?;
    answer_questions(app, caller, &run, answers).await?;
    let pause = outline.pauses[pauses_before - 1];
    // The answer is stored, so a failure here costs the client only a way to come back.
    if let Err(error) = app.storage().name_pause(&run, pause, &body.run_id).await {
        tracing::warn!(run.id = %run.id, error = &error as &dyn Error, "failed to name the rest of a run");
    }
    let view = view(app, &run, query, body, Some(pause)).await?;
    // A stream that has gone on after a pause, because another client has answered there, does not end at it.
    let next = outline.pauses[pauses_before..].iter().copied().find(|pause| *pause >= seen.event);
    let stream = AgUiStream::after(seen, app, &caller.owner, &run, view).until(next);
    let subscriber = app.relay().open(&caller.owner, &run, EventId::ORIGIN, permit).await?;
    stream.into_response(subscriber.ok_or_else(|| Problem::events_gone(run.id))?).await
}

async fn follow(app: &Arc<App>, caller: &Caller, stream: AgUiStream, run: &Arc<Run>) -> Result<Response, Problem> {
    let permit = app.streams().open(caller)?;
    let subscriber = app.relay().resume(&caller.owner, run, EventId::ORIGIN, permit).await?;
    stream.into_response(subscriber.ok_or_else(|| Problem::events_gone(run.id))?).await
}

async fn view(
    app: &App,
    run: &Run,
    query: &AgUiQuery,
    body: &RunAgentInput,
    after: Option<EventId>,
) -> Result<AgUiView, Problem> {
    let detail = detail_of(app, run, query.stream_mode, false).await?;
    let version = AgUiVersion::declared(body.protocol_version.as_deref().or(query.protocol_version.as_deref()));
    Ok(AgUiView { detail, thread_id: body.thread_id.clone(), run_id: body.run_id.clone(), after, version })
}
