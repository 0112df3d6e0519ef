//! The declaration of a tool, and the schemas that follow from the kinds' fields.

use serde_json::{Map, Value, json};

use super::arguments::MAX_ITEMS;
use crate::{
    kind::{Form, Kind},
    storage::filter_name,
};

/// A category of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Category {
    /// Finds entities.
    Search,
    /// Reads one entity.
    Read,
    /// Changes entities.
    Write,
    /// Is about templates.
    Template,
    /// Helps with the others.
    Utility,
}

/// A tool as its file declares it.
pub struct Declaration {
    pub name: String,
    /// Its purpose, in a sentence.
    pub summary: String,
    /// More for the model; may be empty.
    pub more: String,
    pub properties: Map<String, Value>,
    pub required: Vec<String>,
    pub category: Category,
}

impl Declaration {
    pub fn new(category: Category, name: impl Into<String>, summary: impl Into<String>, properties: Value) -> Self {
        let Value::Object(properties) = properties else { unreachable!("properties are an object") };
        let (name, summary) = (name.into(), summary.into());
        Self { name, summary, more: String::new(), properties, required: Vec::new(), category }
    }

    pub fn requires(mut self, names: &[&str]) -> Self {
        self.required.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }

    pub fn with_more(mut self, more: &str) -> Self {
        more.clone_into(&mut self.more);
        self
    }

    pub fn with(mut self, properties: Map<String, Value>) -> Self {
        self.properties.extend(properties);
        self
    }
}

/// Returns the name of the argument that names an entity.
pub fn id_field(kind: Kind) -> String {
    format!("{}_id", kind.as_str())
}

pub fn text() -> Value {
    json!({"type": "string"})
}

pub fn limit() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": MAX_ITEMS})
}

/// Returns the schemas of the fields that a caller writes.
pub fn fields(kind: Kind) -> Map<String, Value> {
    kind.fields().iter().map(|field| (field.name.to_owned(), of_form(field.form))).collect()
}

/// Returns the schemas of the filters of a list. The only time among them is when something is due.
pub fn filters(kind: Kind) -> Map<String, Value> {
    let filter = |field: &crate::kind::Field| {
        let name = filter_name(field).filter(|_| field.form != Form::Time || field.name == "due_at")?;
        Some((name, of_form(field.form)))
    };
    kind.fields().iter().filter_map(filter).collect()
}

pub fn of_form(form: Form) -> Value {
    match form {
        Form::Text(_) | Form::Body(_) | Form::Id(_) | Form::IdOf(_) | Form::Time => text(),
        Form::Word(words) | Form::State(words) => json!({"enum": words}),
        Form::Number(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Form::Object(_) => json!({"type": "object"}),
    }
}
