//! Plans in camelCase, for the wires of front ends.

use holdfast_shared::{
    event::{PlanReviewed, PlanStepStarted},
    plan::{Plan, PlanStatus, PlanStep, StepStatus},
};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

/// A plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UiPlan {
    id: Uuid,
    session_id: Uuid,
    user_message: String,
    strategy: String,
    status: PlanStatus,
    steps: Vec<UiStep>,
    metadata: UiPlanMetadata,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct UiPlanMetadata {
    goal: String,
    run_id: Uuid,
    call_id: String,
    execution_mode: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requested_outputs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    priority_entities: Vec<String>,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UiStep {
    step_number: u32,
    description: String,
    tools: Vec<String>,
    executor_required: bool,
    depends_on: Vec<u32>,
    status: StepStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The run of the step's executor.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<Uuid>,
}

impl From<Plan> for UiPlan {
    fn from(plan: Plan) -> Self {
        Self {
            id: plan.id,
            session_id: plan.session_id,
            user_message: plan.user_message,
            strategy: plan.strategy,
            status: plan.status,
            steps: plan.steps.into_iter().map(UiStep::from).collect(),
            metadata: UiPlanMetadata {
                goal: plan.metadata.goal,
                run_id: plan.run_id,
                call_id: plan.call_id,
                execution_mode: plan.execution_mode.as_str(),
                requested_outputs: plan.metadata.requested_outputs,
                priority_entities: plan.metadata.priority_entities,
            },
        }
    }
}

impl From<PlanStep> for UiStep {
    fn from(step: PlanStep) -> Self {
        Self {
            step_number: step.step_number,
            description: step.description,
            tools: step.tools,
            executor_required: step.executor_required,
            depends_on: step.depends_on,
            status: step.status,
            result: step.result,
            error: step.error,
            run_id: step.child_run_id,
        }
    }
}

impl UiPlan {
    /// Reads the plan that an approval asks about.
    pub fn of_question(input: &Value) -> Option<Self> {
        serde_json::from_value::<Plan>(input.clone()).ok().map(Self::from)
    }

    /// Returns one line about the plan.
    pub fn summary(&self) -> String {
        let steps = if self.steps.len() == 1 { "1 step".to_owned() } else { format!("{} steps", self.steps.len()) };
        format!("{}: {steps}", self.metadata.goal)
    }
}

/// Returns the words of a front end for the step that begins.
pub fn state_details(started: &PlanStepStarted) -> String {
    format!("step {} of {}: {}", started.step.step_number, started.of, started.step.description)
}

/// Returns the data of a step that begins or has ended.
pub fn step_data(plan_id: Uuid, step: PlanStep) -> Value {
    json!({"planId": plan_id, "step": UiStep::from(step)})
}

/// Returns the id of a step among all data of a message.
pub fn step_id(plan_id: Uuid, step: &PlanStep) -> String {
    format!("{plan_id}:{}", step.step_number)
}

/// Returns the data of a judgement.
pub fn review_data(review: &PlanReviewed<'_>) -> Value {
    json!({"planId": review.plan_id, "round": review.round, "verdict": review.verdict, "notes": review.notes, "by": review.by})
}
