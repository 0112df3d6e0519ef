//! A question put in a chat, in the first place, in other words, or once more.

use std::sync::Arc;

use axum::{body::Body, http::HeaderMap, response::Response};
use holdfast_shared::{
    agent::StreamMode,
    event_id::EventId,
    idempotency::IdempotencyKey,
    message::{Message, Role},
    run::SubmitMode,
    storage::{MessageInput, NewRun, RunOptions},
};
use uuid::Uuid;

use super::{
    answer_with,
    chat::Chat,
    follow,
    request::{Question, UiChatBody},
    segment::Segment,
};
use crate::{
    app::{App, Posted},
    auth::Caller,
    extract::idempotency_key,
    problem::Problem,
    relay::Opened,
    routes::{checked_options, events::view_of},
    spans,
    wire::Wire,
};

/// Messages among which the newest question is looked for.
const LOOKED_BACK: usize = 50;

/// Times that a question is put anew, because it was changed meanwhile.
const TRIES: usize = 64;

/// Puts a question. The same message sent again is the same run; in other words it takes the place of what it was.
pub async fn ask(
    app: &Arc<App>,
    caller: &Caller,
    headers: &HeaderMap,
    chat: Chat,
    body: UiChatBody,
    question: Question,
    mode: Option<StreamMode>,
) -> Result<Response, Problem> {
    let options = checked_options(app, None, body.client_tools(), None)?;
    let Question { id, text } = question;
    let replaced = body.message_id.clone().unwrap_or_default();
    let mut tries = 0usize;
    loop {
        // A message that was replaced meanwhile, and is now what it was before, is asked anew.
        let nth = tries.to_string();
        let asked = ["ai-sdk", &chat.name, id.as_deref().unwrap_or_default(), &replaced, &text, &nth];
        let given = idempotency_key(headers, &asked[..5], &options)?;
        let is_given = given.is_some();
        let key = given.or_else(|| id.is_some().then(|| IdempotencyKey::of_request(&asked)));
        let said = match replaced_by(app, caller, &chat, &body, id.as_deref()).await? {
            Some(message) => MessageInput::Edit { content: text.clone(), replace_from: message.id },
            None => MessageInput::New(text.clone()),
        };
        let new = new_run(app, &chat, said, options.clone(), id.clone(), key);
        match app.post_and_follow(caller, new, EventId::ORIGIN).await {
            Ok((posted, opened)) if posted.message.superseded_at.is_none() || is_given => {
                return shown(app, posted, opened, mode).await;
            }
            // Somebody else has said it, or has replaced it, at the same moment: now it can be seen.
            Ok(_) => {}
            Err(problem) if tries < TRIES && ["message_exists", "message_not_found"].contains(&problem.code) => {}
            Err(problem) => return Err(problem),
        }
        tries += 1;
        if tries > TRIES {
            return Err(Problem::message_changes(id.as_deref().unwrap_or_default()));
        }
    }
}

/// Has a question answered again, instead of the answer that it has.
pub async fn ask_again(
    app: &Arc<App>,
    caller: &Caller,
    headers: &HeaderMap,
    chat: Chat,
    body: UiChatBody,
    question: Option<Question>,
    mode: Option<StreamMode>,
) -> Result<Response, Problem> {
    let named = question.as_ref().and_then(|question| question.id.as_deref());
    let named = current(app, caller, &chat, named).await?.filter(|message| message.role == Role::User);
    if let (None, Some(question)) = (&named, question)
        && question.id.is_some()
    {
        // It has never arrived: this is how people send it once more.
        return ask(app, caller, headers, chat, body, question, mode).await;
    }
    let conversation_id = chat.known()?;
    let newest = app.storage().newest_messages(&caller.owner, conversation_id, LOOKED_BACK).await?;
    let last = || newest.iter().rev().find(|message| message.role == Role::User).cloned();
    let question = named.or_else(last).ok_or_else(Problem::nobody_has_asked)?;
    let last_run = app.storage().last_run(&caller.owner, conversation_id).await?;
    if let Some(run) = &last_run
        && !run.status.is_terminal()
        && run.input_message_id == question.id
        && question.run_id != Some(run.id)
    {
        // It was asked twice, and is at work already.
        return follow::whole(app, caller, &Arc::new(run.clone())).await;
    }
    let options = checked_options(app, None, body.client_tools(), None)?;
    // Those who ask at the same moment do so after the same run.
    let after = last_run.map_or(question.id, |run| run.id).to_string();
    let asked = ["ai-sdk", &chat.name, "regenerate", &question.id.to_string(), &after];
    let key = idempotency_key(headers, &asked, &options)?.unwrap_or_else(|| IdempotencyKey::of_request(&asked));
    let new = new_run(app, &chat, MessageInput::Again { replace_from: question.id }, options, None, Some(key));
    let (posted, opened) = app.post_and_follow(caller, new, EventId::ORIGIN).await?;
    shown(app, posted, opened, mode).await
}

/// What a user has said that is now said in other words.
async fn replaced_by(
    app: &App,
    caller: &Caller,
    chat: &Chat,
    body: &UiChatBody,
    id: Option<&str>,
) -> Result<Option<Message>, Problem> {
    let named = current(app, caller, chat, id).await?;
    if named.as_ref().is_some_and(|message| message.role != Role::User) {
        return Err(Problem::invalid_body("The message has the id of one that no user has said."));
    }
    match body.message_id.as_deref() {
        None => Ok(named),
        replaced => Ok(current(app, caller, chat, replaced).await?.filter(|message| message.role == Role::User)),
    }
}

/// The message of the chat that the client calls so.
async fn current(app: &App, caller: &Caller, chat: &Chat, name: Option<&str>) -> Result<Option<Message>, Problem> {
    match (&chat.conversation, name) {
        (Some(conversation), Some(name)) => {
            Ok(app.storage().message_called(&caller.owner, conversation.id, name).await?)
        }
        _ => Ok(None),
    }
}

fn new_run(
    app: &App,
    chat: &Chat,
    said: MessageInput,
    options: RunOptions,
    client_message_id: Option<String>,
    key: Option<IdempotencyKey>,
) -> NewRun {
    NewRun {
        run_id: Uuid::now_v7(),
        target: chat.target.clone(),
        input: said,
        client_message_id,
        mode: SubmitMode::default(),
        options,
        max_metadata: app.config().max_metadata_bytes,
        key,
        max_unfinished: app.config().max_queued,
        traceparent: spans::of_request(),
    }
}

/// Waits for the first output, so that a run without any is an HTTP error: the client then keeps the question and shows why.
async fn shown(app: &App, posted: Posted, mut opened: Opened, mode: Option<StreamMode>) -> Result<Response, Problem> {
    let run = posted.run;
    app.hear(&run, &mut opened).await?;
    let view = view_of(Wire::AiSdk, app, &run, mode).await?;
    let Opened::Stream(follower) = opened else { return Ok(super::nothing_to_come()) };
    Ok(answer_with(Segment::first_of(run.id), Body::from_stream(follower.into_frames(view))))
}
