//! Posts a user's message to a chat: a new one, an edit, or a request to regenerate the answer.

use std::sync::Arc;

use axum::{http::HeaderMap, response::Response};
use holdfast_shared::{
    agent::StreamMode,
    event_id::EventId,
    idempotency::IdempotencyKey,
    message::{Message, Role},
    storage::MessageInput,
};
use uuid::Uuid;

use super::{
    answer_with, body_of,
    chat::ChatTarget,
    follow,
    request::{UiChatBody, UserMessage},
    segment::Segment,
};
use crate::{
    app::{App, PostedMessage, Posting, fingerprint},
    auth::Caller,
    event_stream::view_of,
    extract::idempotency_key,
    problem::Problem,
    relay::Subscriber,
    run_request::checked_options,
    thread::{NamedPlace, content_of, replaced_at},
    wire::Wire,
};

/// Number of newest messages in which to search the last user's message.
const NEWEST: usize = 50;

/// Retries of a post that conflicts with concurrent requests.
const MAX_RETRIES: usize = 64;

/// Posts a user's message. A repeated message returns the same run; a changed one replaces its earlier version.
pub async fn ask(
    app: &Arc<App>,
    caller: &Caller,
    headers: &HeaderMap,
    chat: ChatTarget,
    body: UiChatBody,
    question: UserMessage,
    mode: Option<StreamMode>,
) -> Result<Response, Problem> {
    let options = checked_options(app, None, body.client_tools(), None, body.context.clone())?;
    let UserMessage { id, parts } = question;
    let content = content_of(app, caller, parts).await?;
    let text = fingerprint(&content);
    let replaced = body.message_id.clone().unwrap_or_default();
    let mut retries = 0usize;
    loop {
        // The number of retries is part of the key: a message that changed and changed back needs a new run.
        let nth = retries.to_string();
        let fingerprint = ["ai-sdk", &chat.name, id.as_deref().unwrap_or_default(), &replaced, &text, &nth];
        let client_key = idempotency_key(headers, &fingerprint[..5], &options)?;
        let has_client_key = client_key.is_some();
        let key = client_key.or_else(|| id.is_some().then(|| IdempotencyKey::of_request(&fingerprint)));
        let input = match replaced_by(app, caller, &chat, &body, id.as_deref()).await? {
            Some(replace_from) => MessageInput::Edit { content: content.clone(), replace_from },
            None => MessageInput::New(content.clone()),
        };
        let posting = Posting {
            client_message_id: id.clone(),
            mode: body.mode,
            options: options.clone(),
            key,
            ..Posting::new(chat.target.clone(), input)
        };
        match app.post_and_follow(caller, posting, EventId::ORIGIN).await {
            Ok((committed, outcome)) if committed.message.superseded_at.is_none() || has_client_key => {
                return respond(app, caller, committed, outcome, mode).await;
            }
            // A concurrent request has posted or replaced the message; the next attempt reads its result.
            Ok(_) => {}
            Err(problem)
                if retries < MAX_RETRIES && ["message_exists", "message_not_found"].contains(&problem.code) => {}
            Err(problem) => return Err(problem),
        }
        retries += 1;
        if retries > MAX_RETRIES {
            return Err(Problem::message_changes(id.as_deref().unwrap_or_default()));
        }
    }
}

/// Starts a run that replaces the answer to a question. Fails if the chat has no user's message.
pub async fn regenerate(
    app: &Arc<App>,
    caller: &Caller,
    headers: &HeaderMap,
    chat: ChatTarget,
    body: UiChatBody,
    question: Option<UserMessage>,
    mode: Option<StreamMode>,
) -> Result<Response, Problem> {
    let question_id = question.as_ref().and_then(|question| question.id.as_deref());
    let existing = current_message(app, caller, &chat, question_id).await?.filter(|message| message.role == Role::User);
    if let (None, Some(question)) = (&existing, question)
        && question.id.is_some()
    {
        // The question never arrived at the server, and its user sends it again by regenerating.
        return ask(app, caller, headers, chat, body, question, mode).await;
    }
    let conversation_id = chat.conversation_id()?;
    let newest = app.storage().newest_messages(&caller.owner, conversation_id, NEWEST).await?;
    let last = || newest.iter().rev().find(|message| message.role == Role::User).cloned();
    let question = existing.or_else(last).ok_or_else(Problem::nothing_to_regenerate)?;
    // Order matters: a concurrent request that commits after this line is seen by the next one, or has the same key. A
    // restoration makes an earlier run the last one again, but not the newest.
    let after = app.storage().newest_run_id(&caller.owner, conversation_id).await?.unwrap_or(question.id).to_string();
    let last_run = app.storage().last_run(&caller.owner, conversation_id).await?;
    if let Some(run) = &last_run
        && !run.status.is_terminal()
        && run.input_message_id == question.id
        && question.run_id != Some(run.id)
    {
        // A run for the question is already unfinished, because the client sent the request twice.
        return follow::answer_from_start(app, caller, &Arc::new(run.clone())).await;
    }
    let options = checked_options(app, None, body.client_tools(), None, body.context.clone())?;
    let fingerprint = ["ai-sdk", &chat.name, "regenerate", &question.id.to_string(), &after];
    let key =
        idempotency_key(headers, &fingerprint, &options)?.unwrap_or_else(|| IdempotencyKey::of_request(&fingerprint));
    let again = MessageInput::Again { replace_from: question.id };
    let posting = Posting { options, key: Some(key), ..Posting::new(chat.target, again) };
    let (committed, outcome) = app.post_and_follow(caller, posting, EventId::ORIGIN).await?;
    respond(app, caller, committed, outcome, mode).await
}

/// Returns the message that the user's one replaces, with all that follows, if there is any. Fails if the id belongs to another
/// role.
async fn replaced_by(
    app: &Arc<App>,
    caller: &Caller,
    chat: &ChatTarget,
    body: &UiChatBody,
    id: Option<&str>,
) -> Result<Option<Uuid>, Problem> {
    let existing = current_message(app, caller, chat, id).await?;
    if existing.as_ref().is_some_and(|message| message.role != Role::User) {
        return Err(Problem::invalid_body("Another message of the chat, which is not a user's, has this id."));
    }
    if let Some(named) = body.message_id.as_deref() {
        let named = current_message(app, caller, chat, Some(named)).await?;
        return Ok(named.filter(|message| message.role == Role::User).map(|message| message.id));
    }
    if let Some(existing) = existing {
        return Ok(Some(existing.id));
    }
    let before = body.id_before_newest();
    let place = NamedPlace { own: None, before: before.as_deref() };
    replaced_at(app, caller, chat.conversation.as_ref(), place).await
}

/// Returns the chat's current message with the client's name for it, if any.
async fn current_message(
    app: &App,
    caller: &Caller,
    chat: &ChatTarget,
    name: Option<&str>,
) -> Result<Option<Message>, Problem> {
    match (&chat.conversation, name) {
        (Some(conversation), Some(name)) => {
            Ok(app.storage().message_called(&caller.owner, conversation.id, name).await?)
        }
        _ => Ok(None),
    }
}

/// Returns the stream of a run.
async fn respond(
    app: &Arc<App>,
    caller: &Caller,
    committed: PostedMessage,
    subscriber: Option<Subscriber>,
    mode: Option<StreamMode>,
) -> Result<Response, Problem> {
    let run = committed.run;
    let view = view_of(Wire::AiSdk, app, &run, mode).await?;
    let Some(subscriber) = subscriber else { return Ok(super::no_content()) };
    let frames = subscriber.into_frames(Vec::new(), view);
    Ok(answer_with(Segment::first_of(run.id), body_of(app, caller, run.id, frames)))
}
