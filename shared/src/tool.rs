//! Tools: their effect, their approval policy, and the outcome of a call.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    event::ExecutedBy,
    file::ToolFile,
    schema::{SchemaLimits, Sizes},
    storable::{MAX_DEPTH, is_too_deep},
};

/// The effect of a tool on the outside world. It decides what a worker does after a crash during a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Effect {
    /// The call changes nothing, so a worker may repeat it.
    ReadOnly,
    /// A repeated call under the same key changes nothing more.
    Idempotent,
    /// Only a human can allow a second call. A tool without a declared effect is `once`.
    #[default]
    Once,
}

/// Selects the calls that a human must approve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalPolicy {
    /// No call.
    #[default]
    Never,
    /// Each call of a tool that is not `read_only`.
    Effects,
    /// Each call.
    Always,
}

impl ApprovalPolicy {
    /// Returns whether a call of a tool with this effect needs an approval.
    pub const fn applies_to(self, effect: Effect) -> bool {
        match self {
            Self::Never => false,
            Self::Effects => !matches!(effect, Effect::ReadOnly),
            Self::Always => true,
        }
    }
}

/// An agent's settings for one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolPolicy {
    /// Replaces the effect that the server declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Replaces the approval policy of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalPolicy>,
    /// Time-out of one call, in ms; the server's by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Characters of a result that the model reads, at least 400; `HOLDFAST_TOOL_RESULT_CHARS` (25,000) by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_chars: Option<usize>,
}

/// Fewest characters of a result that a model reads.
pub const MIN_RESULT_CHARS: usize = 400;

/// A tool that the client itself executes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientTool {
    /// 1 to 64 letters, digits, dashes and underscores.
    pub name: String,
    /// Tells the model what the tool does.
    #[serde(default)]
    pub description: String,
    /// JSON schema of the arguments; any object by default.
    #[serde(default = "any_object")]
    pub input_schema: Value,
}

/// Returns the schema of a tool that accepts any object.
pub fn any_object() -> Value {
    serde_json::json!({"type": "object"})
}

impl ClientTool {
    /// Returns the schema's sizes, or a sentence about a tool that no model can use. It does not compile the schema.
    pub fn check(&self) -> Result<Sizes, String> {
        let is_name = self.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if self.name.is_empty() || self.name.len() > 64 || !is_name {
            let expected = "a client tool has a name of 1 to 64 letters, digits, dashes and underscores";
            return Err(format!("{expected}, not {:?}", self.name));
        }
        if is_too_deep(&self.input_schema) {
            return Err(format!("input_schema of {}: it is nested deeper than {MAX_DEPTH}", self.name));
        }
        let sizes = Sizes::of(&self.input_schema);
        match sizes.endless_keyword() {
            Some(keyword) => {
                Err(format!("input_schema of {}: {keyword} is not taken here; write the schema out", self.name))
            }
            None => Ok(sizes),
        }
    }

    /// Refuses too many tools, equal names, and schemas that together exceed the limits of one request.
    pub fn check_all(tools: &[Self], most: usize, limits: &SchemaLimits) -> Result<(), String> {
        if tools.len() > most {
            return Err(format!("a run takes {most} client tools, not {}", tools.len()));
        }
        let (mut names, mut sizes) = (BTreeSet::new(), Sizes::default());
        for tool in tools {
            sizes = sizes.and(tool.check()?);
            if !names.insert(tool.name.as_str()) {
                return Err(format!("two client tools are named {}", tool.name));
            }
        }
        sizes.check(limits).map_err(|problem| format!("input_schema of the client tools: {problem} in one request"))
    }
}

/// The reason why a call has no output. The model reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolError {
    /// Stable and lower-case, such as `tool_failed`.
    pub code: String,
    /// One sentence for the model.
    pub message: String,
}

impl ToolError {
    /// Returns an error whose message any database can store.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: crate::storable::storable(message.into()) }
    }
}

/// One call of a tool, as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct ToolCall {
    /// `call_` and a UUIDv7 in hexadecimal digits. An idempotent tool receives it as its key.
    pub call_id: String,
    /// The run that makes the call.
    pub run_id: Uuid,
    /// The step of the run, from 1, whose model call requested it.
    pub step: u32,
    /// Name of the tool, as the model knows it.
    pub name: String,
    /// Arguments of the call; an approver may have edited them.
    pub input: Value,
    /// Effect of the tool when the call was planned.
    pub effect: Effect,
    /// Tells how far the call has got.
    pub status: ToolCallStatus,
    /// The party that executes the call; absent for an unknown tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<ExecutedBy>,
    /// The child run that answers the call, for a tool that delegates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<Uuid>,
    /// Output of the tool, up to 256 KiB. The model reads fewer characters.
    pub output: Option<String>,
    /// Set where the call has no output.
    pub error: Option<ToolError>,
    /// Files that the tool has returned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ToolFile>,
    /// Time from the call to its outcome; for a client's tool, from the request.
    pub duration_ms: Option<u64>,
    /// Time by which the client must answer, for a tool that it executes.
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub expires_at: Option<DateTime<Utc>>,
    /// Time of the database at which the worker stored the request.
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
    /// Time of the database at which the outcome was stored.
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub completed_at: Option<DateTime<Utc>>,
}

/// The state of a call in its life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ToolCallStatus {
    /// The model requested the call, and no process has made it.
    Requested,
    /// The call waits for a human, or for a worker after the human's answer.
    Waiting,
    /// The call waits for the client, which executes it.
    Client,
    /// The intent is committed. A worker calls the tool now, or died during the call.
    Called,
    /// The call has an output or an error.
    Completed,
    /// The run ended before the call had an outcome.
    Abandoned,
}

crate::text_enum!(Effect, ToolCallStatus);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_tools_are_limited_together_at_the_edge() {
        let tool = |name: &str, input_schema: Value| ClientTool {
            name: name.to_owned(),
            description: String::new(),
            input_schema,
        };
        let pattern = || serde_json::json!({"pattern": "a"});
        let limits = SchemaLimits { bytes: 39, patterns: 2, ..SchemaLimits::default() };
        let check = |tools: Vec<ClientTool>, part: Option<&str>| {
            let problem = ClientTool::check_all(&tools, 3, &limits).err();
            assert_eq!(problem.is_some(), part.is_some(), "{problem:?}");
            assert!(problem.unwrap_or_default().contains(part.unwrap_or_default()), "{part:?}");
        };
        check(vec![tool("a", pattern()), tool("b", pattern())], None);
        check(
            vec![tool("a", pattern()), tool("b", pattern()), tool("c", pattern())],
            Some("45 bytes, and the limit is 39"),
        );
        check(vec![tool("a", serde_json::json!({"pattern": "ab", "patternProperties": {}}))], None);
        check(
            vec![tool("a", serde_json::json!({"pattern": "abc", "patternProperties": {}}))],
            Some("40 bytes, and the limit is 39"),
        );
        let short = || serde_json::json!(true);
        check(vec![tool("a", short()), tool("b", short()), tool("c", short())], None);
        let four = ["a", "b", "c", "d"].map(|name| tool(name, short())).to_vec();
        check(four, Some("3 client tools, not 4"));
        check(vec![tool("a", short()), tool("a", short())], Some("two client tools are named a"));
        check(vec![tool("a__b", serde_json::json!({"not": {"$ref": "#"}}))], None);
        check(vec![tool("a b", short())], Some("letters, digits, dashes and underscores"));
        let dynamic = serde_json::json!({"not": {"$dynamicRef": "#"}});
        check(vec![tool("a", dynamic)], Some("$dynamicRef is not taken"));
    }

    #[test]
    fn approval_depends_on_policy_and_effect() {
        let check = |policy: ApprovalPolicy, expected: [bool; 3]| {
            let effects = [Effect::ReadOnly, Effect::Idempotent, Effect::Once];
            assert_eq!(effects.map(|effect| policy.applies_to(effect)), expected, "{policy:?}");
        };
        check(ApprovalPolicy::Never, [false, false, false]);
        check(ApprovalPolicy::Effects, [false, true, true]);
        check(ApprovalPolicy::Always, [true, true, true]);
    }
}
