//! The client's choice of the tools that its run's model may call, and whether the model must call one.

use serde::{Deserialize, Serialize};

/// The choice of a request. It holds for the run of the request, and not for the runs below it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolChoice {
    /// Whether the model may, must or must not call a tool.
    pub mode: ToolMode,
    /// The only tools that the model has; all of the run's without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// `false` if the model makes one call in a step at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<bool>,
    /// The step after which the client has sent the choice; 0 with the message. The first call of a later step satisfies a demand,
    /// because the model would otherwise call tools for ever.
    pub after_step: u32,
}

/// Whether the model calls a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolMode {
    /// The model decides.
    #[default]
    Auto,
    /// It answers in words.
    None,
    /// It calls at least one tool.
    Required,
    /// It calls the tool of this name.
    Named(String),
}

impl ToolChoice {
    /// Returns whether the choice is the same as none.
    pub fn is_default(&self) -> bool {
        *self == Self { after_step: self.after_step, ..Self::default() }
    }

    /// Returns whether a tool may be called, by its name.
    pub fn allows(&self, tool: &str) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|name| name == tool))
    }
}

impl ToolMode {
    /// Returns whether the model must call a tool.
    pub const fn is_demand(&self) -> bool {
        matches!(self, Self::Required | Self::Named(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_alone_makes_no_choice() {
        assert!(ToolChoice { after_step: 3, ..ToolChoice::default() }.is_default());
        assert!(!ToolChoice { mode: ToolMode::None, ..ToolChoice::default() }.is_default());
        assert!(!ToolChoice { parallel: Some(true), ..ToolChoice::default() }.is_default());
    }

    #[test]
    fn a_choice_without_a_list_allows_every_tool() {
        let allowed = Some(vec!["a".to_owned()]);
        let choice = ToolChoice { allowed, ..ToolChoice::default() };
        assert!(choice.allows("a") && !choice.allows("b") && ToolChoice::default().allows("b"));
    }
}
