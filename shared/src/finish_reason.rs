//! Why a model ended its answer: one list for all providers.

use serde::{Deserialize, Serialize};

/// Why the model ended an answer, or a step of one. Events and rows of older versions have none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case", from = "String")]
pub enum FinishReason {
    /// The answer is complete.
    Stop,
    /// The model asks for tool calls.
    ToolCalls,
    /// The answer was cut off at the longest that model, provider or settings allow.
    Length,
    /// The provider withheld the answer, or the rest of it, or the model refused.
    ContentFilter,
    /// The provider gave a reason that is none of these, or no reason.
    #[default]
    Other,
}

impl FinishReason {
    /// The spelling in SQL and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Other => "other",
        }
    }
}

/// Reads the spelling. A reason that only a newer version knows is `Other`.
impl From<String> for FinishReason {
    fn from(text: String) -> Self {
        let known = [Self::Stop, Self::ToolCalls, Self::Length, Self::ContentFilter];
        known.into_iter().find(|reason| reason.as_str() == text).unwrap_or(Self::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_survives_json_and_an_unknown_one_is_other() {
        let check = |text: &str, expected: FinishReason| {
            let json = format!("{text:?}");
            assert_eq!(serde_json::from_str::<FinishReason>(&json).unwrap(), expected);
            assert_eq!(FinishReason::from(text.to_owned()), expected);
        };
        for reason in [
            FinishReason::Stop,
            FinishReason::ToolCalls,
            FinishReason::Length,
            FinishReason::ContentFilter,
            FinishReason::Other,
        ] {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
            check(reason.as_str(), reason);
        }
        check("bored", FinishReason::Other);
    }
}
