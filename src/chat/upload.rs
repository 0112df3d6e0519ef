//! The files of `--file`, which go with the first message.

use std::{path::Path, time::Duration};

use serde::Deserialize;
use uuid::Uuid;

use super::client::{ChatClient, RequestFailure};

/// Time-out of an upload.
pub const UPLOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// A file, as the server names it.
#[derive(Debug, Deserialize)]
pub struct UploadedFile {
    pub id: Uuid,
}

/// Uploads a file. Fails with a sentence for the reader.
pub async fn upload(client: &ChatClient, path: &Path) -> Result<Uuid, String> {
    let failed = |reason: String| format!("failed to upload {}: {reason}", path.display());
    let contents = tokio::fs::read(path).await.map_err(|error| failed(error.to_string()))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match client.upload(&name, contents).await {
        Ok(file) => Ok(file.id),
        Err(RequestFailure::Away(reason)) => Err(failed(reason)),
        Err(RequestFailure::Refused(problem)) => Err(failed(problem.detail)),
    }
}
