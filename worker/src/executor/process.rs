//! The process node: one model call. Each delta of the model becomes one event and is never merged.

use super::{
    NextNode, Stop, attachments,
    attempt::Attempt,
    knowledge::{self, CitedText},
    mcp_servers, planning,
    recovery::{Recovery, stop_for},
    results, steering,
    step_answer::{StepAnswer, StepCallDraft},
    step_request, tool_choice, tree,
};
use crate::{
    model::{self, AnswerDelta, ModelAnswer},
    spans,
};
use futures::StreamExt;
use holdfast_shared::{
    event::{EventBody, MessageDelta, ReasoningDelta, StepCompleted, StepStarted},
    run::RunError,
    storable::storable,
    storage::Progress,
    telemetry::Span,
    trace::{Node, RequestedCall, TraceRole},
};

/// Separates the texts of two steps, so that they read as two paragraphs.
const PARAGRAPH: &str = "\n\n";

/// Most tools that a warning names.
const NAMED_TOOLS: usize = 10;

/// Calls the model and records its answer. It boxes all futures but the wait for the model, as [`super::work`] does.
pub async fn process(attempt: &mut Attempt<'_>) -> Result<NextNode, Stop> {
    // A hand-over between two steps repeats the least work.
    if attempt.memory.step > 0 && attempt.lease.should_release() {
        return Err(Stop::Drained);
    }
    if Box::pin(planning::clarify(attempt)).await? {
        return Ok(attempt.memory.next());
    }
    Box::pin(tree::expect_tokens(attempt)).await?;
    Box::pin(steering::take_messages(attempt)).await?;
    attempt.memory.step += 1;
    let step = attempt.memory.step;
    attempt.step = attempt.spans.step(step);
    Box::pin(mcp_servers::refresh(attempt)).await?;
    attachments::offer_reading(attempt);
    results::offer_reading_on(attempt);
    let has_tools = tool_choice::may_call(attempt);
    let limit = if has_tools {
        attempt.limits.reached_limit(attempt.memory.next_step_in_scope(), attempt.memory.calls_made())
    } else {
        None
    };
    let takes_calls = has_tools && limit.is_none();
    attempt.recorder.emit(&EventBody::StepStarted(StepStarted { step }));
    if let Some(limit) = &limit {
        attempt.warn("limit_reached", format!("The model answers with what it has: {limit}."));
    }
    let most_calls = tool_choice::most_calls(attempt);
    let mut step_answer = StepAnswer { takes_calls, most_calls, ..StepAnswer::default() };
    if let Err(stop) = ask_until_answered(attempt, limit, &mut step_answer).await {
        return give_step_up(attempt, stop, step_answer);
    }
    attempt.memory.usage += step_answer.usage;
    let finish_reason = step_answer.finish_reason();
    attempt.memory.finish_reason = Some(finish_reason);
    let mut calls: Vec<RequestedCall> =
        if takes_calls { step_answer.calls.into_iter().map(StepCallDraft::finish).collect() } else { Vec::new() };
    if calls.len() > most_calls {
        attempt.warn("limit_reached", format!("Of the tool calls of this step, the first {most_calls} are taken."));
        calls.truncate(most_calls);
    }
    let message = attempt.memory.push(TraceRole::Assistant, step_answer.text, step);
    message.model = Some(step_answer.model.clone());
    message.tool_calls = calls.clone();
    message.usage = Some([message.usage.unwrap_or_default(), step_answer.usage].into_iter().sum());
    let message = message.clone();
    attempt.memory.add_calls(&calls, &attempt.toolbox);
    let mut progress = Progress {
        messages: vec![message],
        calls: attempt.memory.calls.iter().map(|call| call.state.clone()).collect(),
        usage: Some(attempt.memory.usage),
        finish_reason: Some(finish_reason),
        model: Some(step_answer.model.clone()),
        ..Progress::default()
    };
    if calls.is_empty() {
        attempt.recorder.emit(&EventBody::StepCompleted(StepCompleted {
            step,
            tool_calls: 0,
            usage: step_answer.usage,
            finish_reason,
            model: Some(step_answer.model),
        }));
        attempt.step = Span::default();
        progress.step_completed = true;
    }
    attempt.checkpoint(Node::Process, progress);
    attempt.limits.check(attempt.memory.usage).map_err(Stop::Failed)?;
    Ok(attempt.memory.next())
}

/// Ends the step of a plan whose model has failed; the plan continues with the others. Without such a step, the run stops.
fn give_step_up(attempt: &mut Attempt<'_>, stop: Stop, step_answer: StepAnswer) -> Result<NextNode, Stop> {
    let Stop::Failed(error) = stop else { return Err(stop) };
    if attempt.memory.plan_step().is_none() || error.code == "limit_exceeded" {
        return Err(Stop::Failed(error));
    }
    tracing::warn!(error.code = error.code, error.message = error.message, "a step of a plan failed");
    let step = attempt.memory.step;
    let message = attempt.memory.push(TraceRole::Assistant, step_answer.text, step).clone();
    planning::fail_own_step(attempt, &error);
    attempt.step = Span::default();
    attempt.checkpoint(Node::Process, Progress { messages: vec![message], ..Progress::default() });
    Ok(NextNode::Plan)
}

/// Why a model has not answered.
enum Unanswered {
    Stopped(Stop),
    Failed(model::Error),
}

impl From<Stop> for Unanswered {
    fn from(stop: Stop) -> Self {
        Self::Stopped(stop)
    }
}

/// Asks the model until it has answered, or until nothing of the request is left to change.
async fn ask_until_answered(
    attempt: &mut Attempt<'_>,
    limit: Option<String>,
    step_answer: &mut StepAnswer,
) -> Result<(), Stop> {
    let mut recovery = Recovery::default();
    loop {
        let request = Box::pin(step_request::fitting(attempt, limit.as_deref())).await?;
        match ask_model(attempt, request, step_answer).await {
            Ok(()) if step_answer.says_nothing() && recovery.asks_again(attempt, step_answer.finish_reason()) => {
                step_answer.calls.clear();
            }
            Ok(()) => {
                recovery.settle(attempt);
                return Ok(());
            }
            Err(Unanswered::Failed(error)) if step_answer.is_unseen() => {
                Box::pin(recovery.mend(attempt, error, limit.as_deref())).await?;
            }
            Err(Unanswered::Failed(error)) => return Err(stop_for(attempt, error)),
            Err(Unanswered::Stopped(stop)) => return Err(stop),
        }
    }
}

/// Asks the model and reads its answer. The request is boxed, because each of these futures would have room for it.
async fn ask_model(
    attempt: &mut Attempt<'_>,
    request: Box<model::Request>,
    step_answer: &mut StepAnswer,
) -> Result<(), Unanswered> {
    let spans = attempt.spans_of_step();
    let mut span = spans.chat(attempt.model_of_step());
    let read = read_answer(attempt, request, step_answer, &mut span).await;
    match &read {
        Ok(()) => spans::set_usage(&mut span, step_answer.usage),
        Err(Unanswered::Failed(error)) => span.fail(error.code()),
        Err(Unanswered::Stopped(Stop::Failed(error))) => span.fail(&error.code),
        Err(Unanswered::Stopped(_)) => {}
    }
    read
}

/// Reads the answer to its end. After a failure, `step_answer` has what came before.
async fn read_answer(
    attempt: &mut Attempt<'_>,
    request: Box<model::Request>,
    step_answer: &mut StepAnswer,
    span: &mut Span,
) -> Result<(), Unanswered> {
    attempt.memory.told.begin_step();
    let has_text =
        attempt.memory.trace.iter().any(|message| message.role == TraceRole::Assistant && !message.content.is_empty());
    let read = read_deltas(attempt, request, step_answer, has_text, span).await;
    for cited in knowledge::passing_rest_of_failed(attempt) {
        add_text(attempt, step_answer, has_text, cited);
    }
    knowledge::tell_dropped(attempt);
    read
}

/// Reads the answer, and adds its text. `has_text` tells whether an earlier step has written any.
async fn read_deltas(
    attempt: &mut Attempt<'_>,
    request: Box<model::Request>,
    step_answer: &mut StepAnswer,
    has_text: bool,
    span: &mut Span,
) -> Result<(), Unanswered> {
    let call = attempt.model_of_step().ask(*request);
    let ModelAnswer { by, deltas: mut answer, left_out_tools } =
        attempt.alongside(call).await?.map_err(Unanswered::Failed)?;
    spans::set_answered_by(span, &by);
    warn_of_left_out_tools(attempt, left_out_tools);
    step_answer.model = by.path();
    let mut room = attempt.shared.worker.config.max_answer_bytes.saturating_sub(attempt.memory.text().len());
    let message_id = attempt.claim.output_message_id;
    loop {
        let delta = match attempt.alongside(answer.next()).await? {
            Some(Ok(delta)) => delta,
            Some(Err(error)) => return Err(Unanswered::Failed(error)),
            None => return Err(broken_stream().into()),
        };
        attempt.signs_of_life.note();
        let size = match &delta {
            AnswerDelta::Text(text) | AnswerDelta::Reasoning(text) => text.len(),
            AnswerDelta::Call(call) => call.arguments.len() + call.name.as_ref().map_or(0, String::len),
            AnswerDelta::Picture => {
                if !std::mem::replace(&mut step_answer.has_picture, true) {
                    attempt.warn("picture_left_out", "The model has drawn a picture, which is not shown.");
                }
                continue;
            }
            AnswerDelta::End(usage, reason) => {
                step_answer.usage += *usage;
                step_answer.finish_reason = Some(*reason);
                for cited in knowledge::passing_rest(attempt).await? {
                    add_text(attempt, step_answer, has_text, cited);
                }
                return Ok(());
            }
        };
        room = room.checked_sub(size).ok_or_else(|| too_long(attempt))?;
        attempt.record_first_token();
        let body = match delta {
            AnswerDelta::Text(text) if attempt.memory.has_knowledge => {
                for cited in knowledge::passing(attempt, storable(text)).await? {
                    add_text(attempt, step_answer, has_text, cited);
                }
                continue;
            }
            AnswerDelta::Text(text) => {
                add_text(attempt, step_answer, has_text, storable(text).into());
                continue;
            }
            AnswerDelta::Reasoning(text) => {
                EventBody::ReasoningDelta(ReasoningDelta { message_id, text: storable(text).into() })
            }
            AnswerDelta::Call(call) => match step_answer.take(call, &attempt.toolbox) {
                Some(body) => body,
                None => continue,
            },
            AnswerDelta::Picture | AnswerDelta::End(..) => continue,
        };
        attempt.recorder.emit(&body);
    }
}

/// Warns once of tools that the model does not know, because it takes no more.
fn warn_of_left_out_tools(attempt: &mut Attempt<'_>, left_out: Vec<String>) {
    if !left_out.is_empty() && attempt.left_out_tools != left_out {
        let (count, first) =
            (left_out.len(), left_out.iter().take(NAMED_TOOLS).cloned().collect::<Vec<_>>().join(", "));
        let more = if count > NAMED_TOOLS { " and others" } else { "" };
        let message = format!("The model takes no more tools, so it answers without {count} of them: {first}{more}.");
        attempt.warn("tools_left_out", message);
    }
    attempt.left_out_tools = left_out;
}

/// Adds a piece of the answer's text, and the citations that it brings.
fn add_text(attempt: &mut Attempt<'_>, step_answer: &mut StepAnswer, has_text: bool, cited: CitedText) {
    let CitedText { text, added } = cited;
    if text.is_empty() {
        return;
    }
    let message_id = attempt.claim.output_message_id;
    if step_answer.text.is_empty() && has_text {
        step_answer.text.push_str(PARAGRAPH);
        attempt.recorder.emit(&EventBody::MessageDelta(MessageDelta { message_id, text: PARAGRAPH.into() }));
    }
    step_answer.text.push_str(&text);
    attempt.recorder.emit(&EventBody::MessageDelta(MessageDelta { message_id, text: text.into() }));
    for citation in added {
        attempt.recorder.emit(&EventBody::CitationAdded(citation));
    }
}

fn too_long(attempt: &Attempt<'_>) -> Stop {
    let limit = attempt.shared.worker.config.max_answer_bytes;
    let message = format!("the model's answer has more than {limit} bytes; the text so far is kept");
    Stop::Failed(RunError::new("answer_too_long", message))
}

fn broken_stream() -> Stop {
    Stop::Failed(RunError::new("model_broken_stream", "the model's answer ended before it was complete"))
}
