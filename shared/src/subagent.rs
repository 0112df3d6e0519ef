//! Subagents: runs that answer a tool call of another run, their parent.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    agent::InvalidDefinition,
    ending::Ending,
    lenient::Growing,
    plan::{EXECUTE_CALL, REVIEW_CALL},
    tool::ToolError,
};

/// An agent to which another agent may delegate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Subagent {
    /// Name or id of the agent. Its definition at the time of the call applies.
    pub agent: String,
    /// Tells the model when to delegate; the agent's own description by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The part of a child run in the work of its parent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SubagentRole {
    /// It takes a step of a plan.
    Executor,
    /// It judges a plan.
    Reviewer,
    /// It writes the answer after a plan.
    Synthesizer,
    /// It answers a call of `delegate_to_…`.
    #[default]
    Subagent,
}

crate::text_enum!(SubagentRole);

impl Growing for SubagentRole {
    const UNKNOWN: Self = Self::Subagent;
}

impl SubagentRole {
    /// Returns the role of the child that would answer a call of this name.
    pub fn of_call(name: &str) -> Self {
        match name {
            EXECUTE_CALL => Self::Executor,
            REVIEW_CALL => Self::Reviewer,
            _ => Self::Subagent,
        }
    }

    /// Returns whether the child works for a plan. No model requested the call that such a child answers.
    pub const fn works_for_plan(self) -> bool {
        matches!(self, Self::Executor | Self::Reviewer | Self::Synthesizer)
    }
}

/// The input of a call that delegates.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Delegation {
    task: String,
    #[serde(default)]
    context: Option<String>,
}

/// Beginning of the names of the tools that delegate.
const PREFIX: &str = "delegate_to_";

/// Longest name that all providers accept.
const MAX_TOOL_NAME: usize = 64;

/// Most subagents of one definition.
const MAX_SUBAGENTS: usize = 32;

/// Longest reference and longest description, in characters.
const MAX_NAME_CHARS: usize = 200;
const MAX_DESCRIPTION_CHARS: usize = 2000;

impl Subagent {
    /// Refuses a list that no run can use.
    pub fn check_all(subagents: &[Self]) -> Result<(), InvalidDefinition> {
        if subagents.len() > MAX_SUBAGENTS {
            return Err(InvalidDefinition::new("subagents", format!("at most {MAX_SUBAGENTS} subagents")));
        }
        for (index, Self { agent, description }) in subagents.iter().enumerate() {
            if agent.trim().is_empty() || agent.chars().count() > MAX_NAME_CHARS {
                let problem = format!("the name or the id of an agent, of 1 to {MAX_NAME_CHARS} characters");
                return Err(InvalidDefinition::new(format!("subagents.{index}.agent"), problem));
            }
            if subagents[..index].iter().any(|earlier| earlier.agent == *agent) {
                return Err(InvalidDefinition::new("subagents", format!("two subagents are {agent}")));
            }
            if description.as_ref().is_some_and(|text| text.chars().count() > MAX_DESCRIPTION_CHARS) {
                let problem = format!("at most {MAX_DESCRIPTION_CHARS} characters");
                return Err(InvalidDefinition::new(format!("subagents.{index}.description"), problem));
            }
        }
        Ok(())
    }
}

/// Returns the name of the tool that delegates to the agent of this name: letters and digits of ASCII, in lower case, with
/// single underscores between them.
pub fn tool_name(agent: &str) -> String {
    let mut name = PREFIX.to_owned();
    for character in agent.chars() {
        if character.is_ascii_alphanumeric() {
            name.push(character.to_ascii_lowercase());
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    name.truncate(MAX_TOOL_NAME);
    name.trim_end_matches('_').to_owned()
}

/// Returns whether a tool of this name delegates.
pub fn is_tool_name(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Returns the schema of the arguments of a tool that delegates.
pub fn tool_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "task": {"type": "string", "minLength": 1, "description": "The whole task: the agent knows nothing else of this conversation."},
            "context": {"type": "string", "description": "What the agent needs to know for the task."}
        },
        "required": ["task"],
        "additionalProperties": false
    })
}

impl Delegation {
    /// Reads the arguments of a call, which fit the schema.
    pub fn of(input: &Value) -> Result<Self, ToolError> {
        Self::deserialize(input).map_err(|error| ToolError::new("invalid_arguments", error.to_string()))
    }

    /// Returns the child's message.
    pub fn message(self) -> String {
        match self.context {
            Some(context) if !context.trim().is_empty() => format!("{}\n\n{context}", self.task),
            _ => self.task,
        }
    }
}

/// Returns the outcome of the parent's call: the answer of a completed child, or an error that the parent's model reads.
pub fn outcome_of(ending: &Ending, answer: &str) -> Result<String, ToolError> {
    let so_far = if answer.is_empty() { String::new() } else { format!("; its answer so far: {answer}") };
    match ending {
        Ending::Completed => Ok(answer.to_owned()),
        Ending::Failed(error) => {
            Err(ToolError::new("subagent_failed", format!("{}: {}{so_far}", error.code, error.message)))
        }
        Ending::Cancelled => Err(ToolError::new("subagent_cancelled", format!("the subagent was cancelled{so_far}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunError;

    #[test]
    fn an_agents_name_becomes_a_name_of_a_tool() {
        for (agent, expected) in [
            ("researcher", "delegate_to_researcher"),
            ("Web Search (fast)", "delegate_to_web_search_fast"),
            ("a--b__c", "delegate_to_a_b_c"),
            ("研究", "delegate_to"),
        ] {
            assert_eq!(tool_name(agent), expected, "{agent}");
        }
        assert_eq!(tool_name(&"x".repeat(100)).len(), MAX_TOOL_NAME);
    }

    #[test]
    fn a_delegation_is_one_message() {
        let message = |input: Value| Delegation::of(&input).map(Delegation::message).map_err(|error| error.code);
        assert_eq!(message(json!({"task": "count"})), Ok("count".to_owned()));
        assert_eq!(message(json!({"task": "count", "context": "apples"})), Ok("count\n\napples".to_owned()));
        assert_eq!(message(json!({"task": "count", "context": " "})), Ok("count".to_owned()));
        assert_eq!(message(json!({})), Err("invalid_arguments".to_owned()));
    }

    #[test]
    fn a_childs_end_is_the_outcome_of_a_call() {
        let failed = Ending::Failed(RunError::new("timeout", "too slow"));
        let outcome = |ending: &Ending, answer: &str| match outcome_of(ending, answer) {
            Ok(output) => output,
            Err(error) => format!("{}: {}", error.code, error.message),
        };
        assert_eq!(outcome(&Ending::Completed, "seven"), "seven");
        assert_eq!(outcome(&failed, ""), "subagent_failed: timeout: too slow");
        assert_eq!(outcome(&failed, "se"), "subagent_failed: timeout: too slow; its answer so far: se");
        assert_eq!(outcome(&Ending::Cancelled, ""), "subagent_cancelled: the subagent was cancelled");
    }
}
