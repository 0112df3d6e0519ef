//! Collections of documents.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A collection of documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Collection {
    /// UUIDv7.
    pub id: Uuid,
    /// The name that its owner gave it.
    pub name: String,
    /// The subject of its documents.
    pub description: Option<String>,
    /// Whose runs may read it.
    pub readable_by: Readers,
    /// Time of the database.
    #[serde(serialize_with = "holdfast_shared::timestamp::milliseconds")]
    pub created_at: DateTime<Utc>,
}

/// A collection before its creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCollection {
    /// The name.
    pub name: String,
    /// The subject of its documents.
    pub description: Option<String>,
    /// Whose runs may read it.
    pub readable_by: Readers,
}

/// Whose runs may read a collection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Readers {
    /// Its owner's.
    #[default]
    Owner,
    /// All users', as an operator decides.
    Everyone,
}

impl Readers {
    /// Returns the name in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Everyone => "everyone",
        }
    }

    /// Returns the readers of a name in the database. A name of a later version is the narrower one.
    pub fn of(name: &str) -> Self {
        match name {
            "everyone" => Self::Everyone,
            _ => Self::Owner,
        }
    }
}
