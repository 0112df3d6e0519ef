//! The refusals of Gemini's `generateContent`, in its words. It needs no server, so tests of single requests use it too.

use serde_json::Value;

/// The keywords that a function's parameters may have.
const KEYWORDS: [&str; 22] = [
    "$id",
    "$defs",
    "$ref",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "default",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
    "propertyOrdering",
];

/// Refuses a body for this model that breaks a rule.
pub fn check(model: &str, body: &Value) -> Result<(), String> {
    for function in body["tools"][0]["functionDeclarations"].as_array().into_iter().flatten() {
        let name = function["name"].as_str().unwrap_or_default();
        schema(&function["parametersJsonSchema"]).map_err(|problem| {
            format!("Invalid JSON payload received. {problem} at 'tools[0].function_declarations' of {name}: Cannot find field.")
        })?;
    }
    let config = &body["generationConfig"];
    let has_tools = body.get("tools").is_some();
    if has_tools && config.get("responseMimeType").is_some() && !model.starts_with("gemini-3") {
        return Err("Function calling with a response mime type: 'application/json' is unsupported".to_owned());
    }
    let contents = body["contents"].as_array().filter(|contents| !contents.is_empty());
    contents_of(model, contents.ok_or("* GenerateContentRequest.contents: contents is not specified")?)
}

fn schema(schema: &Value) -> Result<(), String> {
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        if !KEYWORDS.contains(&keyword.as_str()) {
            return Err(format!("Unknown name \"{keyword}\""));
        }
        match keyword.as_str() {
            "properties" | "$defs" => {
                value.as_object().into_iter().flatten().try_for_each(|(_, inner)| self::schema(inner))?
            }
            "anyOf" | "oneOf" | "prefixItems" => value.as_array().into_iter().flatten().try_for_each(self::schema)?,
            "items" => self::schema(value)?,
            _ => {}
        }
    }
    Ok(())
}

fn contents_of(model: &str, contents: &[Value]) -> Result<(), String> {
    let mut open = 0;
    for (n, content) in contents.iter().enumerate() {
        let role = if n % 2 == 0 { "user" } else { "model" };
        if content["role"] != role {
            return Err("Please ensure that multiturn requests alternate between user and model.".to_owned());
        }
        let parts = content["parts"].as_array().filter(|parts| !parts.is_empty());
        let parts = parts.ok_or_else(|| {
            format!("Unable to submit request because it must include at least one parts field ({n}).")
        })?;
        if parts.iter().any(|part| part.get("text").is_some_and(|text| text == "")) {
            return Err("Unable to submit request because it has an empty text parameter. Add a value to the parameter and try again.".to_owned());
        }
        let responses = parts.iter().filter(|part| part.get("functionResponse").is_some()).count();
        if responses != open {
            return Err("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".to_owned());
        }
        let calls: Vec<&Value> = parts.iter().filter(|part| part.get("functionCall").is_some()).collect();
        open = calls.len();
        if model.starts_with("gemini-3") && calls.first().is_some_and(|call| call.get("thoughtSignature").is_none()) {
            return Err(format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `{}`, position {n}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
                calls[0]["functionCall"]["name"].as_str().unwrap_or_default()
            ));
        }
    }
    if contents.last().is_none_or(|content| content["role"] != "user") {
        return Err(
            "Please ensure that single turn requests end with a user role or the role field is empty.".to_owned()
        );
    }
    Ok(())
}
