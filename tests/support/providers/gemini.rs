//! Gemini with a model that signs its calls. The rules are in `gemini_rules`.

use serde_json::{Value, json};

use super::{BodyPiece, Fake, Part, ProviderRefusal, ProviderRequest, gemini_rules};

/// The model of the settings.
const MODEL: &str = "gemini-3-flash";
/// The signature of each first call.
const SIGNATURE: &str = "c2ln";

pub const GEMINI: Fake = Fake {
    name: "gemini",
    model: MODEL,
    takes_pictures: true,
    rule,
    too_long: Some(|| {
        let message = "The input token count (9100) exceeds the maximum number of tokens allowed (8192).";
        let error = json!({"code": 400, "message": message, "status": "INVALID_ARGUMENT"});
        ProviderRefusal { status: 400, body: json!({"error": error}) }
    }),
    content_type: "text/event-stream",
    write,
    settings: |url| {
        vec![
            ("CHAT_MODEL_PROVIDER", "gemini".to_owned()),
            ("CHAT_MODEL_NAME", MODEL.to_owned()),
            ("GEMINI_BASE_URL", format!("{url}/v1beta/")),
            ("GEMINI_API_KEY", "the-key-of-the-test".to_owned()),
        ]
    },
};

fn rule(request: &ProviderRequest) -> Result<(), ProviderRefusal> {
    gemini_rules::check(MODEL, &request.body).map_err(|message| {
        let error = json!({"code": 400, "message": message, "status": "INVALID_ARGUMENT"});
        ProviderRefusal { status: 400, body: json!({"error": error}) }
    })
}

/// Writes each part as a chunk. Some versions say `STOP` on each of them.
fn write(parts: &[Part]) -> Vec<BodyPiece> {
    let mut has_calls = false;
    let mut chunk = |part: &Part| match part {
        Part::Hold => BodyPiece::Hold,
        Part::Reasoning(text) => event(json!([{"text": text, "thought": true}])),
        Part::Text(text) => event(json!([{"text": text}])),
        Part::Call { tool, arguments } => {
            let mut part = json!({"functionCall": {"name": tool, "args": arguments}});
            if !std::mem::replace(&mut has_calls, true) {
                part["thoughtSignature"] = json!(SIGNATURE);
            }
            event(json!([part]))
        }
    };
    let mut chunks: Vec<BodyPiece> = parts.iter().map(&mut chunk).collect();
    chunks.push(event(json!([{"text": ""}])));
    chunks
}

fn event(parts: Value) -> BodyPiece {
    let candidate = json!({"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0});
    let usage = json!({"promptTokenCount": 7, "candidatesTokenCount": 2});
    BodyPiece::Bytes(format!("data: {}\r\n\r\n", json!({"candidates": [candidate], "usageMetadata": usage})))
}
