//! `/openai/v1/conversations`: the conversations of the native API, as OpenAI has them.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
};
use holdfast_shared::{
    conversation::Conversation,
    message::{Message, Role},
    storage::HistoryMessage,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::posting::checked_metadata;
use crate::{
    anonymous_limits::AdmittedWriter,
    app::App,
    auth::Caller,
    extract::{JsonBody, Query},
    problem::Problem,
    routes::history_size,
    wire::openai::{conversation_id, parse_conversation_id},
};

/// The route ignores unknown fields.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct ConversationRequest {
    /// At most 16 texts; `title` becomes the conversation's title.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// A conversation begins without items.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    items: Option<Vec<Value>>,
}

/// The query of a list of items, which ignores unknown fields.
#[derive(Deserialize, utoipa::IntoParams)]
pub struct ItemsQuery {
    /// Most items, from 1 to 100; 20 by default.
    limit: Option<usize>,
    /// `asc` or `desc`, the default.
    order: Option<String>,
    /// The id of the item after which the page begins.
    after: Option<String>,
}

/// Create a conversation.
#[utoipa::path(post, path = "/openai/v1/conversations", operation_id = "create_conversation", tag = "openai", request_body = ConversationRequest,
    responses((status = 200, body = Object, description = "The conversation."), (status = 400, body = Object, description = "invalid_body"))
)]
pub async fn create(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    JsonBody(body): JsonBody<ConversationRequest>,
) -> Result<Json<Value>, Problem> {
    if body.items.is_some_and(|items| !items.is_empty()) {
        return Err(Problem::invalid_body(
            "A conversation begins without items: give the first one to POST /openai/v1/responses as input.",
        ));
    }
    let metadata = checked_metadata(body.metadata)?;
    let title = metadata.get("title").and_then(Value::as_str).map(str::to_owned);
    let (account, id) = (app.account(&caller.owner), Uuid::now_v7());
    let created = app.storage().create_conversation(account, id, title, None).await?;
    let created = created.ok_or_else(|| Problem::conversation_not_found(id))?;
    if !metadata.is_empty() {
        app.storage().set_chat_metadata(account, id, metadata.clone()).await?;
    }
    Ok(Json(json_of(&created, metadata)))
}

/// Replace the metadata of a conversation.
#[utoipa::path(post, path = "/openai/v1/conversations/{id}", operation_id = "change_conversation", tag = "openai", request_body = ConversationRequest,
    params(("id" = String, Path, description = "The id of a conversation.")),
    responses(
        (status = 200, body = Object, description = "The conversation."),
        (status = 400, body = Object, description = "invalid_body"),
        (status = 404, body = Object, description = "conversation_not_found")
    )
)]
pub async fn change(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    Path(id): Path<String>,
    JsonBody(body): JsonBody<ConversationRequest>,
) -> Result<Json<Value>, Problem> {
    let found = find(&app, &caller, &id).await?;
    let metadata = checked_metadata(body.metadata)?;
    app.storage().set_chat_metadata(app.account(&caller.owner), found.id, metadata.clone()).await?;
    Ok(Json(json_of(&found, metadata)))
}

/// Read a conversation.
#[utoipa::path(get, path = "/openai/v1/conversations/{id}", operation_id = "read_conversation", tag = "openai",
    params(("id" = String, Path, description = "The id of a conversation.")),
    responses((status = 200, body = Object, description = "The conversation."), (status = 404, body = Object, description = "conversation_not_found"))
)]
pub async fn read(State(app): State<Arc<App>>, caller: Caller, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let found = find(&app, &caller, &id).await?;
    let chat = app.storage().chat(&caller.owner, found.id).await?;
    Ok(Json(json_of(&found, chat.map(|chat| chat.metadata).unwrap_or_default())))
}

/// Delete a conversation.
#[utoipa::path(delete, path = "/openai/v1/conversations/{id}", operation_id = "delete_conversation", tag = "openai",
    params(("id" = String, Path, description = "The id of a conversation.")),
    responses((status = 200, body = Object, description = "The conversation is deleted."), (status = 404, body = Object, description = "conversation_not_found"))
)]
pub async fn delete(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let found = find(&app, &caller, &id).await?;
    app.delete_conversation(&caller.owner, found.id).await?;
    Ok(Json(json!({"id": conversation_id(found.id), "object": "conversation.deleted", "deleted": true})))
}

/// List the messages of a conversation, newest first: at most `HOLDFAST_MAX_HISTORY` of them.
#[utoipa::path(get, path = "/openai/v1/conversations/{id}/items", operation_id = "list_items", tag = "openai",
    params(("id" = String, Path, description = "The id of a conversation."), ItemsQuery),
    responses((status = 200, body = Object, description = "The list of items."), (status = 404, body = Object, description = "conversation_not_found"))
)]
pub async fn items(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<ItemsQuery>,
) -> Result<Json<Value>, Problem> {
    let found = find(&app, &caller, &id).await?;
    let size = history_size(&app);
    let _assembled = app.unread_answers().assemble(&caller, size.bytes)?;
    let history = app.storage().history(&caller.owner, found.id, size).await?;
    let mut items: Vec<Value> = history.iter().map(item_of).collect();
    if query.order.as_deref() == Some("asc") {
        items.reverse();
    }
    if let Some(after) = &query.after {
        let at = items.iter().position(|item| item["id"] == after.as_str());
        items.drain(..at.map_or(items.len(), |at| at + 1));
    }
    let limit = query.limit.unwrap_or(20).clamp(1, 100);
    let has_more = items.len() > limit;
    items.truncate(limit);
    Ok(Json(list_of(items, has_more)))
}

async fn find(app: &App, caller: &Caller, id: &str) -> Result<Conversation, Problem> {
    let unknown = || Problem::conversation_not_found(id.chars().take(64).collect::<String>());
    let parsed = parse_conversation_id(id).ok_or_else(unknown)?;
    app.storage().conversation(&caller.owner, parsed).await?.ok_or_else(unknown)
}

fn json_of(conversation: &Conversation, metadata: Map<String, Value>) -> Value {
    let (id, created_at) = (conversation_id(conversation.id), conversation.created_at.timestamp());
    json!({"id": id, "object": "conversation", "created_at": created_at, "metadata": metadata})
}

fn item_of(history: &HistoryMessage) -> Value {
    let message = &history.message;
    if message.role != Role::Assistant {
        return item_of_user(message);
    }
    let text = message.content.clone().into_stored();
    let content = [json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})];
    json!({"id": item_id(message), "type": "message", "role": "assistant", "status": "completed", "content": content})
}

/// Returns a message of a user, or a card, as an item.
pub fn item_of_user(message: &Message) -> Value {
    let role = if message.role == Role::User { "user" } else { "system" };
    let text = message.content.clone().into_stored();
    let content = [json!({"type": "input_text", "text": text})];
    json!({"id": item_id(message), "type": "message", "role": role, "status": "completed", "content": content})
}

/// The item of an answer names its run, so a request can continue after it.
fn item_id(message: &Message) -> String {
    match message.run_id.filter(|_| message.role == Role::Assistant) {
        Some(run_id) => format!("msg_{}_{}", run_id.simple(), message.id.simple()),
        None => format!("msg_{}", message.id.simple()),
    }
}

/// Returns a page of items.
pub fn list_of(items: Vec<Value>, has_more: bool) -> Value {
    let id = |item: Option<&Value>| item.map_or(Value::Null, |item| item["id"].clone());
    let (first, last) = (id(items.first()), id(items.last()));
    json!({"object": "list", "data": items, "first_id": first, "last_id": last, "has_more": has_more})
}
