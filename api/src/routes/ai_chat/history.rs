//! A chat's history: its messages as a client has them that followed all streams.

use std::sync::Arc;

use axum::http::StatusCode;
use holdfast_shared::{
    event_id::EventId,
    message::{Content, Message, Role},
    run::Run,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::outline::Outline;
use crate::{
    app::App,
    auth::Caller,
    problem::Problem,
    routes::{events::view_of, history_size},
    wire::{
        LogPosition, Wire,
        ai_sdk::{UiMessage, answer_from_trace},
    },
};

/// Returns the newest messages of a conversation, oldest first, up to the size of a history.
pub async fn of(app: &Arc<App>, caller: &Caller, conversation_id: Uuid) -> Result<Vec<UiMessage>, Problem> {
    let size = history_size(app);
    let _assembled = app.unread_answers().assemble(caller, size.bytes)?;
    let newest = app.storage().newest_messages(&caller.owner, conversation_id, size).await?;
    // A failed run without output has no message, but a client has seen its reasoning and its tool calls.
    let unanswered = app.storage().runs_without_message(&caller.owner, conversation_id, size.items).await?;
    let ids =
        newest.iter().map(|message| message.id).chain(unanswered.iter().map(|run| run.output_message_id)).collect();
    let versions = app.storage().versions(conversation_id, ids).await?;
    let (mut messages, mut bytes) = (Vec::with_capacity(newest.len()), 0);
    // With calls and reasoning, messages are longer than their texts, so the newest come first until the page is full.
    for message in newest.into_iter().rev() {
        if bytes >= size.bytes {
            break;
        }
        let id = message.id;
        let ui_message = match (message.role, message.run_id) {
            (Role::Assistant, Some(run_id)) => match app.storage().run_without_answer(&caller.owner, run_id).await? {
                Some(run) => answer_of(app, &run).await?.unwrap_or_else(|| plain(message)),
                None => plain(message),
            },
            _ => plain(message),
        };
        let ui_message = ui_message.with_version(versions.get(&id));
        let mut answers = Vec::new();
        for run in unanswered.iter().filter(|run| run.input_message_id == id) {
            let answer = answer_of(app, run).await?;
            answers.extend(answer.map(|answer| answer.with_version(versions.get(&run.output_message_id))));
        }
        for ui_message in answers.into_iter().rev().chain([ui_message]) {
            bytes += serde_json::to_string(&ui_message).map_or(0, |json| json.len());
            messages.push(ui_message);
        }
    }
    messages.reverse();
    Ok(messages)
}

/// Returns the answer of a run: from its events, or from its trace if the events have expired.
async fn answer_of(app: &App, run: &Run) -> Result<Option<UiMessage>, Problem> {
    if let Some(answer) = folded(app, run).await? {
        return Ok(Some(answer));
    }
    let (trace, calls) = tokio::try_join!(app.storage().trace(run.id), app.storage().tool_calls(run.id))?;
    Ok(answer_from_trace(run, trace, &calls))
}

/// Folds a run's events into the message that a client would have; `None` if the events have expired.
async fn folded(app: &App, run: &Run) -> Result<Option<UiMessage>, Problem> {
    let filter = match Outline::read(app, run.id).await {
        Err(problem) if problem.status == StatusCode::GONE => return Ok(None),
        outline => outline?.filter(),
    };
    let view = view_of(Wire::AiSdk, app, run, None).await?;
    let mut message = UiMessage::new(run.output_message_id.to_string(), "assistant", Vec::new());
    let (mut log, mut position) = (app.relay().pages(run.id, EventId::ORIGIN), LogPosition::START);
    // It reads page by page, because a log may be far larger than its message.
    while let Some(events) = log.next().await? {
        for event in events.iter().filter(|event| !filter.leaves_out(event.id)) {
            message.push(&view, position, event);
            position = LogPosition::after(event);
        }
    }
    Ok(Some(message))
}

/// Returns a stored message without events: a user's message, a card, or an answer whose events have expired.
fn plain(message: Message) -> UiMessage {
    let text = |text: String| json!({"type": "text", "text": text});
    let id = message.client_id.unwrap_or_else(|| message.id.to_string());
    let part: Value = match message.content {
        Content::Text(content) => text(content),
        Content::BriefingCard(card) => json!({"type": "data-briefing", "data": card}),
    };
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
    };
    UiMessage::of_stored(message.created_at, id, role, vec![part])
}
