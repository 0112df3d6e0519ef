//! Which messages the model reads word by word: the newest turns that fit, and none before them.
//!
//! The rest stands in the summary. A summary may cover more than that, because it is made before the messages fall out.

/// Divisor of the budget: the size of a summary.
const SUMMARY_SHARE: u32 = 4;

/// Most tokens of a summary, whatever the budget. A longer one would cost much with each extension.
const MOST_SUMMARY_TOKENS: u32 = 4_000;

/// The size of a message, with the number of its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizedMessage {
    pub turn: i64,
    pub tokens: u32,
}

/// The tokens of a conversation and of what stands beside it.
#[derive(Debug, Clone, Copy)]
pub struct ContextRoom {
    pub budget: u32,
    /// Tokens of the passages that come with a question.
    pub passages: u32,
}

impl ContextRoom {
    /// Returns the most tokens of a summary.
    pub fn of_summary(self) -> u32 {
        (self.budget / SUMMARY_SHARE).min(MOST_SUMMARY_TOKENS)
    }

    /// Returns the tokens of messages that no summary covers after one was made. There is room for the next ones.
    pub fn after_summary(self) -> u32 {
        self.without_summary() / 2
    }

    /// Returns the tokens of such messages beyond which a summary is made after an answer. The rest is for the next question,
    /// which would have to wait otherwise.
    pub fn before_summary(self) -> u32 {
        self.without_summary() / 6 * 5
    }

    fn without_summary(self) -> u32 {
        self.budget.saturating_sub(self.of_summary()).saturating_sub(self.passages)
    }
}

/// Returns the index of the first of the newest turns that fit into `room` tokens.
pub fn kept_from(messages: &[SizedMessage], room: u32) -> usize {
    let (mut room, mut kept) = (room, messages.len());
    for turn in messages.chunk_by(|a, b| a.turn == b.turn).rev() {
        let Some(left) = room.checked_sub(total(turn)) else { break };
        room = left;
        kept -= turn.len();
    }
    kept
}

/// Returns the tokens of all messages.
pub fn total(messages: &[SizedMessage]) -> u32 {
    messages.iter().fold(0, |sum, message| sum.saturating_add(message.tokens))
}

/// Returns the newest turn that a summary must cover before the next question: `messages` are all that the model has read word by
/// word, with the newest answer, of which the next run reads at most `most`. `covered` is the turn up to which there is a summary.
pub fn due_turn(messages: &[SizedMessage], most: usize, covered: Option<i64>, room: ContextRoom) -> Option<i64> {
    let by_number = messages.len().saturating_sub(most);
    let covered_messages = messages.partition_point(|message| covered.is_some_and(|turn| message.turn <= turn));
    let uncovered = &messages[covered_messages..];
    let by_tokens = if total(uncovered) > room.before_summary() {
        covered_messages + kept_from(uncovered, room.after_summary())
    } else {
        0
    };
    by_number.max(by_tokens).checked_sub(1).map(|last| messages[last].turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: ContextRoom = ContextRoom { budget: 800, passages: 0 };

    /// Returns two messages for each turn, of so many tokens.
    fn turns(numbers: std::ops::RangeInclusive<i64>, tokens: u32) -> Vec<SizedMessage> {
        numbers.flat_map(|turn| [SizedMessage { turn, tokens }; 2]).collect()
    }

    #[test]
    fn the_newest_complete_turns_that_fit_are_kept() {
        let messages = turns(1..=3, 10);
        let check = |room: u32, expected: usize| assert_eq!(kept_from(&messages, room), expected, "{room}");
        check(60, 0);
        check(59, 2);
        check(40, 2);
        check(20, 4);
        check(19, 6);
        check(0, 6);
    }

    #[test]
    fn messages_beyond_the_limit_are_due_after_the_answer() {
        let check = |most: usize, expected: Option<i64>| {
            assert_eq!(due_turn(&turns(1..=3, 10), most, None, ROOM), expected, "{most}");
        };
        check(6, None);
        check(5, Some(1));
        check(4, Some(1));
        check(3, Some(2));
        check(0, Some(3));
    }

    #[test]
    fn a_summary_is_due_before_the_budget_is_full_and_leaves_room() {
        // Of 800 tokens, 200 are for the summary. Five sixths of the others may have no summary, and half stay.
        assert_eq!((ROOM.of_summary(), ROOM.before_summary(), ROOM.after_summary()), (200, 500, 300));
        let check = |last: i64, covered: Option<i64>, expected: Option<i64>| {
            assert_eq!(due_turn(&turns(1..=last, 50), usize::MAX, covered, ROOM), expected, "{last} {covered:?}");
        };
        check(5, None, None);
        check(6, None, Some(3));
        check(6, Some(3), None);
        check(8, Some(3), None);
        check(9, Some(3), Some(6));
    }

    #[test]
    fn passages_take_from_the_room_and_a_summary_stays_small() {
        let with_passages = ContextRoom { budget: 800, passages: 400 };
        assert_eq!((with_passages.before_summary(), with_passages.after_summary()), (165, 100));
        assert_eq!(ContextRoom { budget: 500_000, passages: 0 }.of_summary(), 4_000);
        assert_eq!(ContextRoom { budget: 100, passages: 100 }.after_summary(), 0);
    }
}
