//! Tool calls in words: a line at the start and at the end of a call, and exact arguments for a reader who must approve them.

use holdfast_shared::{
    event::CitationAdded,
    file::ToolFile,
    hidden::{visible, visible_json},
    tool::ToolError,
};
use serde_json::Value;

/// Longest excerpt of arguments or output in a line, in characters.
const MOST: usize = 120;

pub fn started(name: &str, input: &Value) -> String {
    format!("calling {} {}", visible(name), one_line(&exact(input)))
}

pub fn completed(name: &str, duration_ms: u64, result: Result<&str, &ToolError>) -> String {
    let (name, took) = (visible(name), took(duration_ms));
    match result {
        Ok(output) if output.trim().is_empty() => format!("{name} answered after {took}"),
        Ok(output) => format!("{name} answered after {took}: {}", one_line(output)),
        Err(ToolError { code, message }) => format!("{name} failed after {took}: {} ({code})", one_line(message)),
    }
}

/// Returns a line with the name of a file that a tool has returned, and its address.
pub fn returned(file: &ToolFile, server: &str) -> String {
    format!("{}: {server}{}", visible(&file.name), file.path())
}

/// Returns a line with the source of a citation.
pub fn cited(citation: &CitationAdded) -> String {
    let page = citation.source.page.map(|page| format!(", page {page}")).unwrap_or_default();
    format!("[{}] {}{page}", citation.number, visible(&citation.source.title))
}

/// Returns that the model has read this number of memories.
pub fn used_memories(number: usize) -> String {
    format!("used {number} {}", if number == 1 { "memory" } else { "memories" })
}

/// Returns JSON in which every character is visible. It escapes characters that a terminal would hide or misrepresent.
pub fn exact(input: &Value) -> String {
    visible_json(&input.to_string()).into_owned()
}

/// Returns the beginning of a text without line breaks, with an ellipsis if it was truncated.
pub fn one_line(text: &str) -> String {
    let words = text.split_whitespace().flat_map(|word| [" ", word]).skip(1);
    let mut chars = words.flat_map(str::chars);
    let mut line: String = chars.by_ref().take(MOST).collect();
    if chars.next().is_some() {
        line.push('…');
    }
    line
}

fn took(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min", ms / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_the_beginning_of_any_text() {
        let check = |text: &str, expected: &str| assert_eq!(one_line(text), expected, "{text:?}");
        check("", "");
        check(" two\n\n\tlines \r\n", "two lines");
        check(&"ü".repeat(120), &"ü".repeat(120));
        check(&"ü".repeat(121), &format!("{}…", "ü".repeat(120)));
        check(&"a ".repeat(200), &format!("{}…", "a ".repeat(60)));
    }

    #[test]
    fn arguments_show_what_a_terminal_would_hide() {
        let check = |text: &str, expected: &str| {
            let text_form = exact(&Value::from(text));
            assert_eq!(text_form, expected);
            assert_eq!(serde_json::from_str::<Value>(&text_form).unwrap(), text, "the escaped JSON has another value");
        };
        check("rm -r\nü 🦀", r#""rm -r\nü 🦀""#);
        check("\x1b[2J\x7f\u{9b}1m", r#""\u001b[2J\u007f\u009b1m""#);
        check("a\u{202e}b\u{200b}c\u{e0041}", r#""a\u202eb\u200bc\udb40\udc41""#);
    }

    #[test]
    fn a_tools_name_hides_nothing() {
        let (name, escaped) = ("kb__\u{202e}tnuoc\u{200b}", "kb__\\u{202e}tnuoc\\u{200b}");
        assert_eq!(started(name, &Value::from("\u{202e}")), format!("calling {escaped} \"\\u202e\""));
        assert_eq!(completed(name, 3, Ok("")), format!("{escaped} answered after 3 ms"));
    }

    #[test]
    fn memories_are_counted() {
        assert_eq!([1, 2].map(used_memories), ["used 1 memory", "used 2 memories"]);
    }

    #[test]
    fn durations_have_a_useful_precision() {
        let check = |ms: u64, expected: &str| assert_eq!(took(ms), expected);
        check(999, "999 ms");
        check(2_918, "2.9 s");
        check(59_999, "59.9 s");
        check(7_300_000, "121 min");
    }
}
