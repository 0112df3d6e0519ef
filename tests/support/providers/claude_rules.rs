//! The refusals of Anthropic's messages, in its words. It needs no server, so tests of single requests use it too.

use serde_json::Value;

/// Refuses a body that breaks a rule.
pub fn check(body: &Value) -> Result<(), String> {
    if !body["max_tokens"].is_u64() {
        return Err("max_tokens: Field required".to_owned());
    }
    marks(body)?;
    tools(body)?;
    options(body)?;
    messages(body["messages"].as_array().ok_or("messages: Field required")?, body)
}

fn marks(body: &Value) -> Result<(), String> {
    let count = body.to_string().matches("\"cache_control\"").count();
    if count > 4 {
        return Err(format!("A maximum of 4 blocks with cache_control may be provided. Found {count}."));
    }
    Ok(())
}

fn tools(body: &Value) -> Result<(), String> {
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    for (n, tool) in tools.iter().enumerate() {
        let name = tool["name"].as_str().unwrap_or_default();
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if name.is_empty() || name.len() > 128 || !name.bytes().all(is_valid) {
            return Err(format!("tools.{n}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"));
        }
        if ["oneOf", "allOf", "anyOf"].iter().any(|keyword| tool["input_schema"].get(keyword).is_some()) {
            return Err(format!(
                "tools.{n}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
            ));
        }
        schema(&tool["input_schema"]).map_err(|message| format!("tools.{n}.custom.input_schema{message}"))?;
        if tool["input_schema"]["type"] != "object" {
            return Err(format!("tools.{n}.custom.input_schema.type: Input should be 'object'"));
        }
    }
    if body.get("tool_choice").is_some() && tools.is_empty() {
        return Err("tool_choice: `tool_choice` may only be specified while providing `tools`.".to_owned());
    }
    let choice = &body["tool_choice"];
    if choice["type"] == "tool" && !tools.iter().any(|tool| tool["name"] == choice["name"]) {
        return Err(format!("Tool '{}' not found in provided tools", choice["name"].as_str().unwrap_or_default()));
    }
    Ok(())
}

/// Refuses names of properties that the provider does not take, and keywords of drafts before 2020-12.
fn schema(schema: &Value) -> Result<(), String> {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let is_taken = |name: &String| (1..=64).contains(&name.len()) && name.bytes().all(is_valid);
    let properties = schema["properties"].as_object();
    if !properties.into_iter().flatten().all(|(name, _)| is_taken(name)) {
        return Err(".properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'".to_owned());
    }
    let is_older = schema["items"].is_array()
        || schema["exclusiveMinimum"].is_boolean()
        || schema["exclusiveMaximum"].is_boolean();
    if is_older {
        return Err(": JSON schema is invalid. It must match JSON Schema draft 2020-12".to_owned());
    }
    let items = schema.get("items");
    properties.into_iter().flatten().map(|(_, property)| property).chain(items).try_for_each(self::schema)
}

fn options(body: &Value) -> Result<(), String> {
    let thinks = matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive"));
    if let Some(budget) = body["thinking"]["budget_tokens"].as_u64() {
        if budget < 1_024 {
            return Err("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024".to_owned());
        }
        if body["max_tokens"].as_u64() <= Some(budget) {
            return Err("`max_tokens` must be greater than `thinking.budget_tokens`.".to_owned());
        }
    }
    if thinks && matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool")) {
        return Err("Thinking may not be enabled when tool_choice forces tool use.".to_owned());
    }
    match body["temperature"].as_f64() {
        Some(_) if thinks => Err("`temperature` may only be set to 1 when thinking is enabled.".to_owned()),
        Some(_) if body.get("top_p").is_some() => {
            Err("`temperature` and `top_p` cannot both be specified for this model. Please use only one.".to_owned())
        }
        Some(temperature) if temperature > 1.0 => Err("temperature: range: 0..1".to_owned()),
        _ => Ok(()),
    }
}

fn messages(messages: &[Value], body: &Value) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != role {
            return Err(
                "messages: roles must alternate between \"user\" and \"assistant\", but found multiple in a row"
                    .to_owned(),
            );
        }
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        if blocks.is_empty() {
            return Err(format!("messages.{n}: all messages must have non-empty content"));
        }
        results(n, blocks, &open)?;
        blocks.iter().try_for_each(|block| block_of(n, block))?;
        open = blocks
            .iter()
            .filter(|block| block["type"] == "tool_use")
            .filter_map(|block| block["id"].as_str())
            .collect();
        if !open.is_empty() && body["tools"].as_array().is_none_or(Vec::is_empty) {
            return Err("Requests which include `tool_use` or `tool_result` blocks must define tools".to_owned());
        }
        let budget = body["thinking"]["type"] == "enabled";
        if budget && n + 2 == messages.len() && !open.is_empty() && !is_thinking(&blocks[0]) {
            return Err(format!(
                "messages.{n}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).",
                blocks[0]["type"].as_str().unwrap_or_default()
            ));
        }
    }
    if messages.last().is_none_or(|message| message["role"] != "user") {
        return Err(
            "This model does not support assistant message prefill. The conversation must end with a user message."
                .to_owned(),
        );
    }
    Ok(())
}

fn is_thinking(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

/// Refuses results that answer no call, or do not answer all calls at once and first.
fn results(n: usize, blocks: &[Value], open: &[&str]) -> Result<(), String> {
    let ids: Vec<&str> = blocks.iter().filter_map(|block| block["tool_use_id"].as_str()).collect();
    let is_result = |block: &Value| block["type"] == "tool_result";
    if let Some(id) = ids.iter().find(|id| !open.contains(id)) {
        return Err(format!(
            "messages.{n}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        ));
    }
    if open.iter().any(|id| !ids.contains(id)) || !blocks.iter().take(open.len()).all(is_result) {
        return Err(format!(
            "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
            n - 1,
            open.join(", ")
        ));
    }
    Ok(())
}

fn block_of(n: usize, block: &Value) -> Result<(), String> {
    match block["type"].as_str() {
        Some("text") if block["text"].as_str().is_none_or(|text| text.trim().is_empty()) => {
            Err("messages: text content blocks must contain non-whitespace text".to_owned())
        }
        Some("image") if block["source"]["data"].as_str().is_some_and(|data| data.len() > 5 * 1024 * 1024) => {
            Err(format!("messages.{n}.content.0.image.source.base64: image exceeds 5 MB maximum"))
        }
        Some("thinking") if block["signature"].as_str().is_none_or(str::is_empty) => {
            Err(format!("messages.{n}.content.0.thinking.signature: Field required"))
        }
        Some("tool_use") if !block["input"].is_object() => {
            Err(format!("messages.{n}.content.0.tool_use.input: Input should be a valid dictionary"))
        }
        _ => Ok(()),
    }
}
