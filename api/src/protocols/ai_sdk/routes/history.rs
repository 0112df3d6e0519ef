//! A chat's history: its messages as a client has them that followed all streams.

use std::sync::Arc;

use holdfast_shared::{
    file::{ContentPart, parts_of_message},
    message::{Content, Message, Role},
    page::{Page, PageSize},
    plan::Plan,
    storage::{HistoryMessage, MessagePlace, StoredAnswer},
};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    app::App,
    auth::Caller,
    page_sizes::history_size,
    problem::Problem,
    protocols::ai_sdk::wire::UiMessage,
    thread::{FILES, parts_of_answer},
};

/// The query of a chat's messages; the route ignores unknown fields.
#[derive(Deserialize, utoipa::IntoParams)]
pub struct HistoryQuery {
    /// Most messages; by default as many as a history may have.
    limit: Option<usize>,
    /// Only messages before this one, as the header `link` of the later ones names it.
    before: Option<Uuid>,
}

/// Messages of a chat, oldest first.
pub struct ChatHistory {
    /// The messages.
    pub messages: Vec<UiMessage>,
    /// The id of the first one, if there are messages before it.
    pub first: Option<String>,
}

/// Returns the newest messages of a conversation that the query asks for.
pub async fn of(
    app: &Arc<App>,
    caller: &Caller,
    conversation_id: Uuid,
    query: &HistoryQuery,
) -> Result<ChatHistory, Problem> {
    let size = query.size(app)?;
    let before = place_of(app, caller, conversation_id, query.before).await?;
    let _assembled = app.unread_answers().assemble(caller, size.bytes)?;
    // A failed run without output has no message, but a client has seen its reasoning and its tool calls.
    let (Page { items: newest, next: mut first }, unanswered, plans) = tokio::try_join!(
        app.storage().history_before(&caller.owner, conversation_id, size, before),
        app.storage().answers_without_message_before(&caller.owner, conversation_id, size, before),
        app.storage().plans_of_conversation(conversation_id)
    )?;
    let ids = newest.iter().map(|entry| entry.message.id);
    let ids = ids.chain(unanswered.iter().map(|answer| answer.message_id)).collect();
    let versions = app.storage().versions(conversation_id, ids).await?;
    let (mut messages, mut bytes, mut oldest) = (Vec::with_capacity(newest.len()), 0, None);
    // A message of an older run may be longer than the query could know, so the newest come first until the page is full.
    for HistoryMessage { message, answer } in newest {
        if bytes >= size.bytes {
            first = oldest;
            break;
        }
        let id = message.id;
        oldest = Some(id.to_string());
        let mut of_turn = Vec::new();
        for answer in unanswered.iter().filter(|answer| answer.input_message_id == id) {
            let ui_message = answer_of(app, answer, "").await?;
            of_turn.extend(ui_message.map(|ui_message| ui_message.with_version(versions.get(&answer.message_id))));
        }
        let ui_message = match (answer, &message.content) {
            (Some(answer), Content::Text(text)) => answer_of(app, &answer, text).await?,
            _ => None,
        };
        of_turn.push(ui_message.unwrap_or_else(|| plain(message)).with_version(versions.get(&id)));
        for ui_message in of_turn {
            bytes += serde_json::to_string(&ui_message).map_or(0, |json| json.len());
            messages.push(ui_message);
        }
    }
    messages.reverse();
    add_plans(&mut messages, plans);
    Ok(ChatHistory { messages, first })
}

impl HistoryQuery {
    /// Returns the size of the page. Fails if the limit is out of range.
    pub fn size(&self, app: &App) -> Result<PageSize, Problem> {
        let whole = history_size(app);
        match self.limit {
            None => Ok(whole),
            Some(items) if (1..=whole.items).contains(&items) => Ok(PageSize { items, ..whole }),
            Some(_) => Err(Problem::invalid_query(format!("limit is a number from 1 to {}.", whole.items))),
        }
    }
}

async fn place_of(
    app: &App,
    caller: &Caller,
    conversation_id: Uuid,
    before: Option<Uuid>,
) -> Result<MessagePlace, Problem> {
    let Some(id) = before else { return Ok(MessagePlace::END) };
    let place = app.storage().place_of_message(&caller.owner, conversation_id, id).await?;
    place.ok_or_else(|| Problem::message_not_found(id, &conversation_id.to_string()))
}

/// Adds each plan behind the call that made it, as the stream has it.
fn add_plans(messages: &mut [UiMessage], plans: Vec<Plan>) {
    for plan in plans {
        let made_by = |part: &Value| part["toolCallId"] == plan.call_id.as_str();
        let place = messages
            .iter_mut()
            .find_map(|message| message.parts.iter().position(made_by).map(|place| (message, place)));
        if let Some((message, place)) = place {
            message.parts.insert(place + 1, UiMessage::plan_part(plan));
        }
    }
}

/// Returns the answer of a run; `None` if nothing is left of it.
async fn answer_of(app: &App, answer: &StoredAnswer, text: &str) -> Result<Option<UiMessage>, Problem> {
    let parts = parts_of_answer(app, answer, text).await?;
    Ok(parts.map(|parts| UiMessage::of_answer(answer, &parts, text)))
}

/// Returns a stored message without parts: a user's message, a card, or an answer of which nothing else is left.
fn plain(message: Message) -> UiMessage {
    let text = |text: &str| json!({"type": "text", "text": text});
    let id = message.client_id.unwrap_or_else(|| message.id.to_string());
    let parts: Vec<Value> = match message.content {
        Content::Text(content) if message.attachments.is_empty() => vec![text(&content)],
        Content::Text(content) => {
            let part = |part: ContentPart<'_>| match part {
                ContentPart::Text(content) => text(content),
                ContentPart::File(file) => json!({
                    "type": "file", "mediaType": file.media_type, "filename": file.name,
                    "url": format!("{FILES}{}", file.file_id),
                    "providerMetadata": {"holdfast": {"id": file.file_id, "bytes": file.bytes}}
                }),
            };
            parts_of_message(&content, &message.attachments).into_iter().map(part).collect()
        }
        Content::BriefingCard(card) => vec![json!({"type": "data-briefing", "data": card})],
    };
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
    };
    UiMessage::of_stored(message.created_at, id, role, parts)
}
