//! A block of an answer while it arrives.

use serde_json::{Value, json};

use crate::model::{CallDelta, stream::json};

/// A block, and what of its input was not returned yet.
pub struct ClaudeBlock {
    pub index: Option<u64>,
    /// The block as it came, with the pieces that were added to it.
    pub value: Value,
    /// The index of the call that the block is.
    pub call: Option<usize>,
    pub is_closed: bool,
    /// The input of the start, which counts only if no piece of another follows.
    held: String,
    /// The pieces of the input.
    pieces: String,
}

impl ClaudeBlock {
    pub fn new(index: Option<u64>, block: &Value) -> Self {
        let held = json::arguments(block.get("input").filter(|input| **input != json!({})));
        let value = if block.is_object() { block.clone() } else { json!({}) };
        Self { index, value, call: None, is_closed: false, held, pieces: String::new() }
    }

    pub fn kind(&self) -> &str {
        json::text(&self.value, "type").unwrap_or_default()
    }

    pub fn append(&mut self, field: &str, text: &str) {
        match &mut self.value[field] {
            Value::String(known) => known.push_str(text),
            absent => *absent = text.into(),
        }
    }

    /// Adds a piece of the input. Returns it if the block is a call of ours and the piece is not empty.
    pub fn add_input(&mut self, piece: &str) -> Option<CallDelta> {
        if piece.is_empty() {
            return None;
        }
        self.held.clear();
        self.pieces.push_str(piece);
        Some(CallDelta { index: self.call?, arguments: piece.to_owned(), ..CallDelta::default() })
    }

    /// Returns the input of the start, if no piece of another has followed.
    pub fn take_held_input(&mut self) -> Option<CallDelta> {
        let arguments = std::mem::take(&mut self.held);
        let index = self.call.filter(|_| !arguments.is_empty())?;
        Some(CallDelta { index, arguments, ..CallDelta::default() })
    }

    /// Whether its text ends in white space, which a request cannot send back.
    pub fn ends_in_space(&self) -> bool {
        json::text(&self.value, "text").is_some_and(|text| text.ends_with(char::is_whitespace))
    }

    /// Returns the block as a request sends it back, or `None` if the provider would refuse it.
    pub fn written(&self) -> Option<Value> {
        let mut block = self.value.clone();
        if self.kind() == "text" {
            let text = json::text(&block, "text").unwrap_or_default().trim_end().to_owned();
            if text.is_empty() {
                return None;
            }
            return Some(json!({"type": "text", "text": text}));
        }
        if let Ok(input) = serde_json::from_str(&self.pieces) {
            block["input"] = input;
        }
        Some(block)
    }
}
