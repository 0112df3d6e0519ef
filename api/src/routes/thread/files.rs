//! The files of a user's message: those in the body are stored as if they had been uploaded.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures::stream;
use holdfast_shared::{file::UserContent, file_name::plain_name, idempotency::IdempotencyKey, storage::NewFile};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::{
    app::{App, ContentInput, PartInput, UploadRange},
    auth::Caller,
    extract,
    problem::Problem,
};

/// A part of a user's message that the model gets.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum UiPart {
    Text {
        text: String,
    },
    File {
        /// The name of the file, if the client knows one.
        filename: Option<String>,
        /// The contents as a data URL, or the address of a file of this server.
        url: String,
    },
}

/// The path of a file, before its id.
pub const FILES: &str = "/v1/files/";

/// Returns the content of a message's parts. Fails if a file is refused, or if it is none of this server.
pub async fn content_of(app: &Arc<App>, caller: &Caller, parts: Vec<UiPart>) -> Result<UserContent, Problem> {
    let files = parts.iter().filter(|part| matches!(part, UiPart::File { .. })).count();
    if files > app.files().max_attachments {
        return Err(Problem::too_many_attachments(app.files().max_attachments));
    }
    let mut input = Vec::with_capacity(parts.len());
    for part in parts {
        input.push(match part {
            UiPart::Text { text } => PartInput::Text { text },
            UiPart::File { filename, url } => PartInput::File { file_id: file_of(app, caller, filename, url).await? },
        });
    }
    app.content(caller, ContentInput::Parts(input)).await
}

async fn file_of(app: &Arc<App>, caller: &Caller, name: Option<String>, url: String) -> Result<Uuid, Problem> {
    if !url.starts_with("data:") {
        if let Some((_, id)) = url.rsplit_once(FILES) {
            return extract::id(id).map_err(Problem::file_not_found);
        }
        return Err(Problem::unsupported_part("file with an address that is not of this server"));
    }
    app.admit_write(caller).await?;
    let decoded = spawn_blocking(move || contents_of(&url)).await.expect("the decoding of a file ends");
    let contents = decoded.ok_or_else(|| Problem::unsupported_part("file whose data URL is invalid"))?;
    let name = plain_name(name.as_deref().unwrap_or_default());
    // A message that is sent again has the file of its first time.
    let key = IdempotencyKey::of_file(&name, &contents);
    let total = contents.len() as u64;
    let new = NewFile { name, bytes: total, key: Some(key) };
    let body = stream::iter([Ok(Bytes::from(contents))]);
    Ok(app.upload(caller, new, UploadRange::whole(Some(total)), body).await?.id)
}

/// Returns the contents of a data URL; `None` if it is invalid.
fn contents_of(url: &str) -> Option<Vec<u8>> {
    let (head, data) = url.split_once(',')?;
    if head.ends_with(";base64") {
        return BASE64_STANDARD.decode(data).ok();
    }
    Some(percent_decode_str(data).collect())
}
