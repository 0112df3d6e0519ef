//! `/langgraph/threads`: create, read, change, search and delete threads, and read their states.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, Method, StatusCode},
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use holdfast_shared::{
    conversation::{Conversation, Handle},
    file::UserContent,
    message::{Content, Message},
    run::RunStatus,
    storable::{is_too_deep, storable_json},
    storage::AddedMessage,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{history::state_of, join::Joining, segment::RunSegment, state::thread_json, thread_named};
use crate::{
    anonymous_limits::AdmittedWriter,
    app::App,
    auth::{Caller, MAX_NAME_CHARS, is_name},
    event_stream::{event_stream, unsent},
    extract::{JsonBody, Query},
    page_sizes::history_size,
    problem::Problem,
    thread::{Outline, current_run, find_thread, truncated_id},
};

/// Most threads of one request that names them.
pub const MAX_NAMED: usize = 100;

/// A new thread. The route ignores unknown fields.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = LangGraphNewThread)]
pub struct NewThread {
    /// Any name of 1 to 128 characters without `%`; a new id if absent.
    thread_id: Option<String>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// `raise` by default; `do_nothing` returns the existing thread.
    if_exists: Option<String>,
    #[schema(value_type = Option<Object>)]
    supersteps: Option<Vec<Value>>,
    #[schema(value_type = Option<Object>)]
    ttl: Option<Value>,
}

/// Create a thread.
#[utoipa::path(post, path = "/langgraph/threads", operation_id = "create_thread", tag = "langgraph", request_body = NewThread,
    responses(
        (status = 200, body = Object, description = "The thread."),
        (status = 400, body = Problem, description = "invalid_body, invalid_metadata"),
        (status = 403, body = Problem, description = "quota_exceeded"),
        (status = 409, body = Problem, description = "thread_exists"),
        (status = 422, body = Problem, description = "not_supported: supersteps, ttl")
    )
)]
pub async fn create(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    JsonBody(new): JsonBody<NewThread>,
) -> Result<Json<Value>, Problem> {
    if new.supersteps.is_some_and(|steps| !steps.is_empty()) {
        return Err(Problem::field_not_supported("supersteps", "post the messages of the thread as runs."));
    }
    if new.ttl.is_some_and(|ttl| !ttl.is_null()) {
        return Err(Problem::field_not_supported("ttl", "threads stay until the client deletes them."));
    }
    let metadata = checked_metadata(&app, new.metadata.unwrap_or_default())?;
    let (thread, is_new) = match &new.thread_id {
        None => {
            (app.storage().create_conversation(app.account(&caller.owner), Uuid::now_v7(), None, None).await?, true)
        }
        Some(id) if !is_name(id) || id.contains('%') => {
            return Err(Problem::invalid_body(format!(
                "thread_id has 1 to {MAX_NAME_CHARS} characters and no %, because some clients write it into paths as it is."
            )));
        }
        Some(id) => match find_thread(&app, &caller, id).await? {
            Some(found) if new.if_exists.as_deref() == Some("do_nothing") => (Some(found), false),
            Some(_) => return Err(Problem::thread_exists(&truncated_id(id))),
            None => {
                let handle = Handle::Chat(id.clone());
                (app.storage().conversation_by_handle(app.account(&caller.owner), &handle).await?, true)
            }
        },
    };
    let thread = thread.ok_or_else(Problem::internal)?;
    if is_new && !metadata.is_empty() {
        app.storage().set_chat_metadata(app.account(&caller.owner), thread.id, metadata).await?;
    }
    let thread_id = new.thread_id.unwrap_or_else(|| thread.id.to_string());
    shown(&app, &caller, &thread, &thread_id, true).await.map(Json)
}

/// Read a thread with its values.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}", operation_id = "read_thread", tag = "langgraph", params(("thread_id" = String, Path)),
    responses((status = 200, body = Object, description = "The thread."), (status = 404, body = Problem, description = "conversation_not_found")))]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread_id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let thread = thread_named(&app, &caller, &thread_id).await?;
    shown(&app, &caller, &thread, &thread_id, true).await.map(Json)
}

/// A change of a thread.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = LangGraphThreadChange)]
pub struct ThreadChange {
    /// Fields that the server adds to the metadata of the thread.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
}

/// Add fields to the metadata of a thread.
#[utoipa::path(patch, path = "/langgraph/threads/{thread_id}", operation_id = "change_thread", tag = "langgraph", params(("thread_id" = String, Path)),
    request_body = ThreadChange,
    responses(
        (status = 200, body = Object, description = "The thread."),
        (status = 400, body = Problem, description = "invalid_body, invalid_metadata"),
        (status = 403, body = Problem, description = "quota_exceeded"),
        (status = 404, body = Problem, description = "conversation_not_found")
    )
)]
pub async fn change(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    Path(thread_id): Path<String>,
    JsonBody(change): JsonBody<ThreadChange>,
) -> Result<Json<Value>, Problem> {
    let thread = thread_named(&app, &caller, &thread_id).await?;
    change_metadata(&app, &caller, thread.id, change).await?;
    shown(&app, &caller, &thread, &thread_id, false).await.map(Json)
}

/// Adds fields to the metadata of a thread.
pub async fn change_metadata(app: &App, caller: &Caller, thread_id: Uuid, change: ThreadChange) -> Result<(), Problem> {
    let Some(more) = change.metadata.filter(|more| !more.is_empty()) else { return Ok(()) };
    let chat = app.storage().chat(&caller.owner, thread_id).await?;
    let mut metadata = chat.map(|chat| chat.metadata).unwrap_or_default();
    metadata.extend(more);
    let metadata = checked_metadata(app, metadata)?;
    Ok(app.storage().set_chat_metadata(app.account(&caller.owner), thread_id, metadata).await?)
}

/// Delete a thread with its runs.
#[utoipa::path(delete, path = "/langgraph/threads/{thread_id}", operation_id = "delete_thread", tag = "langgraph", params(("thread_id" = String, Path)),
    responses((status = 204), (status = 404, body = Problem, description = "conversation_not_found")))]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread_id): Path<String>,
) -> Result<StatusCode, Problem> {
    let thread = thread_named(&app, &caller, &thread_id).await?;
    app.delete_conversation(&caller.owner, thread.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Copy a thread up to its newest checkpoint.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/copy", operation_id = "copy_thread", tag = "langgraph", params(("thread_id" = String, Path)),
    responses(
        (status = 200, body = Object, description = "The new thread."),
        (status = 403, body = Problem, description = "quota_exceeded"),
        (status = 404, body = Problem, description = "conversation_not_found"),
        (status = 429, body = Problem, description = "too_many_restores"),
        (status = 503, body = Problem, description = "restore_busy")
    )
)]
pub async fn copy(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    Path(thread_id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let thread = thread_named(&app, &caller, &thread_id).await?;
    let _assembled = app.unread_answers().assemble(&caller, history_size(&app).bytes)?;
    let newest = app.storage().newest_checkpoint(&caller.owner, thread.id).await?;
    let later = {
        let _turn = app.read_limit().begin(&caller).await?;
        added_after(&app, &caller, thread.id, newest.as_ref().map(|newest| newest.created_at)).await?
    };
    let copy = match &newest {
        Some(newest) => app.fork_conversation(&caller, thread.id, newest.id).await?,
        // A thread without a run has no checkpoint.
        None => {
            let account = app.account(&caller.owner);
            app.storage().create_conversation(account, Uuid::now_v7(), None, thread.agent_id).await?
        }
    };
    let copy = copy.ok_or_else(|| Problem::conversation_not_found(truncated_id(&thread_id)))?;
    if !later.is_empty()
        && let Err(refused) = app.add_messages(&caller, copy.id, later).await
    {
        app.delete_conversation(&caller.owner, copy.id).await?;
        return Err(refused);
    }
    shown(&app, &caller, &copy, &copy.id.to_string(), true).await.map(Json)
}

/// Returns copies of the newest messages that were added without a run after a checkpoint, or at all.
async fn added_after(
    app: &App,
    caller: &Caller,
    thread_id: Uuid,
    checkpoint: Option<DateTime<Utc>>,
) -> Result<Vec<AddedMessage>, Problem> {
    let messages = app.storage().newest_messages(&caller.owner, thread_id, history_size(app)).await?;
    let is_later = |message: &Message| {
        message.run_id.is_none() && checkpoint.is_none_or(|checkpoint| message.created_at > checkpoint)
    };
    let copy = |message: Message| match message.content {
        Content::Text(text) => Some(AddedMessage {
            id: Uuid::now_v7(),
            client_id: None,
            role: message.role,
            content: UserContent { text, attachments: message.attachments, ..UserContent::default() },
        }),
        Content::BriefingCard(_) => None,
    };
    Ok(messages.into_iter().filter(is_later).filter_map(copy).collect())
}

/// The threads to prune.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = LangGraphPrune)]
pub struct PruneRequest {
    thread_ids: Vec<String>,
    /// `delete` by default; `keep_latest` deletes nothing, because a thread has no older states that take space.
    strategy: Option<String>,
}

/// Delete threads that exist.
#[utoipa::path(post, path = "/langgraph/threads/prune", operation_id = "prune_threads", tag = "langgraph", request_body = PruneRequest,
    responses((status = 200, body = Object, description = "`pruned_count`."), (status = 400, body = Problem, description = "invalid_body")))]
pub async fn prune(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(body): JsonBody<PruneRequest>,
) -> Result<Json<Value>, Problem> {
    if body.thread_ids.len() > MAX_NAMED {
        return Err(Problem::invalid_body(format!("thread_ids has at most {MAX_NAMED} threads.")));
    }
    let (deletes, mut pruned) = (body.strategy.as_deref().unwrap_or("delete") == "delete", 0);
    for id in body.thread_ids.iter().filter(|_| deletes) {
        if let Some(thread) = find_thread(&app, &caller, id).await? {
            app.delete_conversation(&caller.owner, thread.id).await?;
            pruned += 1;
        }
    }
    Ok(Json(json!({"pruned_count": pruned})))
}

/// Follow the run of a thread that has not ended.
#[utoipa::path(get, path = "/langgraph/threads/{thread_id}/stream", operation_id = "join_thread", tag = "langgraph",
    params(("thread_id" = String, Path),
        ("stream_mode" = Option<String>, Query, description = "A mode, or a JSON list of modes; also several times."),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last frame that the client has.")),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The frames of the run; none, if the thread has no unfinished run."),
        (status = 400, body = Problem, description = "invalid_event_id"),
        (status = 404, body = Problem, description = "conversation_not_found"),
        (status = 422, body = Problem, description = "not_supported: an unknown mode")
    )
)]
pub async fn follow(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread_id): Path<String>,
    method: Method,
    headers: HeaderMap,
    Query(fields): Query<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    // `run_modes` is the name of a mode that only this route of the protocol has; it means the modes of the runs.
    let fields: Vec<(String, String)> = fields.into_iter().filter(|(_, value)| value != "run_modes").collect();
    let joining = Joining::of(&headers, &fields)?;
    let thread = thread_named(&app, &caller, &thread_id).await?;
    let run = current_run(&app, &caller, &thread).await?.filter(|run| !run.status.is_terminal());
    let Some(run) = run else {
        let frames = axum::body::Body::empty();
        return Ok(([(axum::http::header::CONTENT_TYPE, "text/event-stream")], frames).into_response());
    };
    if method == Method::HEAD {
        return Ok(event_stream(run.id, unsent()));
    }
    let pauses = Outline::read_in_turn(&app, &caller, run.id).await?.pauses;
    let passed = pauses.len() - usize::from(run.status == RunStatus::Waiting && !pauses.is_empty());
    let segment = RunSegment::of(Arc::new(run), passed, &pauses);
    joining.stream(&app, caller, (thread, thread_id), segment).await
}

/// Returns a thread as the protocol has it, with its values if they are wanted.
async fn shown(
    app: &App,
    caller: &Caller,
    thread: &Conversation,
    thread_id: &str,
    with_values: bool,
) -> Result<Value, Problem> {
    let _assembled = app.unread_answers().assemble(caller, app.config().max_page_bytes)?;
    let chat = app.storage().chat(&caller.owner, thread.id).await?;
    let chat = chat.ok_or_else(|| Problem::conversation_not_found(truncated_id(thread_id)))?;
    let state = if with_values { Some(state_of(app, caller, &chat.conversation).await?) } else { None };
    Ok(thread_json(&chat.conversation, thread_id, chat.metadata, chat.run_status, state.as_ref()))
}

/// Returns metadata that the database can store. Fails if it is too large or too deep.
pub fn checked_metadata(app: &App, metadata: Map<String, Value>) -> Result<Map<String, Value>, Problem> {
    let max = app.config().max_metadata_bytes;
    let metadata = Value::Object(metadata);
    if is_too_deep(&metadata) || metadata.to_string().len() > max {
        return Err(Problem::invalid_metadata(max));
    }
    match storable_json(metadata) {
        Value::Object(metadata) => Ok(metadata),
        _ => Ok(Map::new()),
    }
}
