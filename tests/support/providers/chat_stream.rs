//! Answers in the stream of OpenAI's chat completions, as the fakes of that protocol write them.

use serde_json::{Value, json};

use super::{BodyPiece, Part};

/// How a provider differs in its stream.
#[derive(Clone, Copy)]
pub struct ChatStream {
    /// Writes reasoning as a delta.
    pub reasoning: fn(&str) -> Value,
    /// Returns the id of the n-th call.
    pub call_id: fn(usize) -> String,
    /// Chunks before the first delta, such as a comment.
    pub opening: &'static str,
    /// Fields of the delta that has the first call.
    pub with_calls: fn() -> Value,
}

/// Ids as OpenAI makes them.
pub fn usual_id(n: usize) -> String {
    format!("call_{n:024}")
}

/// No further fields.
pub fn nothing() -> Value {
    json!({})
}

impl ChatStream {
    pub fn write(self, parts: &[Part]) -> Vec<BodyPiece> {
        let mut chunks = vec![BodyPiece::Bytes(self.opening.to_owned())];
        let mut calls = 0;
        for part in parts {
            chunks.push(match part {
                Part::Hold => BodyPiece::Hold,
                Part::Reasoning(text) => delta((self.reasoning)(text)),
                Part::Text(text) => delta(json!({"role": "assistant", "content": text})),
                Part::Call { tool, arguments } => {
                    let function = json!({"name": tool, "arguments": arguments.to_string()});
                    let call =
                        json!({"index": calls, "id": (self.call_id)(calls), "type": "function", "function": function});
                    let mut fields = if calls == 0 { (self.with_calls)() } else { json!({}) };
                    fields["role"] = json!("assistant");
                    fields["content"] = Value::Null;
                    fields["tool_calls"] = json!([call]);
                    calls += 1;
                    delta(fields)
                }
            });
        }
        let reason = if calls > 0 { "tool_calls" } else { "stop" };
        chunks.push(event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})));
        chunks.push(event(&json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}})));
        chunks.push(BodyPiece::Bytes("data: [DONE]\n\n".to_owned()));
        chunks
    }
}

fn delta(fields: Value) -> BodyPiece {
    event(&json!({"choices": [{"index": 0, "delta": fields, "finish_reason": null}]}))
}

fn event(chunk: &Value) -> BodyPiece {
    BodyPiece::Bytes(format!("data: {chunk}\n\n"))
}
