//! The files that tools return: they become files of the run's owner, and the text of the result names them.
//!
//! No call fails because of its files. The line of a file that is not stored says why. An attempt that repeats a call stores no
//! second file, because the call's id, the file's number and its contents are the key of its upload.

use std::{error::Error, time::Duration};

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bytes::Bytes;
use holdfast_shared::{
    config::{ANONYMOUS_PREFIX, FilesConfig, begins_with},
    file::{PART_BYTES, StoredFile, ToolFile},
    file_name::{name_from_tool, plain_name},
    file_store::{self, FileStore},
    hidden::visible,
    idempotency::IdempotencyKey,
    media_type,
    quotas::FileLimits,
    storable::storable,
    storage::{self, Claim, NewFile, Storage, UploadOutcome, UploadedContents},
};
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::{base64_text::without_base64, group_bytes::GroupBytes, workspace::CallResult};
use crate::Worker;

/// Pause before a file is stored again, while the database is away.
const PAUSE: Duration = Duration::from_millis(250);

/// Tries against another attempt that stores the same file.
const TRIES: usize = 5;

/// The encoding of a file. Some servers leave out the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A part of a tool's result, in the order of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultPart {
    /// A text for the model.
    Text(String),
    /// A file.
    File(ReturnedFile),
}

/// A file as a tool returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReturnedFile {
    /// The kind of content: `image`, `audio` or `resource`.
    pub kind: &'static str,
    /// The address of a resource.
    pub uri: Option<String>,
    /// The media type that the tool claims.
    pub media_type: Option<String>,
    /// The contents.
    pub data: ReturnedData,
}

/// The contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReturnedData {
    Base64(String),
    Bytes(Bytes),
}

impl ReturnedFile {
    /// Returns the file in words, as its tool describes it.
    pub fn described(&self) -> String {
        let claimed = within_line(self.media_type.as_deref().unwrap_or("of unknown type"));
        let bytes = match &self.data {
            ReturnedData::Base64(text) => text.trim_end_matches('=').len() * 3 / 4,
            ReturnedData::Bytes(bytes) => bytes.len(),
        };
        match &self.uri {
            Some(uri) => format!("{} {}, {claimed}, {bytes} bytes", self.kind, within_line(uri)),
            None => format!("{} {claimed}, {bytes} bytes", self.kind),
        }
    }

    /// Returns the last part of the resource's address.
    fn own_name(&self) -> Option<String> {
        let path = self.uri.as_deref()?.split(['?', '#']).next()?;
        let last = path.rsplit('/').next().filter(|last| !last.is_empty())?;
        Some(plain_name(&percent_decode_str(last).decode_utf8_lossy()))
    }
}

/// Returns a tool's words for a line of ours, which they can neither end nor continue in another one.
pub fn within_line(words: &str) -> String {
    visible(words).replace(['[', ']'], " ")
}

/// Returns whether the result of a call may name a file that was stored.
pub fn names_file(output: &str) -> bool {
    output.contains(" bytes, file ")
}

/// Stores the files that the tools of one run return.
pub struct FileKeeper {
    pub storage: Storage,
    pub file_store: FileStore,
    pub config: FilesConfig,
    pub limits: FileLimits,
    pub bytes: GroupBytes,
    pub run_id: Uuid,
}

impl FileKeeper {
    /// Returns the keeper of the files of a claimed run.
    pub fn new(worker: &Worker, claim: &Claim) -> Self {
        Self {
            storage: worker.storage.clone(),
            file_store: worker.file_store.clone(),
            config: worker.files.clone(),
            limits: worker.file_limits,
            bytes: GroupBytes {
                group: claim.caller_group.clone(),
                buckets: worker.rate_limit.clone(),
                rate: worker.anonymous_byte_rate,
                most_of_all: worker.all_anonymous_bytes,
            },
            run_id: claim.run_id,
        }
    }
}

/// A file before it is stored.
struct DecodedFile {
    name: String,
    media_type: String,
    contents: Bytes,
    sha256: String,
    key: IdempotencyKey,
}

/// The reason why a file is not stored.
enum KeepFailure {
    /// The words for the model.
    Refused(String),
    Storage(storage::Error),
    Store(file_store::Error),
}

impl From<storage::Error> for KeepFailure {
    fn from(error: storage::Error) -> Self {
        Self::Storage(error)
    }
}

impl From<file_store::Error> for KeepFailure {
    fn from(error: file_store::Error) -> Self {
        Self::Store(error)
    }
}

impl FileKeeper {
    /// Stores the files of a call, and returns its result with a line for each. While the database is away, a file is stored
    /// again; the lease and the deadline of the run bound it.
    pub async fn keep(&self, tool: &str, call_id: &str, parts: Vec<ResultPart>) -> CallResult {
        let (mut lines, mut files) = (Vec::with_capacity(parts.len()), Vec::new());
        let mut left = self.file_store.max_bytes(&self.config);
        for (index, part) in parts.into_iter().enumerate() {
            let file = match part {
                ResultPart::Text(text) => {
                    lines.push(without_base64(text));
                    continue;
                }
                ResultPart::File(file) => file,
            };
            let (kind, described) = (file.kind, file.described());
            let number = files.len() + 1;
            let kept = match self.decode(tool, call_id, (index, number), file, left).await {
                Ok(decoded) => self.store(&decoded).await,
                Err(reason) => Err(reason),
            };
            lines.push(match kept {
                Ok(file) => {
                    left -= file.bytes;
                    let ToolFile { file_id, name, media_type, bytes } = &file;
                    let line = format!("[{kind} {}, {media_type}, {bytes} bytes, file {file_id}]", within_line(name));
                    files.push(file);
                    line
                }
                Err(reason) => format!("[{described}: not stored, because {reason}]"),
            });
        }
        CallResult { output: lines.join("\n"), files, ..CallResult::default() }
    }

    /// Stores a file that was fetched from its address. The owner has each contents of a name once. Fails with words.
    pub async fn keep_fetched(&self, file: ReturnedFile) -> Result<ToolFile, String> {
        let most = self.file_store.max_bytes(&self.config);
        self.store(&self.decode("web", "web", (0, 1), file, most).await?).await
    }

    /// Fails with words if the run's owner may keep no further file, so that nothing is fetched in vain. While the database is away,
    /// `store` decides.
    pub async fn expect_room(&self) -> Result<(), String> {
        match self.lacking_room().await {
            Ok(refusal) => refusal.map_or(Ok(()), Err),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "failed to count the files of an owner; fetching one more"
                );
                Ok(())
            }
        }
    }

    async fn lacking_room(&self) -> Result<Option<String>, storage::Error> {
        let Some(owner) = self.storage.owner_of_run(self.run_id).await? else { return Ok(None) };
        let quotas = self.limits.of(begins_with(&owner, ANONYMOUS_PREFIX));
        let (files, bytes) = self.storage.kept_files(&owner).await?;
        let most_files = quotas.files.filter(|most| files >= *most).map(too_many_files);
        let most_bytes = || quotas.bytes.filter(|most| bytes >= *most).map(too_many_bytes);
        Ok(most_files.or_else(most_bytes))
    }

    /// Reads the contents of a file. Fails with words if a limit refuses them. `index` is its place in the result, and `number`
    /// the number of the file.
    async fn decode(
        &self,
        tool: &str,
        call_id: &str,
        (index, number): (usize, usize),
        file: ReturnedFile,
        left: u64,
    ) -> Result<DecodedFile, String> {
        let most = self.config.max_attachments;
        if number > most {
            return Err(format!("a call may return {most} files"));
        }
        let own_name = file.own_name();
        let decode = spawn_blocking(move || {
            let contents = contents_of(file.data)?;
            let sha256 = hex::encode(Sha256::digest(&contents));
            Some((contents, sha256))
        });
        let decoded = decode.await.expect("the decoding of a file ends");
        let (contents, sha256) = decoded.ok_or("its base64 is invalid")?;
        if contents.is_empty() {
            return Err("it is empty".to_owned());
        }
        if contents.len() as u64 > left {
            let most = self.file_store.max_bytes(&self.config);
            return Err(format!("the files of a call may have {most} bytes"));
        }
        let beginning = &contents[..contents.len().min(PART_BYTES as usize)];
        let is_whole = beginning.len() == contents.len();
        let media_type = media_type::of(beginning, is_whole, own_name.as_deref().unwrap_or_default());
        if !self.config.takes(&media_type) {
            return Err(format!("HOLDFAST_FILE_TYPES does not allow {media_type}"));
        }
        let name = storable(own_name.unwrap_or_else(|| name_from_tool(tool, number, &media_type)));
        let place = index.to_string();
        let IdempotencyKey { fingerprint, .. } =
            IdempotencyKey::new(String::new(), &["tool", call_id, &place, &name, &sha256]);
        let key = IdempotencyKey { key: format!("tool:{fingerprint}"), fingerprint };
        Ok(DecodedFile { name, media_type, contents, sha256, key })
    }

    async fn store(&self, file: &DecodedFile) -> Result<ToolFile, String> {
        loop {
            let (error, passes): (Box<dyn Error + Send + Sync>, bool) = match self.try_store(file).await {
                Ok(stored) => return Ok(ToolFile::from(&stored)),
                Err(KeepFailure::Refused(reason)) => return Err(reason),
                Err(KeepFailure::Storage(error) | KeepFailure::Store(file_store::Error::Database(error))) => {
                    let passes = error.is_away() || error.is_conflict();
                    (error.into(), passes)
                }
                Err(KeepFailure::Store(error)) => (error.into(), false),
            };
            if !passes {
                tracing::error!(error = error.as_ref() as &dyn Error, "failed to store the file of a tool");
                return Err("the server failed to store it".to_owned());
            }
            tracing::warn!(error = error.as_ref() as &dyn Error, "failed to store the file of a tool; trying again");
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn try_store(&self, file: &DecodedFile) -> Result<StoredFile, KeepFailure> {
        let bytes = file.contents.len() as u64;
        let new = NewFile { name: file.name.clone(), bytes, key: Some(file.key.clone()) };
        for _ in 0..TRIES {
            // The run may have moved to another owner since its claim.
            let owner = self.storage.owner_of_run(self.run_id).await?;
            let owner = owner.ok_or_else(|| KeepFailure::Refused("its run was removed".to_owned()))?;
            let quotas = self.limits.of(begins_with(&owner, ANONYMOUS_PREFIX));
            let refused = |reason: String| Err(KeepFailure::Refused(reason));
            match self.storage.begin_upload(&owner, &new, quotas).await? {
                UploadOutcome::Begun(begun) => match self.bring_admitted(&owner, &begun, file).await {
                    Ok(Some(stored)) => return Ok(stored),
                    // Another attempt brings the bytes.
                    Ok(None) => self.storage.discard_contents(begun.content_id).await?,
                    Err(KeepFailure::Refused(reason)) => {
                        self.storage.give_up_upload(&owner, &begun).await?;
                        return refused(reason);
                    }
                    Err(KeepFailure::Store(error)) if !matches!(error, file_store::Error::Database(_)) => {
                        self.storage.give_up_upload(&owner, &begun).await?;
                        return Err(error.into());
                    }
                    Err(failure) => return Err(failure),
                },
                UploadOutcome::Repeated(stored) if self.file_store.has(&stored).await? => return Ok(stored),
                // The store has lost the contents.
                UploadOutcome::Repeated(stored) => drop(self.storage.delete_file(&owner, stored.id).await?),
                UploadOutcome::KeyReused => return refused("a client has used its key".to_owned()),
                UploadOutcome::TooManyFiles(most) => return refused(too_many_files(most)),
                UploadOutcome::TooManyBytes(most) => return refused(too_many_bytes(most)),
            }
        }
        Err(KeepFailure::Refused("another attempt of the run stores it too".to_owned()))
    }

    /// Stores the contents if their bytes are admitted, as `bring` does.
    async fn bring_admitted(
        &self,
        owner: &str,
        begun: &StoredFile,
        file: &DecodedFile,
    ) -> Result<Option<StoredFile>, KeepFailure> {
        let admitted = self.bytes.admit(&self.storage, begun.bytes).await?;
        admitted.map_err(KeepFailure::Refused)?;
        self.bring(owner, begun, file).await
    }

    /// Stores the contents. `None` if another attempt has taken the upload over.
    async fn bring(
        &self,
        owner: &str,
        begun: &StoredFile,
        file: &DecodedFile,
    ) -> Result<Option<StoredFile>, KeepFailure> {
        let mut rest = file.contents.clone();
        let mut number = 0;
        while !rest.is_empty() {
            // Order matters: only the writer stores a part.
            if !self.storage.note_received(begun, number * PART_BYTES).await? {
                return Ok(None);
            }
            let part = rest.split_to(rest.len().min(PART_BYTES as usize));
            self.file_store.put(begun.content_id, number, part).await?;
            number += 1;
        }
        let same = match self.storage.file_with_contents(owner, &file.sha256).await? {
            Some(same) if self.file_store.has(&same).await? => Some(same.content_id),
            _ => None,
        };
        let (media_type, sha256) = (file.media_type.clone(), file.sha256.clone());
        let contents = UploadedContents { media_type, bytes: file.contents.len() as u64, sha256, same };
        Ok(self.storage.complete_upload(begun, &contents).await?)
    }
}

fn too_many_files(most: usize) -> String {
    format!("its owner may keep {most} files")
}

fn too_many_bytes(most: u64) -> String {
    format!("the files of its owner may have {most} bytes")
}

/// Returns the bytes of a file; `None` if their encoding is invalid.
fn contents_of(data: ReturnedData) -> Option<Bytes> {
    match data {
        ReturnedData::Bytes(bytes) => Some(bytes),
        // Some servers break the lines of their base64.
        ReturnedData::Base64(mut text) => {
            if text.contains(|c: char| c.is_ascii_whitespace()) {
                text.retain(|c| !c.is_ascii_whitespace());
            }
            BASE64.decode(text).ok().map(Bytes::from)
        }
    }
}

#[cfg(test)]
mod tests;
