//! The fields of an entity as a caller writes them, checked against the fields of its kind.

use chrono::{Datelike, NaiveDate, NaiveTime, Timelike};
use holdfast_shared::{
    hidden::is_visible,
    storable::{MAX_DEPTH, is_too_deep, storable, storable_json},
    whole_numbers::whole_number,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    contents::read_contents,
    entity::{id_of, text_of, time_of},
    kind::{Field, Form, Kind},
};

/// Longest `props`, in bytes of JSON.
const MAX_PROPS: usize = 16 * 1024;

/// A new entity.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEntity {
    /// UUIDv7.
    pub id: Uuid,
    /// Its kind.
    pub kind: Kind,
    /// The project that it belongs to.
    pub project_id: Option<Uuid>,
    /// All fields of the kind, and `props`.
    pub fields: Map<String, Value>,
}

/// Changes of an entity: the fields that get another value.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// The kind of the entity.
    pub kind: Kind,
    /// The new values.
    pub fields: Map<String, Value>,
    /// The version that the caller has read, if it says so.
    pub version: Option<i64>,
    /// Whether long texts are added to those that are there, instead of taking their place.
    pub appends: bool,
}

/// A value that a field does not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct InvalidField {
    /// The field.
    pub field: String,
    /// The problem, with an example if one helps.
    pub problem: String,
}

impl NewEntity {
    /// Reads the JSON object of a caller. Fields that it leaves out get their defaults.
    pub fn read(kind: Kind, input: Map<String, Value>) -> Result<Self, InvalidField> {
        let new = Self::read_within(kind, input)?;
        match (kind.is_within_project(), new.project_id) {
            (true, None) => Err(wants_id("project_id")),
            _ => Ok(new),
        }
    }

    /// Reads the JSON object of a caller, which may leave out the project.
    pub fn read_within(kind: Kind, mut input: Map<String, Value>) -> Result<Self, InvalidField> {
        let project_id = match (kind.is_within_project(), input.remove("project_id").unwrap_or_default()) {
            (_, Value::Null) => None,
            (true, given) => Some(id_of(&given).ok_or_else(|| wants_id("project_id"))?),
            (false, _) => return Err(invalid("project_id", format!("a {} belongs to no project", kind.as_str()))),
        };
        let mut fields = read_fields(kind, input)?;
        for field in kind.fields() {
            let value = fields.entry(field.name).or_insert(Value::Null);
            if value.is_null() {
                *value = json!(field.form.default());
            }
            check_required(field, value)?;
        }
        fields.entry("props").or_insert_with(|| json!({}));
        check_body(kind, &fields)?;
        let new = Self { id: Uuid::now_v7(), kind, project_id, fields };
        check_ends(kind, &new.fields)?;
        Ok(new)
    }
}

impl Patch {
    /// Reads the JSON object of a caller.
    pub fn read(kind: Kind, mut input: Map<String, Value>) -> Result<Self, InvalidField> {
        let version = match input.remove("version").unwrap_or_default() {
            Value::Null => None,
            given => Some(whole_number(&given).ok_or_else(|| invalid("version", "a whole number, such as 3"))?),
        };
        if input.contains_key("project_id") {
            return Err(invalid("project_id", "an entity stays in its project"));
        }
        if kind == Kind::Edge && input.keys().any(|name| name != "props") {
            return Err(invalid("relation", "an edge stays as it is; delete it and create another one"));
        }
        let fields = read_fields(kind, input)?;
        for (name, value) in &fields {
            if let Some(field) = kind.field(name) {
                check_required(field, value)?;
            }
        }
        check_body(kind, &fields)?;
        Ok(Self { kind, fields, version, appends: false })
    }
}

fn read_fields(kind: Kind, input: Map<String, Value>) -> Result<Map<String, Value>, InvalidField> {
    let mut fields = Map::new();
    for (name, value) in input {
        let read = match kind.field(&name) {
            Some(field) => read_value(field, value)?,
            None if name == "props" => read_props(value)?,
            None => {
                let names: Vec<&str> = kind.fields().iter().map(|field| field.name).collect();
                let problem = format!("a {} has no such field; it has {} and props", kind.as_str(), names.join(", "));
                return Err(invalid(&name, problem));
            }
        };
        fields.insert(name, read);
    }
    Ok(fields)
}

/// Reads a value of a field. Null takes the value away.
pub(crate) fn read_value(field: &Field, value: Value) -> Result<Value, InvalidField> {
    let refuse = |wanted: String| {
        let example = field.form.example();
        Err(invalid(field.name, format!("{wanted}, such as {example}")))
    };
    if value.is_null() {
        return Ok(Value::Null);
    }
    match field.form {
        Form::Text(most) => match value {
            Value::String(text) if text.chars().count() <= most => Ok(json!(storable(text))),
            _ => refuse(format!("a text of at most {most} characters")),
        },
        Form::Body(most) => match value {
            Value::String(text) if text.len() <= most => Ok(json!(storable(text))),
            _ => refuse(format!("a text of at most {most} bytes")),
        },
        Form::Word(words) | Form::State(words) => match value.as_str() {
            Some(word) if words.contains(&word) => Ok(value),
            _ => refuse(format!("one of {}", words.join(", "))),
        },
        Form::Number(least, most) => match whole_number(&value) {
            Some(number) if (least..=most).contains(&number) => Ok(json!(number)),
            _ => refuse(format!("a whole number from {least} to {most}")),
        },
        Form::Time => match time_of(&value).or_else(|| midnight_of(&value)).filter(is_storable_time) {
            Some(at) => Ok(json!(text_of(at))),
            None => refuse("a time or a day".to_owned()),
        },
        Form::Object(most) => match value {
            value if value.is_object() && !is_too_deep(&value) && value.to_string().len() <= most => {
                Ok(storable_json(value))
            }
            _ => refuse(format!("a JSON object of at most {most} bytes and {MAX_DEPTH} levels")),
        },
        Form::IdOf(kind) => match id_of(&value) {
            Some(id) => Ok(json!(id)),
            None => refuse(format!("the id of an entity of the kind in {kind}")),
        },
        Form::Id(kind) => match id_of(&value) {
            Some(id) => Ok(json!(id)),
            None => refuse(format!("the id of a {}", kind.as_str())),
        },
    }
}

/// Reads a day, as its first moment in UTC.
fn midnight_of(value: &Value) -> Option<chrono::DateTime<chrono::Utc>> {
    let day: NaiveDate = value.as_str()?.parse().ok()?;
    Some(day.and_time(NaiveTime::MIN).and_utc())
}

/// Returns whether both databases store the time as it is: the years 1 to 9999, and no leap second.
fn is_storable_time(at: &chrono::DateTime<chrono::Utc>) -> bool {
    (1..=9999).contains(&at.year()) && at.nanosecond() < 1_000_000_000
}

fn read_props(value: Value) -> Result<Value, InvalidField> {
    let wanted = || invalid("props", format!("a JSON object of at most {MAX_PROPS} bytes and {MAX_DEPTH} levels"));
    match value {
        Value::Null => Ok(json!({})),
        value if !value.is_object() || is_too_deep(&value) || value.to_string().len() > MAX_PROPS => Err(wanted()),
        value => Ok(storable_json(value)),
    }
}

fn check_required(field: &Field, value: &Value) -> Result<(), InvalidField> {
    let is_empty = value.is_null() || value.as_str().is_some_and(|text| !is_visible(text));
    if field.is_required && is_empty {
        return Err(invalid(field.name, format!("a value is needed, such as {}", field.form.example())));
    }
    Ok(())
}

/// Refuses a template of which no project can be made.
fn check_body(kind: Kind, fields: &Map<String, Value>) -> Result<(), InvalidField> {
    match fields.get("body") {
        Some(Value::Object(body)) if kind == Kind::Template => read_contents("body", body).map(drop),
        _ => Ok(()),
    }
}

/// Refuses a relation of an entity to itself.
fn check_ends(kind: Kind, fields: &Map<String, Value>) -> Result<(), InvalidField> {
    let is_loop = kind == Kind::Edge && fields["from_id"] == fields["to_id"];
    if is_loop { Err(invalid("to_id", "an entity has no relation to itself")) } else { Ok(()) }
}

fn wants_id(field: &str) -> InvalidField {
    invalid(field, "the id of a project is needed, such as \"01a20131-6243-7797-8616-20e98be7ff86\"")
}

pub(crate) fn invalid(field: &str, problem: impl Into<String>) -> InvalidField {
    InvalidField { field: field.to_owned(), problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_new_entity_has_all_fields_of_its_kind() {
        let project =
            NewEntity::read(Kind::Project, object(json!({"name": "Harbour", "end_at": "2026-12-01"}))).unwrap();
        let expected = json!({
            "name": "Harbour", "description": null, "type_key": null, "state": "planning", "start_at": null,
            "end_at": "2026-12-01T00:00:00.000Z", "props": {}
        });
        assert_eq!(Value::Object(project.fields), expected);
    }

    #[test]
    fn a_value_of_a_wrong_form_is_refused_with_its_field_and_an_example() {
        let project = "01a20131-6243-7797-8616-20e98be7ff86";
        let with = |field: &str, value: Value| {
            let mut input = object(json!({"title": "t", "project_id": project}));
            input.insert(field.to_owned(), value);
            NewEntity::read(Kind::Task, input).unwrap_err().to_string()
        };
        for (field, value, problem) in [
            ("title", json!(" "), "title: a value is needed, such as \"Call the harbour master\""),
            ("title", json!("\u{200b}\u{e0041}"), "title: a value is needed"),
            ("title", json!("x".repeat(201)), "title: a text of at most 200 characters"),
            ("state", json!("started"), "state: one of todo, in_progress, blocked, done, cancelled, such as \"todo\""),
            ("priority", json!(6), "priority: a whole number from 1 to 5, such as 1"),
            ("due_at", json!("soon"), "due_at: a time or a day, such as \"2026-12-01T09:00:00Z\""),
            ("due_at", json!("+12345-06-07"), "due_at: a time or a day"),
            ("due_at", json!("0000-01-01"), "due_at: a time or a day"),
            ("due_at", json!("2026-12-31T23:59:60Z"), "due_at: a time or a day"),
            ("plan_id", json!("p"), "plan_id: the id of a plan"),
            ("colour", json!("red"), "colour: a task has no such field; it has title,"),
            ("props", json!([]), "props: a JSON object of at most 16384 bytes"),
            ("project_id", json!("x"), "project_id: the id of a project is needed"),
        ] {
            let refused = with(field, value);
            assert!(refused.starts_with(problem), "{refused} is not {problem}");
        }
        assert!(NewEntity::read(Kind::Task, object(json!({"title": "x".repeat(200), "project_id": project}))).is_ok());
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let patch = Patch::read(Kind::Task, object(json!({"due_at": null, "version": 3}))).unwrap();
        assert_eq!((Value::Object(patch.fields), patch.version), (json!({"due_at": null}), Some(3)));
        for refused in [json!({"title": null}), json!({"project_id": "x"}), json!({"version": "x"})] {
            assert!(Patch::read(Kind::Task, object(refused)).is_err());
        }
    }
}
