//! The tools of the scripted model, with which tools can be tried without a provider.

use std::time::Duration;

use holdfast_shared::tool::{ApprovalPolicy, Effect};
use serde_json::Value;

use super::{
    drawing::square,
    returned::{ResultPart, ReturnedData, ReturnedFile},
};
use crate::model::{ToolSpec, scripted};

/// A tool of the scripted model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptedTool {
    /// Returns its input, after a delay if requested.
    Echo,
    /// Returns a picture.
    Draw,
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
            "scripted__draw" => ScriptedTool::Draw,
            "scripted__approval" => ScriptedTool::Approval,
            "scripted__clienttool" => ScriptedTool::Client,
            _ => return None,
        };
        Some((tool, spec))
    })
}

impl ScriptedTool {
    /// Returns the name without the server's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Draw => "draw",
            Self::Approval => "approval",
            Self::Client => "clienttool",
        }
    }

    pub const fn effect(self) -> Effect {
        match self {
            Self::Echo | Self::Draw => Effect::ReadOnly,
            Self::Approval | Self::Client => Effect::Once,
        }
    }

    pub const fn approval(self) -> ApprovalPolicy {
        match self {
            Self::Approval => ApprovalPolicy::Always,
            Self::Echo | Self::Draw | Self::Client => ApprovalPolicy::Never,
        }
    }

    pub async fn call(self, input: &Value) -> Vec<ResultPart> {
        let text = |field: &str| input[field].as_str().unwrap_or_default().to_owned();
        vec![ResultPart::Text(match self {
            Self::Echo => {
                tokio::time::sleep(Duration::from_millis(input["delay_ms"].as_u64().unwrap_or(0))).await;
                text("text")
            }
            Self::Approval => format!("done: {}", text("action")),
            Self::Client => text("question"),
            Self::Draw => match square(&text("color")) {
                None => format!("there is no color {:?}; give a name such as teal, or #rrggbb", text("color")),
                Some(picture) => return vec![drawn(picture)],
            },
        })]
    }
}

fn drawn(picture: Vec<u8>) -> ResultPart {
    let (media_type, data) = (Some("image/png".to_owned()), ReturnedData::Bytes(picture.into()));
    ResultPart::File(ReturnedFile { kind: "image", uri: None, media_type, data })
}
