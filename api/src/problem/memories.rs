//! Problems with memories.

use std::fmt::Display;

use axum::http::StatusCode;
use holdfast_shared::memory::InvalidMemory;
use uuid::Uuid;

use super::Problem;

impl Problem {
    pub fn memory_not_found(id: impl Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "memory_not_found", format!("There is no memory {id}."))
    }

    pub fn invalid_memory(invalid: &InvalidMemory) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_memory", format!("{invalid}."))
    }

    pub fn memory_conflict(id: Uuid, version: u32) -> Self {
        let detail =
            format!("The memory {id} was changed meanwhile and has the version {version}; read it and try again.");
        Self::new(StatusCode::CONFLICT, "version_conflict", detail)
    }

    pub fn too_many_memories(most: usize) -> Self {
        let detail = format!("Agents may keep at most {most} memories of a user; delete some first.");
        Self::new(StatusCode::FORBIDDEN, "too_many_memories", detail)
    }
}
