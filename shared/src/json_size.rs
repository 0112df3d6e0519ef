//! The size of a JSON text before it is parsed: bytes alone do not bound the memory of its parsed form.

/// Memory that one value of a parsed JSON text may take, in bytes. An object of one field takes the most.
pub const VALUE_BYTES: usize = 256;

/// The size of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JsonSize {
    /// Opening brackets, colons and commas outside of texts, about as many as there are values.
    pub values: usize,
    /// Bytes of all texts, names of fields among them. The base64 of pictures, sound and resources is not text.
    pub text_bytes: usize,
}

/// Fields whose value is base64 in MCP: of pictures and sound, and of resources.
const BASE64_FIELDS: [&[u8]; 2] = [b"data", b"blob"];

/// Counts the opening brackets, colons and commas of a JSON text, about as many as it has values. A value may take 70 times as
/// much memory as its bytes.
pub fn count_values(json: &[u8]) -> usize {
    JsonSize::of(json).values
}

impl JsonSize {
    /// Measures a JSON text, which need not be valid. Allocates nothing.
    pub fn of(json: &[u8]) -> Self {
        let mut size = Self::default();
        // The last text, and whether a colon has followed it.
        let (mut name, mut is_value): (&[u8], bool) = (b"", false);
        let mut at = 0;
        while let Some(byte) = json.get(at) {
            at += 1;
            match byte {
                b'"' => {
                    let text = text_at(json, at);
                    at += text.len() + 1;
                    if !(is_value && BASE64_FIELDS.contains(&name) && is_base64(text)) {
                        size.text_bytes += text.len();
                    }
                    (name, is_value) = (text, false);
                }
                b'{' | b'[' | b',' => {
                    size.values += 1;
                    is_value = false;
                }
                b':' => {
                    size.values += 1;
                    is_value = true;
                }
                _ => {}
            }
        }
        size
    }
}

/// Returns the text from `start` to its closing quote, or to the end.
fn text_at(json: &[u8], start: usize) -> &[u8] {
    let rest = &json[start..];
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &rest[at..]) {
        at += found;
        if rest[at] == b'"' {
            return &rest[..at];
        }
        at = (at + 2).min(rest.len());
    }
    rest
}

/// Returns whether a text is base64, in which some encoders escape the slash.
fn is_base64(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_\\".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts() {
        let check = |json: &str, expected: usize| assert_eq!(count_values(json.as_bytes()), expected, "{json}");
        check("", 0);
        check("1", 0);
        check("[1,2,3]", 3);
        check(r#"{"a":1,"b":[2]}"#, 5);
        check(r#"{"a,b:{[":"x,\"y,\\"}"#, 2);
        check(r#"["\\",1]"#, 2);
        check(r#"["a text without an end, [{"#, 1);
        check(r#"["an escape without an end\"#, 1);
    }

    #[test]
    fn base64_of_contents_is_no_text() {
        let check =
            |json: &str, expected: usize| assert_eq!(JsonSize::of(json.as_bytes()).text_bytes, expected, "{json}");
        check(r#"{"text":"hello"}"#, 9);
        check(r#"{"data":"aGVsbG8="}"#, 4);
        check(r#"{"blob" : "aGVs\/G8="}"#, 4);
        check(r#"{"data":"two words"}"#, 13);
        check(r#"{"text":"aGVsbG8="}"#, 12);
        check(r#"["data","aGVsbG8="]"#, 12);
        check(r#"{"data":["aGVsbG8="]}"#, 12);
        check(r#"{"data":1,"aGVsbG8=":2}"#, 12);
    }
}
