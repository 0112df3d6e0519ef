//! Idempotency keys: the same key with the same request is the same run.

use sha2::{Digest, Sha256};

/// A client's key for one request, with the fingerprint of what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// As the client wrote it; unique per owner.
    pub key: String,
    /// SHA-256 over the request, in hex.
    pub fingerprint: String,
}

impl IdempotencyKey {
    /// Longest key that is accepted, in characters.
    pub const MAX_CHARS: usize = 255;

    /// The key of a request whose client sends none, but names what it sends.
    pub fn of_request(parts: &[&str]) -> Self {
        let Self { fingerprint, .. } = Self::new(String::new(), parts);
        Self { key: format!("request:{fingerprint}"), fingerprint }
    }

    /// Binds a key to the request that it came with: `parts` is all that makes the request what it is.
    pub fn new(key: String, parts: &[&str]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        let fingerprint = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { key, fingerprint }
    }
}
