//! The answer of a child: one line of JSON, and after it the text if there is one.

use serde::{Deserialize, Serialize};

use crate::{
    document::{DocumentText, PageStart},
    error::ExtractionError,
    limits::ExtractionLimits,
};

/// Longest head without its pages.
const HEAD_BYTES: u64 = 4096;

/// Longest entry of a page in a head.
const PAGE_BYTES: u64 = 64;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AnswerHead {
    Text { bytes: usize, pages: Vec<PageStart> },
    Error(ExtractionError),
}

/// Returns the bytes that no answer within the limits exceeds.
pub fn longest(limits: &ExtractionLimits) -> u64 {
    let pages = u64::from(limits.pages).saturating_mul(PAGE_BYTES);
    limits.text_bytes.saturating_add(pages).saturating_add(HEAD_BYTES)
}

/// Returns the answer as bytes.
pub fn encode(answer: Result<DocumentText, ExtractionError>) -> Vec<u8> {
    let (head, text) = match answer {
        Ok(document) => {
            (AnswerHead::Text { bytes: document.text.len(), pages: document.pages }, document.text.into_bytes())
        }
        Err(error) => (AnswerHead::Error(error), Vec::new()),
    };
    let mut bytes = serde_json::to_vec(&head).expect("a head is plain data");
    bytes.push(b'\n');
    bytes.extend(text);
    bytes
}

/// Returns the answer in the bytes, or `None` if they are no complete answer: a hijacked child can write anything.
pub fn decode(mut bytes: Vec<u8>) -> Option<Result<DocumentText, ExtractionError>> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    match serde_json::from_slice(&bytes[..end]).ok()? {
        AnswerHead::Error(error) => Some(Err(error)),
        AnswerHead::Text { bytes: length, pages } => {
            bytes.drain(..=end);
            let document = DocumentText { text: String::from_utf8(bytes).ok()?, pages };
            (document.text.len() == length && document.is_sound()).then_some(Ok(document))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> DocumentText {
        DocumentText { text: "é\nb".to_owned(), pages: vec![PageStart { page: 1, start: 0 }] }
    }

    #[test]
    fn an_answer_survives_the_pipe() {
        assert_eq!(decode(encode(Ok(document()))), Some(Ok(document())));
        for error in [ExtractionError::NoText, ExtractionError::malformed("a\nb")] {
            assert_eq!(decode(encode(Err(error.clone()))), Some(Err(error)));
        }
    }

    #[test]
    fn an_answer_that_is_cut_or_false_is_none() {
        let complete = encode(Ok(document()));
        for end in 0..complete.len() {
            assert_eq!(decode(complete[..end].to_vec()), None);
        }
        let false_ones = [
            DocumentText { text: "a\0b".to_owned(), pages: Vec::new() },
            DocumentText { text: "a".to_owned(), pages: vec![PageStart { page: 1, start: 2 }] },
            DocumentText { text: "a".to_owned(), pages: vec![PageStart { page: 0, start: 0 }] },
            DocumentText {
                text: "ab".to_owned(),
                pages: vec![PageStart { page: 2, start: 0 }, PageStart { page: 1, start: 1 }],
            },
        ];
        for document in false_ones {
            assert_eq!(decode(encode(Ok(document))), None);
        }
    }
}
