//! OpenAI's chat completions with a reasoning model.

use serde_json::{Value, json};

use super::{
    BodyPiece, Fake, Part, ProviderRefusal, ProviderRequest,
    chat_stream::{ChatStream, nothing, usual_id},
};

pub const OPENAI: Fake = Fake {
    name: "openai",
    model: "gpt-5-mini",
    takes_pictures: true,
    rule,
    too_long: Some(|| {
        let message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9100 tokens. Please reduce the length of the messages.";
        ProviderRefusal::of_openai(400, message, json!("messages"), json!("context_length_exceeded"))
    }),
    content_type: "text/event-stream",
    write,
    settings: |url| settings("gpt-5-mini", url),
};

/// Most tools of a request.
const MOST_TOOLS: usize = 128;

pub fn settings(model: &str, url: &str) -> Vec<(&'static str, String)> {
    vec![
        ("CHAT_MODEL_PROVIDER", "openai".to_owned()),
        ("CHAT_MODEL_NAME", model.to_owned()),
        ("OPENAI_BASE_URL", format!("{url}/v1/")),
        ("OPENAI_API_KEY", "the-key-of-the-test".to_owned()),
    ]
}

/// OpenAI does not send the thoughts of its models.
fn write(parts: &[Part]) -> Vec<BodyPiece> {
    let told: Vec<Part> = parts.iter().filter(|part| !matches!(part, Part::Reasoning(_))).cloned().collect();
    let stream = ChatStream { reasoning: |_| json!({}), call_id: usual_id, opening: "", with_calls: nothing };
    stream.write(&told)
}

fn rule(request: &ProviderRequest) -> Result<(), ProviderRefusal> {
    endpoint(request)?;
    parameters_of_a_reasoning_model(&request.body)?;
    tools(&request.body)?;
    messages(&request.body)
}

/// Refuses another path and another key.
pub fn endpoint(request: &ProviderRequest) -> Result<(), ProviderRefusal> {
    if request.path != "/v1/chat/completions" {
        let message = format!("Invalid URL (POST {})", request.path);
        return Err(ProviderRefusal::of_openai(404, message, Value::Null, Value::Null));
    }
    if request.headers.get("authorization").is_none_or(|value| value != "Bearer the-key-of-the-test") {
        let message =
            "Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.";
        return Err(ProviderRefusal::of_openai(401, message, Value::Null, json!("invalid_api_key")));
    }
    Ok(())
}

/// Refuses what reasoning models do not take.
pub fn parameters_of_a_reasoning_model(body: &Value) -> Result<(), ProviderRefusal> {
    if !body["max_tokens"].is_null() {
        let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        return Err(ProviderRefusal::of_openai(400, message, json!("max_tokens"), json!("unsupported_parameter")));
    }
    if let Some(value) = body.get("temperature").filter(|value| value.as_f64() != Some(1.0)) {
        let message = format!(
            "Unsupported value: 'temperature' does not support {value} with this model. Only the default (1) value is supported."
        );
        return Err(ProviderRefusal::of_openai(400, message, json!("temperature"), json!("unsupported_value")));
    }
    if body.get("stop").is_some() {
        let message = "Unsupported parameter: 'stop' is not supported with this model.";
        return Err(ProviderRefusal::of_openai(400, message, json!("stop"), json!("unsupported_parameter")));
    }
    Ok(())
}

/// Refuses too many tools, their names and their schemas.
pub fn tools(body: &Value) -> Result<(), ProviderRefusal> {
    let Some(tools) = body["tools"].as_array() else { return without_tools(body) };
    let named = &body["tool_choice"]["function"]["name"];
    if named.is_string() && !tools.iter().any(|tool| tool["function"]["name"] == *named) {
        let message = format!("Invalid value for 'tool_choice': Tool choice {named} not found in 'tools' parameter.");
        return Err(ProviderRefusal::of_openai(400, message, json!("tool_choice"), Value::Null));
    }
    if tools.is_empty() {
        let message =
            "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.";
        return Err(ProviderRefusal::of_openai(400, message, json!("tools"), json!("empty_array")));
    }
    if tools.len() > MOST_TOOLS {
        let message = format!(
            "Invalid 'tools': array too long. Expected an array with maximum length {MOST_TOOLS}, but got an array with length {} instead.",
            tools.len()
        );
        return Err(ProviderRefusal::of_openai(400, message, json!("tools"), json!("array_above_max_length")));
    }
    for (n, tool) in tools.iter().enumerate() {
        let name = tool["function"]["name"].as_str().unwrap_or_default();
        name_of(name, &format!("tools[{n}].function.name"))?;
        if let Err(problem) = schema(&tool["function"]["parameters"]) {
            let message = format!("Invalid schema for function '{name}': {problem}");
            let param = json!(format!("tools[{n}].function.parameters"));
            return Err(ProviderRefusal::of_openai(400, message, param, json!("invalid_function_parameters")));
        }
    }
    Ok(())
}

/// Refuses a choice among no tools.
fn without_tools(body: &Value) -> Result<(), ProviderRefusal> {
    match ["tool_choice", "parallel_tool_calls"].iter().find(|field| body.get(**field).is_some()) {
        None => Ok(()),
        Some(field) => {
            let message = format!("Invalid value for '{field}': '{field}' is only allowed when 'tools' are specified.");
            Err(ProviderRefusal::of_openai(400, message, json!(field), Value::Null))
        }
    }
}

fn name_of(name: &str, param: &str) -> Result<(), ProviderRefusal> {
    let (problem, code) =
        if name.is_empty() || name.contains(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c))) {
            (
                "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
                "invalid_value",
            )
        } else if name.len() > 64 {
            ("string too long. Expected a string with maximum length 64.", "string_above_max_length")
        } else {
            return Ok(());
        };
    Err(ProviderRefusal::of_openai(400, format!("Invalid '{param}': {problem}"), json!(param), json!(code)))
}

/// Returns what is wrong with the schema of a function's arguments.
fn schema(parameters: &Value) -> Result<(), String> {
    if parameters["type"] != "object" {
        let kind = parameters["type"].as_str().map_or("\"None\"".to_owned(), |kind| format!("\"{kind}\""));
        return Err(format!("schema must be a JSON Schema of 'type: \"object\"', got 'type: {kind}'."));
    }
    if ["oneOf", "anyOf", "allOf", "enum", "not"].iter().any(|keyword| parameters.get(keyword).is_some()) {
        return Err(
            "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
                .to_owned(),
        );
    }
    if !parameters["properties"].is_object() {
        return Err("In context=(), object schema missing properties.".to_owned());
    }
    items(parameters, &mut Vec::new())
}

/// Refuses arrays whose items have no schema.
fn items(schema: &Value, context: &mut Vec<String>) -> Result<(), String> {
    if schema["type"] == "array" && schema.get("items").is_none() {
        let context: Vec<String> = context.iter().map(|name| format!("'{name}'")).collect();
        return Err(format!("In context=({}), array schema missing items.", context.join(", ")));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        context.extend(["properties".to_owned(), name.clone()]);
        items(property, context)?;
        context.truncate(context.len() - 2);
    }
    match schema.get("items") {
        Some(inner) => items(inner, context),
        None => Ok(()),
    }
}

/// Refuses messages without a content, calls without results, and results without calls.
pub fn messages(body: &Value) -> Result<(), ProviderRefusal> {
    let messages = body["messages"].as_array().expect("every request has messages");
    let mut open: Vec<&str> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(at) = open.iter().position(|open| *open == id) else {
                let message = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
                return Err(ProviderRefusal::of_openai(
                    400,
                    message,
                    json!(format!("messages.[{n}].role")),
                    Value::Null,
                ));
            };
            open.remove(at);
            continue;
        }
        if !open.is_empty() {
            return Err(unanswered(&open));
        }
        let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        if message["content"].is_null() && (role != "assistant" || calls.is_empty()) {
            let message = "Invalid value for 'content': expected a string, got null.";
            return Err(ProviderRefusal::of_openai(
                400,
                message,
                json!(format!("messages.[{n}].content")),
                Value::Null,
            ));
        }
        for (at, call) in calls.iter().enumerate() {
            let path = format!("messages[{n}].tool_calls[{at}].function.name");
            name_of(call["function"]["name"].as_str().unwrap_or_default(), &path)?;
        }
        open = calls.iter().filter_map(|call| call["id"].as_str()).collect();
    }
    if open.is_empty() { Ok(()) } else { Err(unanswered(&open)) }
}

fn unanswered(open: &[&str]) -> ProviderRefusal {
    let message = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    );
    ProviderRefusal::of_openai(400, message, json!("messages"), Value::Null)
}

/// Returns the messages of a request.
pub fn messages_of(request: &ProviderRequest) -> &[Value] {
    request.body["messages"].as_array().expect("every request has messages")
}

/// Returns the last message of the user, as an index.
pub fn last_question(messages: &[Value]) -> usize {
    messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0)
}
