//! Anthropic's messages with a model that thinks. The rules are in `claude_rules`.

use serde_json::{Value, json};

use super::{BodyPiece, Fake, Part, ProviderRefusal, ProviderRequest, claude_rules};

pub const ANTHROPIC: Fake = Fake {
    name: "anthropic",
    model: "claude-sonnet-4-5",
    takes_pictures: true,
    rule,
    too_long: Some(|| refusal("prompt is too long: 9100 tokens > 8192 maximum")),
    content_type: "text/event-stream",
    write,
    settings: |url| {
        vec![
            ("CHAT_MODEL_PROVIDER", "anthropic".to_owned()),
            ("CHAT_MODEL_NAME", "claude-sonnet-4-5".to_owned()),
            ("ANTHROPIC_BASE_URL", format!("{url}/v1/")),
            ("ANTHROPIC_API_KEY", "the-key-of-the-test".to_owned()),
        ]
    },
};

fn rule(request: &ProviderRequest) -> Result<(), ProviderRefusal> {
    if request.headers.get("anthropic-version").is_none() {
        return Err(refusal("anthropic-version: header is required"));
    }
    claude_rules::check(&request.body).map_err(|message| refusal(&message))
}

fn refusal(message: &str) -> ProviderRefusal {
    let error = json!({"type": "invalid_request_error", "message": message});
    ProviderRefusal { status: 400, body: json!({"type": "error", "error": error}) }
}

fn write(parts: &[Part]) -> Vec<BodyPiece> {
    let usage = json!({"input_tokens": 7, "output_tokens": 1});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": usage});
    let mut chunks =
        vec![event(&json!({"type": "message_start", "message": message})), event(&json!({"type": "ping"}))];
    let mut has_calls = false;
    for (index, part) in parts.iter().enumerate() {
        let (block, deltas) = match part {
            Part::Hold => {
                chunks.push(BodyPiece::Hold);
                continue;
            }
            Part::Reasoning(text) => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                vec![
                    json!({"type": "thinking_delta", "thinking": text}),
                    json!({"type": "signature_delta", "signature": "c2ln"}),
                ],
            ),
            Part::Text(text) => {
                (json!({"type": "text", "text": ""}), vec![json!({"type": "text_delta", "text": text})])
            }
            Part::Call { tool, arguments } => {
                has_calls = true;
                let block = json!({"type": "tool_use", "id": format!("toolu_{index}"), "name": tool, "input": {}});
                (block, vec![json!({"type": "input_json_delta", "partial_json": arguments.to_string()})])
            }
        };
        chunks.push(event(&json!({"type": "content_block_start", "index": index, "content_block": block})));
        let delta = |delta: &Value| event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        chunks.extend(deltas.iter().map(delta));
        chunks.push(event(&json!({"type": "content_block_stop", "index": index})));
    }
    let reason = if has_calls { "tool_use" } else { "end_turn" };
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    chunks.push(event(&json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 2}})));
    chunks.push(event(&json!({"type": "message_stop"})));
    chunks
}

fn event(value: &Value) -> BodyPiece {
    BodyPiece::Bytes(format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default()))
}
