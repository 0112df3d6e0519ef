//! JSON that clients and models write: read with the place of what does not fit, the rule and an example, and never the value.

use serde::{Deserializer, de::DeserializeOwned};
use serde_json::Value;

use crate::whole_numbers::WholeNumbers;

/// An example of an id.
const ID: &str = "\"01a20131-6243-7797-8616-20e98be7ff86\"";

/// Reads a value. The error is a sentence without a full stop.
pub fn read<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    read_from(value)
}

/// Reads a value that may be large, as `read` does, without a copy of its texts.
pub fn take<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    read_from(value)
}

/// Reads a text of JSON, as `read` does. A text that is no JSON fails too.
pub fn read_text<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    read_from(&mut serde_json::Deserializer::from_str(json))
}

fn read_from<'de, T: DeserializeOwned>(from: impl Deserializer<'de, Error = serde_json::Error>) -> Result<T, String> {
    serde_path_to_error::deserialize(WholeNumbers(from)).map_err(|error| refusal(&error))
}

/// Returns a sentence about the first part that does not fit.
pub fn refusal(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let rule = rule(&error.inner().to_string());
    match error.path().to_string().as_str() {
        "." | "?" => rule,
        path => format!("{}: {rule}", path.trim_end_matches(".?")),
    }
}

/// Returns the rule in a message of serde, without the value that the message quotes.
fn rule(message: &str) -> String {
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    for prefix in ["invalid type: ", "invalid value: ", "invalid length "] {
        if let Some(rest) = message.strip_prefix(prefix)
            && let Some((given, expected)) = rest.rsplit_once(", expected ")
        {
            let given = if prefix == "invalid type: " { kind(given) } else { "this value" };
            return format!("{}, not {given}", described(expected));
        }
    }
    if message.starts_with("unknown variant ") {
        let names = message.rsplit_once("`, expected ").map_or("another value", |(_, names)| names);
        return format!("{names} is expected");
    }
    if message.starts_with("data did not match any variant") {
        return "none of the forms that it may have".to_owned();
    }
    if message.contains("UUID parsing failed") {
        return format!("an id is expected, such as {ID}");
    }
    // Our own enumerations quote the value last.
    message.split_once(", not \"").map_or(message, |(rule, _)| rule).to_owned()
}

/// Returns what a value is, without what it says.
fn kind(given: &str) -> &'static str {
    match given.split([' ', '`']).next().unwrap_or_default() {
        "string" | "character" => "a text",
        "integer" => "a whole number",
        "floating" => "a number",
        "boolean" => "true or false",
        "null" | "unit" | "Option" => "null",
        "map" => "an object",
        "sequence" => "a list",
        _ => "this value",
    }
}

/// Returns what is expected, with an example.
fn described(expected: &str) -> String {
    let described = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 is expected, such as 1",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number is expected, such as 1",
        "f32" | "f64" => "a number is expected, such as 1.5",
        "a boolean" => "true or false is expected",
        "a string" | "str" | "string" => "a text is expected, such as \"text\"",
        "a sequence" => "a list is expected, such as []",
        "a map" => "an object is expected, such as {}",
        "unit" => "null is expected",
        "UUID string" | "a UUID string" | "a formatted UUID string" => {
            return format!("an id is expected, such as {ID}");
        }
        other if other.starts_with("struct ") || other.starts_with("internally tagged ") => {
            "an object is expected, such as {}"
        }
        other => return format!("{other} is expected"),
    };
    described.to_owned()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Tint {
        Red,
        DarkBlue,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "the test reads what is refused")]
    struct ShipmentStep {
        number: u32,
        #[serde(default)]
        names: Vec<String>,
        #[serde(default)]
        colour: Option<Tint>,
        #[serde(default)]
        id: Option<Uuid>,
        #[serde(default)]
        done: bool,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "the test reads what is refused")]
    struct Shipment {
        steps: Vec<ShipmentStep>,
    }

    #[test]
    fn a_refusal_names_place_rule_and_example_and_never_the_value() {
        let check = |step: Value, expected: &str| {
            let plan = json!({"steps": [{"number": 1}, step]});
            let refused = read::<Shipment>(&plan).unwrap_err();
            assert_eq!(refused, expected);
            assert_eq!(read_text::<Shipment>(&plan.to_string()).unwrap_err(), expected);
            assert!(!refused.contains("hunter2"), "{refused}");
        };
        let number = "a whole number from 0 is expected, such as 1";
        check(json!({"number": "hunter2"}), &format!("steps[1].number: {number}, not a text"));
        check(json!({"number": "hunter2, expected u8"}), &format!("steps[1].number: {number}, not a text"));
        check(json!({"number": -5}), &format!("steps[1].number: {number}, not this value"));
        check(json!({"number": 1.5}), &format!("steps[1].number: {number}, not a number"));
        check(
            json!({"number": 1, "names": ["a", 7]}),
            "steps[1].names[1]: a text is expected, such as \"text\", not a whole number",
        );
        check(json!({"number": 1, "names": "hunter2"}), "steps[1].names: a list is expected, such as [], not a text");
        check(json!({"number": 1, "colour": "hunter2"}), "steps[1].colour: `red` or `dark_blue` is expected");
        check(json!({"number": 1, "done": "hunter2"}), "steps[1].done: true or false is expected, not a text");
        check(json!({"number": 1, "id": "hunter2"}), &format!("steps[1].id: an id is expected, such as {ID}"));
        check(json!({}), "steps[1]: missing field `number`");
        check(json!("hunter2"), "steps[1]: an object is expected, such as {}, not a text");
    }
}
