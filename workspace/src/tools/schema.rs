//! The JSON schemas of the tools' arguments, made of the kinds' fields.

use serde_json::{Map, Value, json};

use super::{MAX_ITEMS, Operation};
use crate::kind::{Form, Kind};

/// Most entities of one kind that a call creates with a project.
pub const MAX_CONTENTS: usize = 100;

/// Returns the schema of an operation. With `has_project`, the context has a project, and `project_id` may be left out.
pub fn of(operation: Operation, has_project: bool) -> Value {
    let (properties, required) = match operation {
        Operation::List(kind) => (list(kind), Vec::new()),
        Operation::Details(kind) | Operation::Delete(kind) => named(kind, has_project),
        Operation::Create(Kind::Project) => (project(), vec!["name".to_owned()]),
        Operation::Create(kind) => {
            let mut required = vec![kind.title_field().to_owned()];
            required.extend((!has_project).then(|| "project_id".to_owned()));
            let mut properties = fields(kind);
            properties.insert("project_id".to_owned(), json!({"type": "string"}));
            (properties, required)
        }
        Operation::Update(kind) => {
            let (mut properties, required) = named(kind, has_project);
            properties.extend(fields(kind));
            let strategy = "append adds a long text to the one that is there";
            properties
                .insert("update_strategy".to_owned(), json!({"enum": ["replace", "append"], "description": strategy}));
            let version = "the version that you have read; the call fails if it was changed since";
            properties.insert("version".to_owned(), json!({"type": "integer", "description": version}));
            (properties, required)
        }
        Operation::FieldInfo => {
            let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
            let properties = json!({"entity_type": {"enum": kinds}, "field": {"type": "string"}});
            (object(properties), vec!["entity_type".to_owned()])
        }
        Operation::Overview | Operation::UsageGuide => (Map::new(), Vec::new()),
    };
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Returns the name of the argument that names an entity.
pub fn id_field(kind: Kind) -> String {
    format!("{}_id", kind.as_str())
}

fn named(kind: Kind, has_project: bool) -> (Map<String, Value>, Vec<String>) {
    let is_needed = kind != Kind::Project || !has_project;
    (
        Map::from_iter([(id_field(kind), json!({"type": "string"}))]),
        if is_needed { vec![id_field(kind)] } else { Vec::new() },
    )
}

fn list(kind: Kind) -> Map<String, Value> {
    let mut properties = Map::new();
    if kind.is_within_project() {
        properties.insert("project_id".to_owned(), json!({"type": "string"}));
    }
    if let Some(field) = kind.field("state") {
        properties.insert("state".to_owned(), of_form(field.form));
    }
    properties.insert("limit".to_owned(), json!({"type": "integer", "minimum": 1, "maximum": MAX_ITEMS}));
    properties.insert("cursor".to_owned(), json!({"type": "string"}));
    properties
}

/// Returns the schema of a project with its first contents.
fn project() -> Map<String, Value> {
    let mut properties = fields(Kind::Project);
    for kind in Kind::ALL.iter().filter(|kind| kind.is_within_project()) {
        let item = json!({"type": "object", "properties": fields(*kind), "required": [kind.title_field()]});
        properties.insert(kind.plural().to_owned(), json!({"type": "array", "maxItems": MAX_CONTENTS, "items": item}));
    }
    properties
}

fn fields(kind: Kind) -> Map<String, Value> {
    kind.fields().iter().map(|field| (field.name.to_owned(), of_form(field.form))).collect()
}

fn of_form(form: Form) -> Value {
    match form {
        Form::Text(_) | Form::Body(_) | Form::Id(_) => json!({"type": "string"}),
        Form::Word(words) => json!({"enum": words}),
        Form::Number(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Form::Time => json!({"type": "string", "description": "RFC 3339, or a day"}),
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
