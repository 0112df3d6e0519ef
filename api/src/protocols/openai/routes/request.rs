//! The body of a request for a response.

use holdfast_shared::{
    agent::{ModelOptions, ReasoningEffort},
    given_json,
    overrides::JsonFormat,
    tool::{ClientTool, any_object},
    tool_choice::ToolChoice,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{tool_choice::tool_choice, turns::RequestTurn};
use crate::{
    problem::Problem,
    protocols::openai::wire::{flat_name, run_of_item},
    thread::{FILES, UiPart},
};

/// The route ignores unknown fields.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct ResponseRequest {
    /// The name of an agent or of a profile, or `default`.
    #[serde(default)]
    pub model: Option<String>,
    /// A text, or a list of items.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    input: Option<Value>,
    /// Instructions after those of the agent.
    #[serde(default)]
    pub instructions: Option<String>,
    #[serde(default)]
    pub previous_response_id: Option<String>,
    /// The id of a conversation, or an object with it.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    conversation: Option<Value>,
    #[serde(default)]
    pub stream: Option<bool>,
    #[serde(default)]
    pub background: Option<bool>,
    #[serde(default)]
    pub store: Option<bool>,
    /// At most 16 texts.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
    /// Functions that the client executes; the server's own tools are its agent's.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    temperature: Option<f64>,
    #[serde(default)]
    top_p: Option<f64>,
    #[serde(default)]
    max_output_tokens: Option<u32>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub reasoning: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub text: Option<Value>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub tool_choice: Value,
    #[serde(default)]
    #[schema(value_type = Option<bool>)]
    pub parallel_tool_calls: Value,
    /// Repeated in the response, as the fields after it are; none of them has an effect.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub truncation: Value,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub user: Value,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub safety_identifier: Value,
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub prompt_cache_key: Value,
}

#[derive(Deserialize)]
struct InputItem {
    #[serde(rename = "type")]
    kind: Option<String>,
    id: Option<String>,
    role: Option<String>,
    #[serde(default)]
    content: Value,
    call_id: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    arguments: Option<String>,
    #[serde(default)]
    output: Value,
    approval_request_id: Option<String>,
    approve: Option<bool>,
    reason: Option<String>,
}

impl ResponseRequest {
    /// Returns the turns of the input.
    pub fn turns(&self) -> Result<Vec<RequestTurn>, Problem> {
        match &self.input {
            Some(Value::String(text)) => Ok(vec![RequestTurn::User(vec![UiPart::Text { text: text.clone() }])]),
            Some(Value::Array(items)) => {
                let turns: Result<Vec<_>, _> = items.iter().map(turn_of_item).collect();
                Ok(turns?.into_iter().flatten().collect())
            }
            _ => Err(Problem::invalid_body("input is a text or a list of items.")),
        }
    }

    /// Returns the id of the conversation, as the client spells it.
    pub fn conversation(&self) -> Option<&str> {
        let conversation = self.conversation.as_ref()?;
        conversation.as_str().or_else(|| conversation["id"].as_str())
    }

    /// Returns the functions that the client executes.
    pub fn client_tools(&self) -> Vec<ClientTool> {
        self.functions().map(|(namespace, tool)| in_namespace(client_tool(tool), namespace)).collect()
    }

    /// Returns the functions as the request has them, each with the namespace that it is in.
    pub fn functions(&self) -> impl Iterator<Item = (Option<&str>, &Value)> {
        self.tools.iter().flatten().flat_map(functions_of)
    }

    /// Returns the client's choice of tools.
    pub fn tool_choice(&self) -> Result<Option<ToolChoice>, Problem> {
        tool_choice(&self.tool_choice, &self.parallel_tool_calls)
    }

    /// Returns the options of the model.
    pub fn options(&self) -> ModelOptions {
        ModelOptions {
            temperature: self.temperature,
            top_p: self.top_p,
            max_tokens: self.max_output_tokens,
            stop: Vec::new(),
            reasoning_effort: self.reasoning.as_ref().and_then(|reasoning| effort(&reasoning["effort"])),
            ..ModelOptions::default()
        }
    }

    /// Returns the form of the answer.
    pub fn format(&self) -> Option<JsonFormat> {
        let format = &self.text.as_ref()?["format"];
        json_format(format, format)
    }
}

/// Returns the turn of an item; `None` for one that says nothing here.
pub fn turn_of_item(item: &Value) -> Result<Option<RequestTurn>, Problem> {
    let item: InputItem = given_json::read(item)
        .map_err(|problem| Problem::invalid_body(format!("An item of the input is invalid: {problem}.")))?;
    let run_id = item.id.as_deref().and_then(run_of_item);
    let missing = |field: &str| Problem::invalid_body(format!("An item of the input lacks {field}."));
    let turn = match item.kind.as_deref() {
        None | Some("message") => match item.role.as_deref() {
            Some("user") => RequestTurn::User(parts_of(&item.content)?),
            Some("assistant") => RequestTurn::Assistant { text: text_of(&item.content), run_id },
            Some("system" | "developer") => RequestTurn::Instructions(text_of(&item.content)),
            _ => return Err(missing("a role: user, assistant, system or developer")),
        },
        Some("function_call") => {
            // A call of this server names its run.
            let run_id = run_id.or_else(|| item.call_id.as_deref().and_then(run_of_item));
            let call_id = match (item.call_id, run_id) {
                (Some(call_id), _) => call_id,
                (None, Some(run_id)) => return Ok(Some(RequestTurn::Item(run_id))),
                (None, None) => return Err(missing("call_id")),
            };
            let name = item.name.unwrap_or_default();
            RequestTurn::Call {
                call_id,
                name: item.namespace.map_or_else(|| name.clone(), |namespace| flat_name(&namespace, &name)),
                arguments: item.arguments.unwrap_or_default(),
                run_id,
            }
        }
        Some("function_call_output") => {
            let call_id = item.call_id.ok_or_else(|| missing("call_id"))?;
            result_of(call_id, &item.output)
        }
        Some("mcp_approval_response") => RequestTurn::Approval {
            request_id: item.approval_request_id.ok_or_else(|| missing("approval_request_id"))?,
            approved: item.approve.ok_or_else(|| missing("approve"))?,
            reason: item.reason,
        },
        Some(_) => return Ok(run_id.map(RequestTurn::Item)),
    };
    Ok(Some(turn))
}

/// Returns the functions of a tool: itself, or those of a namespace.
fn functions_of(tool: &Value) -> Vec<(Option<&str>, &Value)> {
    let is_function = |tool: &&Value| tool["type"] == "function";
    match tool["type"].as_str() {
        Some("namespace") => {
            let functions = tool["tools"].as_array().map_or(&[][..], Vec::as_slice).iter().filter(is_function);
            functions.map(|function| (tool["name"].as_str(), function)).collect()
        }
        _ => Some(tool).filter(is_function).map(|tool| (None, tool)).into_iter().collect(),
    }
}

fn in_namespace(tool: ClientTool, namespace: Option<&str>) -> ClientTool {
    match namespace {
        Some(namespace) => ClientTool { name: flat_name(namespace, &tool.name), ..tool },
        None => tool,
    }
}

/// Returns the function of a tool in either API.
pub fn client_tool(tool: &Value) -> ClientTool {
    let function = tool.get("function").unwrap_or(tool);
    let text = |field: &str| function[field].as_str().unwrap_or_default().to_owned();
    let input_schema = function.get("parameters").filter(|schema| schema.is_object()).cloned();
    ClientTool {
        name: text("name"),
        description: text("description"),
        input_schema: input_schema.unwrap_or_else(any_object),
    }
}

/// Returns the effort of a reasoning model; an unknown one is the model's own.
pub fn effort(effort: &Value) -> Option<ReasoningEffort> {
    ReasoningEffort::deserialize(effort).ok()
}

/// Returns the form of an answer: `format` has the type, and `named` the schema with its name.
pub fn json_format(format: &Value, named: &Value) -> Option<JsonFormat> {
    let schema = match format["type"].as_str()? {
        "json_schema" => Some(named["schema"].clone()),
        "json_object" => None,
        _ => return None,
    };
    let name = named["name"].as_str().unwrap_or("answer").to_owned();
    Some(JsonFormat { name, schema, strict: named["strict"].as_bool().unwrap_or(false) })
}

/// Returns the text of a content: a text, or a list of parts.
pub fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Returns the result of a call: its texts, and the files among its parts. A file of the web is named among the texts.
pub fn result_of(call_id: String, output: &Value) -> RequestTurn {
    let mut files = Vec::new();
    let Value::Array(parts) = output else { return RequestTurn::Result { call_id, output: text_of(output), files } };
    let mut texts = Vec::new();
    for part in parts {
        match (part["text"].as_str(), part_of(part)) {
            (Some(text), _) => texts.push(text.to_owned()),
            (None, Ok(UiPart::File { url, .. })) if !url.starts_with("data:") && !url.contains(FILES) => {
                texts.push(format!("[The file at {url} is not shown]"));
            }
            (None, Ok(file @ UiPart::File { .. })) => files.push(file),
            _ => {}
        }
    }
    if texts.is_empty() && !files.is_empty() {
        texts.push("[The result is a file]".to_owned());
    }
    RequestTurn::Result { call_id, output: texts.join("\n"), files }
}

/// Returns the parts of a user's message in either API. Fails for a part that this server does not take.
pub fn parts_of(content: &Value) -> Result<Vec<UiPart>, Problem> {
    let parts = match content {
        Value::String(text) => return Ok(vec![UiPart::Text { text: text.clone() }]),
        Value::Array(parts) => parts,
        _ => return Err(Problem::invalid_body("The content of a message is a text or a list of parts.")),
    };
    parts.iter().map(part_of).collect()
}

fn part_of(part: &Value) -> Result<UiPart, Problem> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let file = |filename: Option<String>, url: String| Ok(UiPart::File { filename, url });
    match part["type"].as_str() {
        Some("input_text" | "text" | "output_text") => {
            Ok(UiPart::Text { text: text(&part["text"]).unwrap_or_default() })
        }
        Some("input_image" | "image_url") => {
            let url = &part["image_url"];
            if let Some(url) = text(url).or_else(|| text(&url["url"])) {
                return file(None, url);
            }
            match text(&part["file_id"]) {
                Some(id) => file(None, format!("/v1/files/{id}")),
                None => Err(Problem::unsupported_part("image without image_url and file_id")),
            }
        }
        Some("input_file" | "file") => {
            let source = part.get("file").unwrap_or(part);
            if let Some(data) = text(&source["file_data"]) {
                let is_url = data.starts_with("data:");
                let url = if is_url { data } else { format!("data:application/octet-stream;base64,{data}") };
                return file(text(&source["filename"]), url);
            }
            match text(&source["file_id"]) {
                Some(id) => file(None, format!("/v1/files/{id}")),
                None => Err(Problem::unsupported_part("file without file_data and file_id")),
            }
        }
        _ => Err(Problem::unsupported_part("part that is no text, image or file")),
    }
}
