//! The body of a request.

use holdfast_shared::tool_choice::ToolMode;
use serde_json::{Map, Value, json};

use crate::model::{AnswerForm, Request, ToolRequest, ToolSpec, Turn, UserPart};

/// Returns the body. `max_tokens` applies if the request sets no limit.
pub fn write(model: &str, request: &Request, max_tokens: Option<u32>) -> Value {
    let tools = tools(request);
    let demand = request.demand_in_words().filter(|_| !tools.is_empty());
    let texts: Vec<String> =
        request.system.iter().cloned().chain(demand).filter(|text| !text.trim().is_empty()).collect();
    let system = (!texts.is_empty()).then(|| json!({"role": "system", "content": texts.join("\n\n")}));
    let messages: Vec<Value> = system.into_iter().chain(request.turns.iter().filter_map(message)).collect();
    let mut body = json!({"model": model, "stream": true, "messages": messages});
    if !tools.is_empty() {
        body["tools"] = tools.into();
    } else if let AnswerForm::Json(format) = &request.form {
        // The form bounds every word of the model, so it excludes calls.
        body["format"] = format.schema.clone().unwrap_or_else(|| json!("json"));
    }
    if let Some(effort) = request.options.reasoning_effort {
        body["think"] = json!(effort);
    }
    let options = options(request, max_tokens);
    if !options.is_empty() {
        body["options"] = Value::Object(options);
    }
    body
}

/// Removes the wish that the model thinks. Returns false if there is none.
pub fn leave_thinking_out(body: &mut Value) -> bool {
    body.as_object_mut().is_some_and(|fields| fields.shift_remove("think").is_some())
}

fn options(request: &Request, max_tokens: Option<u32>) -> Map<String, Value> {
    let options = &request.options;
    let stop = (!options.stop.is_empty()).then(|| json!(options.stop));
    let fields = [
        ("temperature", options.temperature.map(|temperature| json!(temperature))),
        ("top_p", options.top_p.map(|top_p| json!(top_p))),
        ("num_predict", options.max_tokens.or(max_tokens).map(|tokens| json!(tokens))),
        ("num_ctx", request.context_tokens.map(|tokens| json!(tokens))),
        ("stop", stop),
        ("seed", request.sampling.seed.map(|seed| json!(seed))),
        ("presence_penalty", request.sampling.presence_penalty.map(|penalty| json!(penalty))),
        ("frequency_penalty", request.sampling.frequency_penalty.map(|penalty| json!(penalty))),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Returns the message of a turn, or `None` if it says nothing.
fn message(turn: &Turn) -> Option<Value> {
    match turn {
        Turn::User(parts) | Turn::Files(parts) => Some(message_of_user(parts)),
        Turn::Assistant { text, calls } if text.trim().is_empty() && calls.is_empty() => None,
        Turn::Assistant { text, calls } => {
            let mut message = json!({"role": "assistant"});
            if !text.trim().is_empty() {
                message["content"] = json!(text);
            }
            if !calls.is_empty() {
                message["tool_calls"] = calls.iter().map(call).collect();
            }
            Some(message)
        }
        // The protocol has no field for a failed call: the text describes the error.
        Turn::Tool { name, text, .. } => Some(json!({"role": "tool", "tool_name": name, "content": text})),
    }
}

fn message_of_user(parts: &[UserPart]) -> Value {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            UserPart::Text(text) | UserPart::Speaker(text) => texts.push(text.as_str()),
            UserPart::File(file) if file.is_picture() => images.push(&*file.data),
            UserPart::File(file) => texts.push(&file.name),
        }
    }
    let mut message = json!({"role": "user", "content": texts.join("\n\n")});
    if !images.is_empty() {
        message["images"] = json!(images);
    }
    message
}

fn call(call: &ToolRequest) -> Value {
    json!({"function": {"name": call.name, "arguments": call.arguments()}})
}

/// Returns the tools that the model may call now. The protocol has no field for that, so the others are not declared.
fn tools(request: &Request) -> Vec<Value> {
    let is_offered = |tool: &&ToolSpec| match &request.tool_mode {
        ToolMode::Auto | ToolMode::Required => true,
        ToolMode::None => false,
        ToolMode::Named(name) => tool.name == *name,
    };
    request.tools.iter().filter(is_offered).map(tool).collect()
}

fn tool(tool: &ToolSpec) -> Value {
    let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.input_schema});
    json!({"type": "function", "function": function})
}
