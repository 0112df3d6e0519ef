//! A file that holds one secret, as container platforms mount it.

use std::{fs::File, io::Read, path::Path};

use secrecy::SecretString;

/// Suffix of a variable's name that makes it the path of a secret's file, such as `OPENAI_API_KEY_FILE`.
pub const SECRET_FILE_SUFFIX: &str = "_FILE";

/// Largest secret, in bytes. A key as PEM has a few thousand.
const MAX_BYTES: u64 = 64 * 1024;

/// Returns the secret without its last line break. The error names the problem, and never quotes the file's content.
pub fn read_secret_file(path: &Path) -> Result<SecretString, String> {
    let unusable = |problem: &str| format!("could not use {}: {problem}", path.display());
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
    read.map_err(|error| unusable(&error.to_string()))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(unusable("a secret has at most 65536 bytes"));
    }
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(unusable("it is empty")),
        secret => Ok(secret.into()),
    }
}
