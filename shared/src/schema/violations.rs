//! The rule that a value breaks, in words for a model that corrects its arguments. Long values are measured, not quoted.

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde_json::Value;

/// Longest value that is quoted, in characters of JSON.
const QUOTED_CHARS: usize = 60;

/// Returns what the value is, and what the rule demands.
pub fn rule(violation: &ValidationError<'_>) -> String {
    let value = violation.instance();
    match violation.kind() {
        ValidationErrorKind::MaxItems { limit } => format!("{}, at most {limit}", size(value)),
        ValidationErrorKind::MinItems { limit } => format!("{}, at least {limit}", size(value)),
        ValidationErrorKind::MaxLength { limit } => format!("{}, at most {limit}", size(value)),
        ValidationErrorKind::MinLength { limit } => format!("{}, at least {limit}", size(value)),
        ValidationErrorKind::MaxProperties { limit } => format!("{}, at most {limit}", size(value)),
        ValidationErrorKind::MinProperties { limit } => format!("{}, at least {limit}", size(value)),
        _ => violation.masked_with(shown(value)).to_string(),
    }
}

/// Returns a short value as JSON, and the size of a long one.
fn shown(value: &Value) -> String {
    let json = value.to_string();
    if json.chars().count() <= QUOTED_CHARS { json } else { format!("a value of {}", size(value)) }
}

fn size(value: &Value) -> String {
    let (count, one) = match value {
        Value::Array(items) => (items.len(), "item"),
        Value::Object(fields) if fields.len() == 1 => return "1 property".to_owned(),
        Value::Object(fields) => return format!("{} properties", fields.len()),
        Value::String(text) => (text.chars().count(), "character"),
        other => (other.to_string().len(), "digit"),
    };
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::{Schema, SchemaLimits};

    #[test]
    fn a_violation_names_the_place_and_the_rule_and_never_a_long_value() {
        let check = |rule: Value, value: Value, expected: &str| {
            let schema = json!({"type": "object", "properties": {"steps": rule}});
            let schema = Schema::compile(schema, &SchemaLimits::default()).unwrap();
            assert_eq!(schema.validate(&json!({"steps": value})).unwrap_err(), expected);
        };
        check(json!({"maxItems": 20}), json!(vec!["write"; 21]), "at /steps: 21 items, at most 20");
        check(json!({"minItems": 1}), json!([]), "at /steps: 0 items, at least 1");
        check(json!({"maxLength": 5}), json!("secrets"), "at /steps: 7 characters, at most 5");
        check(json!({"minLength": 2}), json!("x"), "at /steps: 1 character, at least 2");
        check(json!({"maxProperties": 1}), json!({"a": 1, "b": 2}), "at /steps: 2 properties, at most 1");
        check(json!({"minProperties": 2}), json!({"a": 1}), "at /steps: 1 property, at least 2");
        check(json!({"type": "string"}), json!(5), "at /steps: 5 is not of type \"string\"");
        let long = json!(vec!["write"; 50]);
        check(json!({"type": "string"}), long, "at /steps: a value of 50 items is not of type \"string\"");
    }
}
