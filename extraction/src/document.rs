//! The text of a document, and where its pages begin.

use serde::{Deserialize, Serialize};

/// The text of a document. It has no control characters but line feeds and tabs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentText {
    pub text: String,
    /// In the order of the text. Slides and sheets count as pages; a format without pages has none.
    pub pages: Vec<PageStart>,
}

/// The beginning of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageStart {
    /// From 1.
    pub page: u32,
    /// Unicode scalar values before the page.
    pub start: usize,
}

impl DocumentText {
    /// Returns whether the text has only the characters that a text of this crate has, and its pages are within it.
    pub(crate) fn is_sound(&self) -> bool {
        let scalars = self.text.chars().count();
        let is_ordered = self.pages.is_sorted_by(|one, next| one.page < next.page && one.start <= next.start);
        let is_within = self.pages.iter().all(|page| page.page > 0 && page.start <= scalars);
        is_ordered && is_within && self.text.chars().all(is_kept)
    }
}

/// Returns whether a text keeps the character.
pub fn is_kept(character: char) -> bool {
    !character.is_control() || matches!(character, '\n' | '\t')
}
