//! The record of one change of an entity.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::kind::Kind;

/// A change of an entity. All changes of one request, and of one undo, are a set.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Change {
    /// UUIDv7.
    pub id: Uuid,
    /// The set, which can be undone as a whole.
    pub change_set_id: Uuid,
    /// The kind of the entity.
    pub kind: Kind,
    /// The entity.
    pub entity_id: Uuid,
    /// The effect.
    pub action: Action,
    /// The entity before; null if there was none.
    #[schema(value_type = Option<Object>)]
    pub before: Option<Value>,
    /// The entity afterwards; null if there is none.
    #[schema(value_type = Option<Object>)]
    pub after: Option<Value>,
    /// The user who made the change, or has started the run.
    pub user_id: String,
    /// The run whose call made the change; null for a change by a user.
    pub run_id: Option<Uuid>,
    /// Time of the database.
    pub created_at: DateTime<Utc>,
}

/// The effect of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Action {
    /// The entity was created.
    Create,
    /// Fields have other values.
    Update,
    /// The entity was deleted.
    Delete,
    /// A deleted entity was restored.
    Restore,
    /// A creation was undone.
    Remove,
}

impl Action {
    /// Returns the effect between two states, of which the first is deleted or not.
    pub fn between(before: Option<bool>, after: Option<bool>) -> Self {
        match (before, after) {
            (_, None) => Self::Remove,
            (None, Some(_)) => Self::Create,
            (Some(false), Some(true)) => Self::Delete,
            (Some(true), Some(false)) => Self::Restore,
            _ => Self::Update,
        }
    }

    /// Returns the word that the database stores.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
