//! Tools: what they do to the world, who must agree, and what became of a call.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    schema::{SchemaLimits, Sizes},
    storable::{MAX_DEPTH, is_too_deep},
};

/// What calling a tool does to the world, and so what a crash in mid-call means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing: it may be called again.
    ReadOnly,
    /// Calling it again under the same key changes nothing more.
    Idempotent,
    /// It must not start twice without a human's word. What nobody has declared is this.
    #[default]
    Once,
}

/// Which calls a human must approve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalPolicy {
    #[default]
    Never,
    /// Whatever is not read_only.
    Effects,
    Always,
}

impl ApprovalPolicy {
    pub const fn applies_to(self, effect: Effect) -> bool {
        match self {
            Self::Never => false,
            Self::Effects => !matches!(effect, Effect::ReadOnly),
            Self::Always => true,
        }
    }
}

/// What an agent says about one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolPolicy {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalPolicy>,
    /// Longest time of one call, in ms; the server's by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// A tool that the client itself executes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientTool {
    /// 1 to 64 letters, digits, dashes and single underscores.
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// JSON schema of the arguments; any object by default.
    #[serde(default = "any_object")]
    pub input_schema: Value,
}

/// The schema of tools that take whatever they are given.
pub fn any_object() -> Value {
    serde_json::json!({"type": "object"})
}

impl ClientTool {
    /// Refuses a tool that no model can be shown, without compiling its schema. Returns the schema's sizes.
    pub fn check(&self) -> Result<Sizes, String> {
        let is_name = self.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if self.name.is_empty() || self.name.len() > 64 || !is_name || self.name.contains("__") {
            let expected = "a client tool has a name of 1 to 64 letters, digits, dashes and single underscores";
            return Err(format!("{expected}, not {:?}", self.name));
        }
        if is_too_deep(&self.input_schema) {
            return Err(format!("input_schema of {}: it is nested deeper than {MAX_DEPTH}", self.name));
        }
        let sizes = Sizes::of(&self.input_schema);
        match sizes.reference {
            Some(keyword) => {
                Err(format!("input_schema of {}: {keyword} is not taken here; write the schema out", self.name))
            }
            None => Ok(sizes),
        }
    }

    /// Refuses tools that are too many, or that together are more than one request may have compiled.
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

/// Why a call has no output; the model is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolError {
    /// Stable and lower-case.
    pub code: String,
    pub message: String,
}

impl ToolError {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: crate::storable::storable(message.into()) }
    }
}

/// One call of a tool, as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct ToolCall {
    /// Also the key under which an idempotent tool is called again.
    pub call_id: String,
    pub run_id: Uuid,
    /// The step of the run, from 1, whose model call has asked for it.
    pub step: u32,
    pub name: String,
    /// The arguments that the tool is, or would be, called with.
    pub input: Value,
    pub effect: Effect,
    pub status: ToolCallStatus,
    /// What the tool has answered, up to 256 KiB; the model was shown less.
    pub output: Option<String>,
    pub error: Option<ToolError>,
    pub duration_ms: Option<u64>,
    /// Until when the client may answer, for a call that it executes.
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub expires_at: Option<DateTime<Utc>>,
    #[serde(serialize_with = "crate::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
    #[serde(serialize_with = "crate::timestamp::optional_milliseconds")]
    pub completed_at: Option<DateTime<Utc>>,
}

/// Where a call is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallStatus {
    /// Asked for by the model; nothing has been done yet.
    Requested,
    /// Waits for a human, or was answered by one and has not been called yet.
    Waiting,
    /// Waits for the client, which executes it.
    Client,
    /// The intent is committed: it is being called, or was when its worker died.
    Called,
    /// It has an output or an error.
    Completed,
    /// The run has ended before it had an outcome.
    Abandoned,
}

crate::text_enum!(Effect { ReadOnly = "read_only", Idempotent = "idempotent", Once = "once" });
crate::text_enum!(ToolCallStatus {
    Requested = "requested",
    Waiting = "waiting",
    Client = "client",
    Called = "called",
    Completed = "completed",
    Abandoned = "abandoned",
});

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
        check(vec![tool("a", serde_json::json!({"not": {"$ref": "#"}}))], Some("$ref is not taken"));
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
