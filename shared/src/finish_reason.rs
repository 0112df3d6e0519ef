//! The reason why a model ended its answer: one list for all providers.

use serde::{Deserialize, Serialize};

/// The reason why the model ended an answer or a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case", from = "String")]
#[strum(serialize_all = "snake_case")]
pub enum FinishReason {
    /// The answer is complete.
    Stop,
    /// The model asks for tool calls.
    ToolCalls,
    /// The answer reached the token limit of the model, the provider or the settings.
    Length,
    /// The provider withheld the answer, or the rest of it, or the model refused.
    ContentFilter,
    /// The provider gave another reason, or none.
    #[default]
    Other,
}

impl FinishReason {
    /// The spelling in SQL and JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Reads the spelling. An unknown reason, perhaps from a newer version, becomes `Other`.
impl From<String> for FinishReason {
    fn from(text: String) -> Self {
        text.parse().unwrap_or_default()
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
