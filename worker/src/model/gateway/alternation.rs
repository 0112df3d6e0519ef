//! Alternation: some providers require that the user speaks first and that user and assistant alternate.

use crate::model::{Turn, UserPart};

/// Separates two messages that are merged.
const PARAGRAPH: &str = "\n\n";

/// Returns the conversation merged, so that no role speaks twice in a row and the user speaks first.
pub(super) fn alternating(turns: &[Turn]) -> Vec<Turn> {
    let begins = turns.iter().position(|turn| matches!(turn, Turn::User(_))).unwrap_or(0);
    let mut merged: Vec<Turn> = Vec::with_capacity(turns.len());
    for turn in &turns[begins..] {
        match (merged.last_mut(), turn) {
            (Some(Turn::User(previous) | Turn::Files(previous)), Turn::User(parts) | Turn::Files(parts)) => {
                append_parts(previous, parts);
            }
            (Some(Turn::Assistant { text: previous, calls: earlier }), Turn::Assistant { text, calls })
                if earlier.is_empty() =>
            {
                append(previous, text);
                earlier.extend(calls.iter().cloned());
            }
            _ => merged.push(turn.clone()),
        }
    }
    merged
}

fn append_parts(previous: &mut Vec<UserPart>, parts: &[UserPart]) {
    let mut parts = parts.iter();
    if let (Some(UserPart::Text(last)), [UserPart::Text(text), ..]) = (previous.last_mut(), parts.as_slice()) {
        append(last, text);
        parts.next();
    }
    previous.extend(parts.cloned());
}

fn append(previous: &mut String, text: &str) {
    if !previous.is_empty() && !text.is_empty() {
        previous.push_str(PARAGRAPH);
    }
    previous.push_str(text);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ToolRequest;

    fn user(text: &str) -> Turn {
        Turn::user(text)
    }

    fn assistant(text: &str) -> Turn {
        Turn::Assistant { text: text.into(), calls: Vec::new() }
    }

    fn calling(text: &str) -> Turn {
        let call =
            ToolRequest { id: "c".into(), name: "a__b".into(), input: json!({}), signature: None, signed_by: None };
        Turn::Assistant { text: text.into(), calls: vec![call] }
    }

    fn outcome() -> Turn {
        Turn::Tool { call_id: "c".into(), name: "a__b".into(), text: "3".into(), is_error: false }
    }

    #[test]
    fn no_role_speaks_twice_in_a_row_and_the_user_speaks_first() {
        let check = |turns: &[Turn], expected: &[Turn]| assert_eq!(alternating(turns), expected);
        check(&[], &[]);
        check(&[user("a"), assistant("b"), user("c")], &[user("a"), assistant("b"), user("c")]);
        check(&[assistant("old"), user("card"), user("a")], &[user("card\n\na")]);
        check(&[user("a"), assistant("b"), assistant("c")], &[user("a"), assistant("b\n\nc")]);
        check(&[user("a"), assistant("b"), calling(""), outcome()], &[user("a"), calling("b"), outcome()]);
        check(
            &[user("a"), calling("b"), outcome(), assistant("c"), user("d"), user("e")],
            &[user("a"), calling("b"), outcome(), assistant("c"), user("d\n\ne")],
        );
    }
}
