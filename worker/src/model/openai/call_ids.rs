//! The ids of calls, as every address takes them: nine letters and digits, which Mistral demands.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

const LENGTH: usize = 9;
const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The ids of one request by Holdfast's own. A request with the same calls has the same ids, so its prefix stays cached.
#[derive(Default)]
pub(super) struct CallIds<'a> {
    by_own: HashMap<&'a str, String>,
    taken: HashSet<String>,
}

impl<'a> CallIds<'a> {
    /// Returns the id of a call; the same for the call and its result.
    pub fn of(&mut self, own: &'a str) -> String {
        if let Some(id) = self.by_own.get(own) {
            return id.clone();
        }
        let id = (0..).map(|n| short(own, n)).find(|id| !self.taken.contains(id)).expect("some id is free");
        self.taken.insert(id.clone());
        self.by_own.insert(own, id.clone());
        id
    }
}

/// Returns the n-th candidate for the id.
fn short(own: &str, n: u32) -> String {
    if n == 0 && own.len() == LENGTH && own.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return own.to_owned();
    }
    let digest = Sha256::new().chain_update(n.to_le_bytes()).chain_update(own).finalize();
    digest[..LENGTH].iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_nine_letters_and_digits_and_stays_the_same() {
        let mut ids = CallIds::default();
        let own: Vec<String> = (0..2_000).map(|n| format!("call_{n:032x}")).collect();
        let all: Vec<String> = own.iter().map(|own| ids.of(own)).collect();
        assert!(all.iter().all(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())));
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        assert_eq!(own.iter().rev().map(|own| CallIds::default().of(own)).next(), all.last().cloned());
        assert_eq!(ids.of(&own[7]), all[7]);
        assert_eq!(ids.of("abcDEF123"), "abcDEF123");
    }

    #[test]
    fn an_id_that_another_call_has_is_not_given_twice() {
        let own = short("call_1", 0);
        let mut ids = CallIds::default();
        assert_eq!(ids.of(&own), own);
        assert_ne!(ids.of("call_1"), own);
    }
}
