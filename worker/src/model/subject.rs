//! Who is being asked: what every error names, and the key that no error may show.

use holdfast_shared::config::ModelChoice;
use secrecy::{ExposeSecret, SecretString};

/// Characters of a provider's words that a message quotes.
const QUOTED_CHARS: usize = 500;

/// A model, with the key it is asked with.
#[derive(Debug)]
pub(super) struct Subject {
    pub choice: ModelChoice,
    pub key: Option<SecretString>,
}

impl Subject {
    pub fn new(choice: ModelChoice, key: Option<SecretString>) -> Self {
        Self { choice, key }
    }

    /// What a provider said, fit for a message: short, and without the key, which some servers send back.
    pub fn quote(&self, words: &str) -> String {
        let words = words.trim();
        let words = match &self.key {
            // A very short key would blot out half of the text, and is none.
            Some(key) if key.expose_secret().len() >= 8 => words.replace(key.expose_secret(), "[key]"),
            _ => words.to_owned(),
        };
        match words.char_indices().nth(QUOTED_CHARS) {
            Some((end, _)) => format!("{}…", &words[..end]),
            None if words.is_empty() => "no explanation".to_owned(),
            None => words,
        }
    }
}
