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
    tool::{ToolCall, ToolCallStatus},
    tool_choice::ToolChoice,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    catalog::{answering_model, model_named},
    posting::expect_model_of,
    repeated::RepeatedFields,
    turns::OpenAiAction,
};
use crate::{
    app::App,
    auth::Caller,
    problem::Problem,
    relay::{FoldStream, SeenFrames, Subscriber},
    routes::{
        events::{detail_of, event_stream},
        thread::{Outline, PartAnswer, answer_questions, last_frame},
    },
    wire::{
        WireFold,
        openai::{
            ResponseFold, ResponseHead, ResponseId, ResponseState, ResponseView, call_id, event_of_item, is_id_of_call,
        },
    },
};

/// The part of a run that is a response.
pub struct ResponsePart {
    pub view: ResponseView,
    /// The pause at which it ends, if the log has one.
    pub until: Option<EventId>,
}

/// The answers of a request to the questions of a run.
pub struct RunAnswers {
    pub run_id: Uuid,
    /// Calls have the protocol's ids.
    pub answers: Vec<PartAnswer>,
    /// The model that the request names.
    pub model: Option<String>,
    /// The tools that the model may call after the answers.
    pub tool_choice: Option<ToolChoice>,
}

/// A run whose questions a request has answered.
pub struct Answered {
    pub run: Arc<Run>,
    pub subscriber: Subscriber,
    pub pauses_before: usize,
    /// The pause at which the run had asked.
    pub after: EventId,
    /// The next pause, if the log has it.
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
/// `after` is the pause before an answer.
pub async fn expect_output(
    app: &App,
    run: &Run,
    subscriber: &mut Subscriber,
    after: Option<EventId>,
) -> Result<(), Problem> {
    match subscriber.failure_before_output(after.unwrap_or(EventId::ORIGIN), app.config().head_wait).await {
        Some(error) => Err(refusal(run, &error, after.is_some())),
        None => Ok(()),
    }
}

/// Returns the refusal of a failed run. A repeated answer finds this run again, so clients need not repeat it.
pub fn refusal(run: &Run, error: &RunError, is_of_answer: bool) -> Problem {
    let problem = Problem::run_refused(run.id, error);
    if is_of_answer { problem.without_retry() } else { problem }
}

/// Waits for the end of a stream without sending it. Fails if this process shuts down meanwhile.
pub async fn ended<F: WireFold>(stream: FoldStream<F>, subscriber: Subscriber, run_id: Uuid) -> Result<(), Problem> {
    let mut frames = std::pin::pin!(subscriber.into_frames(Vec::new(), stream));
    while let Some(frame) = frames.next().await {
        frame.map_err(|_| Problem::wait_interrupted(run_id))?;
    }
    Ok(())
}

/// Fails if the client would still owe the result of one of these calls, because its run would wait for another request.
fn expect_all_results(run: &Run, calls: &[ToolCall], asked: &[&str], answered: &[String]) -> Result<(), Problem> {
    let is_owed = |call: &&ToolCall| {
        call.status == ToolCallStatus::Client
            && asked.contains(&call.call_id.as_str())
            && !answered.contains(&call.call_id)
    };
    match calls.iter().find(is_owed) {
        None => Ok(()),
        Some(call) => {
            let id = call_id(run.id, &call.call_id);
            Err(Problem::invalid_body(format!(
                "The request lacks the result of the call {id}; send all results at once."
            )))
        }
    }
}

/// Gives a run the answers of a request, and follows it.
pub async fn answer(
    app: &Arc<App>,
    caller: &Caller,
    RunAnswers { run_id, answers, model, tool_choice }: RunAnswers,
) -> Result<Answered, Problem> {
    let run = app.run_to_stream(&caller.owner, run_id).await?;
    expect_model_of(app, caller, run.conversation_id, &model_named(app, caller, model.as_deref()).await?).await?;
    let outline = Outline::read(app, run.id).await?;
    let calls = app.storage().tool_calls(run.id).await?;
    let answers = answers.into_iter().map(|answer| with_own_id(&run, &calls, answer)).collect::<Result<Vec<_>, _>>()?;
    let questions: Vec<String> = answers.iter().map(PartAnswer::question).collect();
    let pauses_before = outline.pauses_up_to(&questions).ok_or_else(|| Problem::run_not_waiting(run.id))?;
    // Order matters: the limit on streams refuses the request before the first answer.
    let permit = app.streams().open(caller)?;
    expect_all_results(&run, &calls, &outline.calls_at(pauses_before), &questions)?;
    // Order matters: the worker that continues the run reads the choice.
    let after_step = calls.iter().map(|call| call.step).max().unwrap_or(0);
    let tool_choice = tool_choice.map(|choice| ToolChoice { after_step, ..choice });
    app.storage().set_tool_choice(run.id, tool_choice.as_ref()).await?;
    answer_questions(app, caller, &run, answers).await?;
    let subscriber = app.relay().open(&caller.owner, &run, EventId::ORIGIN, permit).await?;
    let subscriber = subscriber.ok_or_else(|| Problem::events_gone(run.id))?;
    let (after, until) = (outline.pauses[pauses_before - 1], outline.pauses.get(pauses_before).copied());
    Ok(Answered { run, subscriber, pauses_before, after, until })
}

/// Returns the answer with the run's own id of its call.
fn with_own_id(run: &Run, calls: &[ToolCall], answer: PartAnswer) -> Result<PartAnswer, Problem> {
    match answer {
        PartAnswer::Result { call_id: id, result } => {
            let call = calls.iter().find(|call| is_id_of_call(&id, run.id, &call.call_id));
            let call_id = call.ok_or_else(|| Problem::run_not_waiting(run.id))?.call_id.clone();
            Ok(PartAnswer::Result { call_id, result })
        }
        approval => Ok(approval),
    }
}

impl OpenAiAction {
    /// Fails if the request names another run than the one whose questions it answers.
    pub fn expect_run(&self, previous: Option<ResponseId>) -> Result<(), Problem> {
        match (self, previous) {
            (Self::Answer { run_id, .. }, Some(previous)) if previous.run_id != *run_id => {
                Err(Problem::invalid_body("The answers are for another response than previous_response_id."))
            }
            _ => Ok(()),
        }
    }
}
