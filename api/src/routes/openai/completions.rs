//! `/openai/v1/chat/completions`: a completion of a conversation that the client has.

use std::sync::Arc;

use axum::{
    Json,
    body::Body,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use holdfast_shared::{event_id::EventId, run::Run, usage::Usage};
use serde_json::{Value, json};

use super::{
    catalog::DEFAULT,
    completion_request::CompletionBody,
    posting::{RequestFields, checked_metadata, posting},
    repeated::RepeatedFields,
    respond::{Answered, ResponsePart, answer, ended, head_of, seen_frames, state_of},
    turns::{OpenAiAction, Question},
};
use crate::{
    app::App,
    auth::Caller,
    extract::{self, JsonBody, Query},
    problem::Problem,
    relay::{FoldStream, Subscriber},
    routes::{
        WireQuery,
        events::{detail_of, event_stream},
        thread::Outline,
    },
    wire::openai::{
        CompletionFold, CompletionHead, CompletionView, ItemBody, OutputItem, ResponseId, ResponseState, ResponseView,
        completion_usage, parse_conversation_id,
    },
};

/// A completion before its response.
struct StartedCompletion {
    run: Arc<Run>,
    subscriber: Subscriber,
    id: ResponseId,
    after: Option<EventId>,
    until: Option<EventId>,
}

/// Complete a conversation. The messages are the history; `metadata.conversation_id` names a conversation of this server instead.
#[utoipa::path(post, path = "/openai/v1/chat/completions", operation_id = "create_completion", tag = "openai", request_body = CompletionBody,
    params(WireQuery, ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same completion."),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last frame that the client has, for a repeated request.")),
    responses(
        (status = 200, description = "The completion, or with `stream` its chunks.", content((Object = "application/json"), (String = "text/event-stream"))),
        (status = 400, body = Object, description = "invalid_body, empty_content, content_too_long, unsupported_part, too_many_attachments, invalid_client_tool, invalid_metadata"),
        (status = 404, body = Object, description = "model_not_found, conversation_not_found"),
        (status = 409, body = Object, description = "run_not_waiting: the run waits for no such result"),
        (status = 422, body = Object, description = "idempotency_key_reused"),
        (status = 500, body = Object, description = "The run has failed; `code` is its error.")
    )
)]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<WireQuery>,
    JsonBody(body): JsonBody<CompletionBody>,
) -> Result<Response, Problem> {
    let (streams, has_usage) = (body.stream == Some(true), body.has_usage());
    let model = body.model.clone().unwrap_or_else(|| DEFAULT.to_owned());
    let StartedCompletion { run, subscriber, id, after, until } = match OpenAiAction::of(body.turns()?)? {
        OpenAiAction::Ask(question) => ask(&app, &caller, &headers, body, question).await?,
        OpenAiAction::Answer { run_id, answers } => {
            let Answered { run, subscriber, pauses_before, after, .. } = answer(&app, &caller, run_id, answers).await?;
            let id = ResponseId { run_id, pauses_before };
            let until = completion_part(&app, &run, id, Some(after)).await?.until;
            StartedCompletion { run, subscriber, id, after: Some(after), until }
        }
    };
    let detail = detail_of(&app, &run, query.stream_mode, false).await?;
    let head = Arc::new(CompletionHead { run_id: run.id, created_at: run.created_at.timestamp(), model });
    let view = CompletionView { detail, head: Arc::clone(&head), after, has_usage };
    let stream = FoldStream::new(view, CompletionFold::new()).after(seen_frames(&headers, None)?).until(until);
    if streams {
        return Ok(event_stream(run.id, Body::from_stream(subscriber.into_frames(Vec::new(), stream))));
    }
    ended(stream, subscriber, run.id).await?;
    let run = app.storage().run_without_answer(&caller.owner, run.id).await?;
    let run = run.ok_or_else(|| Problem::response_not_found(id.to_string()))?;
    let part = completion_part(&app, &run, id, after).await?;
    whole(&app, &run, &head, &part).await
}

async fn ask(
    app: &Arc<App>,
    caller: &Caller,
    headers: &HeaderMap,
    body: CompletionBody,
    question: Question,
) -> Result<StartedCompletion, Problem> {
    let posting = posting(app, caller, headers, question, fields_of(body)?).await?;
    let (committed, subscriber) = app.post_and_follow(caller, posting, EventId::ORIGIN).await?;
    let run = Arc::new(committed.run);
    let subscriber = subscriber.ok_or_else(|| Problem::events_gone(run.id))?;
    let id = ResponseId::first_of(run.id);
    let until = completion_part(app, &run, id, None).await?.until;
    Ok(StartedCompletion { run, subscriber, id, after: None, until })
}

/// Returns the part of a run that a completion shows: up to the next pause at which the client owes a result.
async fn completion_part(
    app: &App,
    run: &Run,
    id: ResponseId,
    after: Option<EventId>,
) -> Result<ResponsePart, Problem> {
    let outline = Outline::read(app, run.id).await?;
    let detail = detail_of(app, run, None, false).await?;
    let view = ResponseView { detail, head: Arc::new(head_of(app, run, id).await?), after };
    let until = outline.pauses_of_client().into_iter().find(|pause| after.is_none_or(|after| *pause > after));
    Ok(ResponsePart { view, until })
}

fn fields_of(body: CompletionBody) -> Result<RequestFields, Problem> {
    let (client_tools, options, format) = (body.client_tools(), body.options(), body.format());
    let metadata = checked_metadata(body.metadata)?;
    let conversation = metadata.get("conversation_id").and_then(Value::as_str).map(|id| {
        let label: String = id.chars().take(64).collect();
        let plain = || extract::id(id).ok();
        parse_conversation_id(id).or_else(plain).ok_or_else(|| Problem::conversation_not_found(label))
    });
    let conversation = conversation.transpose()?;
    let repeated = RepeatedFields::of_completion(body.model.clone(), metadata);
    Ok(RequestFields {
        client_tools,
        options,
        format,
        model: body.model,
        instructions: None,
        repeated,
        conversation,
        after: None,
        hides: conversation.is_none(),
    })
}

/// Returns a completion as a whole. Fails if its run has failed.
async fn whole(app: &App, run: &Run, head: &CompletionHead, part: &ResponsePart) -> Result<Response, Problem> {
    let state = state_of(app, run, part).await?;
    if let ResponseState::Failed(error) = state.state() {
        return Err(Problem::run_failed(run.id, error));
    }
    let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    for item in state.items() {
        match &item.body {
            ItemBody::Message(part) => text.push_str(&part.to_text()),
            ItemBody::Reasoning(part) => reasoning.push_str(&part.to_text()),
            ItemBody::FunctionCall(_) => calls.push(call_of(item, run)),
            ItemBody::McpCall { .. } | ItemBody::McpApproval { .. } => {}
        }
    }
    let reason = match state.state() {
        _ if !calls.is_empty() => "tool_calls",
        ResponseState::Incomplete("content_filter") => "content_filter",
        ResponseState::Incomplete(_) => "length",
        _ => "stop",
    };
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { text.into() };
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if !reasoning.is_empty() {
        message["reasoning_content"] = reasoning.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    Ok(Json(completion(head, message, reason, state.usage())).into_response())
}

fn completion(head: &CompletionHead, message: Value, reason: &str, usage: Usage) -> Value {
    json!({
        "id": head.id(), "object": "chat.completion", "created": head.created_at, "model": head.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": null}],
        "usage": completion_usage(usage)
    })
}

fn call_of(item: &OutputItem, run: &Run) -> Value {
    let item = item.json(run.id);
    json!({"id": item["call_id"], "type": "function", "function": {"name": item["name"], "arguments": item["arguments"]}})
}
