//! The JSON schemas of what models and approvers write about plans.

use serde_json::{Value, json};

use super::MAX_STEPS;

/// Returns the schema of the arguments of `agent_create_plan`.
pub fn tool_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "goal": {"type": "string", "minLength": 1, "description": "What the plan is for."},
            "execution_mode": {
                "enum": ["auto_execute", "draft_only", "agent_review"],
                "description": "auto_execute: at once. draft_only: after the user's approval. agent_review: after a review by another agent."
            },
            "steps": steps_schema(),
            "requested_outputs": {"type": "array", "items": {"type": "string"}},
            "priority_entities": {"type": "array", "items": {"type": "string"}}
        },
        "required": ["goal"]
    })
}

/// Returns the schema of a list of steps.
pub fn steps_schema() -> Value {
    json!({
        "type": "array",
        "minItems": 1,
        "maxItems": MAX_STEPS,
        "items": {
            "type": "object",
            "properties": {
                "step_number": {"type": "integer", "minimum": 1},
                "description": {"type": "string", "minLength": 1},
                "tools": {"type": "array", "items": {"type": "string"}, "description": "The only tools of the step."},
                "executor_required": {"type": "boolean", "description": "True if a subagent takes the step, beside others."},
                "depends_on": {"type": "array", "items": {"type": "integer"}}
            },
            "required": ["description"]
        }
    })
}

/// Returns the schema of the arguments of `ask_clarifying_questions`.
pub fn questions_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "questions": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 2}
        },
        "required": ["questions"]
    })
}

/// Returns the schema of an approver's changes of a plan.
pub fn edit_schema() -> Value {
    json!({"type": "object", "properties": {"steps": steps_schema()}, "required": ["steps"]})
}
