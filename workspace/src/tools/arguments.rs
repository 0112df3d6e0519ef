//! The arguments of calls.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Call, ToolFailure, declaration::id_field, refused};
use crate::{entity::id_of, kind::Kind};

/// Items of a list, where the call names no limit, and at most.
pub const USUAL_ITEMS: usize = 20;
pub const MAX_ITEMS: usize = 50;

/// Longest words of a search, in characters.
const MAX_QUERY: usize = 200;

impl Call<'_> {
    /// Returns the entity that the call names; for a project, that of the context by default.
    pub(super) fn id(&self, kind: Kind, input: &Map<String, Value>) -> Result<Uuid, ToolFailure> {
        let field = id_field(kind);
        let id = optional_id(input, &field)?.or(self.project.filter(|_| kind == Kind::Project));
        id.ok_or_else(|| refused("invalid_arguments", format!("{field}: the id of a {} is needed", kind.as_str())))
    }

    /// Returns the project that the call names, or else that of the context.
    pub(super) fn project_of(&self, input: &Map<String, Value>) -> Result<Option<Uuid>, ToolFailure> {
        Ok(optional_id(input, "project_id")?.or(self.project))
    }
}

/// Returns an id, if the call has one.
pub fn optional_id(input: &Map<String, Value>, field: &str) -> Result<Option<Uuid>, ToolFailure> {
    match input.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => id_of(value).map(Some).ok_or_else(|| {
            let example = "\"01a20131-6243-7797-8616-20e98be7ff86\"";
            refused("invalid_arguments", format!("{field}: an id, such as {example}"))
        }),
    }
}

/// Returns a text that the call must have.
pub fn needed_text<'a>(input: &'a Map<String, Value>, field: &str, example: &str) -> Result<&'a str, ToolFailure> {
    let text = input.get(field).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    text.ok_or_else(|| refused("invalid_arguments", format!("{field}: a text is needed, such as \"{example}\"")))
}

/// Returns the words of a search.
pub fn query(input: &Map<String, Value>) -> Result<&str, ToolFailure> {
    let query = needed_text(input, "query", "harbour")?;
    match query.chars().count() {
        0..=MAX_QUERY => Ok(query),
        _ => Err(refused("invalid_arguments", format!("query: a text of at most {MAX_QUERY} characters"))),
    }
}

/// Returns the most items that the call wants.
pub fn limit(input: &Map<String, Value>) -> usize {
    let most = input.get("limit").and_then(Value::as_u64).map_or(USUAL_ITEMS, |limit| limit as usize);
    most.clamp(1, MAX_ITEMS)
}
