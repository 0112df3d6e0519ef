//! Limits that any database and any JSON reader shares: PostgreSQL stores no NUL, and JSON parsers limit the depth.

use serde_json::Value;

/// Deepest accepted JSON. Parsers stop at a depth of about 128, and stored JSON is wrapped a few times.
pub const MAX_DEPTH: usize = 64;

/// Returns the text with each NUL replaced by U+FFFD.
pub fn storable(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// Returns the JSON value with each NUL replaced, in names too.
pub fn storable_json(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(storable(text)),
        Value::Array(items) => items.into_iter().map(storable_json).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (storable(name), storable_json(value))).collect()
        }
        other => other,
    }
}

/// Returns whether a text in a JSON value has a NUL.
pub fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(fields) => fields.iter().any(|(name, value)| name.contains('\0') || has_nul(value)),
        _ => false,
    }
}

/// Returns whether a value is nested deeper than `MAX_DEPTH`.
pub fn is_too_deep(value: &Value) -> bool {
    exceeds(value, MAX_DEPTH)
}

fn exceeds(value: &Value, most: usize) -> bool {
    let Some(inside) = most.checked_sub(1) else { return value.is_array() || value.is_object() };
    match value {
        Value::Array(items) => items.iter().any(|item| exceeds(item, inside)),
        Value::Object(fields) => fields.values().any(|field| exceeds(field, inside)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_nul_is_replaced_wherever_it_is() {
        let value = storable_json(json!({"a\0": ["b\0", {"c": "\0"}]}));
        assert_eq!(value, json!({"a\u{fffd}": ["b\u{fffd}", {"c": "\u{fffd}"}]}));
        assert!(!has_nul(&value) && has_nul(&json!([{"a": "\0"}])) && has_nul(&json!({"\0": 1})));
    }

    #[test]
    fn nesting_is_limited_at_its_edge() {
        let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        assert!(!is_too_deep(&nested(MAX_DEPTH)));
        assert!(is_too_deep(&nested(MAX_DEPTH + 1)));
    }
}
