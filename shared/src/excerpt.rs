//! Truncates a text that is too long, and adds a mark.

use crate::tokens;

/// Returns at most `most` characters, and the mark if characters are missing.
pub fn chars(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => {
            let all = most + text[end..].chars().count();
            format!("{}\n[cut: the first {most} of {all} characters]", &text[..end])
        }
    }
}

/// Returns at most `most` bytes of whole characters, and the mark if bytes are missing.
pub fn bytes(mut text: String, most: usize) -> String {
    if text.len() > most {
        let all = text.len();
        text.truncate(text.floor_char_boundary(most));
        text.push_str(&format!("\n[cut: the first {} of {all} bytes]", text.len()));
    }
    text
}

/// Returns a text with about so many tokens at most: its beginning and its end, with a mark between them.
pub fn tokens(text: &str, most: u32) -> String {
    if tokens::estimate(text) <= most {
        return text.to_owned();
    }
    let beginning = tokens::beginning(text, most / 2);
    let reversed: String = text[beginning.len()..].chars().rev().collect();
    let end: String = tokens::beginning(&reversed, most / 2).chars().rev().collect();
    format!("{beginning}\n[cut: a part of a longer text is missing here]\n{end}")
}

/// The name of the tool that reads the rest of a result.
pub const READ_RESULT: &str = "read_result";

/// Returns the end of a mark that names the call whose result reads on at a character.
pub fn read_on(call_id: &str, offset: usize) -> String {
    format!("; {READ_RESULT} with {{\"id\": \"{call_id}\", \"offset\": {offset}}} reads on]")
}

/// Returns whether a text may have such a mark.
pub fn reads_on(text: &str) -> bool {
    text.contains("; read_result with {\"id\": \"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_cut_beyond_its_limit_and_between_characters() {
        assert_eq!(chars("déjà", 4), "déjà");
        assert_eq!(chars("déjà vu", 4), "déjà\n[cut: the first 4 of 7 characters]");
        assert_eq!(bytes("abc".into(), 3), "abc");
        assert_eq!(bytes("aé".into(), 2), "a\n[cut: the first 1 of 3 bytes]");
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        let text = format!("first {} last", "x".repeat(100));
        assert_eq!(tokens(&text, 28), text);
        let cut = tokens(&text, 8);
        assert!(cut.starts_with("first xxxx") && cut.ends_with("xxxxx last") && cut.contains("[cut: "), "{cut}");
        assert_eq!(tokens("多字的文本", 2), "多\n[cut: a part of a longer text is missing here]\n本");
    }

    #[test]
    fn a_mark_that_reads_on_is_found() {
        assert!(reads_on(&format!("[cut{}", read_on("call_1", 7))));
        assert!(!reads_on("[cut: the first 1 of 3 bytes]"));
    }
}
