//! Limits of a run. The deployment's limits apply where an agent sets none.

use serde::{Deserialize, Serialize};

use super::InvalidDefinition;

/// Limits of one run. At the limit of tool calls or steps, the model answers with what it has. At another limit, the
/// run fails with `limit_exceeded` and keeps its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Tool calls of one run; `HOLDFAST_MAX_TOOL_CALLS` (15) by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u32>,
    /// Steps of one run; `HOLDFAST_MAX_STEPS` (50) by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Time since the first attempt, in ms, without the time of waiting for people; `HOLDFAST_MAX_DURATION_MS` (1 h) by
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_duration_ms: Option<u64>,
    /// Tokens that the model may write in one run; unlimited by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Tokens that the model may read and write in one run; unlimited by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<u64>,
}

impl Limits {
    /// Returns these limits, and those of `others` where a field is absent.
    pub fn or(self, others: Self) -> Self {
        Self {
            max_tool_calls: self.max_tool_calls.or(others.max_tool_calls),
            max_steps: self.max_steps.or(others.max_steps),
            max_duration_ms: self.max_duration_ms.or(others.max_duration_ms),
            max_output_tokens: self.max_output_tokens.or(others.max_output_tokens),
            max_total_tokens: self.max_total_tokens.or(others.max_total_tokens),
        }
    }

    pub(super) fn check(&self) -> Result<(), InvalidDefinition> {
        let above_0 = [
            ("max_steps", self.max_steps.map(u64::from)),
            ("max_duration_ms", self.max_duration_ms),
            ("max_output_tokens", self.max_output_tokens),
            ("max_total_tokens", self.max_total_tokens),
        ];
        match above_0.iter().find(|(_, limit)| *limit == Some(0)) {
            Some((name, _)) => Err(InvalidDefinition::new(format!("limits.{name}"), "a whole number above 0")),
            None => Ok(()),
        }
    }
}
