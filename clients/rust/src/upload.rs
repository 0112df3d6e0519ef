//! The pieces of one file, and the offset from which its upload continues.

use bytes::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, RequestBuilder};
use uuid::Uuid;

use crate::client::Client;

/// The server's own part of a file: pieces of this size lose nothing.
const PIECE_BYTES: usize = 1024 * 1024;

pub struct Upload {
    contents: Bytes,
    name: String,
    key: Uuid,
    pub file_id: Option<String>,
    pub received: usize,
    most: usize,
}

impl Upload {
    pub fn new(contents: Bytes, name: &str) -> Self {
        let name = utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
        Self { contents, name, key: Uuid::now_v7(), file_id: None, received: 0, most: 0 }
    }

    /// The server no longer has the upload, and another one begins.
    pub fn restart(&mut self) {
        self.key = Uuid::now_v7();
        self.file_id = None;
        self.received = 0;
    }

    /// The server has stored the bytes up to `received`. Returns whether one of them is new.
    pub fn stored(&mut self, file_id: String, received: usize) -> bool {
        self.file_id = Some(file_id);
        self.received = received.min(self.contents.len());
        let is_new = received > self.most;
        self.most = self.most.max(received);
        is_new
    }

    /// Returns the request with the next piece.
    pub fn piece(&self, client: &Client) -> RequestBuilder {
        let end = (self.received + PIECE_BYTES).min(self.contents.len());
        let request = match &self.file_id {
            Some(id) => client.request(Method::PATCH, &format!("/v1/files/{id}")),
            None => client
                .request(Method::POST, "/v1/files")
                .header("content-disposition", format!("attachment; filename*=UTF-8''{}", self.name))
                .header("idempotency-key", self.key.to_string()),
        };
        let request = request.header("content-type", "application/octet-stream");
        let piece = self.contents.slice(self.received..end);
        // An empty file has no range, and the server refuses it.
        match self.contents.len() {
            0 => request.body(piece),
            size => request
                .header("content-range", format!("bytes {}-{}/{size}", self.received, end.saturating_sub(1)))
                .body(piece),
        }
    }
}
