//! Ollama with a model that thinks and sees.

use serde_json::{Value, json};

use super::{BodyPiece, Fake, Part, ProviderRefusal, ProviderRequest};

/// The model of the settings.
const MODEL: &str = "qwen3-vl:8b";

pub const OLLAMA: Fake = Fake {
    name: "ollama",
    model: MODEL,
    takes_pictures: true,
    rule: |request| rule(request).map_err(|message| ProviderRefusal { status: 400, body: json!({"error": message}) }),
    // It cuts the beginning off without a word.
    too_long: None,
    content_type: "application/x-ndjson",
    write,
    settings: |url| {
        vec![
            ("CHAT_MODEL_PROVIDER", "ollama".to_owned()),
            ("CHAT_MODEL_NAME", MODEL.to_owned()),
            ("OLLAMA_BASE_URL", url.to_owned()),
        ]
    },
};

/// Refuses what the server cannot decode: contents that are no text, arguments that are no object, pictures that are no base64.
fn rule(request: &ProviderRequest) -> Result<(), String> {
    for message in request.body["messages"].as_array().into_iter().flatten() {
        if message.get("content").is_some_and(|content| !content.is_string()) {
            return Err(
                "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string"
                    .to_owned(),
            );
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            if !call["function"]["arguments"].is_object() {
                return Err("json: cannot unmarshal string into Go struct field ToolCallFunction.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments".to_owned());
            }
        }
        let is_data = |image: &Value| image.as_str().is_some_and(|data| !data.starts_with("data:"));
        if !message["images"].as_array().into_iter().flatten().all(is_data) {
            return Err("illegal base64 data at input byte 4".to_owned());
        }
        if message["role"] == "tool" && message["tool_name"].as_str().is_none_or(str::is_empty) {
            return Err("a tool's message names no tool".to_owned());
        }
    }
    Ok(())
}

fn write(parts: &[Part]) -> Vec<BodyPiece> {
    let line = |part: &Part| match part {
        Part::Hold => BodyPiece::Hold,
        Part::Reasoning(text) => message(&json!({"role": "assistant", "content": "", "thinking": text})),
        Part::Text(text) => message(&json!({"role": "assistant", "content": text})),
        Part::Call { tool, arguments } => {
            // A call without arguments has no field for them.
            let mut function = json!({"name": tool});
            if *arguments != json!({}) {
                function["arguments"] = arguments.clone();
            }
            message(&json!({"role": "assistant", "content": "", "tool_calls": [{"function": function}]}))
        }
    };
    let mut chunks: Vec<BodyPiece> = parts.iter().map(line).collect();
    let end = json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop",
        "prompt_eval_count": 7, "eval_count": 2});
    chunks.push(BodyPiece::Bytes(format!("{end}\n")));
    chunks
}

fn message(message: &Value) -> BodyPiece {
    BodyPiece::Bytes(format!("{}\n", json!({"model": MODEL, "message": message, "done": false})))
}
