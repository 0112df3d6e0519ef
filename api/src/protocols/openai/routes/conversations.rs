//! `/openai/v1/conversations`: the conversations of the native API, as OpenAI has them.

use std::{borrow::Cow, sync::Arc};

use axum::{
    Json,
    extract::{Path, State},
};
use holdfast_shared::{
    conversation::Conversation,
    hidden::{is_visible, without_hidden},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{items::messages_of, posting::checked_metadata};
use crate::{
    anonymous_limits::AdmittedWriter,
    app::App,
    auth::Caller,
    extract::JsonBody,
    problem::Problem,
    protocols::openai::wire::{conversation_id, parse_conversation_id},
};

/// The route ignores unknown fields.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct ConversationRequest {
    /// At most 16 texts; `title` becomes the conversation's title.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// At most 20 messages of the user or of the model that the conversation begins with.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    items: Option<Vec<Value>>,
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
    let messages = match body.items {
        Some(items) if !items.is_empty() => messages_of(&app, &caller, &items).await?,
        _ => Vec::new(),
    };
    let metadata = checked_metadata(body.metadata)?;
    let title = metadata.get("title").and_then(Value::as_str).map(without_hidden).filter(|title| is_visible(title));
    let title = title.map(Cow::into_owned);
    let (account, id) = (app.account(&caller.owner), Uuid::now_v7());
    let created = app.storage().create_conversation(account, id, title, None).await?;
    let created = created.ok_or_else(|| Problem::conversation_not_found(id))?;
    if !metadata.is_empty() {
        app.storage().set_chat_metadata(account, id, metadata.clone()).await?;
    }
    if !messages.is_empty()
        && let Err(refusal) = app.add_messages(&caller, id, messages).await
    {
        app.delete_conversation(&caller.owner, id).await?;
        return Err(refusal);
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

/// Returns the caller's conversation of this id.
pub async fn find(app: &App, caller: &Caller, id: &str) -> Result<Conversation, Problem> {
    let unknown = || Problem::conversation_not_found(id.chars().take(64).collect::<String>());
    let parsed = parse_conversation_id(id).ok_or_else(unknown)?;
    app.storage().conversation(&caller.owner, parsed).await?.ok_or_else(unknown)
}

fn json_of(conversation: &Conversation, metadata: Map<String, Value>) -> Value {
    let (id, created_at) = (conversation_id(conversation.id), conversation.created_at.timestamp());
    json!({"id": id, "object": "conversation", "created_at": created_at, "metadata": metadata})
}
