//! Mistral's chat completions with a reasoning model.

use serde_json::{Value, json};

use super::{
    Fake, ProviderRefusal, ProviderRequest,
    chat_stream::{ChatStream, nothing},
    openai,
};

pub const MISTRAL: Fake = Fake {
    name: "mistral",
    model: "magistral-medium-latest",
    takes_pictures: true,
    rule,
    too_long: Some(|| {
        let message =
            "Prompt contains 9100 tokens and 0 draft tokens, too large for model with 8192 maximum context length";
        invalid("invalid_request_prompt", message, "3051")
    }),
    content_type: "text/event-stream",
    write: |parts| STREAM.write(parts),
    settings: |url| openai::settings("magistral-medium-latest", url),
};

/// Reasoning is a part of the content here.
const STREAM: ChatStream = ChatStream {
    reasoning: |text| json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}),
    call_id: |n| format!("abcDEF12{n}"),
    opening: "",
    with_calls: nothing,
};

/// The fields of a request; Mistral refuses others.
const FIELDS: [&str; 20] = [
    "model",
    "messages",
    "stream",
    "tools",
    "tool_choice",
    "max_tokens",
    "temperature",
    "top_p",
    "stop",
    "random_seed",
    "response_format",
    "presence_penalty",
    "frequency_penalty",
    "n",
    "prediction",
    "parallel_tool_calls",
    "prompt_mode",
    "safe_prompt",
    "metadata",
    "reasoning_effort",
];

fn rule(request: &ProviderRequest) -> Result<(), ProviderRefusal> {
    openai::endpoint(request)?;
    for (field, value) in request.body.as_object().expect("a body is an object") {
        if !FIELDS.contains(&field.as_str()) {
            return Err(extra(&json!(["body", field]), value));
        }
    }
    let messages = openai::messages_of(request);
    for (n, message) in messages.iter().enumerate() {
        fields_of_message(n, message)?;
        let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        let ids = calls.iter().map(|call| &call["id"]).chain(message.get("tool_call_id"));
        for id in ids.map(|id| id.as_str().unwrap_or_default()) {
            if id.len() != 9 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                let message = format!("Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.");
                return Err(invalid("invalid_function_call", &message, "3280"));
            }
        }
        let is_blank = |content: &Value| content.is_null() || content == "" || content == &json!([]);
        if message["role"] == "assistant" && calls.is_empty() && is_blank(&message["content"]) {
            let message = "Assistant message must have either content or tool_calls, but not none.";
            return Err(invalid("invalid_request_assistant_message", message, "3240"));
        }
        let before = n.checked_sub(1).map(|before| &messages[before]["role"]);
        if message["role"] == "user" && before.is_some_and(|role| role == "tool") {
            return Err(invalid("invalid_request_message_order", "Unexpected role 'user' after role 'tool'", "3230"));
        }
    }
    let last = messages.last().map_or(&Value::Null, |message| &message["role"]);
    if last != "user" && last != "tool" {
        let message = format!(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got {}",
            last.as_str().unwrap_or_default()
        );
        return Err(invalid("invalid_request_message_order", &message, "3230"));
    }
    Ok(())
}

fn fields_of_message(n: usize, message: &Value) -> Result<(), ProviderRefusal> {
    let role = message["role"].as_str().unwrap_or_default();
    let known = ["role", "content", "tool_calls", "prefix", "tool_call_id", "name"];
    match message.as_object().into_iter().flatten().find(|(field, _)| !known.contains(&field.as_str())) {
        Some((field, value)) => Err(extra(&json!(["body", "messages", n, role, field]), value)),
        None => Ok(()),
    }
}

fn extra(place: &Value, input: &Value) -> ProviderRefusal {
    let detail =
        json!([{"type": "extra_forbidden", "loc": place, "msg": "Extra inputs are not permitted", "input": input}]);
    let message = json!({"detail": detail});
    let error =
        json!({"object": "error", "message": message, "type": "invalid_request_error", "param": null, "code": null});
    ProviderRefusal { status: 422, body: error }
}

fn invalid(kind: &str, message: &str, code: &str) -> ProviderRefusal {
    ProviderRefusal {
        status: 400,
        body: json!({"object": "error", "message": message, "type": kind, "param": null, "code": code}),
    }
}
