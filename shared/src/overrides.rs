//! Overrides: parts of the requests to the model that the client of a run brings with its message.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    agent::ModelOptions,
    file::{FileLink, UserContent},
    message::Role,
    storage::EarlierResult,
    tool::ClientTool,
    tool_choice::ToolChoice,
};

/// Parts of the model's requests. They hold for one run, and not for the runs below it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunOverrides {
    /// Instructions after those of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The profile of models that replaces the agent's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Options that replace those of the agent's model.
    #[serde(skip_serializing_if = "ModelOptions::is_default")]
    pub options: ModelOptions,
    /// How the model chooses its words.
    #[serde(skip_serializing_if = "Sampling::is_default")]
    pub sampling: Sampling,
    /// The form of the answer; a text without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<JsonFormat>,
    /// The tools that the model may or must call; as the model decides without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// The name of the user who has written the run's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Files of the run's message that the worker fetches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<FileLink>,
    /// Messages that replace those of the conversation before the run's input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<GivenHistory>,
    /// Number of older messages that the client brought and its conversation does not keep.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

/// How a model chooses its words, beside the options of an agent. Not every provider has fields for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// Equal seeds give equal answers, as far as the provider can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// From -2 to 2: above 0, the model prefers words that it has not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// From -2 to 2: above 0, the model avoids words the more, the more often it has used them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
}

impl Sampling {
    /// Returns whether the provider decides everything.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The form of an answer in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JsonFormat {
    /// The client's name for it.
    pub name: String,
    /// The schema of the answer; any object without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// True if the model must follow the schema exactly.
    #[serde(default)]
    pub strict: bool,
}

/// The messages around the run's input, as the client has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GivenHistory {
    /// Messages before the input, oldest first.
    pub before: Vec<GivenMessage>,
    /// Results of tools after the input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<EarlierResult>,
    /// The beginning of the answer, which the model continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<String>,
    /// Number of older messages, calls and results that the server has left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// A message before the run's input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GivenMessage {
    /// Its author.
    pub role: Role,
    /// Its text and its files.
    pub content: UserContent,
    /// Results of tools that led to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<EarlierResult>,
}

impl RunOverrides {
    /// Returns whether the client brings nothing.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The tools and the overrides of a run as its row has them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct StoredClientParts {
    /// Tools that the client executes.
    pub client_tools: Vec<ClientTool>,
    /// Parts of the model's requests.
    #[serde(default, skip_serializing_if = "RunOverrides::is_default")]
    pub overrides: RunOverrides,
}

impl StoredClientParts {
    /// Returns the JSON of a run's row; `None` if the client brings neither.
    pub fn row(client_tools: &[ClientTool], overrides: &RunOverrides) -> Option<Value> {
        let is_empty = client_tools.is_empty() && overrides.is_default();
        let parts = Self { client_tools: client_tools.to_vec(), overrides: overrides.clone() };
        (!is_empty).then(|| serde_json::json!(parts))
    }
}
