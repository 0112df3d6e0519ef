//! A file that a tool has returned, as the agent wire shows it.

use holdfast_shared::file::ToolFile;
use serde::Serialize;
use uuid::Uuid;

/// A file that a tool has returned.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentFile {
    file_id: Uuid,
    name: String,
    media_type: String,
    bytes: u64,
    url: String,
}

impl From<&ToolFile> for AgentFile {
    fn from(file: &ToolFile) -> Self {
        let url = file.path();
        let ToolFile { file_id, name, media_type, bytes } = file.clone();
        Self { file_id, name, media_type, bytes, url }
    }
}
