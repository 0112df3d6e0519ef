//! Passages: a text cut where its structure allows, each piece within a length.
//!
//! A passage ends, in this order of preference, before a heading or a page, at an empty line, at the end of a line or
//! of a sentence, after a word, and otherwise anywhere. The work for a passage is bounded by its length, so a hostile
//! text costs no more than another.

mod boundary;
mod heading;

use std::collections::VecDeque;

use boundary::end_of_passage;
use heading::{Heading, HeadingLines, HeadingPath};

use crate::{
    document::{DocumentText, PageStart},
    format::DocumentFormat,
};

/// A part of a text, in Unicode scalar values from the beginning of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageSpan {
    pub start: usize,
    pub end: usize,
    /// The page on which the passage begins.
    pub page: Option<u32>,
    /// The headings above everything in the passage, as "Install > Linux".
    pub heading: Option<String>,
}

/// Cuts a text into passages of at most `max_chars` scalar values, in order and without overlap. Together they have all
/// of the text but white space at their ends.
pub fn passages(document: &DocumentText, media_type: &str, max_chars: usize) -> Vec<PassageSpan> {
    let format = DocumentFormat::of(media_type).unwrap_or(DocumentFormat::Plain);
    let mut cutter = Cutter::new(document, format, max_chars.max(1));
    let mut passages = Vec::new();
    while cutter.start.byte < document.text.len() {
        passages.extend(cutter.cut());
    }
    passages
}

/// A place in a text, in both units.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    byte: usize,
    scalar: usize,
}

/// Cuts one text from its beginning to its end.
struct Cutter<'a> {
    text: &'a str,
    format: DocumentFormat,
    max: usize,
    /// The end of the last passage.
    start: Place,
    pages: &'a [PageStart],
    page: Option<u32>,
    /// The headings after `start`, as far as they have been looked for.
    headings: VecDeque<Heading<'a>>,
    lines: Option<HeadingLines<'a>>,
    path: HeadingPath<'a>,
}

impl<'a> Cutter<'a> {
    fn new(document: &'a DocumentText, format: DocumentFormat, max: usize) -> Self {
        let text = document.text.as_str();
        Self {
            text,
            format,
            max,
            start: Place::default(),
            pages: &document.pages,
            page: None,
            headings: VecDeque::new(),
            lines: format.is_markdown().then(|| HeadingLines::new(text)),
            path: HeadingPath::default(),
        }
    }

    /// Cuts off the next passage. Returns `None` if there is only white space.
    fn cut(&mut self) -> Option<PassageSpan> {
        let end = self.next_end();
        let piece = &self.text[self.start.byte..end];
        let scalars = piece.chars().count();
        let before = piece.chars().take_while(|c| c.is_whitespace()).count();
        let after = piece.chars().rev().take_while(|c| c.is_whitespace()).count();
        let heading = self.heading_until(end);
        let first = self.start.scalar + before;
        self.start = Place { byte: end, scalar: self.start.scalar + scalars };
        (before < scalars).then(|| PassageSpan {
            start: first,
            end: self.start.scalar - after,
            page: self.page_at(first),
            heading,
        })
    }

    /// Returns the byte at which the next passage ends.
    fn next_end(&mut self) -> usize {
        let rest = &self.text[self.start.byte..];
        let full = byte_after(rest, self.max);
        if let Some(lines) = &mut self.lines {
            lines.read_until(self.start.byte + full, &mut self.headings);
        }
        // A section that is shorter shares a passage with its neighbour.
        let shortest = (self.max / 4).max(1);
        let end = if let Some(section) = self.section_after(rest, shortest, full) {
            section
        } else if full == rest.len() {
            full
        } else {
            end_of_passage(&rest[..full], byte_after(rest, self.max / 2), self.format)
        };
        self.start.byte + end
    }

    /// Returns the first byte of the rest at which a heading or a page begins, after the shortest passage.
    fn section_after(&self, rest: &str, shortest: usize, full: usize) -> Option<usize> {
        let earliest = byte_after(rest, shortest);
        let headings = self.headings.iter().map(|heading| heading.start - self.start.byte);
        let heading = headings.into_iter().find(|at| *at >= earliest);
        let pages = self.pages.iter().map(|page| page.start.saturating_sub(self.start.scalar));
        let page = pages.into_iter().find(|after| *after >= shortest).filter(|after| *after <= self.max);
        let page = page.map(|after| byte_after(rest, after));
        heading.into_iter().chain(page).min().filter(|at| *at < full)
    }

    /// Returns the headings above all of the passage until the byte, and takes the headings in it.
    fn heading_until(&mut self, end: usize) -> Option<String> {
        let mut at = self.start.byte;
        let mut above: Option<HeadingPath<'a>> = None;
        loop {
            let next = self.headings.pop_front_if(|heading| heading.start < end);
            let until = next.as_ref().map_or(end, |heading| heading.start);
            if !self.text[at..until].trim().is_empty() {
                above = Some(above.map_or_else(|| self.path.clone(), |above| above.common_with(&self.path)));
            }
            let Some(heading) = next else {
                return above.as_ref().unwrap_or(&self.path).text();
            };
            at = heading.end.min(end);
            self.path.enter(heading);
        }
    }

    /// Returns the page at the scalar. The scalars must ascend.
    fn page_at(&mut self, scalar: usize) -> Option<u32> {
        while let [first, rest @ ..] = self.pages
            && first.start <= scalar
        {
            self.page = Some(first.page);
            self.pages = rest;
        }
        self.page
    }
}

/// Returns the byte after so many scalars, or after all.
fn byte_after(text: &str, scalars: usize) -> usize {
    text.char_indices().nth(scalars).map_or(text.len(), |(byte, _)| byte)
}

#[cfg(test)]
mod tests;
