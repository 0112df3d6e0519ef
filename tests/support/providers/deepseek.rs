//! DeepSeek's reasoning model.

use serde_json::{Value, json};

use super::{
    Fake, ProviderRefusal, ProviderRequest,
    chat_stream::{ChatStream, nothing},
    openai,
};

pub const DEEPSEEK: Fake = Fake {
    name: "deepseek",
    model: "deepseek-reasoner",
    takes_pictures: false,
    rule,
    too_long: Some(|| {
        invalid(
            "This model's maximum context length is 8192 tokens. However, you requested 9100 tokens (9000 in the messages, 100 in the completion). Please reduce the length of the messages or completion.",
        )
    }),
    content_type: "text/event-stream",
    write: |parts| STREAM.write(parts),
    settings: |url| openai::settings("deepseek-reasoner", url),
};

const STREAM: ChatStream = ChatStream {
    reasoning: |text| json!({"role": "assistant", "content": null, "reasoning_content": text}),
    call_id: |n| format!("call_00_{n:020}"),
    opening: ": keep-alive\n\n",
    with_calls: nothing,
};

fn rule(request: &ProviderRequest) -> Result<(), ProviderRefusal> {
    openai::endpoint(request)?;
    let messages = openai::messages_of(request);
    let question = openai::last_question(messages);
    for (n, message) in messages.iter().enumerate() {
        let has_calls = message["tool_calls"].is_array();
        let reasoning = message["reasoning_content"].as_str().unwrap_or_default();
        if has_calls && reasoning.is_empty() && n > question {
            return Err(invalid(&format!(
                "Missing `reasoning_content` field in the assistant message at message index {n}. For more information, please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"
            )));
        }
        let same = ["user", "assistant"]
            .iter()
            .any(|role| message["role"] == *role && messages.get(n + 1).is_some_and(|next| next["role"] == *role));
        if same {
            return Err(invalid(&format!(
                "deepseek-reasoner does not support successive user or assistant messages (messages[{n}] and messages[{}] in your input). You should interleave the user/assistant messages in the message sequence.",
                n + 1
            )));
        }
        let parts = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        if let Some(part) = parts.iter().find(|part| part["type"] != "text") {
            return Err(invalid(&format!(
                "Failed to deserialize the JSON body into the target type: messages[{n}]: unknown variant `{}`, expected `text`",
                part["type"].as_str().unwrap_or_default()
            )));
        }
    }
    openai::tools(&request.body)?;
    openai::messages(&request.body)
}

fn invalid(message: &str) -> ProviderRefusal {
    ProviderRefusal::of_openai(400, message, Value::Null, json!("invalid_request_error"))
}
