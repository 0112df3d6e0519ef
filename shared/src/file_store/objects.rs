//! The contents of files in a folder, or in an object store that speaks S3's protocol.

use std::{
    io::ErrorKind,
    path::{Path as Folder, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use futures::StreamExt as _;
use object_store::{
    ObjectStore, ObjectStoreExt as _, RetryConfig, aws::AmazonS3Builder, local::LocalFileSystem, path::Path,
};
use uuid::Uuid;

use super::Error;
use crate::config;

/// A folder or a bucket, with the path in front of all objects.
pub struct Objects {
    store: Box<dyn ObjectStore>,
    prefix: Path,
    /// The folder, if it is one.
    folder: Option<PathBuf>,
}

/// Time for which a request to a bucket is tried again.
const RETRY: Duration = Duration::from_secs(10);

const OPEN: &str = "open the store of HOLDFAST_FILES_URL";

impl Objects {
    /// Opens `file:///folder` or `s3://bucket/path`. A bucket takes its key, region and endpoint from the variables `AWS_…`.
    pub fn at(url: &str) -> Result<Self, Error> {
        if let Some(folder) = url.strip_prefix("file://").filter(|folder| folder.starts_with('/')) {
            return Self::in_folder(Folder::new(folder));
        }
        let Some((_, path)) = url.strip_prefix("s3://").map(|rest| rest.split_once('/').unwrap_or((rest, ""))) else {
            return Err(invalid(format!("expected s3://bucket/path or file:///folder, not {url:?}")));
        };
        let retry = RetryConfig { retry_timeout: RETRY, ..RetryConfig::default() };
        let bucket = AmazonS3Builder::from_env().with_url(url).with_retry(retry).build();
        let store = bucket.map_err(|source| failed(OPEN, source))?;
        let prefix = Path::parse(path).map_err(|error| invalid(error.to_string()))?;
        Ok(Self { store: Box::new(store), prefix, folder: None })
    }

    /// Opens a folder, and makes it if there is none.
    pub fn in_folder(folder: &Folder) -> Result<Self, Error> {
        let doing = "open the folder of files";
        std::fs::create_dir_all(folder).map_err(|error| failed(doing, of_folder(error)))?;
        let store = LocalFileSystem::new_with_prefix(folder).map_err(|source| failed(doing, source))?;
        // A file is there after a loss of power.
        let store = store.with_fsync(true);
        Ok(Self { store: Box::new(store), prefix: Path::default(), folder: Some(folder.to_owned()) })
    }

    fn path(&self, content_id: Uuid, number: u64) -> Path {
        self.prefix.clone().join(content_id.to_string()).join(number.to_string())
    }

    pub async fn put(&self, content_id: Uuid, number: u64, body: Bytes) -> Result<(), Error> {
        let put = self.store.put(&self.path(content_id, number), body.into()).await;
        put.map(drop).map_err(|source| failed("store a part of a file", source))
    }

    pub async fn get(&self, content_id: Uuid, number: u64) -> Result<Option<Bytes>, Error> {
        let read = async {
            match self.store.get(&self.path(content_id, number)).await {
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                found => found?.bytes().await.map(Some),
            }
        };
        read.await.map_err(|source| failed("read a part of a file", source))
    }

    pub async fn remove(&self, content_id: Uuid) -> Result<(), Error> {
        if let Some(folder) = &self.folder {
            // A list would leave out what a killed process has half written.
            return match tokio::fs::remove_dir_all(folder.join(content_id.to_string())).await {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(REMOVE, of_folder(error))),
                _ => Ok(()),
            };
        }
        let contents = self.prefix.clone().join(content_id.to_string());
        let mut parts = self.store.list(Some(&contents));
        while let Some(part) = parts.next().await {
            let part = part.map_err(|source| failed(REMOVE, source))?;
            match self.store.delete(&part.location).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(source) => return Err(failed(REMOVE, source)),
            }
        }
        Ok(())
    }
}

const REMOVE: &str = "remove a file";

fn failed(doing: &'static str, source: object_store::Error) -> Error {
    Error::Objects { doing, source }
}

fn of_folder(error: std::io::Error) -> object_store::Error {
    object_store::Error::Generic { store: "folder", source: Box::new(error) }
}

fn invalid(problem: String) -> Error {
    Error::Config(config::Error::new("HOLDFAST_FILES_URL", problem))
}
