//! The contents of files, as numbered parts: in the database, in the data folder, or in an object store.
//!
//! A part is written under the id of its contents, by the one writer of an upload. `storage` knows the files that have the
//! contents, and when nothing has them any more.

mod database;
mod objects;

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use crate::{
    config::{self, FilesConfig, Stores},
    database::Database,
    file::{PART_BYTES, StoredFile, parts_of},
    storage::{self, BackEnd},
};

pub(crate) use database::STATEMENTS;

/// The contents could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database has them.
    #[error(transparent)]
    Database(#[from] storage::Error),
    /// A folder or an object store has them.
    #[error("could not {doing}")]
    Objects {
        /// The action, as in "could not <doing>".
        doing: &'static str,
        /// The store's error.
        source: object_store::Error,
    },
    /// A part is missing or cut, although `storage` says that it is there.
    #[error("part {number} of the contents {content_id} is missing")]
    Missing {
        /// The contents.
        content_id: Uuid,
        /// The part.
        number: u64,
    },
    /// The settings name no store.
    #[error(transparent)]
    Config(#[from] config::Error),
}

/// The contents of all files; cheap to clone.
#[derive(Clone)]
pub struct FileStore(FileBackend);

#[derive(Clone)]
enum FileBackend {
    Database(Database),
    Objects(Arc<objects::Objects>),
}

/// Opens the store of the settings. Fails if its URL or its folder cannot be used.
pub fn connect(stores: &Stores, config: &FilesConfig, storage: &storage::Storage) -> Result<FileStore, Error> {
    let database = || FileBackend::Database(storage.database().clone());
    let backend = match (&config.files_url, stores) {
        (Some(url), _) => FileBackend::Objects(Arc::new(objects::Objects::at(url)?)),
        // A process that cannot use its folder keeps everything in memory.
        (None, Stores::Embedded { data_dir }) if storage.back_end() != BackEnd::Memory => {
            FileBackend::Objects(Arc::new(objects::Objects::in_folder(&storage::files_in(data_dir))?))
        }
        (None, _) => database(),
    };
    Ok(FileStore(backend))
}

impl FileStore {
    /// Returns most bytes of a file: the database takes smaller ones than a store that is made for them.
    pub fn max_bytes(&self, config: &FilesConfig) -> u64 {
        match &self.0 {
            FileBackend::Database(_) => config.max_file_bytes.min(config.max_database_file_bytes) as u64,
            FileBackend::Objects(_) => config.max_file_bytes as u64,
        }
    }

    /// Stores a part, or stores it again.
    pub async fn put(&self, content_id: Uuid, number: u64, body: Bytes) -> Result<(), Error> {
        match &self.0 {
            FileBackend::Database(database) => Ok(database::put(database, content_id, number, body).await?),
            FileBackend::Objects(objects) => objects.put(content_id, number, body).await,
        }
    }

    /// Returns a part of contents of so many bytes. Fails if it is missing, or if it is not as long as it must be.
    pub async fn get(&self, content_id: Uuid, number: u64, bytes: u64) -> Result<Bytes, Error> {
        let part = match &self.0 {
            FileBackend::Database(database) => database::get(database, content_id, number).await?,
            FileBackend::Objects(objects) => objects.get(content_id, number).await?,
        };
        let expected = bytes.saturating_sub(number * PART_BYTES).min(PART_BYTES);
        part.filter(|part| part.len() as u64 == expected).ok_or(Error::Missing { content_id, number })
    }

    /// Returns the beginning of contents as one value, at most `most` bytes.
    pub async fn read(&self, content_id: Uuid, bytes: u64, most: u64) -> Result<Vec<u8>, Error> {
        let most = most.min(bytes);
        let mut contents = Vec::with_capacity(most as usize);
        for number in 0..parts_of(most) {
            contents.extend_from_slice(&self.get(content_id, number, bytes).await?);
        }
        contents.truncate(most as usize);
        Ok(contents)
    }

    /// Returns whether the first and the last part of a file are there.
    pub async fn has(&self, file: &StoredFile) -> Result<bool, Error> {
        for number in [0, parts_of(file.bytes).saturating_sub(1)] {
            match self.get(file.content_id, number, file.bytes).await {
                Ok(_) => {}
                Err(Error::Missing { .. }) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Removes contents with all that was ever stored of them.
    pub async fn remove(&self, content_id: Uuid) -> Result<(), Error> {
        match &self.0 {
            FileBackend::Database(database) => Ok(database::remove(database, content_id).await?),
            FileBackend::Objects(objects) => objects.remove(content_id).await,
        }
    }
}
