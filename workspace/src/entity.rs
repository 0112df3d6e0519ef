//! One entity, with its fields.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::kind::{Form, Kind};

/// An entity of the workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    /// Its kind.
    pub kind: Kind,
    /// UUIDv7.
    pub id: Uuid,
    /// The project that it belongs to; `None` for a project.
    pub project_id: Option<Uuid>,
    /// The fields of its kind, and `props`; null without a value. A list leaves out bodies.
    pub fields: Map<String, Value>,
    /// Counts the changes, from 1.
    pub version: i64,
    /// Time of the database.
    pub created_at: DateTime<Utc>,
    /// Time of the newest change.
    pub updated_at: DateTime<Utc>,
    /// Time of the deletion; an entity can be restored for 30 days.
    pub deleted_at: Option<DateTime<Utc>>,
}

impl Entity {
    /// Returns the name or title.
    pub fn title(&self) -> &str {
        self.fields.get(self.kind.title_field()).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the id in a field.
    pub fn id_in(&self, field: &str) -> Option<Uuid> {
        self.fields.get(field).and_then(id_of)
    }

    /// Returns the kind in a field.
    pub fn kind_in(&self, field: &str) -> Option<Kind> {
        self.fields.get(field)?.as_str()?.parse().ok()
    }

    /// Returns whether the entity is not deleted.
    pub const fn is_live(&self) -> bool {
        self.deleted_at.is_none()
    }

    /// Returns the entities without which this one cannot be: its project, and the ends of a relation.
    pub fn needs(&self) -> Vec<(Kind, Uuid)> {
        let project = self.project_id.map(|id| (Kind::Project, id));
        let ends = self.kind.fields().iter().filter_map(|field| match field.form {
            Form::IdOf(kind) => Some((self.kind_in(kind)?, self.id_in(field.name)?)),
            _ => None,
        });
        project.into_iter().chain(ends).collect()
    }

    /// Returns the entity as a change keeps it.
    pub fn state(&self) -> Value {
        json!(self)
    }

    /// Reads the entity of a change.
    pub fn of_state(kind: Kind, state: &Value) -> Option<Self> {
        let time = |name: &str| time_of(&state[name]);
        let names = kind.fields().iter().map(|field| field.name).chain(["props"]);
        let fields = names.map(|name| (name.to_owned(), state[name].clone())).collect();
        Some(Self {
            kind,
            id: id_of(&state["id"])?,
            project_id: id_of(&state["project_id"]),
            fields,
            version: state["version"].as_i64()?,
            created_at: time("created_at")?,
            updated_at: time("updated_at")?,
            deleted_at: time("deleted_at"),
        })
    }

    /// Returns the row that a statement stores. Ids are in the simple form, which both databases read.
    pub fn row(&self, owner: &str) -> Value {
        let mut row = self.fields.clone();
        for field in self.kind.fields() {
            if let (Form::Id(_) | Form::IdOf(_), Some(id)) = (field.form, row.get(field.name).and_then(id_of)) {
                row.insert(field.name.to_owned(), json!(id.simple().to_string()));
            }
        }
        row.insert("id".to_owned(), json!(self.id.simple().to_string()));
        row.insert("owner_id".to_owned(), json!(owner));
        row.insert("folded".to_owned(), json!(folded(self.title())));
        row.insert("project_id".to_owned(), json!(self.project_id.map(|id| id.simple().to_string())));
        row.insert("version".to_owned(), json!(self.version));
        row.insert("created_at".to_owned(), json!(text_of(self.created_at)));
        row.insert("updated_at".to_owned(), json!(text_of(self.updated_at)));
        row.insert("deleted_at".to_owned(), json!(self.deleted_at.map(text_of)));
        Value::Object(row)
    }

    /// Gives the values of a row the form that clients read, whatever the database writes.
    pub fn normalise(&mut self) {
        for field in self.kind.fields() {
            let Some(value) = self.fields.get_mut(field.name) else { continue };
            match field.form {
                Form::Id(_) | Form::IdOf(_) => *value = json!(id_of(value)),
                Form::Time => *value = json!(time_of(value).map(text_of)),
                _ => {}
            }
        }
    }
}

impl Serialize for Entity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        if self.kind.is_within_project() {
            map.serialize_entry("project_id", &self.project_id)?;
        }
        let names = self.kind.fields().iter().map(|field| field.name).chain(["props"]);
        for (name, value) in names.filter_map(|name| self.fields.get_key_value(name)) {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("version", &self.version)?;
        map.serialize_entry("created_at", &text_of(self.created_at))?;
        map.serialize_entry("updated_at", &text_of(self.updated_at))?;
        map.serialize_entry("deleted_at", &self.deleted_at.map(text_of))?;
        map.end()
    }
}

/// Returns a name as the search compares it: one line in small letters.
pub fn folded(name: &str) -> String {
    name.to_lowercase().replace(['\n', '\r'], " ")
}

/// Returns a time as JSON has it.
pub fn text_of(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Reads a time of a database or of a change.
pub fn time_of(value: &Value) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(value.as_str()?).ok().map(|at| at.to_utc())
}

/// Reads an id in any of its forms.
pub fn id_of(value: &Value) -> Option<Uuid> {
    value.as_str()?.parse().ok()
}
