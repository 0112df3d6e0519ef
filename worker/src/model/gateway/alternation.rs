//! Alternation: some providers want the user first, and then the assistant and the user in turns.

use crate::model::Turn;

/// What stands between two messages that become one.
const PARAGRAPH: &str = "\n\n";

/// The same conversation, in which nobody speaks twice in a row and the user begins.
pub(super) fn alternating(turns: &[Turn]) -> Vec<Turn> {
    let begins = turns.iter().position(|turn| matches!(turn, Turn::User(_))).unwrap_or(0);
    let mut merged: Vec<Turn> = Vec::with_capacity(turns.len());
    for turn in &turns[begins..] {
        match (merged.last_mut(), turn) {
            (Some(Turn::User(before)), Turn::User(text)) => append(before, text),
            (Some(Turn::Assistant { text: before, calls: earlier }), Turn::Assistant { text, calls })
                if earlier.is_empty() =>
            {
                append(before, text);
                earlier.extend(calls.iter().cloned());
            }
            _ => merged.push(turn.clone()),
        }
    }
    merged
}

fn append(before: &mut String, text: &str) {
    if !before.is_empty() && !text.is_empty() {
        before.push_str(PARAGRAPH);
    }
    before.push_str(text);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ToolRequest;

    fn user(text: &str) -> Turn {
        Turn::User(text.into())
    }

    fn said(text: &str) -> Turn {
        Turn::Assistant { text: text.into(), calls: Vec::new() }
    }

    fn calling(text: &str) -> Turn {
        let call = ToolRequest { id: "c".into(), name: "a__b".into(), input: json!({}), signature: None };
        Turn::Assistant { text: text.into(), calls: vec![call] }
    }

    fn outcome() -> Turn {
        Turn::Tool { call_id: "c".into(), name: "a__b".into(), text: "3".into(), is_error: false }
    }

    #[test]
    fn nobody_speaks_twice_in_a_row_and_the_user_begins() {
        let check = |turns: &[Turn], expected: &[Turn]| assert_eq!(alternating(turns), expected);
        check(&[], &[]);
        check(&[user("a"), said("b"), user("c")], &[user("a"), said("b"), user("c")]);
        check(&[said("old"), user("card"), user("a")], &[user("card\n\na")]);
        check(&[user("a"), said("b"), said("c")], &[user("a"), said("b\n\nc")]);
        check(&[user("a"), said("b"), calling(""), outcome()], &[user("a"), calling("b"), outcome()]);
        check(
            &[user("a"), calling("b"), outcome(), said("c"), user("d"), user("e")],
            &[user("a"), calling("b"), outcome(), said("c"), user("d\n\ne")],
        );
    }
}
