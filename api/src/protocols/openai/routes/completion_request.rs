//! The body of a request for a chat completion.

use holdfast_shared::{
    agent::ModelOptions,
    overrides::{JsonFormat, Sampling},
    tool::ClientTool,
    tool_choice::ToolChoice,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    request::{client_tool, effort, json_format, parts_of, result_of, text_of},
    tool_choice::tool_choice,
    turns::RequestTurn,
};
use crate::{problem::Problem, thread::UiPart};

/// The route ignores unknown fields.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct CompletionBody {
    /// The name of an agent or of a profile, or `default`.
    #[serde(default)]
    pub model: Option<String>,
    /// The whole conversation.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<CompletionMessage>,
    #[serde(default)]
    pub stream: Option<bool>,
    /// Whether the run continues when the client closes the connection.
    #[serde(default)]
    background: Option<bool>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    stream_options: Option<Value>,
    /// `conversation_id` names a conversation of this server.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
    /// Functions that the client executes.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    tool_choice: Value,
    #[serde(default)]
    #[schema(value_type = Option<bool>)]
    parallel_tool_calls: Value,
    #[serde(default)]
    temperature: Option<f64>,
    #[serde(default)]
    top_p: Option<f64>,
    #[serde(default)]
    max_tokens: Option<u32>,
    #[serde(default)]
    max_completion_tokens: Option<u32>,
    #[serde(default)]
    seed: Option<i64>,
    #[serde(default)]
    presence_penalty: Option<f64>,
    #[serde(default)]
    frequency_penalty: Option<f64>,
    /// 1: a completion has one choice.
    #[serde(default)]
    n: Option<u32>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    logit_bias: Value,
    #[serde(default)]
    logprobs: Option<bool>,
    /// A text, or a list of texts.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    stop: Value,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    reasoning_effort: Value,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    response_format: Value,
}

#[derive(Deserialize)]
struct CompletionMessage {
    role: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    tool_calls: Option<Vec<Value>>,
    tool_call_id: Option<String>,
}

impl CompletionBody {
    /// Returns the turns of the messages.
    pub fn turns(&self) -> Result<Vec<RequestTurn>, Problem> {
        let turns: Result<Vec<_>, _> = self.messages.iter().map(turns_of).collect();
        Ok(turns?.into_iter().flatten().collect())
    }

    /// Returns whether nothing leads back to the answer once the connection is closed.
    pub fn is_lost_with_its_connection(&self) -> bool {
        let conversation = self.metadata.as_ref().and_then(|metadata| metadata.get("conversation_id"));
        self.background != Some(true) && conversation.is_none()
    }

    pub fn has_usage(&self) -> bool {
        self.stream_options.as_ref().is_some_and(|options| options["include_usage"] == true)
    }

    /// Returns the functions that the client executes.
    pub fn client_tools(&self) -> Vec<ClientTool> {
        self.tools.iter().flatten().map(client_tool).collect()
    }

    /// Returns the client's choice of tools.
    pub fn tool_choice(&self) -> Result<Option<ToolChoice>, Problem> {
        tool_choice(&self.tool_choice, &self.parallel_tool_calls)
    }

    /// Returns the options of the model.
    pub fn options(&self) -> ModelOptions {
        let stop = match &self.stop {
            Value::String(text) => vec![text.clone()],
            Value::Array(texts) => texts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        ModelOptions {
            temperature: self.temperature,
            top_p: self.top_p,
            max_tokens: self.max_completion_tokens.or(self.max_tokens),
            stop,
            reasoning_effort: effort(&self.reasoning_effort),
            ..ModelOptions::default()
        }
    }

    /// Returns how the model chooses its words. A penalty of 0 is the same as none. Fails for what no completion of this server has.
    pub fn sampling(&self) -> Result<Sampling, Problem> {
        if self.n.is_some_and(|choices| choices != 1) {
            return Err(Problem::invalid_body("n is 1: a completion has one choice."));
        }
        if self.logprobs == Some(true) {
            return Err(Problem::invalid_body("logprobs is false: this server has no probabilities of words."));
        }
        if self.logit_bias.as_object().is_some_and(|bias| !bias.is_empty()) {
            return Err(Problem::invalid_body("logit_bias is empty: this server passes no biases on."));
        }
        for (name, penalty) in
            [("presence_penalty", self.presence_penalty), ("frequency_penalty", self.frequency_penalty)]
        {
            if penalty.is_some_and(|penalty| !(-2.0..=2.0).contains(&penalty)) {
                return Err(Problem::invalid_body(format!("{name} is a number from -2 to 2.")));
            }
        }
        let penalty = |penalty: Option<f64>| penalty.filter(|penalty| *penalty != 0.0);
        Ok(Sampling {
            seed: self.seed,
            presence_penalty: penalty(self.presence_penalty),
            frequency_penalty: penalty(self.frequency_penalty),
        })
    }

    /// Returns the form of the answer.
    pub fn format(&self) -> Option<JsonFormat> {
        json_format(&self.response_format, &self.response_format["json_schema"])
    }
}

/// Longest name of a speaker.
const MAX_SPEAKER: usize = 64;

/// Returns a name as OpenAI takes it.
fn speaker_name(name: &str) -> String {
    let plain = name.trim().chars().map(|c| if c.is_whitespace() || "<|\\/>".contains(c) { '_' } else { c });
    plain.filter(|c| !c.is_control()).take(MAX_SPEAKER).collect()
}

fn turns_of(message: &CompletionMessage) -> Result<Vec<RequestTurn>, Problem> {
    let CompletionMessage { role, name, content, tool_calls, tool_call_id } = message;
    match role.as_str() {
        "user" => {
            let speaker = name.as_deref().map(speaker_name).filter(|name| !name.is_empty()).map(UiPart::Speaker);
            Ok(vec![RequestTurn::User(speaker.into_iter().chain(parts_of(content)?).collect())])
        }
        "system" | "developer" => Ok(vec![RequestTurn::Instructions(text_of(content))]),
        "assistant" => {
            let calls = tool_calls.iter().flatten().map(|call| RequestTurn::Call {
                call_id: call["id"].as_str().unwrap_or_default().to_owned(),
                name: call["function"]["name"].as_str().unwrap_or_default().to_owned(),
                arguments: call["function"]["arguments"].as_str().unwrap_or_default().to_owned(),
                run_id: None,
            });
            let text = text_of(content);
            let said = (!text.is_empty()).then_some(RequestTurn::Assistant { text, run_id: None });
            Ok(said.into_iter().chain(calls).collect())
        }
        "tool" => {
            let call_id = tool_call_id.clone().unwrap_or_default();
            Ok(vec![result_of(call_id, content)])
        }
        role => Err(Problem::invalid_body(format!(
            "A message has the role system, developer, user, assistant or tool, not {role:?}."
        ))),
    }
}
