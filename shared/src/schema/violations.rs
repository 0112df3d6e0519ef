//! The rule that a value breaks, with an example, in words for a model or a client that corrects its arguments. No word of the value
//! itself is in them: it can be long, and a secret.

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind},
};
use serde_json::{Map, Value, json};

/// Longest value of an enumeration, and longest example, that is shown, in characters of JSON.
const SHOWN_CHARS: usize = 80;

/// Most values of an enumeration, and most names of properties, that are shown.
const SHOWN: usize = 50;

/// Deepest level of an example.
const DEEPEST: usize = 3;

/// Returns what the value is, and what the rule demands. `source` is the whole schema.
pub fn rule(violation: &ValidationError<'_>, source: &Value) -> String {
    let value = violation.instance();
    // The path ends with the keyword. A path through a reference is no place in the source.
    let path = violation.schema_path().as_str();
    let schema = path.rsplit_once('/').and_then(|(schema, _)| source.pointer(schema));
    let rule = match violation.kind() {
        ValidationErrorKind::MaxItems { limit } => return format!("{}, at most {limit}", size(value)),
        ValidationErrorKind::MinItems { limit } => format!("{}, at least {limit}", size(value)),
        ValidationErrorKind::MaxLength { limit } => return format!("{}, at most {limit}", size(value)),
        ValidationErrorKind::MinLength { limit } => return format!("{}, at least {limit}", size(value)),
        ValidationErrorKind::MaxProperties { limit } => return format!("{}, at most {limit}", size(value)),
        ValidationErrorKind::MinProperties { limit } => return format!("{}, at least {limit}", size(value)),
        ValidationErrorKind::Type { kind } => format!("it is not of type {}, but {}", types(kind), kind_of(value)),
        ValidationErrorKind::Enum { options } => return format!("it is not one of {}", listed(options)),
        ValidationErrorKind::Constant { expected_value } => return format!("it is not {}", shown(expected_value)),
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let example = schema.and_then(|schema| example(&schema["properties"][name], DEEPEST));
            let example = example.map(|value| such_as(&json!({name: value}))).unwrap_or_default();
            return format!("{property} is a required property{example}");
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            return unknown(unexpected, schema);
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            return alternatives(violation, context, source);
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            "more than one of the alternatives fits, and one may".to_owned()
        }
        ValidationErrorKind::UniqueItems => "an item is in it twice".to_owned(),
        _ => violation.masked_with("it").to_string(),
    };
    let example = schema.and_then(|schema| example(schema, DEEPEST)).map(|value| such_as(&value));
    rule + &example.unwrap_or_default()
}

/// Returns which properties there are instead of unknown ones.
fn unknown(unexpected: &[String], schema: Option<&Value>) -> String {
    let named: Vec<String> = unexpected.iter().take(SHOWN).map(|name| shown(&json!(name))).collect();
    let known = schema.and_then(|schema| schema["properties"].as_object()).map(|known| {
        let names: Vec<&str> = known.keys().take(SHOWN).map(String::as_str).collect();
        format!("; there are: {}", names.join(", "))
    });
    format!("there is no property {}{}", named.join(", "), known.unwrap_or_default())
}

/// Returns why no alternative fits, by the one that fits best: the one whose first violation is deepest.
fn alternatives(violation: &ValidationError<'_>, context: &[Vec<ValidationError<'static>>], source: &Value) -> String {
    let count = context.len();
    let depth = |violation: &ValidationError<'_>| violation.instance_path().as_str().matches('/').count();
    let mut firsts = context.iter().filter_map(|violations| violations.first());
    let deepest = firsts.clone().max_by_key(|first| depth(first)).filter(|first| depth(first) > depth(violation));
    match (deepest, firsts.next()) {
        (Some(deepest), _) => {
            format!("none of {count} alternatives fits; the closest: {}", super::name(deepest, source))
        }
        (None, Some(first)) => format!("none of {count} alternatives fits; one of them: {}", rule(first, source)),
        (None, None) => format!("none of {count} alternatives fits"),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => format!("\"{one}\""),
        TypeKind::Multiple(several) => several.iter().map(|one| format!("\"{one}\"")).collect::<Vec<_>>().join(" or "),
    }
}

const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Returns the values of an enumeration.
fn listed(options: &Value) -> String {
    let Some(options) = options.as_array() else { return "the values of the schema".to_owned() };
    let names: Vec<String> = options.iter().take(SHOWN).map(shown).collect();
    let more = options.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

/// Returns a value of the schema as JSON, and only the beginning of a long one.
fn shown(value: &Value) -> String {
    let json = value.to_string();
    match json.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &json[..end]),
        None => json,
    }
}

/// Returns an example in words; nothing for a long one.
fn such_as(example: &Value) -> String {
    let json = example.to_string();
    if json.chars().count() <= SHOWN_CHARS { format!(", such as {json}") } else { String::new() }
}

/// Returns a value that a schema allows, as far as its simple keywords tell.
fn example(schema: &Value, levels: usize) -> Option<Value> {
    let of_author = schema["examples"].as_array().and_then(|examples| examples.first()).or(schema.get("default"));
    let only = schema.get("const").or_else(|| schema["enum"].as_array().and_then(|values| values.first()));
    if let Some(value) = of_author.or(only) {
        return Some(value.clone());
    }
    let levels = levels.checked_sub(1)?;
    let kind = schema["type"].as_str().or_else(|| schema["type"].as_array()?.first()?.as_str())?;
    match kind {
        "string" => text_example(schema),
        "integer" => Some(schema.get("minimum").filter(|least| least.is_i64()).cloned().unwrap_or(json!(1))),
        "number" => Some(schema.get("minimum").cloned().unwrap_or(json!(1.5))),
        "boolean" => Some(json!(true)),
        "null" => Some(Value::Null),
        "array" => Some(match example(&schema["items"], levels) {
            Some(item) => json!([item]),
            None => json!([]),
        }),
        "object" => {
            let needed = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let fields: Option<Map<String, Value>> =
                needed.map(|name| Some((name.to_owned(), example(&schema["properties"][name], levels)?))).collect();
            fields.map(Value::Object)
        }
        _ => None,
    }
}

fn text_example(schema: &Value) -> Option<Value> {
    if schema.get("pattern").is_some() || schema["minLength"].as_u64().is_some_and(|least| least > 4) {
        return None;
    }
    Some(json!(match schema["format"].as_str() {
        None => "text",
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("date") => "2026-01-31",
        Some("time") => "12:00:00Z",
        Some("uuid") => "01a20131-6243-7797-8616-20e98be7ff86",
        Some("email") => "ann@example.org",
        Some("uri") => "https://example.org/",
        Some(_) => return None,
    }))
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
    use super::*;
    use crate::schema::{Schema, SchemaLimits};

    fn refused(schema: Value, value: Value) -> String {
        Schema::compile(schema, &SchemaLimits::default()).unwrap().validate(&value).unwrap_err()
    }

    #[test]
    fn a_violation_names_place_rule_and_example_and_never_the_value() {
        let check = |rule: Value, value: Value, expected: &str| {
            let schema = json!({"type": "object", "properties": {"steps": rule}});
            assert_eq!(refused(schema, json!({"steps": value})), expected);
        };
        check(json!({"maxItems": 20}), json!(vec!["write"; 21]), "at /steps: 21 items, at most 20");
        check(json!({"minItems": 1}), json!([]), "at /steps: 0 items, at least 1");
        check(json!({"maxLength": 5}), json!("secrets"), "at /steps: 7 characters, at most 5");
        check(json!({"minLength": 2}), json!("x"), "at /steps: 1 character, at least 2");
        check(json!({"maxProperties": 1}), json!({"a": 1, "b": 2}), "at /steps: 2 properties, at most 1");
        check(json!({"minProperties": 2}), json!({"a": 1}), "at /steps: 1 property, at least 2");
        let text = "at /steps: it is not of type \"string\", but a number, such as \"text\"";
        check(json!({"type": "string"}), json!(5), text);
        let list = "at /steps: it is not of type \"null\" or \"integer\", but an array, such as 1";
        check(json!({"type": ["integer", "null"]}), json!(vec!["hunter2"; 50]), list);
        check(
            json!({"minimum": 1, "type": "integer"}),
            json!(-7),
            "at /steps: it is less than the minimum of 1, such as 1",
        );
        check(json!({"pattern": "^a+$"}), json!("hunter2"), "at /steps: it does not match \"^a+$\"");
        check(json!({"const": "on"}), json!("hunter2"), "at /steps: it is not \"on\"");
        check(json!({"uniqueItems": true}), json!(["hunter2", "hunter2"]), "at /steps: an item is in it twice");
    }

    #[test]
    fn an_enumeration_names_all_its_values() {
        let values: Vec<String> = (1..=8).map(|n| format!("value_{n}")).collect();
        let refused = refused(json!({"enum": values}), json!("hunter2"));
        assert!(values.iter().all(|value| refused.contains(value)), "{refused}");
        assert!(!refused.contains("hunter2") && !refused.contains("candidates"), "{refused}");
    }

    #[test]
    fn a_missing_property_has_an_example_and_an_unknown_one_its_neighbours() {
        let schema = json!({"type": "object", "required": ["when"], "additionalProperties": false, "properties": {
            "when": {"type": "object", "required": ["day"], "properties": {"day": {"type": "string", "format": "date"}}},
            "who": {"type": "string"}}});
        let missing = "at the top: \"when\" is a required property, such as {\"when\":{\"day\":\"2026-01-31\"}}";
        assert_eq!(refused(schema.clone(), json!({})), missing);
        let unknown = refused(schema, json!({"when": {"day": "2026-01-31"}, "whom": "hunter2"}));
        assert_eq!(unknown, "at the top: there is no property \"whom\"; there are: when, who");
    }

    #[test]
    fn of_alternatives_the_closest_is_explained() {
        let schema = json!({"properties": {"part": {"anyOf": [
            {"type": "string"},
            {"type": "object", "properties": {"at": {"type": "integer"}}},
        ]}}});
        let closest = refused(schema.clone(), json!({"part": {"at": "hunter2"}}));
        let place = "at /part: none of 2 alternatives fits; the closest: at /part/at: it is not of type \"integer\"";
        assert!(closest.starts_with(place), "{closest}");
        let flat = refused(schema, json!({"part": 5}));
        assert!(flat.contains("none of 2 alternatives fits; one of them: it is not of type \"string\""), "{flat}");
    }
}
