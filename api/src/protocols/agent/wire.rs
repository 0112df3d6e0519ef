//! The agent wire: one JSON object per frame, with the field `type`, and `[DONE]` last.
//!
//! `session` comes first. `done`, or `error` for a failed run, comes last before `[DONE]`. While a run waits, the wire
//! shows the state and not the question.

use std::{borrow::Cow, io::Write as _};

use holdfast_shared::{
    approval::ApprovalKind,
    context::{EntityType, ProjectFocus},
    event::{
        ApprovalRequested, EntityAccessed, Event, EventBody, OntologyLoaded, RawJson, SubagentCompleted,
        TemplateRequested, TemplateSuggested, ToolCallCompleted,
    },
    event_id::EventId,
    finish_reason::FinishReason,
    plan::{ReviewedBy, Verdict},
    usage::Usage,
};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::file::AgentFile;
use crate::wire::{
    View,
    plan::{self, UiPlan, UiStep},
    reader::{SupersededMark, visible_body},
};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AgentFrame<'a> {
    Session {
        session: SessionRef<'a>,
        #[serde(flatten)]
        superseded: Option<SupersededMark>,
    },
    FocusActive {
        focus: &'a ProjectFocus,
    },
    AgentState {
        state: Cow<'a, str>,
        /// The client's name for its context; null if another route has started the run.
        #[serde(rename = "contextType")]
        context_type: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<String>,
    },
    PlanCreated {
        plan: UiPlan,
    },
    PlanReadyForReview {
        summary: String,
        plan: UiPlan,
    },
    #[serde(rename_all = "camelCase")]
    PlanReview {
        plan_id: Uuid,
        verdict: Verdict,
        #[serde(skip_serializing_if = "str::is_empty")]
        notes: Cow<'a, str>,
        by: ReviewedBy,
    },
    #[serde(rename_all = "camelCase")]
    StepStart {
        plan_id: Uuid,
        step: UiStep,
    },
    #[serde(rename_all = "camelCase")]
    StepComplete {
        plan_id: Uuid,
        step: UiStep,
    },
    ContextShift {
        context_shift: Value,
    },
    FocusChanged {
        focus: ProjectFocus,
    },
    OntologyLoaded {
        #[serde(flatten)]
        loaded: OntologyLoaded<'a>,
    },
    TemplateRequest {
        request: Value,
    },
    TemplateStatus {
        request_id: Uuid,
        status: &'static str,
    },
    TemplateSuggestion {
        kind: Cow<'a, str>,
        name: Cow<'a, str>,
        rationale: Cow<'a, str>,
    },
    ClarifyingQuestions {
        questions: Vec<Cow<'a, str>>,
    },
    Text {
        content: Cow<'a, str>,
    },
    /// The wire sends the call under two names, for clients of two generations.
    ToolCall {
        tool_call: AgentCall<'a>,
        #[serde(rename = "toolCall")]
        camel_case: AgentCall<'a>,
    },
    ToolResult {
        result: AgentToolResult<'a>,
    },
    ContextUsage {
        tokens: u64,
        budget: u64,
        compressed: bool,
    },
    #[serde(rename_all = "camelCase")]
    ExecutorSpawned {
        executor_id: Uuid,
        run_id: Uuid,
        #[serde(skip_serializing_if = "Option::is_none")]
        plan_id: Option<Uuid>,
        #[serde(skip_serializing_if = "Option::is_none")]
        step_number: Option<u32>,
        task: Cow<'a, str>,
    },
    #[serde(rename_all = "camelCase")]
    ExecutorResult {
        executor_id: Uuid,
        run_id: Uuid,
        #[serde(skip_serializing_if = "Option::is_none")]
        plan_id: Option<Uuid>,
        #[serde(skip_serializing_if = "Option::is_none")]
        step_number: Option<u32>,
        success: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Cow<'a, str>>,
    },
    Done {
        usage: TotalUsage,
        /// Why the model ended the answer; absent if the model did not end it.
        #[serde(skip_serializing_if = "Option::is_none")]
        finish_reason: Option<FinishReason>,
    },
    Error {
        error: Cow<'a, str>,
    },
}

#[derive(Serialize)]
struct SessionRef<'a> {
    id: Cow<'a, str>,
    conversation_id: Uuid,
    run_id: Uuid,
    /// Null if another route has started the run without a context.
    context: Option<ContextRef<'a>>,
    focus: Option<&'a ProjectFocus>,
    /// The open plan of an earlier run.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a UiPlan>,
}

#[derive(Serialize)]
struct ContextRef<'a> {
    context_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    entity_id: Option<&'a str>,
    #[serde(rename = "ontologyEntityType", skip_serializing_if = "Option::is_none")]
    ontology_entity_type: Option<EntityType>,
}

#[derive(Clone, Serialize)]
struct AgentCall<'a> {
    id: Cow<'a, str>,
    function: AgentFunction<'a>,
}

#[derive(Clone, Serialize)]
struct AgentFunction<'a> {
    name: Cow<'a, str>,
    /// JSON in a string, as in OpenAI's API.
    arguments: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentToolResult<'a> {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
    tool_name: Cow<'a, str>,
    tool_call_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    entities_accessed: Vec<EntityAccessed<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<AgentFile>,
}

#[derive(Serialize)]
struct TotalUsage {
    total_tokens: u64,
}

/// Appends the frames of an event.
pub fn frames(buffer: &mut Vec<u8>, view: &View, previous: EventId, event: &Event) {
    let is_end = event.is_terminal();
    let mark = SupersededMark::by(event, previous, view).map(|superseded| session(view, Some(superseded)));
    let (first, second) = event_frames(view, visible_body(view, event));
    let mut frames = [mark, first, second].into_iter().flatten().peekable();
    while let Some(frame) = frames.next() {
        if frames.peek().is_none() && !is_end {
            write_id(buffer, event);
        }
        buffer.extend_from_slice(b"data: ");
        serde_json::to_writer(&mut *buffer, &frame).expect("a frame is always valid JSON");
        buffer.extend_from_slice(b"\n\n");
    }
    if is_end {
        write_id(buffer, event);
        buffer.extend_from_slice(b"data: [DONE]\n\n");
    }
}

fn write_id(buffer: &mut Vec<u8>, event: &Event) {
    writeln!(buffer, "id: {}", event.id).expect("a Vec takes every write");
}

/// Returns the frames of the event without the superseded mark.
fn event_frames<'a>(view: &'a View, body: EventBody<'a>) -> (Option<AgentFrame<'a>>, Option<AgentFrame<'a>>) {
    let frame = match body {
        EventBody::RunQueued(_) => {
            let focus = focus_of(view).map(|focus| AgentFrame::FocusActive { focus });
            return (Some(session(view, None)), focus);
        }
        EventBody::StepStarted(_) => agent_state(view, "thinking".into(), None),
        EventBody::AgentState(changed) => agent_state(view, changed.state.into_name(), None),
        EventBody::PlanCreated(created) => AgentFrame::PlanCreated { plan: (*created.plan).into() },
        EventBody::PlanReviewed(review) => AgentFrame::PlanReview {
            plan_id: review.plan_id,
            verdict: review.verdict,
            notes: review.notes,
            by: review.by,
        },
        EventBody::PlanStepStarted(started) => {
            let state = agent_state(view, "executing_plan".into(), Some(plan::state_details(&started)));
            let step = AgentFrame::StepStart { plan_id: started.plan_id, step: (*started.step).into() };
            return (Some(state), Some(step));
        }
        EventBody::PlanStepCompleted(completed) => {
            AgentFrame::StepComplete { plan_id: completed.plan_id, step: (*completed.step).into() }
        }
        EventBody::QuestionAsked(asked) => {
            let state = agent_state(view, "waiting_on_user".into(), None);
            return (Some(AgentFrame::ClarifyingQuestions { questions: asked.questions }), Some(state));
        }
        EventBody::ContextShifted(shift) => AgentFrame::ContextShift {
            context_shift: json!({
                "new_context": shift.context_type, "entity_id": shift.entity_id,
                "entity_name": shift.entity_name, "message": shift.message
            }),
        },
        EventBody::FocusChanged(changed) => AgentFrame::FocusChanged { focus: changed.focus },
        EventBody::OntologyLoaded(loaded) => AgentFrame::OntologyLoaded { loaded },
        EventBody::TemplateRequested(TemplateRequested { template_id: id, kind, reason, hints }) => {
            let request = json!({"id": id, "kind": kind, "reason": reason, "hints": hints});
            let status = AgentFrame::TemplateStatus { request_id: id, status: "requested" };
            return (Some(AgentFrame::TemplateRequest { request }), Some(status));
        }
        EventBody::TemplateSuggested(TemplateSuggested { kind, name, rationale }) => {
            AgentFrame::TemplateSuggestion { kind, name, rationale }
        }
        EventBody::ApprovalRequested(request) => match plan_in_question(&request) {
            Some(plan) => AgentFrame::PlanReadyForReview { summary: plan.summary(), plan },
            None => return (None, None),
        },
        EventBody::MessageDelta(delta) => return (text(delta.text), None),
        EventBody::MessageCompleted(completed) => return (text(completed.message.content.into_stored().into()), None),
        EventBody::ToolCallStarted(call) => tool_call(call.call_id, call.name, call.input),
        EventBody::ToolCallCompleted(call) => return call_result(call),
        EventBody::ContextUsage(usage) => {
            AgentFrame::ContextUsage { tokens: usage.tokens, budget: usage.budget, compressed: usage.compressed }
        }
        EventBody::SubagentStarted(started) => AgentFrame::ExecutorSpawned {
            executor_id: started.child_run_id,
            run_id: started.child_run_id,
            plan_id: started.plan_id,
            step_number: started.step_number,
            task: started.task,
        },
        EventBody::SubagentCompleted(completed) => executor_result(completed),
        EventBody::RunFailed(end) => AgentFrame::Error { error: end.error.message.into() },
        EventBody::RunCompleted(end) => done(end.usage, end.finish_reason),
        EventBody::RunCancelled(end) => done(end.usage, None),
        EventBody::AttemptStarted(_)
        | EventBody::MessageSteered(_)
        | EventBody::MemoryTold(_)
        | EventBody::StepCompleted(_)
        | EventBody::DocumentProgress(_)
        | EventBody::ContextRetrieved(_)
        | EventBody::CitationAdded(_)
        | EventBody::CitationDropped(_)
        | EventBody::ReasoningDelta(_)
        | EventBody::ToolCallDelta(_)
        | EventBody::PlanUpdated(_)
        | EventBody::ApprovalResolved(_)
        | EventBody::WarningRaised(_)
        | EventBody::Unknown => return (None, None),
    };
    (Some(frame), None)
}

fn text(content: Cow<'_, str>) -> Option<AgentFrame<'_>> {
    (!content.is_empty()).then_some(AgentFrame::Text { content })
}

fn done<'a>(usage: Usage, finish_reason: Option<FinishReason>) -> AgentFrame<'a> {
    let total_tokens = usage.input_tokens.saturating_add(usage.output_tokens);
    AgentFrame::Done { usage: TotalUsage { total_tokens }, finish_reason }
}

fn executor_result(completed: SubagentCompleted<'_>) -> AgentFrame<'_> {
    AgentFrame::ExecutorResult {
        executor_id: completed.child_run_id,
        run_id: completed.child_run_id,
        plan_id: completed.plan_id,
        step_number: completed.step_number,
        success: completed.error.is_none(),
        result: completed.output,
        error: completed.error.map(|error| error.message.into()),
    }
}

fn session(view: &View, superseded: Option<SupersededMark>) -> AgentFrame<'_> {
    let session_id = view.context.as_ref().and_then(|context| context.session_id.as_deref());
    let id = session_id.map_or_else(|| view.conversation_id.to_string().into(), Cow::Borrowed);
    AgentFrame::Session {
        session: SessionRef {
            id,
            conversation_id: view.conversation_id,
            run_id: view.run_id,
            context: view.context.as_ref().map(|context| ContextRef {
                context_type: &context.context_type,
                entity_id: context.entity_id.as_deref(),
                ontology_entity_type: context.ontology_entity_type,
            }),
            focus: focus_of(view),
            plan: view.plan.as_deref(),
        },
        superseded,
    }
}

fn focus_of(view: &View) -> Option<&ProjectFocus> {
    view.context.as_ref()?.project_focus.as_ref()
}

fn agent_state<'a>(view: &'a View, state: Cow<'a, str>, details: Option<String>) -> AgentFrame<'a> {
    let context_type = view.context.as_ref().map(|context| context.context_type.as_str());
    AgentFrame::AgentState { state, context_type, details }
}

/// Returns the plan that a human must approve; `None` for any other question.
fn plan_in_question(request: &ApprovalRequested<'_>) -> Option<UiPlan> {
    (request.kind == ApprovalKind::Plan).then(|| UiPlan::of_question(&request.input.to_value()))?
}

fn tool_call<'a>(id: Cow<'a, str>, name: Cow<'a, str>, arguments: RawJson<'a>) -> AgentFrame<'a> {
    let call = AgentCall { id, function: AgentFunction { name, arguments: arguments.into_text() } };
    AgentFrame::ToolCall { tool_call: call.clone(), camel_case: call }
}

/// Returns the result of a call. If a rule or a human refused the call, the call comes first, because clients expect
/// one before each result.
fn call_result(call: ToolCallCompleted<'_>) -> (Option<AgentFrame<'_>>, Option<AgentFrame<'_>>) {
    let refused = call.input.map(|input| tool_call(call.call_id.clone(), call.name.clone(), input));
    let (data, error) = match call.error {
        Some(error) => (None, Some(error.message.into())),
        None => {
            // The wire sends the output as JSON if its text is JSON.
            let output = call.output.unwrap_or_default();
            (Some(serde_json::from_str(&output).unwrap_or_else(|_| output.into())), None)
        }
    };
    let (tool_name, tool_call_id) = (call.name, call.call_id);
    let (entities_accessed, files) = (call.entities, call.files.iter().map(AgentFile::from).collect());
    let success = error.is_none();
    let result = AgentToolResult { success, data, error, tool_name, tool_call_id, entities_accessed, files };
    (refused, Some(AgentFrame::ToolResult { result }))
}
