//! Files of owners: uploads, lists and deletions.
//!
//! Order matters: each transaction here locks the owner, so that no contents are removed while another file takes them. It takes
//! no other lock before that.
//!
//! Invariant: each write of an upload carries its writer, and the newest request with bytes is the writer.

use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::{
    Error, Storage,
    file_removals::{delete_files, remove_contents, retried, used},
    quota::LOCK_OWNER,
    sql::{Commit, RollBack, Settle, Tx, args, statements},
};
use crate::{
    file::StoredFile,
    idempotency::IdempotencyKey,
    page::{Page, PageSize},
    quotas::FileQuotas,
};

/// A file before its upload.
#[derive(Debug, Clone)]
pub struct NewFile {
    /// The name, without folders.
    pub name: String,
    /// Most bytes that the upload brings.
    pub bytes: u64,
    /// The client's key for the request.
    pub key: Option<IdempotencyKey>,
}

/// The outcome of the beginning of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadOutcome {
    /// The upload can begin, or begin again after an earlier try under its key.
    Begun(StoredFile),
    /// An earlier request with this key has uploaded the file.
    Repeated(StoredFile),
    /// The key belongs to another request.
    KeyReused,
    /// The owner has this number of files already.
    TooManyFiles(usize),
    /// The owner's files would be larger than this together.
    TooManyBytes(u64),
}

/// The contents of an upload when it ends.
#[derive(Debug, Clone)]
pub struct UploadedContents {
    /// The media type.
    pub media_type: String,
    /// Bytes in all.
    pub bytes: u64,
    /// The hash, in hexadecimal digits.
    pub sha256: String,
    /// Equal contents of the owner that can be read.
    pub same: Option<Uuid>,
}

#[derive(FromRow)]
struct FileRow {
    id: Uuid,
    name: String,
    media_type: String,
    bytes: i64,
    sha256: Option<String>,
    content_id: Uuid,
    writer: Uuid,
    received: i64,
    idempotency_fingerprint: Option<String>,
    created_at: DateTime<Utc>,
}

impl From<FileRow> for StoredFile {
    fn from(row: FileRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            media_type: row.media_type,
            bytes: row.bytes as u64,
            sha256: row.sha256,
            received: row.received as u64,
            created_at: row.created_at,
            content_id: row.content_id,
            writer: row.writer,
        }
    }
}

macro_rules! file_columns {
    () => {
        "id, name, media_type, bytes, sha256, content_id, writer, received,
            idempotency_fingerprint, created_at"
    };
}

statements! {
    /// Returns the file of an owner that a request with this key has begun.
    BY_KEY = concat!("
        select ", file_columns!(), "
        from files
        where owner_id = $1 and idempotency_key = $2
    "),
    /// Stores a file before its upload.
    INSERT = concat!("
        insert into files (
            id, owner_id, name, media_type, bytes, content_id, writer, received, idempotency_key,
            idempotency_fingerprint, created_at, touched_at
        )
        values (
            $1, $2, $3, 'application/octet-stream', $4, $5, $6, 0, $7, $8, {now}, {now}
        )
        returning ", file_columns!()),
    /// Begins an upload again, with other contents.
    BEGIN_AGAIN = concat!("
        update files
        set content_id = $2,
            writer = $3,
            received = 0,
            touched_at = {now}
        where id = $1 and sha256 is null
        returning ", file_columns!()),
    /// Makes a request the writer of an upload that stands where the request begins.
    CONTINUE = concat!("
        update files
        set writer = $4,
            touched_at = {now}
        where id = $1 and owner_id = $2 and received = $3 and sha256 is null
        returning ", file_columns!()),
    /// Notes the bytes that the writer has stored.
    NOTE_RECEIVED = "
        update files
        set received = $3,
            touched_at = {now}
        where id = $1 and writer = $2 and sha256 is null
        returning id
    ",
    /// Returns a complete file of an owner with these contents.
    SAME_CONTENTS = concat!("
        select ", file_columns!(), "
        from files
        where owner_id = $1 and sha256 = $2
        limit 1
    "),
    /// Returns the owner of an upload, which may have moved while its bytes arrived.
    OWNER_OF_UPLOAD = "
        select owner_id
        from files
        where id = $1 and writer = $2 and sha256 is null
    ",
    /// Returns whether a file of an owner has these contents.
    HAS_CONTENTS = "
        select content_id
        from files
        where owner_id = $1 and content_id = $2 and sha256 = $3
        limit 1
    ",
    /// Ends an upload.
    COMPLETE = concat!("
        update files
        set media_type = $4,
            bytes = $5,
            received = $5,
            sha256 = $6,
            content_id = $7,
            touched_at = {now}
        where id = $1 and owner_id = $2 and writer = $3 and sha256 is null
        returning ", file_columns!()),
    /// Returns the upload of a writer.
    UPLOAD = "
        select id
        from files
        where id = $1 and owner_id = $2 and writer = $3 and sha256 is null
    ",
    /// Returns files of an owner by their ids.
    FILES_BY_ID = concat!("
        select ", file_columns!(), "
        from files
        where owner_id = $1 and id {in:$2}
    "),
    /// Lists an owner's files, newest first.
    FILES = concat!("
        select ", file_columns!(), "
        from files
        where owner_id = $1
          and (cast($2 as uuid) is null or id < $2)
        order by id desc
        limit $3
    "),
}

impl Storage {
    /// Begins the upload of a file, within the owner's quotas.
    pub async fn begin_upload(&self, owner: &str, new: &NewFile, quotas: FileQuotas) -> Result<UploadOutcome, Error> {
        let begin = async |tx: &mut Tx| {
            tx.execute(LOCK_OWNER, args![owner]).await?;
            if let Some(key) = &new.key
                && let Some(row) = tx.fetch_optional::<FileRow>(BY_KEY, args![owner, key.key.clone()]).await?
            {
                let is_same = row.idempotency_fingerprint.as_ref() == Some(&key.fingerprint);
                return begin_again(tx, row.into(), is_same, (owner, quotas)).await;
            }
            let (files, bytes) = used(tx, owner).await?;
            if let Some(most) = quotas.files.filter(|most| files >= *most) {
                return Ok(RollBack(UploadOutcome::TooManyFiles(most)));
            }
            if let Some(most) = quotas.bytes.filter(|most| bytes.saturating_add(new.bytes) > *most) {
                return Ok(RollBack(UploadOutcome::TooManyBytes(most)));
            }
            let (key, fingerprint) = new.key.clone().map(|key| (key.key, key.fingerprint)).unzip();
            let (id, content_id, writer) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
            let args = args![id, owner, new.name.clone(), new.bytes as i64, content_id, writer, key, fingerprint];
            let row = tx.fetch_one::<FileRow>(INSERT, args).await?;
            Ok(Commit(UploadOutcome::Begun(row.into())))
        };
        self.database.transact("begin an upload", begin).await
    }

    /// Makes a request the writer of an upload, within the owner's quotas. `None` if the upload has ended, or does not stand at
    /// `start`.
    pub async fn continue_upload(
        &self,
        owner: &str,
        id: Uuid,
        start: u64,
        quotas: FileQuotas,
    ) -> Result<Option<UploadOutcome>, Error> {
        let resume = async |tx: &mut Tx| {
            tx.execute(LOCK_OWNER, args![owner]).await?;
            let args = args![id, owner, start as i64, Uuid::now_v7()];
            let Some(row) = tx.fetch_optional::<FileRow>(CONTINUE, args).await? else { return Ok(RollBack(None)) };
            Ok(match lacking_room(tx, owner, quotas).await? {
                Some(most) => RollBack(Some(UploadOutcome::TooManyBytes(most))),
                None => Commit(Some(UploadOutcome::Begun(row.into()))),
            })
        };
        self.database.transact("continue an upload", resume).await
    }

    /// Notes the bytes of the parts that the writer has stored. Returns false if it is no longer the writer, or if the file
    /// was deleted.
    pub async fn note_received(&self, file: &StoredFile, received: u64) -> Result<bool, Error> {
        let args = args![file.id, file.writer, received as i64];
        let noted = self.database.write::<(Uuid,)>("note the progress of an upload", NOTE_RECEIVED, args).await?;
        Ok(!noted.is_empty())
    }

    /// Returns a complete file of the owner with these contents.
    pub async fn file_with_contents(&self, owner: &str, sha256: &str) -> Result<Option<StoredFile>, Error> {
        let row =
            self.database.fetch_optional::<FileRow>("look for equal contents", SAME_CONTENTS, args![owner, sha256]);
        Ok(row.await?.map(StoredFile::from))
    }

    /// Ends an upload, also if its owner has moved meanwhile. `None` if the request is no longer the writer, or if the file was
    /// deleted.
    pub async fn complete_upload(
        &self,
        file: &StoredFile,
        contents: &UploadedContents,
    ) -> Result<Option<StoredFile>, Error> {
        const DOING: &str = "end an upload";
        loop {
            let args = args![file.id, file.writer];
            let Some((owner,)) = self.database.fetch_optional::<(String,)>(DOING, OWNER_OF_UPLOAD, args).await? else {
                return Ok(None);
            };
            let complete = async |tx: &mut Tx| {
                tx.execute(LOCK_OWNER, args![owner.as_str()]).await?;
                complete(tx, &owner, file, contents).await.map(Commit)
            };
            if let Some(completed) = self.database.transact(DOING, complete).await? {
                return Ok(Some(completed));
            }
        }
    }

    /// Removes the file of an upload that its writer gives up.
    pub async fn give_up_upload(&self, owner: &str, file: &StoredFile) -> Result<(), Error> {
        retried(|| self.try_give_up(owner, file)).await
    }

    async fn try_give_up(&self, owner: &str, file: &StoredFile) -> Result<(), Error> {
        let give_up = async |tx: &mut Tx| {
            tx.execute(LOCK_OWNER, args![owner]).await?;
            if tx.fetch_optional::<(Uuid,)>(UPLOAD, args![file.id, owner, file.writer]).await?.is_some() {
                delete_files(tx, vec![file.id]).await?;
            }
            Ok(Commit(()))
        };
        self.database.transact("give an upload up", give_up).await
    }

    /// Returns a file of the owner.
    pub async fn file(&self, owner: &str, id: Uuid) -> Result<Option<StoredFile>, Error> {
        Ok(self.files_by_id(owner, vec![id]).await?.pop())
    }

    /// Returns those of the files that the owner has, in any order.
    pub async fn files_by_id(&self, owner: &str, ids: Vec<Uuid>) -> Result<Vec<StoredFile>, Error> {
        let rows = self.database.fetch_all::<FileRow>("read files", FILES_BY_ID, args![owner, ids]).await?;
        Ok(rows.into_iter().map(StoredFile::from).collect())
    }

    /// Returns a page of the owner's files, newest first. `None` for an unknown cursor.
    pub async fn files(
        &self,
        owner: &str,
        size: PageSize,
        cursor: Option<&str>,
    ) -> Result<Option<Page<StoredFile>>, Error> {
        let Ok(before) = cursor.map(str::parse::<Uuid>).transpose() else { return Ok(None) };
        let args = args![owner, before, size.items + 1];
        let rows = self.database.fetch_all::<FileRow>("list files", FILES, args).await?;
        let files = rows.into_iter().map(StoredFile::from).collect();
        Ok(Some(Page::of(files, size.items, |last: &StoredFile| last.id.to_string())))
    }

    /// Deletes a file of the owner, and returns whether there was one. Messages keep its name.
    pub async fn delete_file(&self, owner: &str, id: Uuid) -> Result<bool, Error> {
        retried(|| self.try_delete(owner, id)).await
    }

    async fn try_delete(&self, owner: &str, id: Uuid) -> Result<bool, Error> {
        let delete = async |tx: &mut Tx| {
            tx.execute(LOCK_OWNER, args![owner]).await?;
            if tx.fetch_optional::<FileRow>(FILES_BY_ID, args![owner, vec![id]]).await?.is_none() {
                return Ok(RollBack(false));
            }
            delete_files(tx, vec![id]).await?;
            Ok(Commit(true))
        };
        self.database.transact("delete a file", delete).await
    }
}

/// Answers a request whose key is known. Other bytes may have come before, so an upload begins again with other contents.
async fn begin_again(
    tx: &mut Tx,
    file: StoredFile,
    is_same: bool,
    (owner, quotas): (&str, FileQuotas),
) -> Result<Settle<UploadOutcome>, Error> {
    if !is_same {
        return Ok(RollBack(UploadOutcome::KeyReused));
    }
    if file.is_complete() {
        return Ok(RollBack(UploadOutcome::Repeated(file)));
    }
    let args = args![file.id, Uuid::now_v7(), Uuid::now_v7()];
    let again = tx.fetch_one::<FileRow>(BEGIN_AGAIN, args).await?;
    if let Some(most) = lacking_room(tx, owner, quotas).await? {
        return Ok(RollBack(UploadOutcome::TooManyBytes(most)));
    }
    remove_contents(tx, file.content_id).await?;
    Ok(Commit(UploadOutcome::Begun(again.into())))
}

/// Returns the quota of bytes that the owner exceeds, now that an upload of its reserves all that it may bring.
async fn lacking_room(tx: &mut Tx, owner: &str, quotas: FileQuotas) -> Result<Option<u64>, Error> {
    let Some(most) = quotas.bytes else { return Ok(None) };
    let (_, bytes) = used(tx, owner).await?;
    Ok((bytes > most).then_some(most))
}

async fn complete(
    tx: &mut Tx,
    owner: &str,
    file: &StoredFile,
    contents: &UploadedContents,
) -> Result<Option<StoredFile>, Error> {
    let UploadedContents { media_type, bytes, sha256, same } = contents;
    let same = match same {
        Some(id) => {
            tx.fetch_optional::<(Uuid,)>(HAS_CONTENTS, args![owner, *id, sha256.as_str()]).await?.map(|row| row.0)
        }
        None => None,
    };
    let content_id = same.unwrap_or(file.content_id);
    let args = args![file.id, owner, file.writer, media_type.as_str(), *bytes as i64, sha256.as_str(), content_id];
    let Some(row) = tx.fetch_optional::<FileRow>(COMPLETE, args).await? else { return Ok(None) };
    remove_contents(tx, file.content_id).await?;
    Ok(Some(row.into()))
}
