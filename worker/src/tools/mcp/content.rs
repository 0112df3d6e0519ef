//! Reads the content of results leniently: a block that cannot be read costs itself, not the result.

use std::cell::Cell;

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

/// Fields of a block that the model does not need.
const SPARE_FIELDS: [&str; 5] = ["annotations", "_meta", "icons", "title", "size"];

/// Most characters of an unknown kind that the model reads.
const KIND_CHARS: usize = 40;

/// Reads a result that rmcp does not know. Returns `None` if it is no result of a tool.
pub fn read(result: &Value) -> Option<CallToolResult> {
    let fields = result.as_object()?;
    let content = fields.get("content").filter(|content| !content.is_null());
    let structured = fields.get("structuredContent").filter(|structured| !structured.is_null());
    // A tool without a result may have left the content out.
    let says_nothing =
        fields.keys().all(|name| matches!(name.as_str(), "content" | "isError" | "_meta" | "resultType"));
    if content.is_none() && structured.is_none() && !says_nothing {
        return None;
    }
    let blocks = match content {
        None => Vec::new(),
        Some(Value::Array(blocks)) => blocks.iter().map(block).collect(),
        Some(Value::String(text)) => vec![ContentBlock::text(text.clone())],
        Some(single) => vec![block(single)],
    };
    let is_error = fields.get("isError").is_some_and(|is_error| is_error == true || is_error == "true");
    let mut read = if is_error { CallToolResult::error(blocks) } else { CallToolResult::success(blocks) };
    read.structured_content = structured.cloned();
    Some(read)
}

fn block(block: &Value) -> ContentBlock {
    if let Ok(read) = serde_json::from_value(block.clone()) {
        return read;
    }
    let needed = block.as_object().map(|fields| {
        let is_needed = |(name, _): &(&String, &Value)| !SPARE_FIELDS.contains(&name.as_str());
        fields.iter().filter(is_needed).map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>()
    });
    needed.and_then(|needed| serde_json::from_value(Value::Object(needed)).ok()).unwrap_or_else(|| unreadable(block))
}

/// Returns a text in the place of a block, with the block's own text if it has one.
fn unreadable(block: &Value) -> ContentBlock {
    if let Some(text) = block.as_str().or_else(|| block["text"].as_str()) {
        return ContentBlock::text(text);
    }
    let kind: String = block["type"].as_str().unwrap_or("unknown").chars().take(KIND_CHARS).collect();
    ContentBlock::text(format!("[content of the kind {} that cannot be read]", json!(kind)))
}

/// Returns what structured content says beyond the blocks: all of it, all but copies of long texts, or nothing.
pub fn beyond(structured: Value, blocks: &[ContentBlock]) -> Option<Value> {
    let content = RepeatableContent::of(blocks);
    if content.repeats(&structured, None) {
        return None;
    }
    Some(content.without_copies(structured))
}

/// A string of at least this many bytes is not shown twice.
const LONG_BYTES: usize = 256;

/// Takes the place of such a string.
const ABOVE: &str = "[as above]";

/// Bytes that one search for copies reads at most; the result may be hostile.
const SEARCHED_BYTES: usize = 20_000_000;

/// The content of a result as a search for copies needs it.
struct RepeatableContent<'a> {
    texts: Vec<&'a str>,
    /// The texts that are JSON.
    values: Vec<Value>,
    /// Other strings of the blocks, such as the base64 of pictures.
    strings: Vec<&'a str>,
    /// Bytes that the search may still read.
    left: Cell<usize>,
}

impl<'a> RepeatableContent<'a> {
    fn of(blocks: &'a [ContentBlock]) -> Self {
        use rmcp::model::ResourceContents::{BlobResourceContents, TextResourceContents};
        let (mut texts, mut strings) = (Vec::new(), Vec::new());
        for block in blocks {
            match block {
                ContentBlock::Text(text) => texts.push(text.text.as_str()),
                ContentBlock::Image(image) => strings.extend(["image", &image.mime_type, &image.data]),
                ContentBlock::Audio(audio) => strings.extend(["audio", &audio.mime_type, &audio.data]),
                ContentBlock::ResourceLink(link) => strings.extend([link.uri.as_str(), &link.name]),
                ContentBlock::Resource(embedded) => match &embedded.resource {
                    TextResourceContents { uri, text, .. } => {
                        strings.push(uri);
                        texts.push(text);
                    }
                    BlobResourceContents { uri, blob, .. } => strings.extend([uri.as_str(), blob]),
                    _ => {}
                },
                _ => {}
            }
        }
        let values = texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
        Self { texts, values, strings, left: Cell::new(SEARCHED_BYTES) }
    }

    /// Returns whether the content says all of this value, which its parent may name by a key.
    fn repeats(&self, value: &Value, key: Option<&str>) -> bool {
        if self.values.contains(value) {
            return true;
        }
        match value {
            Value::Null => true,
            Value::String(text) => self.has_string(text),
            Value::Array(values) => values.iter().all(|value| self.repeats(value, key)),
            Value::Object(fields) => {
                let says_nothing = |name: &str| name == "type" && is_block(fields);
                fields.iter().all(|(name, value)| says_nothing(name) || self.repeats(value, Some(name)))
            }
            // A number alone says nothing: another one may only look like it.
            Value::Bool(_) | Value::Number(_) => {
                let value = value.to_string();
                let says = |text: &&str| key.is_some_and(|key| self.has_word(text, key)) && self.has_word(text, &value);
                self.texts.iter().any(says)
            }
        }
    }

    fn has_string(&self, text: &str) -> bool {
        let text = text.trim();
        text.is_empty() || self.strings.contains(&text) || self.texts.iter().any(|found| self.has_word(found, text))
    }

    /// Returns whether a text contains another one that is no part of a longer word, as far as the search may still read.
    fn has_word(&self, text: &str, word: &str) -> bool {
        let Some(left) = self.left.get().checked_sub(text.len()) else { return false };
        self.left.set(left);
        let is_end = |char: Option<char>| !char.is_some_and(char::is_alphanumeric);
        text.match_indices(word).any(|(at, found)| {
            is_end(text[..at].chars().next_back()) && is_end(text[at + found.len()..].chars().next())
        })
    }

    fn without_copies(&self, value: Value) -> Value {
        match value {
            Value::String(text) if text.len() >= LONG_BYTES && self.has_string(&text) => ABOVE.into(),
            Value::Array(values) => values.into_iter().map(|value| self.without_copies(value)).collect(),
            Value::Object(fields) => {
                fields.into_iter().map(|(name, value)| (name, self.without_copies(value))).collect()
            }
            other => other,
        }
    }
}

/// Returns whether an object is a block of content itself, as some servers repeat them.
fn is_block(fields: &Map<String, Value>) -> bool {
    let kinds = ["text", "image", "audio", "resource", "resource_link"];
    fields.get("type").and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(content: Value) -> Vec<ContentBlock> {
        read(&json!({ "content": content })).unwrap().content
    }

    #[test]
    fn structured_content_that_the_text_repeats_is_left_out() {
        let check = |text: &str, structured: Value, expected: Option<Value>| {
            let blocks = blocks(json!([{"type": "text", "text": text}]));
            assert_eq!(beyond(structured.clone(), &blocks), expected, "{text:?} and {structured}");
        };
        let issues = json!({"issues": [{"id": 7, "title": "Leak"}]});
        check("Found 1 issue.", issues.clone(), Some(issues.clone()));
        check(&issues.to_string(), issues.clone(), None);
        check(&format!("{issues:#}"), issues.clone(), None);
        check("sunny", json!({"result": "sunny"}), None);
        check("[1,2]", json!({"result": [1, 2]}), None);
        check("Leak (id: 7)", issues.clone(), None);
        check("Leak, 7 of 9", issues.clone(), Some(issues));
        check("Found 3.", json!({"count": 3}), Some(json!({"count": 3})));
        check("a b", json!({"a": null}), None);
        let long = "x y ".repeat(200);
        check(&long, json!({"text": long, "left": 5}), Some(json!({"text": "[as above]", "left": 5})));
    }

    #[test]
    fn the_structured_copy_of_a_picture_is_left_out() {
        let picture = json!({"type": "image", "mimeType": "image/png", "data": "QUJD".repeat(1_000)});
        let content = json!([picture]);
        assert_eq!(beyond(json!({"content": content}), &blocks(content.clone())), None);
        assert_eq!(
            beyond(json!({"width": 4, "of": content[0]["data"]}), &blocks(content)),
            Some(json!({"width": 4, "of": ABOVE}))
        );
    }

    #[test]
    fn a_block_that_cannot_be_read_costs_itself() {
        let check = |block: Value, expected: &str| {
            let read = blocks(json!([{"type": "text", "text": "first"}, block]));
            let texts: Vec<&str> = read.iter().map(|block| block.as_text().unwrap().text.as_str()).collect();
            assert_eq!(texts, ["first", expected]);
        };
        check(json!({"type": "video", "url": "x"}), "[content of the kind \"video\" that cannot be read]");
        check(json!({"type": "image", "mimeType": "image/png"}), "[content of the kind \"image\" that cannot be read]");
        check(json!({"type": "text", "text": "a", "annotations": 5}), "a");
        check(json!({"type": "rich", "text": "a"}), "a");
        check(json!("a"), "a");
        check(json!(null), "[content of the kind \"unknown\" that cannot be read]");
    }

    #[test]
    fn content_that_is_no_list_is_read() {
        assert_eq!(blocks(json!("a"))[0].as_text().unwrap().text, "a");
        assert_eq!(blocks(json!({"type": "text", "text": "a"}))[0].as_text().unwrap().text, "a");
        assert!(read(&json!({"surprise": true})).is_none());
        assert_eq!(read(&json!({"content": null})).unwrap().content, []);
    }
}
