//! The headings of a Markdown text, line by line, and the path of those above a place.
//!
//! A parser of all of Markdown would hold a tree of a hostile text many times its size. So this reads only headings and
//! the fences of code, in which a `#` is none.

use std::collections::VecDeque;

/// Longest title in a path, in scalars.
const TITLE: usize = 120;

/// Shortest line under a heading's text, and shortest fence.
const MARKS: usize = 3;

/// A heading of a text. Its places are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading<'a> {
    pub start: usize,
    /// The byte after its last line.
    pub end: usize,
    level: usize,
    title: &'a str,
}

/// Reads the headings of a text in order.
#[derive(Debug)]
pub struct HeadingLines<'a> {
    text: &'a str,
    at: usize,
    /// The fence that is open: its character and its length.
    fence: Option<(char, usize)>,
    /// The line before is empty, or there is none.
    after_empty: bool,
}

impl<'a> HeadingLines<'a> {
    pub const fn new(text: &'a str) -> Self {
        Self { text, at: 0, fence: None, after_empty: true }
    }

    /// Appends the next headings that begin at the byte or before.
    pub fn read_until(&mut self, byte: usize, headings: &mut VecDeque<Heading<'a>>) {
        while self.at <= byte && self.at < self.text.len() {
            headings.extend(self.read_line());
        }
    }

    /// Reads a line, and the line under it if both are a heading.
    fn read_line(&mut self) -> Option<Heading<'a>> {
        let start = self.at;
        let line = line_at(self.text, start);
        self.at = next_line(self.text, start + line.len());
        let after_empty = std::mem::replace(&mut self.after_empty, line.trim().is_empty());
        let content = line.trim_start_matches(' ');
        if line.len() - content.len() > MARKS {
            return None;
        }
        if let Some(fence) = fence(content) {
            self.meet_fence(fence, content);
            return None;
        }
        if self.fence.is_some() {
            return None;
        }
        if let Some((level, title)) = marked(content) {
            return Some(Heading { start, end: self.at, level, title });
        }
        let level = underline(&self.text[self.at..])?;
        if !after_empty || content.trim().is_empty() {
            return None;
        }
        let under = line_at(self.text, self.at).len();
        self.at = next_line(self.text, self.at + under);
        Some(Heading { start, end: self.at, level, title: content.trim() })
    }

    fn meet_fence(&mut self, (mark, length): (char, usize), content: &str) {
        match self.fence {
            None => self.fence = Some((mark, length)),
            Some((open, opening)) => {
                let is_bare = content.trim_end().chars().all(|c| c == mark);
                if open == mark && length >= opening && is_bare {
                    self.fence = None;
                }
            }
        }
    }
}

fn line_at(text: &str, start: usize) -> &str {
    let rest = &text[start..];
    rest.split('\n').next().unwrap_or(rest)
}

fn next_line(text: &str, end: usize) -> usize {
    (end + 1).min(text.len())
}

/// Returns the character and the length of a fence of code.
fn fence(content: &str) -> Option<(char, usize)> {
    let mark = content.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = content.chars().take_while(|c| *c == mark).count();
    let is_inline = mark == '`' && content[length..].contains('`');
    (length >= MARKS && !is_inline).then_some((mark, length))
}

/// Returns level and title of a line such as `## Title`.
fn marked(content: &str) -> Option<(usize, &str)> {
    let level = content.chars().take_while(|c| *c == '#').count();
    let title = content[level..].strip_prefix([' ', '\t'])?.trim();
    let title = title.trim_end_matches('#').trim_matches(['*', '_', '`', ' ', '\t']);
    ((1..=6).contains(&level) && !title.is_empty()).then_some((level, title))
}

/// Returns the level that a line of `=` or `-` gives to the line before.
fn underline(rest: &str) -> Option<usize> {
    let mark = rest.chars().next()?;
    let level = match mark {
        '=' => 1,
        '-' => 2,
        _ => return None,
    };
    let length = rest.chars().take_while(|c| *c == mark).count();
    let after = rest[length..].split('\n').next().unwrap_or_default();
    (length >= MARKS && after.trim().is_empty()).then_some(level)
}

/// The headings above a place, each in the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeadingPath<'a>(Vec<(usize, &'a str)>);

impl<'a> HeadingPath<'a> {
    /// Enters the section of a heading, and leaves those that it ends.
    pub fn enter(&mut self, heading: Heading<'a>) {
        self.0.retain(|(level, _)| *level < heading.level);
        self.0.push((heading.level, heading.title));
    }

    /// Returns the headings that both paths have.
    pub fn common_with(self, other: &Self) -> Self {
        Self(self.0.into_iter().zip(&other.0).take_while(|(one, two)| one == *two).map(|(one, _)| one).collect())
    }

    /// Returns the path as "Install > Linux".
    pub fn text(&self) -> Option<String> {
        let titles: Vec<String> = self.0.iter().map(|(_, title)| title.chars().take(TITLE).collect()).collect();
        (!titles.is_empty()).then(|| titles.join(" > "))
    }
}
