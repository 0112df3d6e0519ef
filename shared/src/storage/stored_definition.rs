//! The stored form of an agent's definition.
//!
//! The field `recursive` has a column of its own, `most_in_chain`: a version before this one reads the extension strictly.

use serde_json::{Map, Value, json};
use sqlx::{ColumnIndex, Decode, FromRow, Row, Type, types::Json};

use crate::{agent::AgentDefinition, storable::storable_json};

/// A definition in two documents: the one that an earlier version of this program can read, and the fields that it does not
/// know.
pub struct StoredDefinition(pub AgentDefinition);

/// The fields that have joined definitions since earlier versions read them strictly.
const EXTENSION: [&str; 4] = ["subagents", "kind", "knowledge", "memory"];

/// A field of the model's settings that has joined them since then. A model with it is a part of the extension.
const EXTENSION_OF_MODEL: &str = "profile";

impl StoredDefinition {
    /// Returns both documents; the second one is `None` if it is empty.
    pub fn documents(definition: &AgentDefinition) -> (Value, Option<Value>) {
        let mut document = storable_json(json!(AgentDefinition { recursive: None, ..definition.clone() }));
        let mut extension = Map::new();
        if let Some(fields) = document.as_object_mut() {
            extension.extend(EXTENSION.iter().filter_map(|field| fields.remove_entry(*field)));
            if fields.get("model").is_some_and(|model| model.get(EXTENSION_OF_MODEL).is_some()) {
                extension.extend(fields.remove_entry("model"));
            }
        }
        (document, (!extension.is_empty()).then_some(Value::Object(extension)))
    }
}

impl<'r, R: Row> FromRow<'r, R> for StoredDefinition
where
    &'static str: ColumnIndex<R>,
    Json<Value>: Decode<'r, R::Database> + Type<R::Database>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        let Json(mut document) = row.try_get::<Json<Value>, _>("definition")?;
        let extension = row.try_get::<Option<Json<Value>>, _>("extension")?;
        if let (Some(fields), Some(Json(Value::Object(extension)))) = (document.as_object_mut(), extension) {
            fields.extend(extension);
        }
        let unreadable = |error| sqlx::Error::ColumnDecode { index: "definition".to_owned(), source: Box::new(error) };
        let most_in_chain = row.try_get::<Option<i64>, _>("most_in_chain")?;
        let definition: AgentDefinition = serde_json::from_value(document).map_err(unreadable)?;
        Ok(Self(AgentDefinition { recursive: most_in_chain.map(|most| most as u32), ..definition }))
    }
}
