//! Words that the model wrote for itself. The next request returns them with the calls of the answer.
//!
//! `openai::signature` writes it into a request again.

use serde_json::{Map, Value, value::RawValue};

use crate::model::openai::signature::{EXTRA_CONTENT, REASONING_CONTENT, REASONING_DETAILS};

/// Most bytes that are kept of one answer. A provider that needs more back refuses the next request.
const KEPT_BYTES: usize = 4 * 1024 * 1024;

/// The model's own words in one answer so far.
#[derive(Default)]
pub(super) struct OwnWords {
    reasoning_content: String,
    reasoning_details: Vec<Value>,
    bytes: usize,
}

impl OwnWords {
    /// Adds a piece of the field `reasoning_content`.
    pub fn add_reasoning(&mut self, text: &str) {
        if self.has_room(text.len()) {
            self.reasoning_content.push_str(text);
        }
    }

    /// Adds details. Consecutive pieces of one text become one detail, because a signature is for the whole text.
    pub fn add_detail(&mut self, detail: &RawValue) {
        if !self.has_room(detail.get().len()) {
            return;
        }
        let Ok(detail) = serde_json::from_str::<Value>(detail.get()) else { return };
        match self.reasoning_details.last_mut() {
            Some(last) if continues(last, &detail) => extend(last, detail),
            _ => self.reasoning_details.push(detail),
        }
    }

    fn has_room(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.bytes <= KEPT_BYTES
    }

    /// Returns the signature of a call: what belongs to the whole answer goes with the first one.
    pub fn signature(&mut self, is_first: bool, extra_content: Option<Value>) -> Option<Value> {
        let mut fields = Map::new();
        fields.extend(extra_content.map(|extra| (EXTRA_CONTENT.to_owned(), extra)));
        if is_first && !self.reasoning_content.is_empty() {
            fields.insert(REASONING_CONTENT.to_owned(), std::mem::take(&mut self.reasoning_content).into());
        }
        if is_first && !self.reasoning_details.is_empty() {
            fields.insert(REASONING_DETAILS.to_owned(), std::mem::take(&mut self.reasoning_details).into());
        }
        (!fields.is_empty()).then_some(Value::Object(fields))
    }
}

/// Returns whether the detail is the next piece of the last one.
fn continues(last: &Value, next: &Value) -> bool {
    let same = |field: &str| next.get(field).is_none_or(|value| value.is_null() || last.get(field) == Some(value));
    text_field(last).is_some() && last["type"] == next["type"] && ["index", "id", "format"].into_iter().all(same)
}

/// Returns the field with the text of a detail of this type.
fn text_field(detail: &Value) -> Option<&'static str> {
    match detail["type"].as_str()? {
        "reasoning.text" => Some("text"),
        "reasoning.summary" => Some("summary"),
        _ => None,
    }
}

fn extend(last: &mut Value, next: Value) {
    let field = text_field(last).unwrap_or_default();
    let (Value::Object(last), Value::Object(next)) = (last, next) else { return };
    for (name, value) in next {
        if let (true, Some(Value::String(text)), Value::String(piece)) = (name == field, last.get_mut(&name), &value) {
            text.push_str(piece);
        } else if !value.is_null() {
            last.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_of_one_text_become_one_detail_with_its_signature() {
        let mut words = OwnWords::default();
        let encrypted = json!({"type": "reasoning.encrypted", "data": "x", "id": "t1", "index": 1});
        for detail in [
            json!({"type": "reasoning.text", "text": "I ", "index": 0, "format": "anthropic-claude-v1"}),
            json!({"type": "reasoning.text", "text": "think.", "index": 0, "format": "anthropic-claude-v1"}),
            json!({"type": "reasoning.text", "signature": "c2ln", "text": null, "index": 0}),
            encrypted.clone(),
            encrypted.clone(),
        ] {
            words.add_detail(&serde_json::value::to_raw_value(&detail).unwrap());
        }
        words.add_reasoning("I think.");
        let text = json!({"type": "reasoning.text", "text": "I think.", "index": 0, "format": "anthropic-claude-v1",
            "signature": "c2ln"});
        let expected = json!({"reasoning_content": "I think.", "reasoning_details": [text, encrypted, encrypted]});
        assert_eq!(words.signature(true, None), Some(expected));
        assert_eq!(words.signature(false, Some(json!(1))), Some(json!({"extra_content": 1})));
        assert_eq!(words.signature(false, None), None);
    }
}
