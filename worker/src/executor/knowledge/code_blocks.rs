//! Blocks of code in a Markdown text, as it streams.
//!
//! A block begins after a line of at least three backticks or tildes, and ends with such a line or with the quote or the list that
//! it stands in.

/// Bytes of a line that are looked at.
const MAX_LINE: usize = 256;

/// Most spaces before a fence.
const MAX_INDENT: usize = 3;

/// Follows where blocks of code begin and end.
#[derive(Debug, Default)]
pub struct CodeBlocks {
    /// The beginning of the current line.
    line: String,
    /// The columns at which the contents of the open lists begin, the outermost first.
    lists: Vec<usize>,
    fence: Option<Fence>,
}

/// The line that began the open block.
#[derive(Debug, Clone, Copy)]
struct Fence {
    character: char,
    length: usize,
    /// Quotes around the block.
    quotes: usize,
    /// The column of the list around it.
    column: usize,
}

/// A line without the marks of the quotes around it.
struct Line<'a> {
    quotes: usize,
    indent: usize,
    rest: &'a str,
}

impl CodeBlocks {
    /// Returns whether the next character belongs to a block of code.
    pub fn take_in(&mut self, next: char) -> bool {
        let Some(fence) = self.fence else { return false };
        if matches!(next, ' ' | '\t' | '>' | '\n') {
            return true;
        }
        let Line { quotes, indent, rest } = Line::of(&self.line);
        // The first character of a line tells whether the quote and the list of the block continue.
        let has_left = rest.is_empty() && (quotes < fence.quotes || indent < fence.column);
        if has_left {
            self.fence = None;
        }
        !has_left
    }

    /// Follows the next character of the text.
    pub fn push(&mut self, character: char) {
        if character != '\n' {
            if self.line.len() < MAX_LINE {
                self.line.push(character);
            }
            return;
        }
        let text = std::mem::take(&mut self.line);
        let line = Line::of(&text);
        match self.fence {
            Some(fence) if line.quotes < fence.quotes || line.closes(fence) => self.fence = None,
            Some(_) => {}
            None => self.fence = self.opened_by(line),
        }
    }

    fn opened_by(&mut self, mut line: Line<'_>) -> Option<Fence> {
        if line.rest.is_empty() {
            return None;
        }
        while self.lists.last().is_some_and(|column| line.indent < *column) {
            self.lists.pop();
        }
        while let Some((column, rest)) = list_item(line.rest, line.indent).filter(|_| line.indent <= self.most_indent())
        {
            self.lists.push(column);
            (line.indent, line.rest) = (column, rest);
        }
        let character = line.rest.chars().next().filter(|first| matches!(first, '`' | '~'))?;
        let info = line.rest.trim_start_matches(character);
        let length = line.rest.len() - info.len();
        let begins = length >= 3 && line.indent <= self.most_indent() && !(character == '`' && info.contains('`'));
        let column = self.lists.last().copied().unwrap_or_default();
        begins.then_some(Fence { character, length, quotes: line.quotes, column })
    }

    /// Returns the most spaces before a line that is no code for being indented.
    fn most_indent(&self) -> usize {
        self.lists.last().copied().unwrap_or_default() + MAX_INDENT
    }
}

impl<'a> Line<'a> {
    fn of(text: &'a str) -> Self {
        let (mut rest, mut quotes) = (text, 0);
        loop {
            let inner = rest.trim_start_matches([' ', '\t']);
            let indent = rest[..rest.len() - inner.len()].chars().map(|c| if c == '\t' { 4 } else { 1 }).sum();
            match inner.strip_prefix('>').filter(|_| indent <= MAX_INDENT) {
                Some(quoted) => (rest, quotes) = (quoted.strip_prefix(' ').unwrap_or(quoted), quotes + 1),
                None => return Self { quotes, indent, rest: inner.trim_end() },
            }
        }
    }

    fn closes(&self, fence: Fence) -> bool {
        let is_fence = self.rest.chars().all(|character| character == fence.character);
        is_fence && self.rest.len() >= fence.length && self.indent <= fence.column + MAX_INDENT
    }
}

/// Returns the column and the text of a list's item.
fn list_item(text: &str, indent: usize) -> Option<(usize, &str)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let marker = match text[digits..].chars().next()? {
        '-' | '*' | '+' if digits == 0 => 1,
        '.' | ')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    let content = text[marker..].trim_start_matches(' ');
    let spaces = text.len() - marker - content.len();
    (1..=4).contains(&spaces).then_some((indent + marker + spaces, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the characters of a text that are in blocks of code, and not in their first lines.
    fn code_of(text: &str) -> String {
        let mut blocks = CodeBlocks::default();
        let is_code = |character: &char| {
            let is_code = blocks.take_in(*character);
            blocks.push(*character);
            is_code
        };
        text.chars().filter(is_code).collect()
    }

    #[test]
    fn a_block_ends_with_its_fence_or_with_what_it_stands_in() {
        for (text, expected) in [
            ("```rust\na\n```\nb\n", "a\n```\n"),
            ("~~~\na\n```\n~~~\nb\n", "a\n```\n~~~\n"),
            ("````\na\n```\n````\nb\n", "a\n```\n````\n"),
            ("   ```\na\n    ```\nb\n   ```\nc\n", "a\n    ```\nb\n   ```\n"),
            ("text\n    ```\nb\n", ""),
            ("``` a ` b\nc\n", ""),
            ("> ```\n> a\nb\n", "> a\n"),
            ("> > ```\n> a\n", "> "),
            ("- ```\n  a\n\n  b\nc\n", "  a\n\n  b\n"),
            ("1. Do:\n\n    ```\n    a\n    ```\nb\n", "    a\n    ```\n"),
            ("- a\n\nb\n    ```\nc\n", ""),
            ("- - ```\n    a\n  b\n", "    a\n  "),
            ("a ```\nb\n", ""),
        ] {
            assert_eq!(code_of(text), expected, "{text}");
        }
    }
}
