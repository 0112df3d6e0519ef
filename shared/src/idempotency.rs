//! Idempotency keys: a repeated request with one key gets the run of the first request.

use sha2::{Digest, Sha256};

/// A client's key for one request, with the fingerprint of that request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The client's text, unique per owner.
    pub key: String,
    /// SHA-256 over the request, as 64 lower-case hexadecimal digits.
    pub fingerprint: String,
}

impl IdempotencyKey {
    /// Longest accepted key, in characters.
    pub const MAX_CHARS: usize = 255;

    /// Derives a key from the request, for a client that sends none but names its message.
    pub fn of_request(parts: &[&str]) -> Self {
        let Self { fingerprint, .. } = Self::new(String::new(), parts);
        Self { key: format!("request:{fingerprint}"), fingerprint }
    }

    /// Derives a key from a file, for a client that sends it with a message.
    pub fn of_file(name: &str, contents: &[u8]) -> Self {
        let hash = hex::encode(Sha256::digest(contents));
        let Self { fingerprint, .. } = Self::new(String::new(), &["file", name, &hash]);
        Self { key: format!("file:{fingerprint}"), fingerprint }
    }

    /// Binds a key to its request. The caller passes everything that distinguishes the request as `parts`.
    pub fn new(key: String, parts: &[&str]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        let fingerprint = hex::encode(digest.finalize());
        Self { key, fingerprint }
    }
}
