//! The process node: one model call. Every delta of the model becomes one event, never merged.

use futures::StreamExt;
use holdfast_shared::{
    event::{EventBody, MessageDelta, ReasoningDelta, StepCompleted, StepStarted, ToolCallDelta},
    finish_reason::FinishReason,
    run::RunError,
    storable::{is_too_deep, storable, storable_json},
    storage::Progress,
    telemetry::Span,
    trace::{Node, RequestedCall, TraceRole},
    usage::Usage,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Next, Stop, attempt::Attempt, context};
use crate::{
    model::{self, CallDelta, Delta},
    spans,
};

/// Between what two steps have said, so that it reads as two paragraphs.
const PARAGRAPH: &str = "\n\n";

/// Calls of one step that are looked at.
const MAX_CALLS: usize = 128;

/// What the model has answered in one step.
#[derive(Default)]
struct Said {
    text: String,
    calls: Vec<AskedCall>,
    usage: Usage,
    /// Why the provider ended it.
    finish_reason: Option<FinishReason>,
}

impl Said {
    /// Why the step has ended. Some providers call it a stop where the model asks for calls.
    fn finish_reason(&self) -> FinishReason {
        match self.finish_reason.unwrap_or(FinishReason::Other) {
            FinishReason::Stop if !self.calls.is_empty() => FinishReason::ToolCalls,
            reason => reason,
        }
    }
}

/// A call whose arguments the model is writing, or has written.
struct AskedCall {
    index: usize,
    call_id: String,
    name: String,
    arguments: String,
    signature: Option<Value>,
}

/// Asks the model and records its answer.
pub async fn process(attempt: &mut Attempt<'_>) -> Result<Next, Stop> {
    // A step that has not begun is the best place to go on elsewhere.
    if attempt.memory.step > 0 && attempt.lease.should_leave() {
        return Err(Stop::Drained);
    }
    attempt.memory.step += 1;
    let step = attempt.memory.step;
    attempt.step = attempt.spans.step(step);
    let mut tools = attempt.toolbox.specs();
    let limit = match tools.is_empty() {
        true => None,
        false => attempt.limits.reached(step, attempt.memory.calls_made),
    };
    attempt.recorder.emit(&EventBody::StepStarted(StepStarted { step }));
    if let Some(limit) = &limit {
        tools.clear();
        attempt.warn("limit_reached", format!("The model answers with what it has: {limit}."));
    }
    let takes_calls = !tools.is_empty();
    let request = context::request(&attempt.definition, &attempt.memory, tools, limit.as_deref());
    let said = listen(attempt, &request).await?;
    attempt.memory.usage += said.usage;
    let finish_reason = said.finish_reason();
    attempt.memory.finish_reason = Some(finish_reason);
    let mut calls: Vec<RequestedCall> = match takes_calls {
        true => said.calls.into_iter().map(AskedCall::finish).collect(),
        false => Vec::new(),
    };
    if calls.len() > MAX_CALLS {
        attempt
            .warn("limit_reached", format!("Of the {} tool calls of this step, {MAX_CALLS} are taken.", calls.len()));
        calls.truncate(MAX_CALLS);
    }
    let message = attempt.memory.push(TraceRole::Assistant, said.text, step);
    message.tool_calls = calls.clone();
    message.usage = Some(said.usage);
    let message = message.clone();
    attempt.memory.ask_for(&calls);
    let mut progress = Progress {
        messages: vec![message],
        calls: attempt.memory.calls.iter().map(|call| call.state.clone()).collect(),
        usage: Some(attempt.memory.usage),
        finish_reason: Some(finish_reason),
        ..Progress::default()
    };
    if calls.is_empty() {
        attempt.recorder.emit(&EventBody::StepCompleted(StepCompleted {
            step,
            tool_calls: 0,
            usage: said.usage,
            finish_reason,
        }));
        attempt.step = Span::default();
        progress.step_completed = true;
    }
    attempt.checkpoint(Node::Process, progress);
    attempt.limits.check(attempt.memory.usage).map_err(Stop::Failed)?;
    Ok(if calls.is_empty() { Next::Respond } else { Next::Tools })
}

async fn listen(attempt: &mut Attempt<'_>, request: &model::Request) -> Result<Said, Stop> {
    let mut span = attempt.spans_of_step().chat(&attempt.chosen);
    let said = hear(attempt, request).await;
    match &said {
        Ok(said) => spans::tell_usage(&mut span, said.usage),
        Err(Stop::Failed(error)) => span.fail(&error.code),
        Err(_) => {}
    }
    said
}

async fn hear(attempt: &mut Attempt<'_>, request: &model::Request) -> Result<Said, Stop> {
    let asked = attempt.chosen.model.ask(request);
    let mut answer = attempt.alongside(asked).await?.map_err(failed)?;
    let mut said = Said::default();
    let mut room = attempt.shared.worker.config.max_answer_bytes.saturating_sub(attempt.memory.text().len());
    let message_id = attempt.claim.output_message_id;
    let has_spoken =
        attempt.memory.trace.iter().any(|said| said.role == TraceRole::Assistant && !said.content.is_empty());
    loop {
        let delta = match attempt.alongside(answer.next()).await? {
            Some(Ok(delta)) => delta,
            Some(Err(error)) => return Err(failed(error)),
            None => return Err(broken_off()),
        };
        let size = match &delta {
            Delta::Text(text) | Delta::Reasoning(text) => text.len(),
            Delta::Call(call) => call.arguments.len() + call.name.as_ref().map_or(0, String::len),
            Delta::End(usage, reason) => {
                (said.usage, said.finish_reason) = (*usage, Some(*reason));
                return Ok(said);
            }
        };
        room = room.checked_sub(size).ok_or_else(|| too_long(attempt))?;
        attempt.saw_token();
        let body = match delta {
            Delta::Text(text) => {
                let text = storable(text);
                if said.text.is_empty() && has_spoken {
                    said.text.push_str(PARAGRAPH);
                    attempt
                        .recorder
                        .emit(&EventBody::MessageDelta(MessageDelta { message_id, text: PARAGRAPH.into() }));
                }
                said.text.push_str(&text);
                EventBody::MessageDelta(MessageDelta { message_id, text: text.into() })
            }
            Delta::Reasoning(text) => {
                EventBody::ReasoningDelta(ReasoningDelta { message_id, text: storable(text).into() })
            }
            Delta::Call(call) => match said.take(call) {
                Some(body) => body,
                None => continue,
            },
            Delta::End(..) => continue,
        };
        attempt.recorder.emit(&body);
    }
}

impl Said {
    /// Takes a piece of a call, and answers the event that tells of it, if a reader can see any of it.
    fn take(&mut self, delta: CallDelta) -> Option<EventBody<'static>> {
        let CallDelta { index, name, arguments, signature } = delta;
        let arguments = storable(arguments);
        let known = self.calls.iter().position(|call| call.index == index);
        let (call, is_new) = match known {
            Some(place) => (&mut self.calls[place], false),
            None => {
                let call_id = format!("call_{}", Uuid::now_v7().simple());
                let name = storable(name.unwrap_or_default());
                self.calls.push(AskedCall { index, call_id, name, arguments: String::new(), signature: None });
                (self.calls.last_mut().expect("a call was just pushed"), true)
            }
        };
        call.arguments.push_str(&arguments);
        call.signature = signature.map(storable_json).or(call.signature.take());
        let name = is_new.then(|| call.name.clone());
        let visible = is_new || !arguments.is_empty();
        visible.then(|| {
            EventBody::ToolCallDelta(ToolCallDelta {
                call_id: call.call_id.clone().into(),
                name: name.map(Into::into),
                text: arguments.into(),
            })
        })
    }
}

impl AskedCall {
    /// Arguments that are no JSON, or too deep to be kept, stay the text that they are; the tools node refuses them.
    fn finish(self) -> RequestedCall {
        let Self { call_id, name, arguments, signature, .. } = self;
        let input = match arguments.trim() {
            "" => json!({}),
            text => match serde_json::from_str(text) {
                Ok(input) if !is_too_deep(&input) => storable_json(input),
                _ => Value::String(arguments),
            },
        };
        RequestedCall { call_id, name, input, signature }
    }
}

fn too_long(attempt: &Attempt<'_>) -> Stop {
    let limit = attempt.shared.worker.config.max_answer_bytes;
    let message = format!("the model's answer has more than {limit} bytes; what came before is kept");
    Stop::Failed(RunError::new("answer_too_long", message))
}

fn broken_off() -> Stop {
    Stop::Failed(RunError::new("model_broken_stream", "the model's answer broke off without an end"))
}

fn failed(error: model::Error) -> Stop {
    // The provider's own words may quote the conversation, and name what users are not to know.
    tracing::warn!(%error, "failed to get an answer of the model");
    Stop::Failed(RunError::new(error.code(), error.reason()))
}
