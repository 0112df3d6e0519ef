//! The bytes of a request for a file that is complete: they are compared with the file's own, and never stored.

use std::pin::pin;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use holdfast_shared::file::{PART_BYTES, StoredFile};

use super::{App, UploadRange};
use crate::{pace::Pace, problem::Problem};

impl App {
    /// Returns whether a request brings exactly the bytes that the file has at their place.
    pub(super) async fn brings_same_bytes(
        &self,
        file: &StoredFile,
        range: UploadRange,
        body: impl Stream<Item = Result<Bytes, Problem>>,
    ) -> Result<bool, Problem> {
        let end = range.end.unwrap_or(file.bytes);
        if end > file.bytes || range.total.is_some_and(|total| total != file.bytes) {
            return Ok(false);
        }
        let (mut body, mut at, mut part) = (pin!(body), range.start, Bytes::new());
        let pace = Pace::new(self.config.body_timeout, self.config.least_upload_rate);
        while let Some(bytes) = pace.next(at - range.start, body.next()).await? {
            let mut bytes = bytes?;
            if at + bytes.len() as u64 > end {
                return Ok(false);
            }
            while !bytes.is_empty() {
                if part.is_empty() {
                    part = self.file_store.get(file.content_id, at / PART_BYTES, file.bytes).await?;
                    part = part.slice((at % PART_BYTES) as usize..);
                }
                let length = part.len().min(bytes.len());
                if part.split_to(length) != bytes.split_to(length) {
                    return Ok(false);
                }
                at += length as u64;
            }
        }
        if at < end && range.end.is_some() { Err(Problem::upload_broken()) } else { Ok(at == end) }
    }
}
