//! Tool calls as genai reports them, and the data that the provider needs back with them.
//!
//! Each chunk of Anthropic's calls has all arguments so far, as text. Calls of Gemini and Ollama arrive complete; their
//! ids are genai's own, and genai uses an id more than once.

use genai::chat::{ContentPart, StreamEnd, ToolCall};
use serde_json::{Value, json};

use super::dialect::Dialect;
use crate::model::CallDelta;

/// The calls of one answer so far.
pub(super) struct GatewayCalls {
    dialect: Dialect,
    count: usize,
    /// The call that the next chunk may continue, and the length of its arguments that were returned.
    open: Option<(String, usize)>,
}

impl GatewayCalls {
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, count: 0, open: None }
    }

    /// Returns what a chunk adds, or `None` if it adds nothing.
    pub fn read(&mut self, call: ToolCall) -> Option<CallDelta> {
        let signature = call.thought_signatures.and_then(|signatures| signatures.into_iter().next()).map(Value::String);
        let arguments = match call.fn_arguments {
            Value::Null => String::new(),
            Value::String(text) => text,
            value => value.to_string(),
        };
        if self.dialect != Dialect::Anthropic {
            return Some(CallDelta { index: self.begin(), name: Some(call.fn_name), arguments, signature });
        }
        match &mut self.open {
            Some((id, sent)) if *id == call.call_id => {
                let added = arguments.get(*sent..).unwrap_or_default().to_owned();
                *sent = arguments.len();
                let index = self.count - 1;
                (!added.is_empty()).then_some(CallDelta { index, arguments: added, ..CallDelta::default() })
            }
            _ => {
                self.open = Some((call.call_id, arguments.len()));
                Some(CallDelta { index: self.begin(), name: Some(call.fn_name), arguments, signature })
            }
        }
    }

    /// Returns Anthropic's thinking, which is complete only at the end. It goes with the first call, although it led to
    /// all calls; without a call the provider does not need it.
    pub fn thinking(&self, end: &StreamEnd) -> Option<CallDelta> {
        if self.dialect != Dialect::Anthropic || self.count == 0 {
            return None;
        }
        let blocks = thinking_blocks(end.captured_content.as_ref()?.parts());
        let signature = Some(Value::Array(blocks)).filter(|blocks| *blocks != json!([]))?;
        Some(CallDelta { signature: Some(signature), ..CallDelta::default() })
    }

    fn begin(&mut self) -> usize {
        self.count += 1;
        self.count - 1
    }
}

/// Returns the blocks as Anthropic sent them. genai splits a block into a signature and the text that it signs.
fn thinking_blocks(parts: &[ContentPart]) -> Vec<Value> {
    let mut signed_by = None;
    let blocks = parts.iter().filter_map(|part| match part {
        ContentPart::ThoughtSignature(signature) => {
            signed_by = Some(signature);
            None
        }
        ContentPart::ReasoningContent(thinking) => {
            let signature = signed_by.take()?;
            Some(json!({"type": "thinking", "thinking": thinking, "signature": signature}))
        }
        ContentPart::Custom(part) => Some(part.data.clone()),
        _ => None,
    });
    blocks.collect()
}
