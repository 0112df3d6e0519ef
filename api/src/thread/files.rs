//! The files of a user's message: those in the body are stored as if they had been uploaded.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures::stream;
use holdfast_shared::{file::UserContent, file_name::plain_name, idempotency::IdempotencyKey, storage::NewFile};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use tokio::task::spawn_blocking;

use crate::{
    app::{App, InputPiece, UploadRange},
    auth::Caller,
    extract,
    problem::Problem,
};

/// A part of a user's message that the model gets.
#[derive(Clone, Deserialize)]
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
    /// The name of the user who speaks.
    #[serde(skip)]
    Speaker(String),
}

/// The path of a file, before its id.
pub const FILES: &str = "/v1/files/";

/// Most bytes of an address.
const MAX_ADDRESS: usize = 8 * 1024;

/// Returns the content of a message's parts. Fails if a file is refused, or if it is none of this server.
pub async fn content_of(app: &Arc<App>, caller: &Caller, parts: Vec<UiPart>) -> Result<UserContent, Problem> {
    let files = parts.iter().filter(|part| matches!(part, UiPart::File { .. })).count();
    if files > app.files().max_attachments {
        return Err(Problem::too_many_attachments(app.files().max_attachments));
    }
    let mut input = Vec::with_capacity(parts.len());
    for part in parts {
        input.push(match part {
            UiPart::Text { text } => InputPiece::Text(text),
            UiPart::File { filename, url } => file_of(app, caller, filename, url).await?,
            UiPart::Speaker(name) => InputPiece::Speaker(name),
        });
    }
    app.content_of(caller, input).await
}

async fn file_of(app: &Arc<App>, caller: &Caller, name: Option<String>, url: String) -> Result<InputPiece, Problem> {
    if !url.starts_with("data:") {
        return addressed(url);
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
    Ok(InputPiece::File(app.upload(caller, new, UploadRange::whole(Some(total)), body).await?.id))
}

/// Returns the file at an address: one of this server, or one that the worker fetches.
fn addressed(url: String) -> Result<InputPiece, Problem> {
    let own = url.rsplit_once(FILES).map(|(_, id)| extract::id(id).map_err(Problem::file_not_found));
    let is_web = |scheme: &str| ["https", "http"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let is_of_web = url.split_once("://").is_some_and(|(scheme, _)| is_web(scheme));
    match own {
        Some(Ok(id)) => Ok(InputPiece::File(id)),
        _ if is_of_web && url.len() <= MAX_ADDRESS && !url.contains('\0') => Ok(InputPiece::Link { url }),
        Some(Err(unknown)) => Err(unknown),
        None => Err(Problem::unsupported_part("file whose address is neither of this server nor of the web")),
    }
}

/// Returns the contents of a data URL; `None` if it is invalid.
fn contents_of(url: &str) -> Option<Vec<u8>> {
    let (head, data) = url.split_once(',')?;
    if head.ends_with(";base64") {
        return BASE64_STANDARD.decode(data).ok();
    }
    Some(percent_decode_str(data).collect())
}
