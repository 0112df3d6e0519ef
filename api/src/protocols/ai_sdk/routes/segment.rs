//! Segments: the output of a run before its first pause, between two pauses, and after the last. AI SDK clients see
//! each as a stream and count its chunks from 0.

use std::fmt;

use uuid::Uuid;

use crate::extract;

/// The id of a segment: the run's id, then a dot and the number of pauses before it, if any. Clients treat it as a
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub run_id: Uuid,
    pub pauses_before: usize,
}

impl Segment {
    pub const fn first_of(run_id: Uuid) -> Self {
        Self { run_id, pauses_before: 0 }
    }

    /// Parses a segment's id; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (run, pauses) = text.split_once('.').unwrap_or((text, "0"));
        let (run_id, pauses_before) = (extract::id(run).ok()?, pauses.parse().ok()?);
        Some(Self { run_id, pauses_before })
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pauses_before {
            0 => write!(f, "{}", self.run_id),
            pauses => write!(f, "{}.{pauses}", self.run_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segments_id_parses_back_to_the_segment() {
        for pauses_before in [0, 1, 12] {
            let segment = Segment { run_id: Uuid::now_v7(), pauses_before };
            assert_eq!(Segment::parse(&segment.to_string()), Some(segment));
        }
        assert_eq!(["chat", "", "1.1"].map(Segment::parse), [None; 3]);
    }
}
