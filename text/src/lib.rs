//! Texts that others wrote: in which encoding their bytes are, and which letters are one letter.
//!
//! `encoding` decides whether bytes are a text, and decodes them. `letters` composes what macOS and PDFs decompose, and says which
//! spellings a search takes as one. This crate knows no other of ours.

mod encoding;
mod letters;

pub use encoding::{TextDecoder, TextEncoding};
pub use letters::{composed, plain_word, readable, search_word, words};
