//! The bound of a history that a request brings: the newest turns stay, and the run stores no other.

use super::turns::RequestTurn;
use crate::thread::{HistoryBound, TURN_BYTES, bytes_of_part, json_bytes};

/// Leaves out the oldest turns beyond the bound, and returns how many. The results follow the question, so they are newer than the
/// turns before it.
pub fn keep_newest(bound: HistoryBound, before: &mut Vec<RequestTurn>, results: &mut Vec<RequestTurn>) -> usize {
    let kept = bound.kept(results.iter().rev().chain(before.iter().rev()).map(stored_bytes));
    let left_out = before.len() + results.len() - kept;
    let of_before = left_out.min(before.len());
    before.drain(..of_before);
    results.drain(..left_out - of_before);
    left_out
}

fn stored_bytes(turn: &RequestTurn) -> usize {
    let texts = match turn {
        RequestTurn::User(parts) => parts.iter().map(bytes_of_part).sum(),
        RequestTurn::Assistant { text, .. } => json_bytes(text),
        RequestTurn::Call { name, arguments, .. } => json_bytes(name) + json_bytes(arguments),
        RequestTurn::Result { output, .. } => json_bytes(output),
        RequestTurn::Instructions(_) | RequestTurn::Approval { .. } | RequestTurn::Item(_) => 0,
    };
    TURN_BYTES + texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::UiPart;

    fn asked(text: &str) -> RequestTurn {
        RequestTurn::User(vec![UiPart::Text { text: text.to_owned() }])
    }

    fn result(output: &str) -> RequestTurn {
        RequestTurn::Result { call_id: "c".to_owned(), output: output.to_owned(), files: Vec::new() }
    }

    #[test]
    fn the_newest_turns_within_both_bounds_stay() {
        let check = |turns: usize, bytes: usize, expected: (usize, usize)| {
            let mut before = vec![asked("oldest"), asked("12345"), asked("\"\u{1}\"")];
            let mut results = vec![result("older"), result("newest")];
            let left_out = keep_newest(HistoryBound { turns, bytes }, &mut before, &mut results);
            assert_eq!((before.len(), results.len()), expected, "{turns} turns, {bytes} bytes");
            assert_eq!(left_out, 5 - expected.0 - expected.1);
            if let Some(RequestTurn::Result { output, .. }) = results.last() {
                assert_eq!(output, "newest");
            }
        };
        let (newest, older, third) = (TURN_BYTES + 6, TURN_BYTES + 5, TURN_BYTES + 10);
        check(1000, usize::MAX, (3, 2));
        check(3, usize::MAX, (1, 2));
        check(1, usize::MAX, (0, 1));
        check(1000, newest + older + third, (1, 2));
        check(1000, newest + older + third - 1, (0, 2));
        check(1000, newest - 1, (0, 0));
    }
}
