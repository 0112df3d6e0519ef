//! The plan of a tool call: a pure function of its state, its question, and the facts about its tool.

use holdfast_shared::{
    approval::{ApprovalKind, ApprovalStatus},
    storage::CallState,
    tool::{Effect, ToolCallStatus, ToolError},
};
use serde_json::Value;

use super::step_call::StepCall;

/// The next action for one call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallPlan {
    /// The call has its outcome.
    Nothing,
    /// The call gets this outcome without being made.
    Refuse(ToolError),
    /// The call gets the outcome that there is no such tool.
    RefuseUnknown,
    /// The tool is called with these arguments.
    Call(Value),
    /// A child run answers the call with these arguments.
    Delegate(Value),
    /// The executor itself answers the call, with these arguments.
    Planner(Value),
    /// A human must decide.
    Ask(ApprovalKind, Value),
    /// The client must execute the call.
    Client(Value),
    /// The question was asked earlier and is still open.
    Wait,
    /// A child run was started earlier. Its outcome comes into the log while the run has no worker.
    WaitForChild,
}

/// The facts about a call that its state does not have.
#[derive(Debug, Clone)]
pub struct CallFacts {
    /// The tool; `None` if there is none of this name now.
    pub tool: Option<ToolFacts>,
    /// Whether the client's choice of tools lets the model call it.
    pub is_allowed: bool,
    /// Calls of the run before this one.
    pub calls_before: u32,
    /// Most calls of the run.
    pub most_calls: u32,
    /// The error of the arguments of a fresh call.
    pub invalid: Option<ToolError>,
}

/// The facts about a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolFacts {
    /// Whether the client executes it.
    pub is_client_tool: bool,
    /// Whether a child run answers its calls.
    pub delegates: bool,
    /// Whether the executor itself answers its calls.
    pub is_planners: bool,
    /// Whether a human must approve each call.
    pub needs_approval: bool,
}

/// Decides about a call.
pub fn plan(StepCall { state, approval }: &StepCall, facts: CallFacts) -> CallPlan {
    let call = |input: &Value| match facts.tool {
        Some(_) => CallPlan::Call(input.clone()),
        None => CallPlan::Refuse(tool_unavailable(state)),
    };
    let is_planners = facts.tool.is_some_and(|tool| tool.is_planners);
    let is_pending = approval.as_ref().is_none_or(|approval| approval.status == ApprovalStatus::Pending);
    match state.status {
        ToolCallStatus::Completed | ToolCallStatus::Abandoned => CallPlan::Nothing,
        ToolCallStatus::Client => CallPlan::Wait,
        ToolCallStatus::Waiting if is_planners && !is_pending => CallPlan::Planner(state.input.clone()),
        ToolCallStatus::Called if is_planners => CallPlan::Planner(state.input.clone()),
        ToolCallStatus::Called if state.child_run_id.is_some() => CallPlan::WaitForChild,
        ToolCallStatus::Called => match state.effect {
            Effect::ReadOnly | Effect::Idempotent => call(&state.input),
            Effect::Once => CallPlan::Ask(ApprovalKind::UnknownOutcome, state.input.clone()),
        },
        ToolCallStatus::Waiting => match approval {
            None => CallPlan::Wait,
            Some(approval) => match approval.status {
                ApprovalStatus::Pending => CallPlan::Wait,
                ApprovalStatus::Approved => call(approval.edited_input.as_ref().unwrap_or(&approval.input)),
                _ => CallPlan::Refuse(refusal(approval.kind, approval.status, approval.reason.as_deref())),
            },
        },
        ToolCallStatus::Requested => plan_fresh(state, facts),
    }
}

/// Decides about a call that the model has just requested.
fn plan_fresh(state: &CallState, facts: CallFacts) -> CallPlan {
    // A model may ask for a tool that its request has left out.
    let Some(tool) = facts.tool.filter(|_| facts.is_allowed) else { return CallPlan::RefuseUnknown };
    if facts.calls_before >= facts.most_calls {
        return CallPlan::Refuse(too_many_calls(facts.most_calls));
    }
    match facts.invalid {
        Some(error) => CallPlan::Refuse(error),
        None if tool.is_client_tool => CallPlan::Client(state.input.clone()),
        None if tool.is_planners => CallPlan::Planner(state.input.clone()),
        None if tool.delegates => CallPlan::Delegate(state.input.clone()),
        None if tool.needs_approval => CallPlan::Ask(ApprovalKind::Policy, state.input.clone()),
        None => CallPlan::Call(state.input.clone()),
    }
}

fn tool_unavailable(state: &CallState) -> ToolError {
    let effect_notice = match state.status {
        ToolCallStatus::Called => "the call was interrupted; it may or may not have taken effect",
        _ => "this call was not made",
    };
    ToolError::new("tool_unavailable", format!("{effect_notice}: the tool {} cannot be reached now", state.name))
}

fn too_many_calls(most: u32) -> ToolError {
    ToolError::new(
        "limit_reached",
        format!(
            "this call was not made: the run may make {most} tool calls (max_tool_calls); answer with what you have"
        ),
    )
}

fn refusal(kind: ApprovalKind, status: ApprovalStatus, reason: Option<&str>) -> ToolError {
    let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    match (kind, status) {
        (ApprovalKind::UnknownOutcome, _) => ToolError::new(
            "outcome_unknown",
            format!("the call was interrupted; it may or may not have taken effect, and is not repeated{because}"),
        ),
        (_, ApprovalStatus::Expired) => {
            ToolError::new("approval_expired", "this call was not made: no human approved it in time")
        }
        _ => ToolError::new("denied", format!("this call was not made: a human has denied it{because}")),
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use holdfast_shared::{approval::Approval, event::ExecutedBy};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    const TOOL: ToolFacts =
        ToolFacts { is_client_tool: false, delegates: false, is_planners: false, needs_approval: false };
    const FACTS: CallFacts =
        CallFacts { tool: Some(TOOL), is_allowed: true, calls_before: 0, most_calls: 2, invalid: None };

    fn call(status: ToolCallStatus, effect: Effect, approval: Option<Approval>) -> StepCall {
        let state = CallState {
            call_id: "call_1".into(),
            step: 1,
            position: 0,
            name: "kb__count".into(),
            by: Some(ExecutedBy::Worker),
            input: json!({"n": 1}),
            effect,
            status,
            schema: None,
            expires_at: None,
            child_run_id: None,
            output: None,
            error: None,
            files: Vec::new(),
            duration_ms: None,
        };
        StepCall { state, approval }
    }

    fn answered(kind: ApprovalKind, status: ApprovalStatus, edited_input: Option<Value>) -> StepCall {
        let approval = Approval {
            id: Uuid::nil(),
            run_id: Uuid::nil(),
            call_id: "call_1".into(),
            kind,
            name: "kb__count".into(),
            input: json!({"n": 1}),
            status,
            reason: None,
            edited_input,
            requested_at: DateTime::UNIX_EPOCH,
            expires_at: DateTime::UNIX_EPOCH,
            decided_at: None,
            decided_by: None,
        };
        call(ToolCallStatus::Waiting, Effect::Once, Some(approval))
    }

    /// Returns the plan in a word, with the code of a refusal or the arguments of a call.
    fn outcome(call: &StepCall, facts: CallFacts) -> String {
        match plan(call, facts) {
            CallPlan::Nothing => "nothing".into(),
            CallPlan::Refuse(error) => error.code.to_string(),
            CallPlan::RefuseUnknown => "unknown tool".into(),
            CallPlan::Call(input) => format!("call {input}"),
            CallPlan::Ask(kind, _) => format!("ask {}", kind.as_str()),
            CallPlan::Client(_) => "client".into(),
            CallPlan::Delegate(input) => format!("delegate {input}"),
            CallPlan::Planner(input) => format!("planner {input}"),
            CallPlan::Wait => "wait".into(),
            CallPlan::WaitForChild => "wait for the child".into(),
        }
    }

    #[test]
    fn a_call_is_planned_by_its_status_and_its_effect() {
        use ToolCallStatus::{Abandoned, Called, Client, Completed, Requested, Waiting};
        for (status, effect, expected) in [
            (Requested, Effect::Once, r#"call {"n":1}"#),
            (Called, Effect::ReadOnly, r#"call {"n":1}"#),
            (Called, Effect::Idempotent, r#"call {"n":1}"#),
            (Called, Effect::Once, "ask unknown_outcome"),
            (Client, Effect::Once, "wait"),
            (Waiting, Effect::Once, "wait"),
            (Completed, Effect::Once, "nothing"),
            (Abandoned, Effect::Once, "nothing"),
        ] {
            assert_eq!(outcome(&call(status, effect, None), FACTS), expected, "{status:?} {effect:?}");
        }
    }

    #[test]
    fn an_answer_decides_about_a_call_that_waited() {
        use ApprovalKind::{Policy, UnknownOutcome};
        use ApprovalStatus::{Approved, Denied, Expired, Pending};
        for (kind, status, expected) in [
            (Policy, Pending, "wait"),
            (Policy, Approved, r#"call {"n":1}"#),
            (Policy, Denied, "denied"),
            (Policy, Expired, "approval_expired"),
            (UnknownOutcome, Approved, r#"call {"n":1}"#),
            (UnknownOutcome, Denied, "outcome_unknown"),
            (UnknownOutcome, Expired, "outcome_unknown"),
        ] {
            assert_eq!(outcome(&answered(kind, status, None), FACTS), expected, "{kind:?} {status:?}");
        }
        let edited = answered(Policy, Approved, Some(json!({"n": 2})));
        assert_eq!(outcome(&edited, FACTS), r#"call {"n":2}"#);
    }

    #[test]
    fn a_fresh_call_is_refused_left_to_the_client_or_asked_about() {
        let invalid = || Some(ToolError::new("invalid_arguments", "at /n"));
        let client = ToolFacts { is_client_tool: true, ..TOOL };
        let delegating = ToolFacts { delegates: true, ..TOOL };
        let asked = ToolFacts { needs_approval: true, ..TOOL };
        for (facts, expected) in [
            (CallFacts { tool: None, ..FACTS }, "unknown tool"),
            (CallFacts { is_allowed: false, ..FACTS }, "unknown tool"),
            (CallFacts { calls_before: 1, ..FACTS }, r#"call {"n":1}"#),
            (CallFacts { calls_before: 2, ..FACTS }, "limit_reached"),
            (CallFacts { invalid: invalid(), ..FACTS }, "invalid_arguments"),
            (CallFacts { tool: Some(client), ..FACTS }, "client"),
            (CallFacts { tool: Some(client), invalid: invalid(), ..FACTS }, "invalid_arguments"),
            (CallFacts { tool: Some(asked), ..FACTS }, "ask policy"),
            (CallFacts { tool: Some(delegating), ..FACTS }, r#"delegate {"n":1}"#),
            (CallFacts { tool: Some(delegating), calls_before: 2, ..FACTS }, "limit_reached"),
        ] {
            let fresh = call(ToolCallStatus::Requested, Effect::Once, None);
            assert_eq!(outcome(&fresh, facts.clone()), expected, "{facts:?}");
        }
    }

    #[test]
    fn a_call_with_a_child_waits_for_it() {
        let mut delegated = call(ToolCallStatus::Called, Effect::Once, None);
        delegated.state.child_run_id = Some(Uuid::nil());
        assert_eq!(outcome(&delegated, FACTS), "wait for the child");
        delegated.state.status = ToolCallStatus::Completed;
        assert_eq!(outcome(&delegated, FACTS), "nothing");
    }

    #[test]
    fn a_call_whose_tool_is_gone_is_an_outcome_that_says_whether_it_was_made() {
        let gone = CallFacts { tool: None, ..FACTS };
        let message = |call: &StepCall| match plan(call, gone.clone()) {
            CallPlan::Refuse(error) => error.message,
            plan => panic!("{plan:?}"),
        };
        assert!(message(&call(ToolCallStatus::Called, Effect::Idempotent, None)).contains("may or may not"));
        let approved = answered(ApprovalKind::Policy, ApprovalStatus::Approved, None);
        assert!(message(&approved).contains("was not made"));
    }
}
