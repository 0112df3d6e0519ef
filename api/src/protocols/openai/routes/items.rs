//! `/openai/v1/conversations/{id}/items`: the messages of a conversation as items, and single items.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
};
use holdfast_shared::{
    file::{Attachment, AttachmentKind, ContentPart, UserContent, parts_of_message},
    message::{Message, Role},
    storage::AddedMessage,
};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{conversations::find, request::turn_of_item, respond::item_of_run, turns::RequestTurn};
use crate::{
    anonymous_limits::AdmittedWriter,
    app::App,
    auth::Caller,
    extract::{JsonBody, Query},
    page_sizes::history_size,
    problem::Problem,
    protocols::openai::wire::run_of_item,
    thread::content_of,
};

/// Most items that one request adds.
const MAX_ITEMS: usize = 20;

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

/// List the messages of a conversation, newest first: at most `HOLDFAST_MAX_HISTORY` of them.
#[utoipa::path(get, path = "/openai/v1/conversations/{id}/items", operation_id = "list_items", tag = "openai",
    params(("id" = String, Path, description = "The id of a conversation."), ItemsQuery),
    responses((status = 200, body = Object, description = "The list of items."), (status = 404, body = Object, description = "conversation_not_found"))
)]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<ItemsQuery>,
) -> Result<Json<Value>, Problem> {
    let found = find(&app, &caller, &id).await?;
    let size = history_size(&app);
    let _assembled = app.unread_answers().assemble(&caller, size.bytes)?;
    let history = app.storage().history(&caller.owner, found.id, size).await?;
    let mut items: Vec<Value> = history.iter().map(|history| item_of(&history.message)).collect();
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

/// Read an item: a message that the list has, or an item of a response in the conversation.
#[utoipa::path(get, path = "/openai/v1/conversations/{id}/items/{item_id}", operation_id = "read_item", tag = "openai",
    params(("id" = String, Path, description = "The id of a conversation."), ("item_id" = String, Path, description = "The id of an item.")),
    responses((status = 200, body = Object, description = "The item."), (status = 404, body = Object, description = "conversation_not_found, item_not_found"))
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path((id, item)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let found = find(&app, &caller, &id).await?;
    let unknown = || Problem::item_not_found(item.chars().take(128).collect());
    if let Some(message_id) = message_of_item(&item) {
        let message = app.storage().message_called(&caller.owner, found.id, &message_id.to_string()).await?;
        return message
            .filter(|message| item_id(message) == item)
            .map(|message| Json(item_of(&message)))
            .ok_or_else(unknown);
    }
    let run_id = run_of_item(&item).ok_or_else(unknown)?;
    let run = app.storage().run_without_answer(&caller.owner, run_id).await?;
    let run = run.filter(|run| run.conversation_id == found.id).ok_or_else(unknown)?;
    item_of_run(&app, &caller, &run, &item).await?.map(Json).ok_or_else(unknown)
}

/// Messages to add. The route ignores unknown fields.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct NewItems {
    /// From 1 to 20 messages of the user or of the model.
    #[schema(value_type = Vec<Object>)]
    items: Vec<Value>,
}

/// Add messages to a conversation without a response, after all others.
#[utoipa::path(post, path = "/openai/v1/conversations/{id}/items", operation_id = "create_items", tag = "openai", request_body = NewItems,
    params(("id" = String, Path, description = "The id of a conversation.")),
    responses(
        (status = 200, body = Object, description = "The list of the added items."),
        (status = 400, body = Object, description = "invalid_body, invalid_content, empty_content, content_too_long, unsupported_part"),
        (status = 403, body = Object, description = "quota_exceeded"),
        (status = 404, body = Object, description = "conversation_not_found"),
        (status = 409, body = Object, description = "conversation_busy: the conversation has an unfinished run")
    )
)]
pub async fn create(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    Path(id): Path<String>,
    JsonBody(new): JsonBody<NewItems>,
) -> Result<Json<Value>, Problem> {
    let found = find(&app, &caller, &id).await?;
    let messages = messages_of(&app, &caller, &new.items).await?;
    if messages.is_empty() {
        return Ok(Json(list_of(Vec::new(), false)));
    }
    let items = messages.iter().map(item_of_added).collect();
    app.add_messages(&caller, found.id, messages).await?;
    Ok(Json(list_of(items, false)))
}

/// Returns the messages that items of a request add. Calls, their results and reasoning are left out. Fails for other items.
pub async fn messages_of(app: &Arc<App>, caller: &Caller, items: &[Value]) -> Result<Vec<AddedMessage>, Problem> {
    if items.is_empty() || items.len() > MAX_ITEMS {
        return Err(Problem::invalid_body(format!("A request adds 1 to {MAX_ITEMS} items.")));
    }
    let mut messages = Vec::with_capacity(items.len());
    for item in items {
        let (role, content) = match turn_of_item(item)? {
            Some(RequestTurn::User(parts)) => (Role::User, content_of(app, caller, parts).await?),
            Some(RequestTurn::Assistant { text, .. }) => (Role::Assistant, UserContent::from(text)),
            // A conversation has its messages; clients that keep a session send the calls between them too.
            Some(RequestTurn::Call { .. } | RequestTurn::Result { .. } | RequestTurn::Item(_)) | None => continue,
            Some(RequestTurn::Instructions(_) | RequestTurn::Approval { .. }) => {
                let detail = "Only messages of the user or of the model can be added.";
                return Err(Problem::invalid_body(detail));
            }
        };
        messages.push(AddedMessage { id: Uuid::now_v7(), client_id: None, role, content });
    }
    Ok(messages)
}

/// Returns a message, or a card, as an item.
pub fn item_of(message: &Message) -> Value {
    item(&item_id(message), message.role, &message.content.clone().into_stored(), &message.attachments)
}

fn item_of_added(message: &AddedMessage) -> Value {
    let AddedMessage { id, role, ref content, .. } = *message;
    item(&format!("msg_{}", id.simple()), role, &content.text, &content.attachments)
}

fn item(id: &str, role: Role, text: &str, files: &[Attachment]) -> Value {
    let content: Vec<Value> = match role {
        Role::Assistant => vec![json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})],
        Role::User | Role::System if files.is_empty() => vec![text_part(text)],
        Role::User | Role::System => parts_of_message(text, files).into_iter().map(part).collect(),
    };
    json!({"id": id, "type": "message", "role": role.as_str(), "status": "completed", "content": content})
}

fn text_part(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

/// Returns a part of a message as a request may have it again.
fn part(part: ContentPart<'_>) -> Value {
    match part {
        ContentPart::Text(text) => text_part(text),
        ContentPart::File(file) if file.kind == AttachmentKind::Image => {
            json!({"type": "input_image", "file_id": file.file_id, "detail": "auto"})
        }
        ContentPart::File(file) => json!({"type": "input_file", "file_id": file.file_id, "filename": file.name}),
    }
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

/// Returns the message of an item that the list has.
fn message_of_item(item: &str) -> Option<Uuid> {
    let ids = item.strip_prefix("msg_")?;
    let id = ids.rsplit('_').next()?;
    (id.len() == 32).then(|| Uuid::try_parse(id).ok()).flatten()
}
