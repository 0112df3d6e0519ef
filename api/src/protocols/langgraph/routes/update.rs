//! `POST` and `PATCH /langgraph/threads/{thread_id}/state`: messages that no run writes or answers, and metadata.

use std::{iter, sync::Arc};

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use holdfast_shared::{conversation::Conversation, message::Role, run::RunStatus, storage::AddedMessage};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    content::parts_of,
    history::state_of,
    request::{END, content_of_message, messages_of, role_of},
    thread_named,
    threads::{ThreadChange, change_metadata},
};
use crate::{
    anonymous_limits::AdmittedWriter,
    app::App,
    auth::{Caller, is_name},
    extract::{self, JsonBody},
    problem::Problem,
    thread::{UiPart, content_of, current_run, truncated_id},
};

/// Most messages of one update.
const MAX_MESSAGES: usize = 32;

/// Nodes that a client may name.
const NODES: [&str; 5] = ["agent", "tools", "__start__", "__input__", END];

/// An update of a thread's state.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = LangGraphStateUpdate)]
pub struct StateUpdate {
    /// `messages` of a human or of the model, at most 32, which the server adds after all others.
    #[serde(default)]
    #[schema(value_type = Object)]
    values: Value,
    /// A node of the graph. The server adds the messages equally for each. `__end__` without messages ends a run that waits.
    as_node: Option<String>,
    /// The newest checkpoint of the thread, if any.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    checkpoint: Option<Value>,
    checkpoint_id: Option<String>,
}

/// A message of an update.
struct NewMessage {
    id: Option<String>,
    role: Role,
    parts: Vec<UiPart>,
}

impl StateUpdate {
    /// Returns whether the update ends the run that waits, without messages.
    fn ends_run(&self) -> bool {
        self.as_node.as_deref() == Some(END) && messages_of(&self.values).is_empty()
    }

    /// Returns the messages of the update. Fails for anything else.
    fn messages(&self) -> Result<Vec<NewMessage>, Problem> {
        if self.as_node.as_deref().is_some_and(|node| !NODES.contains(&node)) {
            return Err(Problem::field_not_supported("this as_node", "the graph has the nodes agent and tools."));
        }
        let others = self.values.as_object().and_then(|values| values.keys().find(|name| *name != "messages"));
        if others.is_some() {
            return Err(Problem::field_not_supported("values beside messages", "a thread has messages only."));
        }
        let messages = messages_of(&self.values);
        if messages.is_empty() || messages.len() > MAX_MESSAGES {
            return Err(Problem::field_not_supported(
                "such values",
                &format!("an update has 1 to {MAX_MESSAGES} messages in values.messages."),
            ));
        }
        messages.into_iter().map(NewMessage::of).collect()
    }

    fn checkpoint_id(&self) -> Option<&str> {
        let checkpoint = self.checkpoint.as_ref().and_then(|checkpoint| checkpoint["checkpoint_id"].as_str());
        checkpoint.or(self.checkpoint_id.as_deref())
    }
}

impl NewMessage {
    /// Reads a message. Fails unless it is a human's, or a text of the model.
    fn of(message: &Value) -> Result<Self, Problem> {
        let role = match role_of(message) {
            Some("human" | "user") => Role::User,
            Some("ai" | "assistant") => Role::Assistant,
            _ => {
                return Err(Problem::field_not_supported(
                    "a message of this type in an update",
                    "add messages of a human or of the model.",
                ));
            }
        };
        let has_calls = message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
        let parts = parts_of(content_of_message(message))?;
        if role == Role::Assistant && (has_calls || parts.iter().any(|part| !matches!(part, UiPart::Text { .. }))) {
            return Err(Problem::field_not_supported(
                "calls and files in a message of the model",
                "add its text; runs make calls.",
            ));
        }
        let id = message["id"].as_str().filter(|id| is_name(id)).map(str::to_owned);
        Ok(Self { id, role, parts })
    }
}

/// Add messages to a thread without a run, after all others. The newest checkpoint is then that of the last one.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/state", operation_id = "update_state", tag = "langgraph",
    params(("thread_id" = String, Path)), request_body = StateUpdate,
    responses(
        (status = 200, body = Object, description = "`checkpoint`: the state after the messages."),
        (status = 400, body = Problem, description = "invalid_body, invalid_content, empty_content, content_too_long, unsupported_part"),
        (status = 403, body = Problem, description = "quota_exceeded"),
        (status = 404, body = Problem, description = "conversation_not_found, checkpoint_not_found"),
        (status = 409, body = Problem, description = "conversation_busy: the thread has an unfinished run; message_exists"),
        (status = 422, body = Problem, description = "not_supported: other values than messages, or an earlier checkpoint")
    )
)]
pub async fn add_messages(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    Path(thread_id): Path<String>,
    JsonBody(update): JsonBody<StateUpdate>,
) -> Result<Json<Value>, Problem> {
    let thread = thread_named(&app, &caller, &thread_id).await?;
    if update.ends_run() {
        let run = current_run(&app, &caller, &thread).await?;
        if let Some(run) = run.filter(|run| run.status == RunStatus::Waiting) {
            app.cancel(&caller.owner, run.id).await?;
        }
        let newest = newest_checkpoint(&app, &caller, &thread).await?;
        return Ok(Json(checkpoint_json(&thread_id, newest)));
    }
    let messages = update.messages()?;
    if let Some(id) = update.checkpoint_id() {
        expect_newest(&app, &caller, &thread, id).await?;
    }
    let mut added = Vec::with_capacity(messages.len());
    for NewMessage { id: client_id, role, parts } in messages {
        if let Some(id) = &client_id {
            expect_unknown(&app, &caller, &thread, id).await?;
        }
        let content = content_of(&app, &caller, parts).await?;
        added.push(AddedMessage { id: Uuid::now_v7(), client_id, role, content });
    }
    let newest = added.last().map_or(thread.id, |message| message.id);
    app.add_messages(&caller, thread.id, added).await?;
    Ok(Json(checkpoint_json(&thread_id, newest)))
}

/// Returns the response of an update: the newest checkpoint.
fn checkpoint_json(thread_id: &str, newest: Uuid) -> Value {
    let checkpoint = json!({"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": newest});
    let mut all = checkpoint.clone();
    all["checkpoint_map"] = Value::Null;
    // The SDK for Python reads `checkpoint`, and the types of that for JavaScript have `configurable`.
    json!({"checkpoint": all, "configurable": checkpoint})
}

/// Returns the id of the newest checkpoint of a thread.
async fn newest_checkpoint(app: &App, caller: &Caller, thread: &Conversation) -> Result<Uuid, Problem> {
    let _turn = app.read_limit().begin(caller).await?;
    let _assembled = app.unread_answers().assemble(caller, app.config().max_page_bytes)?;
    let state = state_of(app, caller, thread).await?;
    Ok(state.entries.last().map_or(thread.id, |entry| entry.id))
}

/// Fails unless the checkpoint is the newest of its thread.
async fn expect_newest(app: &App, caller: &Caller, thread: &Conversation, id: &str) -> Result<(), Problem> {
    let _turn = app.read_limit().begin(caller).await?;
    let _assembled = app.unread_answers().assemble(caller, app.config().max_page_bytes)?;
    let entries = state_of(app, caller, thread).await?.entries;
    let all: Vec<Uuid> = iter::once(thread.id).chain(entries.iter().map(|entry| entry.id)).collect();
    let named = extract::id(id).ok().and_then(|id| all.iter().position(|known| *known == id));
    let place = named.ok_or_else(|| Problem::checkpoint_not_found(truncated_id(id)))?;
    if place + 1 == all.len() {
        return Ok(());
    }
    Err(Problem::field_not_supported(
        "an update of an earlier checkpoint",
        "update the newest one, or begin a run at an earlier one.",
    ))
}

/// Fails if the thread has a message with this id. No update replaces a message.
async fn expect_unknown(app: &App, caller: &Caller, thread: &Conversation, id: &str) -> Result<(), Problem> {
    // The ids of later messages of an answer begin with the id of the answer.
    let answer = id.split(['.', '~']).next().unwrap_or(id);
    for name in [id, answer] {
        if app.storage().message_called(&caller.owner, thread.id, name).await?.is_some() {
            return Err(Problem::message_exists(&thread.id.to_string()));
        }
    }
    Ok(())
}

/// Add fields to the metadata of a thread.
#[utoipa::path(patch, path = "/langgraph/threads/{thread_id}/state", operation_id = "patch_state", tag = "langgraph",
    params(("thread_id" = String, Path)), request_body = ThreadChange,
    responses(
        (status = 204, description = "The metadata has the fields."),
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
) -> Result<StatusCode, Problem> {
    let thread = thread_named(&app, &caller, &thread_id).await?;
    change_metadata(&app, &caller, thread.id, change).await?;
    Ok(StatusCode::NO_CONTENT)
}
