//! A file that holds one secret, as container platforms mount them.

use std::{fs::File, io::Read, path::Path};

use secrecy::SecretString;

/// What follows the name of a variable in the name of the variable that says where its secret lies.
pub const SECRET_FILE_SUFFIX: &str = "_FILE";

/// Largest secret, in bytes: a key as PEM has a few thousand.
const MAX_BYTES: u64 = 64 * 1024;

/// Reads the secret, without the line break at its end. The error says what is wrong, and never what the file holds.
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
