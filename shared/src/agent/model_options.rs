//! The options of an answer.

use serde::{Deserialize, Serialize};

use super::{InvalidDefinition, ReasoningEffort};

/// Options of an answer. The deployment's default, or else the provider's, replaces each absent one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelOptions {
    /// From 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Above 0, at most 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Most tokens of the answer of one step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Texts at which the model stops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The effort of a reasoning model: `low`, `medium` or `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The rules that the address follows, for `openai`: known by the address and the model's name, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<ModelDialect>,
    /// Where the model writes its reasoning, for `openai`: known by the answer and the model's name, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningPlace>,
}

/// The rules of an address that speaks OpenAI's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelDialect {
    /// OpenAI's models without reasoning, also at Azure.
    Openai,
    /// OpenAI's reasoning models, which take no temperature and no stop texts.
    OpenaiReasoning,
    /// Mistral's API.
    Mistral,
    /// Any other server.
    Compatible,
}

/// The place where a model writes its reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningPlace {
    /// The answer begins within `<think>…</think>`, even without the opening tag.
    Think,
    /// The server sends it in a field of its own.
    Field,
}

impl ModelOptions {
    /// Returns whether all options are absent.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns these options, and those of `other` where absent.
    pub fn or(&self, other: &Self) -> Self {
        Self {
            temperature: self.temperature.or(other.temperature),
            top_p: self.top_p.or(other.top_p),
            max_tokens: self.max_tokens.or(other.max_tokens),
            stop: if self.stop.is_empty() { other.stop.clone() } else { self.stop.clone() },
            reasoning_effort: self.reasoning_effort.or(other.reasoning_effort),
            dialect: self.dialect.or(other.dialect),
            reasoning: self.reasoning.or(other.reasoning),
        }
    }

    /// Fails if an option is out of its range. `at` is the path of the options.
    pub fn check(&self, at: &str) -> Result<(), InvalidDefinition> {
        let invalid = |field: &str, problem: &str| Err(InvalidDefinition::new(format!("{at}.{field}"), problem));
        if self.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
            return invalid("temperature", "a number from 0 to 2");
        }
        if self.top_p.is_some_and(|top_p| !(top_p > 0.0 && top_p <= 1.0)) {
            return invalid("top_p", "a number above 0 and at most 1");
        }
        if self.max_tokens == Some(0) {
            return invalid("max_tokens", "a whole number above 0");
        }
        Ok(())
    }
}
