//! JSON as providers send it, which is not always JSON.

use serde_json::Value;

use super::{StreamFlaw, halves};

/// Reads a document. Bytes that are no UTF-8 become U+FFFD, and halves of surrogate pairs wait for [`HalfJoiner`](super::HalfJoiner).
pub fn document(bytes: &[u8]) -> Result<Value, StreamFlaw> {
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Ok(value);
    }
    let text = String::from_utf8_lossy(bytes);
    serde_json::from_str(&with_stand_ins(&text)).map_err(|_| StreamFlaw::Malformed(text.into_owned()))
}

/// Returns the field's text; an empty one counts as none.
pub fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str().filter(|text| !text.is_empty())
}

/// Returns a count of tokens, which some servers send as a float, as null or below zero.
pub fn count(value: &Value, field: &str) -> Option<u64> {
    let number = value.get(field)?;
    number.as_u64().or_else(|| number.as_f64().filter(|count| *count >= 0.0).map(|count| count as u64))
}

/// Returns the arguments of a call as text: JSON in a text as it is, other JSON written, and nothing for null.
pub fn arguments(input: Option<&Value>) -> String {
    match input {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// Puts its stand-in for each escape of half a surrogate pair whose other half does not follow.
fn with_stand_ins(text: &str) -> String {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut repaired, mut rest_at, mut at) = (String::with_capacity(text.len()), 0, 0);
    while let Some(found) = text[at..].find('\\') {
        let escape = at + found;
        at = match unit(escape) {
            Some(0xD800..=0xDBFF) if matches!(unit(escape + 6), Some(0xDC00..=0xDFFF)) => escape + 12,
            Some(half @ 0xD800..=0xDFFF) => {
                repaired.push_str(&text[rest_at..escape]);
                repaired.push(halves::stand_in(half));
                rest_at = escape + 6;
                rest_at
            }
            Some(_) => escape + 6,
            // The character after the backslash belongs to the escape.
            None => escape + 1 + text[escape + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    repaired.push_str(&text[rest_at..]);
    repaired
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn broken_characters_cost_themselves_and_no_more() {
        let check = |bytes: &[u8], expected: &str| assert_eq!(document(bytes).unwrap(), json!([expected]));
        let [first, second] = [0xD83D, 0xDE00].map(halves::stand_in);
        check(br#"["a\ud83dz"]"#, &format!("a{first}z"));
        check(br#"["\ude00\ud83d\ude00"]"#, &format!("{second}😀"));
        check(br#"["\\ud83d \ud83d"]"#, &format!("\\ud83d {first}"));
        check(b"[\"a\xffz\"]", "a\u{fffd}z");
        assert!(matches!(document(br#"["\"#), Err(StreamFlaw::Malformed(_))));
    }

    #[test]
    fn counts_are_numbers_of_any_type() {
        let usage = json!({"a": 3, "b": 3.0, "c": -1, "d": null, "e": "3"});
        assert_eq!(
            ["a", "b", "c", "d", "e", "f"].map(|field| count(&usage, field)),
            [Some(3), Some(3), None, None, None, None]
        );
    }
}
