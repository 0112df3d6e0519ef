//! `/openai/v1/chat/completions`: a completion of a conversation that the client has.

use std::sync::Arc;

use axum::{
    Json,
    body::Body,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use holdfast_shared::{config::OnDisconnect, event_id::EventId, run::Run, usage::Usage};
use serde_json::{Value, json};

use super::{
    answering::{Answered, Answering, answer},
    catalog::answering_model,
    completion_request::CompletionBody,
    posting::{RequestFields, checked_metadata, posting},
    repeated::RepeatedFields,
    respond::{ResponsePart, ended, expect_output, head_of, refusal, seen_frames, state_of},
    turns::{OpenAiAction, Question},
};
use crate::{
    app::App,
    auth::Caller,
    disconnect::{DisconnectGuard, GRACE, GuardedFrames},
    event_stream::{detail_of, event_stream},
    extract::{self, JsonBody, Query},
    problem::Problem,
    protocols::openai::wire::{
        CompletionFold, CompletionHead, CompletionView, ItemBody, OutputItem, ResponseId, ResponseState, ResponseView,
        completion_usage, parse_conversation_id,
    },
    relay::{FoldStream, Subscriber},
    run_request::WireQuery,
    thread::Outline,
};

/// A completion before its response.
struct StartedCompletion {
    run: Arc<Run>,
    subscriber: Subscriber,
    id: ResponseId,
    after: Option<EventId>,
    until: Option<EventId>,
    guard: Option<DisconnectGuard>,
    /// Whether a repeated request finds this run again, also if it has failed.
    is_final: bool,
}

/// The request of a completion.
struct PostedCompletion<'a> {
    app: &'a Arc<App>,
    caller: &'a Caller,
    headers: &'a HeaderMap,
    /// Whether the run ends when the client disconnects.
    cancels: bool,
}

/// Complete a conversation. The messages are the history; `metadata.conversation_id` names a conversation of this server instead.
#[utoipa::path(post, path = "/openai/v1/chat/completions", operation_id = "create_completion", tag = "openai", request_body = CompletionBody,
    params(WireQuery, ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same completion."),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last frame that the client has, for a repeated request.")),
    responses(
        (status = 200, description = "The completion, or with `stream` its chunks.", content((Object = "application/json"), (String = "text/event-stream"))),
        (status = 400, body = Object, description = "invalid_body, empty_content, content_too_long, unsupported_part, too_many_attachments, invalid_client_tool, invalid_metadata; context_length_exceeded, model_refused, file_refused, tool_not_available: the model's provider refuses the request"),
        (status = 404, body = Object, description = "model_not_found, conversation_not_found"),
        (status = 409, body = Object, description = "run_not_waiting: the run waits for no such result"),
        (status = 422, body = Object, description = "idempotency_key_reused"),
        (status = 429, body = Object, description = "rate_limit_exceeded: the model's provider takes no more requests for now"),
        (status = 500, body = Object, description = "run_failed"),
        (status = 503, body = Object, description = "model_unreachable, model_timeout, model_unavailable, model_broken_stream: the model's provider does not answer")
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
    let named = body.model.clone();
    let is_lost = body.is_lost_with_its_connection() && !headers.contains_key("idempotency-key");
    let cancels = is_lost && app.config().completions_on_disconnect == OnDisconnect::Cancel;
    let request = PostedCompletion { app: &app, caller: &caller, headers: &headers, cancels };
    let (turns, fields) = (body.turns()?, fields_of(body)?);
    let started = match OpenAiAction::of(turns, fields.has_history())? {
        OpenAiAction::Ask(question) => request.ask(fields, question).await?,
        OpenAiAction::Answer(given) => match answer(&app, &caller, given, &fields).await? {
            Answering::Apart(question) => request.ask(fields, *question).await?,
            Answering::Continued(answered) => request.follow(*answered, fields.has_history()).await?,
        },
    };
    let StartedCompletion { run, mut subscriber, id, after, until, mut guard, is_final } = started;
    if streams {
        let output = expect_output(&app, &run, &mut subscriber, after, is_final).await;
        output.inspect_err(|_| guard.iter_mut().for_each(DisconnectGuard::disarm))?;
    }
    let detail = detail_of(&app, &run, query.stream_mode, false).await?;
    let model = answering_model(&app, &run, named).await?;
    let head = Arc::new(CompletionHead { run_id: run.id, created_at: run.created_at.timestamp(), model });
    let view = CompletionView { detail, head: Arc::clone(&head), after, has_usage };
    let stream = FoldStream::new(view, CompletionFold::new()).after(seen_frames(&headers, None)?).until(until);
    if streams {
        let frames = GuardedFrames::new(subscriber.into_frames(Vec::new(), stream), guard, ());
        return Ok(event_stream(run.id, Body::from_stream(frames)));
    }
    let end = ended(stream, subscriber, run.id).await;
    guard.iter_mut().for_each(DisconnectGuard::disarm);
    end?;
    let run = app.storage().run_without_answer(&caller.owner, run.id).await?;
    let run = run.ok_or_else(|| Problem::response_not_found(id.to_string()))?;
    let part = completion_part(&app, &run, id, after).await?;
    whole(&app, &run, &head, &part, is_final).await
}

impl PostedCompletion<'_> {
    /// Posts the message of the request.
    async fn ask(&self, fields: RequestFields, question: Question) -> Result<StartedCompletion, Problem> {
        let Self { app, caller, headers, .. } = self;
        let posting = posting(app, caller, headers, question, fields).await?;
        let (committed, subscriber) = app.post_and_follow(caller, posting, EventId::ORIGIN).await?;
        let run = Arc::new(committed.run);
        let guard = self.guard(&run);
        let subscriber = subscriber.ok_or_else(|| Problem::events_gone(run.id))?;
        let id = ResponseId::first_of(run.id);
        let until = completion_part(app, &run, id, None).await?.until;
        Ok(StartedCompletion { run, subscriber, id, after: None, until, guard, is_final: false })
    }

    /// Follows a run that the request has answered.
    async fn follow(&self, answered: Answered, is_final: bool) -> Result<StartedCompletion, Problem> {
        let Answered { run, subscriber, pauses_before, after, .. } = answered;
        let guard = self.guard(&run);
        let id = ResponseId { run_id: run.id, pauses_before };
        let until = completion_part(self.app, &run, id, Some(after)).await?.until;
        Ok(StartedCompletion { run, subscriber, id, after: Some(after), until, guard, is_final })
    }

    fn guard(&self, run: &Run) -> Option<DisconnectGuard> {
        self.cancels.then(|| DisconnectGuard::new(self.app, &self.caller.owner, run.id, GRACE))
    }
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
    let (tool_choice, sampling) = (body.tool_choice()?, body.sampling()?);
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
        tool_choice,
        sampling,
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
async fn whole(
    app: &App,
    run: &Run,
    head: &CompletionHead,
    part: &ResponsePart,
    is_final: bool,
) -> Result<Response, Problem> {
    let state = state_of(app, run, part).await?;
    if let ResponseState::Failed(error) = state.state() {
        return Err(refusal(run, error, is_final));
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
