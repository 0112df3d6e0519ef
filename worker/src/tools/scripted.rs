//! The tools of the scripted model, with which tools can be tried without a provider.

use std::time::Duration;

use holdfast_shared::tool::{ApprovalPolicy, Effect};
use serde_json::Value;

use crate::model::{ToolSpec, scripted};

/// A tool of the scripted model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptedTool {
    /// Returns its input, after a delay if requested.
    Echo,
    /// Does nothing, and only after a human has approved it.
    Approval,
    /// The client executes it.
    Client,
}

/// Returns all of them with their declarations.
pub fn tools() -> impl Iterator<Item = (ScriptedTool, ToolSpec)> {
    scripted::tools().into_iter().filter_map(|spec| {
        let tool = match spec.name.as_str() {
            "scripted__echo" => ScriptedTool::Echo,
            "scripted__approval" => ScriptedTool::Approval,
            "scripted__clienttool" => ScriptedTool::Client,
            _ => return None,
        };
        Some((tool, spec))
    })
}

impl ScriptedTool {
    pub const fn effect(self) -> Effect {
        match self {
            Self::Echo => Effect::ReadOnly,
            Self::Approval | Self::Client => Effect::Once,
        }
    }

    pub const fn approval(self) -> ApprovalPolicy {
        match self {
            Self::Approval => ApprovalPolicy::Always,
            Self::Echo | Self::Client => ApprovalPolicy::Never,
        }
    }

    pub async fn call(self, input: &Value) -> String {
        let text = |field: &str| input[field].as_str().unwrap_or_default().to_owned();
        match self {
            Self::Echo => {
                tokio::time::sleep(Duration::from_millis(input["delay_ms"].as_u64().unwrap_or(0))).await;
                text("text")
            }
            Self::Approval => format!("done: {}", text("action")),
            Self::Client => text("question"),
        }
    }
}
