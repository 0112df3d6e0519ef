//! The name under which a model knows a tool of a server: `<server>__<tool>`, in the characters that all providers take.

use sha2::{Digest, Sha256};

/// Longest name that all providers accept.
const MAX_CHARS: usize = 64;

/// Digits of the hash that keeps two changed names apart.
const HASH_DIGITS: usize = 8;

/// Returns the tool's full name. Where providers do not take it, the result is a name like it with a hash of the full name, so it
/// is the same in every list.
pub fn server_tool_name(server: &str, tool: &str) -> String {
    let full = full_name(server, tool);
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if full.len() <= MAX_CHARS && full.chars().all(fits) {
        return full;
    }
    let hash = hex::encode(Sha256::digest(&full));
    let alike = full.chars().map(|c| if fits(c) { c } else { '_' });
    let beginning: String = alike.take(MAX_CHARS - HASH_DIGITS - 1).collect();
    format!("{beginning}_{}", &hash[..HASH_DIGITS])
}

/// Returns the name as an agent's definition may write it, with the tool's own characters.
pub fn full_name(server: &str, tool: &str) -> String {
    format!("{server}__{tool}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_providers_take_stays() {
        assert_eq!(server_tool_name("kb", "find-all_2"), "kb__find-all_2");
        assert_eq!(server_tool_name("kb", &"x".repeat(60)), format!("kb__{}", "x".repeat(60)));
    }

    #[test]
    fn every_other_name_becomes_a_stable_and_unique_one() {
        let others = ["files.read", "files/read", "files read", "filés", "日本語", &"x".repeat(61), &"x".repeat(62)];
        let names: std::collections::BTreeSet<String> =
            others.iter().map(|tool| server_tool_name("kb", tool)).collect();
        assert_eq!(names.len(), others.len(), "{names:?}");
        for name in names {
            assert!(name.len() <= MAX_CHARS && name.starts_with("kb__"), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'), "{name}");
        }
        assert_eq!(server_tool_name("kb", "files.read"), "kb__files_read_7567e8de");
    }
}
