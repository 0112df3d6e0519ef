//! Payloads of plans and of questions that end a run.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    event_id::EventId,
    lenient,
    plan::{Plan, PlanStep, ReviewedBy, Verdict},
};

/// A planner has made a plan, or its next version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlanCreated {
    /// The plan.
    pub plan: Box<Plan>,
}

/// The plan has another status or other steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlanUpdated {
    /// On a client's change of a plan: this event supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The plan as it is now.
    pub plan: Box<Plan>,
}

/// A reviewer or a human has judged a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlanReviewed<'a> {
    /// The plan.
    pub plan_id: Uuid,
    /// The number of the review, from 1.
    pub round: u32,
    /// The judgement.
    #[serde(deserialize_with = "lenient::word")]
    pub verdict: Verdict,
    /// The changes to make, or a remark; empty if there is none.
    #[serde(borrow)]
    pub notes: Cow<'a, str>,
    /// The party that has judged.
    #[serde(deserialize_with = "lenient::word")]
    pub by: ReviewedBy,
}

/// A step of a plan begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlanStepStarted {
    /// The plan.
    pub plan_id: Uuid,
    /// The step.
    pub step: Box<PlanStep>,
    /// How many steps the plan has.
    pub of: usize,
}

/// A step of a plan has a result or an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlanStepCompleted {
    /// The plan.
    pub plan_id: Uuid,
    /// The step.
    pub step: Box<PlanStep>,
}

/// The agent needs answers, and its run ends. The user's next message has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct QuestionAsked<'a> {
    /// One or two questions.
    #[serde(borrow)]
    pub questions: Vec<Cow<'a, str>>,
    /// How many times the agent has asked for this purpose, from 1.
    pub round: u32,
}
