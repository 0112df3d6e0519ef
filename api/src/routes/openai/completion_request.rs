//! The body of a request for a chat completion.

use holdfast_shared::{agent::ModelOptions, overrides::JsonFormat, tool::ClientTool};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    request::{client_tool, effort, json_format, parts_of, text_of},
    turns::RequestTurn,
};
use crate::problem::Problem;

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
    temperature: Option<f64>,
    #[serde(default)]
    top_p: Option<f64>,
    #[serde(default)]
    max_tokens: Option<u32>,
    #[serde(default)]
    max_completion_tokens: Option<u32>,
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

    pub fn has_usage(&self) -> bool {
        self.stream_options.as_ref().is_some_and(|options| options["include_usage"] == true)
    }

    /// Returns the functions that the client executes.
    pub fn client_tools(&self) -> Vec<ClientTool> {
        self.tools.iter().flatten().map(client_tool).collect()
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

    /// Returns the form of the answer.
    pub fn format(&self) -> Option<JsonFormat> {
        json_format(&self.response_format, &self.response_format["json_schema"])
    }
}

fn turns_of(message: &CompletionMessage) -> Result<Vec<RequestTurn>, Problem> {
    let CompletionMessage { role, content, tool_calls, tool_call_id } = message;
    match role.as_str() {
        "user" => Ok(vec![RequestTurn::User(parts_of(content)?)]),
        "system" | "developer" => Ok(vec![RequestTurn::Instructions(text_of(content))]),
        "assistant" => {
            let calls = tool_calls.iter().flatten().map(|call| RequestTurn::Call {
                call_id: call["id"].as_str().unwrap_or_default().to_owned(),
                name: call["function"]["name"].as_str().unwrap_or_default().to_owned(),
                arguments: call["function"]["arguments"].as_str().unwrap_or_default().to_owned(),
            });
            let text = text_of(content);
            let said = (!text.is_empty()).then_some(RequestTurn::Assistant { text, run_id: None });
            Ok(said.into_iter().chain(calls).collect())
        }
        "tool" => {
            let call_id = tool_call_id.clone().unwrap_or_default();
            Ok(vec![RequestTurn::Result { call_id, output: text_of(content) }])
        }
        role => Err(Problem::invalid_body(format!(
            "A message has the role system, developer, user, assistant or tool, not {role:?}."
        ))),
    }
}
