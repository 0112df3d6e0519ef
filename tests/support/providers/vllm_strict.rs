//! vLLM with a chat template that wants strict alternation and no empty content, and without a parser of its reasoning.

use serde_json::{Value, json};

use super::{
    Fake, ProviderRefusal, ProviderRequest,
    chat_stream::{ChatStream, nothing},
    openai,
};

pub const VLLM_STRICT: Fake = Fake {
    name: "vllm_strict",
    model: "qwen3-vl-8b",
    takes_pictures: true,
    rule,
    too_long: Some(|| {
        invalid(
            "This model's maximum context length is 8192 tokens. However, you requested 9100 tokens in the messages, Please reduce the length of the messages.",
        )
    }),
    content_type: "text/event-stream",
    write: |parts| STREAM.write(parts),
    settings: |url| openai::settings("qwen3-vl-8b", url),
};

const STREAM: ChatStream = ChatStream {
    reasoning: |text| json!({"content": format!("<think>\n{text}\n</think>\n\n")}),
    call_id: |n| format!("chatcmpl-tool-{n:032x}"),
    opening: "",
    with_calls: nothing,
};

fn rule(request: &ProviderRequest) -> Result<(), ProviderRefusal> {
    openai::endpoint(request)?;
    let messages = openai::messages_of(request);
    if messages.iter().skip(1).any(|message| message["role"] == "system") {
        return Err(invalid("System message must be at the beginning."));
    }
    if messages.iter().any(is_blank) {
        return Err(invalid("'content' of a message must not be empty."));
    }
    // Calls and their results stand within the turn of the assistant.
    let speaks = |message: &&Value| {
        message["role"] == "user" || (message["role"] == "assistant" && !message["tool_calls"].is_array())
    };
    for (n, message) in messages.iter().filter(speaks).enumerate() {
        if (message["role"] == "user") != (n % 2 == 0) {
            return Err(invalid(
                "After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.",
            ));
        }
    }
    openai::messages(&request.body)
}

fn is_blank(message: &Value) -> bool {
    match &message["content"] {
        Value::Null => !message["tool_calls"].is_array(),
        Value::String(text) => text.trim().is_empty(),
        Value::Array(parts) => {
            parts.iter().any(|part| part["text"].as_str().is_some_and(|text| text.trim().is_empty()))
        }
        _ => true,
    }
}

fn invalid(message: &str) -> ProviderRefusal {
    let error = json!({"object": "error", "message": message, "type": "BadRequestError", "param": null, "code": 400});
    ProviderRefusal { status: 400, body: error }
}
