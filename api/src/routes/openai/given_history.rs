//! The bound of a history that a request brings: the newest turns stay, and the run stores no other.

use holdfast_shared::config::ApiConfig;

use super::turns::RequestTurn;
use crate::{
    auth::{Caller, CallerKind},
    routes::thread::UiPart,
};

/// The most that a run keeps of a history.
#[derive(Debug, Clone, Copy)]
pub struct HistoryBound {
    /// Messages, calls and results.
    turns: usize,
    /// Bytes of JSON, roughly.
    bytes: usize,
}

/// About how many bytes a stored turn has beside its texts, and a file that it names.
const TURN: usize = 64;
const FILE: usize = 256;

impl HistoryBound {
    /// Returns the bound for a caller.
    pub const fn of(config: &ApiConfig, caller: &Caller) -> Self {
        Self { turns: config.max_history, bytes: most_bytes(config, caller) }
    }

    /// Leaves out the oldest turns beyond the bound, and returns how many. The results follow the question, so they are newer
    /// than the turns before it.
    pub fn keep_newest(self, before: &mut Vec<RequestTurn>, results: &mut Vec<RequestTurn>) -> usize {
        let (mut kept, mut bytes) = (0, 0);
        for turn in results.iter().rev().chain(before.iter().rev()) {
            bytes += stored_bytes(turn);
            if kept == self.turns || bytes > self.bytes {
                break;
            }
            kept += 1;
        }
        let left_out = before.len() + results.len() - kept;
        let of_before = left_out.min(before.len());
        before.drain(..of_before);
        results.drain(..left_out - of_before);
        left_out
    }
}

/// Returns the most bytes of what a caller's request brings for the model beside its message.
pub const fn most_bytes(config: &ApiConfig, caller: &Caller) -> usize {
    match caller.kind {
        CallerKind::Anonymous => config.anonymous_given_history_bytes,
        CallerKind::Jwt | CallerKind::Developer => config.given_history_bytes,
    }
}

fn stored_bytes(turn: &RequestTurn) -> usize {
    let texts = match turn {
        RequestTurn::User(parts) => parts.iter().map(bytes_of_part).sum(),
        RequestTurn::Assistant { text, .. } => json_bytes(text),
        RequestTurn::Call { name, arguments, .. } => json_bytes(name) + json_bytes(arguments),
        RequestTurn::Result { output, .. } => json_bytes(output),
        RequestTurn::Instructions(_) | RequestTurn::Approval { .. } | RequestTurn::Item(_) => 0,
    };
    TURN + texts
}

fn bytes_of_part(part: &UiPart) -> usize {
    match part {
        UiPart::Text { text } | UiPart::Speaker(text) => json_bytes(text),
        // The contents are a file of the caller.
        UiPart::File { .. } => FILE,
    }
}

/// Returns the bytes of a text in JSON, where a control character has six.
fn json_bytes(text: &str) -> usize {
    let bytes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> RequestTurn {
        RequestTurn::User(vec![UiPart::Text { text: text.to_owned() }])
    }

    fn result(output: &str) -> RequestTurn {
        RequestTurn::Result { call_id: "c".to_owned(), output: output.to_owned() }
    }

    #[test]
    fn the_newest_turns_within_both_bounds_stay() {
        let check = |turns: usize, bytes: usize, expected: (usize, usize)| {
            let mut before = vec![asked("oldest"), asked("12345"), asked("\"\u{1}\"")];
            let mut results = vec![result("older"), result("newest")];
            let left_out = HistoryBound { turns, bytes }.keep_newest(&mut before, &mut results);
            assert_eq!((before.len(), results.len()), expected, "{turns} turns, {bytes} bytes");
            assert_eq!(left_out, 5 - expected.0 - expected.1);
            if let Some(RequestTurn::Result { output, .. }) = results.last() {
                assert_eq!(output, "newest");
            }
        };
        let (newest, older, third) = (TURN + 6, TURN + 5, TURN + 10);
        check(1000, usize::MAX, (3, 2));
        check(3, usize::MAX, (1, 2));
        check(1, usize::MAX, (0, 1));
        check(1000, newest + older + third, (1, 2));
        check(1000, newest + older + third - 1, (0, 2));
        check(1000, newest - 1, (0, 0));
    }
}
