//! The response of a run: its part of the run's log, as a stream or as a whole.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use futures::StreamExt;
use holdfast_shared::{
    agent::StreamMode,
    event_id::EventId,
    run::{Run, RunError, RunStatus},
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{catalog::answering_model, repeated::RepeatedFields, turns::OpenAiAction};
use crate::{
    app::App,
    auth::Caller,
    event_stream::{detail_of, event_stream},
    problem::Problem,
    protocols::openai::wire::{ResponseFold, ResponseHead, ResponseId, ResponseState, ResponseView, event_of_item},
    relay::{FoldStream, SeenFrames, Subscriber},
    thread::{Outline, last_frame},
    wire::WireFold,
};

/// The part of a run that is a response.
pub struct ResponsePart {
    pub view: ResponseView,
    /// The pause at which it ends, if the log has one.
    pub until: Option<EventId>,
}

/// Returns the fields of a response that its events do not change.
pub async fn head_of(app: &App, run: &Run, id: ResponseId) -> Result<ResponseHead, Problem> {
    let mut repeated = RepeatedFields::of_run(run);
    let previous = match id.pauses_before {
        0 => repeated.previous_response_id.take(),
        pauses => Some(ResponseId { pauses_before: pauses - 1, ..id }.to_string()),
    };
    Ok(ResponseHead {
        id,
        conversation_id: run.conversation_id,
        message_id: run.output_message_id,
        created_at: run.created_at.timestamp(),
        model: answering_model(app, run, repeated.model.take()).await?,
        previous_response_id: previous,
        background: repeated.background,
        store: repeated.store != Some(false),
        metadata: std::mem::take(&mut repeated.metadata),
        namespaces: repeated.namespaces.clone(),
        repeated: repeated.fields(app, run).await?,
    })
}

/// Returns the part of the run's log that a response shows. Fails if the run has paused less often.
pub async fn part_of(app: &App, run: &Run, id: ResponseId, mode: Option<StreamMode>) -> Result<ResponsePart, Problem> {
    let pauses = if run.attempt == 0 { Vec::new() } else { Outline::read(app, run.id).await?.pauses };
    let after = match id.pauses_before.checked_sub(1) {
        None => None,
        Some(at) => Some(*pauses.get(at).ok_or_else(|| Problem::response_not_found(id.to_string()))?),
    };
    let detail = detail_of(app, run, mode, false).await?;
    let head = Arc::new(head_of(app, run, id).await?);
    Ok(ResponsePart { view: ResponseView { detail, head, after }, until: pauses.get(id.pauses_before).copied() })
}

/// Returns the state of a response, as far as the log goes.
pub async fn state_of(app: &App, run: &Run, part: &ResponsePart) -> Result<ResponseFold, Problem> {
    let (mut fold, mut frames) = (ResponseFold::of_run(run.id), Vec::new());
    let mut log = app.relay().pages(run.id, EventId::ORIGIN);
    while let Some(events) = log.next().await? {
        for event in &events {
            frames.clear();
            fold.frame(&part.view, &mut frames, event);
            if part.until == Some(event.id) {
                return Ok(fold.paused(&part.view));
            }
        }
    }
    // A run that has one of two answers waits without a pause of its own.
    Ok(if run.status == RunStatus::Waiting { fold.paused(&part.view) } else { fold })
}

/// Returns the number of frames that the events up to this one have.
pub async fn frames_up_to(app: &App, run: &Run, view: &ResponseView, last: EventId) -> Result<u64, Problem> {
    let (mut fold, mut frames) = (ResponseFold::of_run(run.id), Vec::new());
    let mut log = app.relay().pages(run.id, EventId::ORIGIN);
    while let Some(events) = log.next().await? {
        for event in events.iter().take_while(|event| event.id <= last) {
            frames.clear();
            fold.frame(view, &mut frames, event);
        }
    }
    Ok(fold.frames())
}

/// Returns a response as a whole. Without its events, it has the text of the stored message.
pub async fn whole(app: &App, caller: &Caller, run: &Run, id: ResponseId) -> Result<Value, Problem> {
    let _assembled = app.unread_answers().assemble(caller, app.config().max_page_bytes)?;
    let read = async {
        let part = part_of(app, run, id, None).await?;
        Ok::<_, Problem>(state_of(app, run, &part).await?.response(&part.view))
    };
    match read.await {
        Err(problem) if problem.status == StatusCode::GONE => stored(app, caller, run, id).await,
        response => response,
    }
}

/// Returns an item of a run's responses; `None` also if the run's events have expired.
pub async fn item_of_run(app: &App, caller: &Caller, run: &Run, item_id: &str) -> Result<Option<Value>, Problem> {
    let _assembled = app.unread_answers().assemble(caller, app.config().max_page_bytes)?;
    let read = async {
        let since = event_of_item(item_id);
        let pauses = Outline::read(app, run.id).await?.pauses;
        let pauses_before = since.map_or(0, |since| pauses.iter().filter(|pause| **pause < since).count());
        let mut part = part_of(app, run, ResponseId { run_id: run.id, pauses_before }, None).await?;
        // An approval names no event, and is complete wherever the run has asked for it.
        part.until = part.until.filter(|_| since.is_some());
        let state = state_of(app, run, &part).await?;
        Ok(state.items().find(|item| *item.id == *item_id).map(|item| item.json(run.id)))
    };
    match read.await {
        Err(Problem { status: StatusCode::GONE, .. }) => Ok(None),
        item => item,
    }
}

async fn stored(app: &App, caller: &Caller, run: &Run, id: ResponseId) -> Result<Value, Problem> {
    let run = app.storage().run(&caller.owner, run.id).await?.ok_or_else(|| Problem::run_not_found(run.id))?;
    let text = run.output_message.as_ref().map(|message| message.content.clone().into_stored()).unwrap_or_default();
    let state = match (run.status, &run.error) {
        (RunStatus::Failed, Some(error)) => ResponseState::Failed(error.clone()),
        (RunStatus::Cancelled, _) => ResponseState::Cancelled,
        _ => ResponseState::Completed,
    };
    let content = [json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})];
    let message_id = format!("msg_{}", run.output_message_id.simple());
    let message =
        json!({"id": message_id, "type": "message", "role": "assistant", "status": "completed", "content": content});
    let ended_at = run.finished_at.map(|at| at.timestamp());
    Ok(head_of(app, &run, id).await?.json(&state, vec![message], run.usage, ended_at))
}

/// Returns the frames that a client has: those up to the one in `Last-Event-ID`, else those up to a number.
pub fn seen_frames(headers: &HeaderMap, last: Option<u64>) -> Result<SeenFrames, Problem> {
    let count = SeenFrames::First(last.map_or(0, |last| last.saturating_add(1)));
    Ok(last_frame(headers, None)?.map_or(count, SeenFrames::UpTo))
}

/// Returns the stream of a response.
pub fn streamed(part: ResponsePart, subscriber: Subscriber, seen: SeenFrames) -> Response {
    let run_id = part.view.head.id.run_id;
    let fold = ResponseFold::of_run(run_id);
    let stream = FoldStream::new(part.view, fold).after(seen).until(part.until);
    event_stream(run_id, Body::from_stream(subscriber.into_frames(Vec::new(), stream)))
}

/// Waits for the first output of a run, so that a refusal of the model's provider is the status of the response.
/// `after` is the pause before an answer, and `is_final` says whether a repeated request finds this run again.
pub async fn expect_output(
    app: &App,
    run: &Run,
    subscriber: &mut Subscriber,
    after: Option<EventId>,
    is_final: bool,
) -> Result<(), Problem> {
    match subscriber.failure_before_output(after.unwrap_or(EventId::ORIGIN), app.config().head_wait).await {
        Some(error) => Err(refusal(run, &error, is_final)),
        None => Ok(()),
    }
}

/// Returns the refusal of a failed run. Clients need not repeat a request that finds this run again.
pub fn refusal(run: &Run, error: &RunError, is_final: bool) -> Problem {
    let problem = Problem::run_refused(run.id, error);
    if is_final { problem.without_retry() } else { problem }
}

/// Waits for the end of a stream without sending it. Fails if this process shuts down meanwhile.
pub async fn ended<F: WireFold>(stream: FoldStream<F>, subscriber: Subscriber, run_id: Uuid) -> Result<(), Problem> {
    let mut frames = std::pin::pin!(subscriber.into_frames(Vec::new(), stream));
    while let Some(frame) = frames.next().await {
        frame.map_err(|_| Problem::wait_interrupted(run_id))?;
    }
    Ok(())
}

impl OpenAiAction {
    /// Fails if the request names another run than the one whose questions it answers.
    pub fn expect_run(&self, previous: Option<ResponseId>) -> Result<(), Problem> {
        match (self, previous) {
            (Self::Answer(given), Some(previous)) if previous.run_id != given.run_id => {
                Err(Problem::invalid_body("The answers are for another response than previous_response_id."))
            }
            _ => Ok(()),
        }
    }
}
