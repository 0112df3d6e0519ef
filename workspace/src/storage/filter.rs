//! The entities that a list has.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{
    entity::id_of,
    input::{InvalidField, invalid, read_value},
    kind::{Field, Form, Kind},
};

/// The entities that a list has; all of a kind by default.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Those of this project.
    pub project_id: Option<Uuid>,
    /// Of edges: those that have this entity as an end, of any project.
    pub entity_id: Option<Uuid>,
    /// Values that fields must have. A time must be before its value.
    fields: Map<String, Value>,
    /// States of which the entity must have one, if there are any.
    states: Vec<Value>,
}

impl Filter {
    /// Returns a filter for the entities of a project.
    pub fn of_project(project_id: Option<Uuid>) -> Self {
        Self { project_id, ..Self::default() }
    }

    /// Returns a filter for the edges that have an entity as an end.
    pub fn of_entity(entity_id: Uuid) -> Self {
        Self { entity_id: Some(entity_id), ..Self::default() }
    }

    /// Reads the values of a caller by the names of their fields. A time has the name `due_before` for `due_at`, and several
    /// states have commas between them.
    pub fn read(kind: Kind, values: Map<String, Value>) -> Result<Self, InvalidField> {
        let mut filter = Self::default();
        for (name, value) in values {
            if value.is_null() {
                continue;
            }
            match name.as_str() {
                "project_id" if kind.is_within_project() => filter.project_id = Some(read_id(&name, &value)?),
                "entity_id" if kind == Kind::Edge => filter.entity_id = Some(read_id(&name, &value)?),
                _ => {
                    let field = kind.fields().iter().find(|field| filter_name(field).as_deref() == Some(&name));
                    let field = field.ok_or_else(|| no_such_filter(kind, &name))?;
                    let several =
                        value.as_str().filter(|text| is_state(field) && text.contains(',')).map(str::to_owned);
                    if let Some(states) = several {
                        filter.states = states
                            .split(',')
                            .map(|state| value_of(field, &name, json!(state.trim())))
                            .collect::<Result<_, _>>()?;
                        continue;
                    }
                    filter.fields.insert(field.name.to_owned(), value_of(field, &name, value)?);
                }
            }
        }
        Ok(filter)
    }

    /// Returns the JSON that a statement reads.
    pub(super) fn json(&self) -> Value {
        if self.states.is_empty() {
            return if self.fields.is_empty() { json!([]) } else { json!([self.fields]) };
        }
        let with_state = |state: &Value| {
            let mut fields = self.fields.clone();
            fields.insert("state".to_owned(), state.clone());
            fields
        };
        self.states.iter().map(with_state).collect::<Vec<_>>().into()
    }
}

/// Returns the name of a field's filter; `None` if a list is not filtered by it.
pub fn filter_name(field: &Field) -> Option<String> {
    match field.form {
        Form::Word(_) | Form::State(_) | Form::Number(..) | Form::Id(_) | Form::IdOf(_) => Some(field.name.to_owned()),
        Form::Time => {
            let stem = field.name.trim_end_matches("_at").trim_end_matches("_date");
            Some(format!("{stem}_before"))
        }
        Form::Text(_) if matches!(field.name, "type" | "type_key" | "kind" | "key") => Some(field.name.to_owned()),
        _ => None,
    }
}

const fn is_state(field: &Field) -> bool {
    matches!(field.form, Form::State(_))
}

/// Reads the value of a filter.
fn value_of(field: &Field, filter: &str, value: Value) -> Result<Value, InvalidField> {
    let value = read_value(field, value);
    let value = value.map_err(|invalid| InvalidField { field: filter.to_owned(), problem: invalid.problem })?;
    Ok(simple_id(field, value))
}

/// Gives an id the form that both databases read.
fn simple_id(field: &Field, value: Value) -> Value {
    match field.form {
        Form::Id(_) | Form::IdOf(_) => json!(id_of(&value).map(|id| id.simple().to_string())),
        _ => value,
    }
}

fn read_id(name: &str, value: &Value) -> Result<Uuid, InvalidField> {
    id_of(value).ok_or_else(|| invalid(name, "an id, such as \"01a20131-6243-7797-8616-20e98be7ff86\""))
}

fn no_such_filter(kind: Kind, name: &str) -> InvalidField {
    let mut names: Vec<String> = kind.fields().iter().filter_map(filter_name).collect();
    names.extend(kind.is_within_project().then(|| "project_id".to_owned()));
    invalid(name, format!("{} are not filtered by it; there are {}", kind.plural(), names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_filtered_by_words_numbers_times_and_ids() {
        let read = |json: Value| Filter::read(Kind::Task, json.as_object().unwrap().clone());
        let goal = "01a20131-6243-7797-8616-20e98be7ff86";
        let filter =
            read(json!({"state": "todo", "due_before": "2026-12-01", "goal_id": goal, "plan_id": null})).unwrap();
        let expected = json!([{"due_at": "2026-12-01T00:00:00.000Z", "goal_id": "01a2013162437797861620e98be7ff86", "state": "todo"}]);
        assert_eq!(filter.json(), expected);
        let of_two = read(json!({"state": "todo, blocked", "priority": 5})).unwrap();
        assert_eq!(of_two.json(), json!([{"priority": 5, "state": "todo"}, {"priority": 5, "state": "blocked"}]));
        for (refused, problem) in [
            (
                json!({"title": "t"}),
                "title: tasks are not filtered by it; there are state, priority, due_before, plan_id, goal_id, project_id",
            ),
            (
                json!({"state": "todo,open"}),
                "state: one of todo, in_progress, blocked, done, cancelled, such as \"todo\"",
            ),
            (json!({"priority": 9}), "priority: a whole number from 1 to 5, such as 1"),
            (json!({"due_before": "soon"}), "due_before: a time or a day, such as \"2026-12-01T09:00:00Z\""),
            (json!({"project_id": 1}), "project_id: an id, such as \"01a20131-6243-7797-8616-20e98be7ff86\""),
        ] {
            assert_eq!(read(refused).unwrap_err().to_string(), problem);
        }
    }
}
