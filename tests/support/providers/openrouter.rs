//! OpenRouter in front of Gemini, whose signatures it passes as `reasoning_details`.

use serde_json::{Value, json};

use super::{Fake, ProviderRefusal, ProviderRequest, chat_stream::ChatStream, openai};

pub const OPENROUTER: Fake = Fake {
    name: "openrouter",
    model: "google/gemini-3-pro",
    takes_pictures: true,
    rule,
    too_long: Some(|| {
        let message = "This endpoint's maximum context length is 8192 tokens. However, you requested about 9100 tokens (9100 of text input). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.";
        ProviderRefusal { status: 400, body: json!({"error": {"message": message, "code": 400}}) }
    }),
    content_type: "text/event-stream",
    write: |parts| STREAM.write(parts),
    settings: |url| openai::settings("google/gemini-3-pro", url),
};

const STREAM: ChatStream = ChatStream {
    reasoning: |text| json!({"content": "", "reasoning": text}),
    call_id: |n| format!("tool_{n}_search"),
    opening: ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n",
    with_calls: || json!({"reasoning_details": details()}),
};

/// The details of each answer with calls.
fn details() -> Value {
    json!([{"type": "reasoning.encrypted", "data": "c2lnbmF0dXJl", "format": "google-gemini-v1", "id": "t1", "index": 0}])
}

fn rule(request: &ProviderRequest) -> Result<(), ProviderRefusal> {
    openai::endpoint(request)?;
    let changed = |message: &&Value| message["tool_calls"].is_array() && message["reasoning_details"] != details();
    if openai::messages_of(request).iter().any(|message| changed(&message)) {
        let message = "Gemini models require OpenRouter reasoning details to be preserved in each request. Please refer to our docs: https://openrouter.ai/docs/guides/best-practices/reasoning-tokens#preserving-reasoning-blocks";
        return Err(ProviderRefusal { status: 400, body: json!({"error": {"message": message, "code": 400}}) });
    }
    openai::tools(&request.body)?;
    openai::messages(&request.body)
}
