//! Uploads: contents are stored part by part while they arrive, so a file is never in memory as a whole.

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt as _};
use holdfast_shared::{
    file::{PART_BYTES, StoredFile, parts_of},
    file_store, media_type, storage,
    storage::{NewFile, UploadOutcome, UploadedContents},
};
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::App;
use crate::{auth::Caller, pace::Pace, problem::Problem};

/// Bytes per second that a client reads at least, on the average.
const LEAST_RATE: u64 = 16 * 1024;

/// Returns the longest time for so many bytes at the least rate.
pub fn time_at_least_rate(bytes: u64) -> Duration {
    Duration::from_secs(bytes / LEAST_RATE)
}

/// The bytes of a file that one request brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadRange {
    /// The place of the first byte.
    pub start: u64,
    /// The place after the last byte; `None` for the end of a file of unknown size.
    pub end: Option<u64>,
    /// Bytes of the whole file, if the client says so.
    pub total: Option<u64>,
    /// Most bytes of the whole file, if its size is not known.
    pub at_most: Option<u64>,
    /// Whether the client can name the rest, and so continue it.
    pub is_part: bool,
}

impl UploadRange {
    /// Returns the range of a request that brings a whole file.
    pub const fn whole(total: Option<u64>) -> Self {
        Self { start: 0, end: total, total, at_most: None, is_part: false }
    }

    /// Returns the range of a request that brings a file of unknown size in so many bytes.
    pub const fn within(at_most: Option<u64>) -> Self {
        Self { at_most, ..Self::whole(None) }
    }
}

impl App {
    /// Begins an upload with the bytes of a request, and ends it if they are all. Fails if a limit refuses the file.
    pub async fn upload(
        self: &Arc<Self>,
        caller: &Caller,
        new: NewFile,
        range: UploadRange,
        body: impl Stream<Item = Result<Bytes, Problem>> + Send + 'static,
    ) -> Result<StoredFile, Problem> {
        let most = self.max_file_bytes();
        let quotas = self.file_quotas.of(caller.is_unnamed);
        // An upload of unknown size reserves as much as it can bring.
        let can_bring = range.at_most.unwrap_or(u64::MAX).min(most).min(quotas.bytes.unwrap_or(u64::MAX));
        let bytes = range.total.unwrap_or(can_bring);
        if bytes > most {
            return Err(Problem::file_too_large(most));
        }
        self.anonymous_limits.admit_bytes(caller, 0).await?;
        self.anonymous_activity.note_write(caller).await?;
        // A client that can name neither the file nor the request cannot continue it.
        let is_resumable = range.is_part || new.key.is_some();
        let new = NewFile { bytes, ..new };
        loop {
            let file = match self.storage.begin_upload(&caller.owner, &new, quotas).await? {
                UploadOutcome::Begun(file) => file,
                UploadOutcome::Repeated(file) if self.file_store.has(&file).await? => {
                    let is_same = self.brings_same_bytes(&file, range, body).await?;
                    return if is_same { Ok(file) } else { Err(Problem::key_reused()) };
                }
                UploadOutcome::Repeated(file) => {
                    // The store has lost the contents, and the client brings them again.
                    self.storage.delete_file(&caller.owner, file.id).await?;
                    continue;
                }
                UploadOutcome::KeyReused => return Err(Problem::key_reused()),
                UploadOutcome::TooManyFiles(most) => return Err(Problem::too_many_files(most)),
                UploadOutcome::TooManyBytes(most) => return Err(Problem::file_quota_exceeded(most)),
            };
            return Upload::new(self, caller, file, range).take_in(is_resumable, body).await;
        }
    }

    /// Continues an upload. Fails if the range does not begin where the upload stands.
    pub async fn resume_upload(
        self: &Arc<Self>,
        caller: &Caller,
        id: Uuid,
        range: UploadRange,
        body: impl Stream<Item = Result<Bytes, Problem>> + Send + 'static,
    ) -> Result<StoredFile, Problem> {
        let file = self.file(caller, id).await?;
        if file.is_complete() {
            let is_same = self.brings_same_bytes(&file, range, body).await?;
            return if is_same { Ok(file) } else { Err(Problem::upload_ended(id)) };
        }
        let stands_at = |file: &StoredFile| Problem::upload_offset(id, file.received, file.bytes);
        if range.total != Some(file.bytes) {
            return Err(stands_at(&file));
        }
        let quotas = self.file_quotas.of(caller.is_unnamed);
        match self.storage.continue_upload(&caller.owner, id, range.start, quotas).await? {
            Some(UploadOutcome::Begun(file)) => Upload::new(self, caller, file, range).take_in(true, body).await,
            Some(UploadOutcome::TooManyBytes(most)) => Err(Problem::file_quota_exceeded(most)),
            _ => Err(stands_at(&file)),
        }
    }

    /// Returns most bytes of a file.
    pub fn max_file_bytes(&self) -> u64 {
        self.file_store.max_bytes(&self.files)
    }

    /// Returns a file of the caller, whose upload may last. Fails if there is none.
    pub async fn file(&self, caller: &Caller, id: Uuid) -> Result<StoredFile, Problem> {
        self.storage.file(&caller.owner, id).await?.ok_or_else(|| Problem::file_not_found(id))
    }
}

/// An upload while a request brings bytes.
struct Upload {
    app: Arc<App>,
    caller: Caller,
    file: StoredFile,
    range: UploadRange,
    /// Bytes that are stored, in whole parts.
    stored: u64,
    /// The beginning of the next part.
    pending: BytesMut,
    /// The media type; `None` if an earlier request has brought the first part.
    media_type: Option<String>,
    /// The hash of what is stored; `None` if an earlier request has brought some of it.
    hash: Option<Sha256>,
}

/// The reason why an upload did not continue.
enum Interruption {
    /// No further bytes can make the file acceptable.
    Refused(Problem),
    /// The client may continue.
    Broken(Problem),
    /// The file was deleted, or another request brings its bytes.
    Lost,
}

impl From<file_store::Error> for Interruption {
    fn from(error: file_store::Error) -> Self {
        Self::Broken(error.into())
    }
}

impl From<storage::Error> for Interruption {
    fn from(error: storage::Error) -> Self {
        Self::Broken(error.into())
    }
}

impl Upload {
    fn new(app: &Arc<App>, caller: &Caller, file: StoredFile, range: UploadRange) -> Self {
        Self {
            app: Arc::clone(app),
            caller: caller.clone(),
            file,
            range,
            stored: range.start,
            pending: BytesMut::new(),
            media_type: None,
            hash: (range.start == 0).then(Sha256::new),
        }
    }

    /// Stores the bytes of a request, and makes the file ready after the last one. If the request breaks off, its whole parts
    /// stay for a client that can continue.
    async fn take_in(
        mut self,
        is_resumable: bool,
        body: impl Stream<Item = Result<Bytes, Problem>> + Send + 'static,
    ) -> Result<StoredFile, Problem> {
        let app = Arc::clone(&self.app);
        let taken = app.to_completion(async move {
            let taken = match self.read(body).await {
                Ok(()) if self.range.end == self.range.total => self.complete().await,
                Ok(()) => Ok(StoredFile { received: self.stored, ..self.file.clone() }),
                Err(interruption) => Err(interruption),
            };
            match taken {
                Ok(file) if file.is_complete() => Ok(file),
                Ok(file) => self.pause().await.map(|()| file),
                Err(Interruption::Broken(problem)) if is_resumable => self.pause().await.and(Err(problem)),
                Err(Interruption::Broken(problem) | Interruption::Refused(problem)) => {
                    self.app.storage.give_up_upload(&self.caller.owner, &self.file).await?;
                    Err(problem)
                }
                Err(Interruption::Lost) => Err(self.lose().await?),
            }
        });
        taken.await
    }

    /// Notes the whole parts, for a client that continues.
    async fn pause(&self) -> Result<(), Problem> {
        if self.app.storage.note_received(&self.file, self.stored).await? {
            return Ok(());
        }
        Err(self.lose().await?)
    }

    /// Removes what no file has, and returns the problem of the request.
    async fn lose(&self) -> Result<Problem, Problem> {
        self.app.storage.discard_contents(self.file.content_id).await?;
        Ok(Problem::upload_taken(self.file.id))
    }

    async fn read(&mut self, body: impl Stream<Item = Result<Bytes, Problem>>) -> Result<(), Interruption> {
        let (mut body, config) = (pin!(body), self.app.config());
        let pace = Pace::new(config.body_timeout, config.least_upload_rate);
        let most = self.range.end.unwrap_or(self.file.bytes);
        loop {
            let arrived = self.arrived() - self.range.start;
            let next = pace.next(arrived, body.next()).await.map_err(Interruption::Broken)?;
            let Some(mut bytes) = next.transpose().map_err(Interruption::Broken)? else { break };
            if self.arrived() + bytes.len() as u64 > most {
                return Err(Interruption::Refused(Problem::file_too_large(most)));
            }
            while !bytes.is_empty() {
                let room = PART_BYTES as usize - self.pending.len();
                self.pending.extend_from_slice(&bytes.split_to(room.min(bytes.len())));
                if self.pending.len() as u64 == PART_BYTES {
                    self.store_part(false).await?;
                }
            }
        }
        match self.range.end {
            Some(end) if self.arrived() < end => Err(Interruption::Broken(Problem::upload_broken())),
            _ => Ok(()),
        }
    }

    fn arrived(&self) -> u64 {
        self.stored + self.pending.len() as u64
    }

    async fn store_part(&mut self, is_last: bool) -> Result<(), Interruption> {
        let part = self.pending.split().freeze();
        if self.stored == 0 {
            let media_type = media_type::of(&part, is_last, &self.file.name);
            if !self.app.files.takes(&media_type) {
                return Err(Interruption::Refused(Problem::file_type_refused(&media_type)));
            }
            self.media_type = Some(media_type);
        }
        self.app.anonymous_limits.admit_bytes(&self.caller, part.len()).await.map_err(Interruption::Broken)?;
        if let Some(hash) = self.hash.take() {
            self.hash = Some(hashed(hash, part.clone()).await);
        }
        // Order matters: only the writer stores a part.
        if !self.app.storage.note_received(&self.file, self.stored).await? {
            return Err(Interruption::Lost);
        }
        let bytes = part.len() as u64;
        self.app.file_store.put(self.file.content_id, self.stored / PART_BYTES, part).await?;
        self.stored += bytes;
        Ok(())
    }

    /// Stores the last part, and makes the file ready.
    async fn complete(&mut self) -> Result<StoredFile, Interruption> {
        if !self.pending.is_empty() {
            self.store_part(true).await?;
        }
        if self.stored == 0 {
            return Err(Interruption::Refused(Problem::empty_file()));
        }
        let (media_type, hash) = match (self.media_type.take(), self.hash.take()) {
            (Some(media_type), Some(hash)) => (media_type, hash),
            _ => self.inspect().await?,
        };
        let (storage, sha256) = (&self.app.storage, hex::encode(hash.finalize()));
        let same = match storage.file_with_contents(&self.caller.owner, &sha256).await? {
            Some(same) if self.app.file_store.has(&same).await? => Some(same.content_id),
            _ => None,
        };
        let contents = UploadedContents { media_type, bytes: self.stored, sha256, same };
        storage.complete_upload(&self.file, &contents).await?.ok_or(Interruption::Lost)
    }

    /// Reads what is stored, for its media type and its hash.
    async fn inspect(&self) -> Result<(String, Sha256), Interruption> {
        let (mut media_type, mut hash) = (String::new(), Sha256::new());
        for number in 0..parts_of(self.stored) {
            let part = self.app.file_store.get(self.file.content_id, number, self.stored).await?;
            if number == 0 {
                media_type = media_type::of(&part, part.len() as u64 == self.stored, &self.file.name);
            }
            hash = hashed(hash, part).await;
        }
        Ok((media_type, hash))
    }
}

/// Adds a part to a hash, off the threads that serve requests.
async fn hashed(mut hash: Sha256, part: Bytes) -> Sha256 {
    let add = spawn_blocking(move || {
        hash.update(&part);
        hash
    });
    add.await.expect("a hash of bytes ends")
}
