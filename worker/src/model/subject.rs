//! The model that a call goes to: every error names it, and no error shows its key.

use holdfast_shared::config::ModelChoice;
use secrecy::{ExposeSecret, SecretString};

/// Most characters of a provider's message that an error quotes.
const QUOTED_CHARS: usize = 500;

/// A model, with the key for its provider.
#[derive(Debug)]
pub(super) struct Subject {
    pub choice: ModelChoice,
    pub key: Option<SecretString>,
}

impl Subject {
    pub fn new(choice: ModelChoice, key: Option<SecretString>) -> Self {
        Self { choice, key }
    }

    /// Returns a provider's message for an error: short, and without the key, which some servers send back.
    pub fn quote(&self, words: &str) -> String {
        let words = words.trim();
        let words = match &self.key {
            // Replacing a very short key would destroy the text; such a key is no real one.
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
