//! Alternation: some providers require that the user speaks first and last, and that user and assistant alternate.

use super::{ToolRequest, Turn, UserPart};

/// Separates two messages that are merged.
const PARAGRAPH: &str = "\n\n";
/// The user's message after an answer that must be continued.
const CONTINUE: &str = "Continue.";
/// The user's message in place of a blank one.
const NO_TEXT: &str = "(no text)";

/// A message of one side. No text of it is blank.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SideMessage<'a> {
    /// The outcomes of the calls before, then texts and files.
    User { outcomes: Vec<AnsweredCall<'a>>, parts: Vec<UserPart> },
    /// A text, which may be empty if there are calls, then calls.
    Assistant { text: String, calls: Vec<&'a ToolRequest> },
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AnsweredCall<'a> {
    pub call_id: &'a str,
    pub name: &'a str,
    pub text: &'a str,
    pub is_error: bool,
}

/// Returns the conversation merged, so that no side speaks twice in a row and the user speaks first and last.
pub(super) fn alternating(turns: &[Turn]) -> Vec<SideMessage<'_>> {
    let begins = turns.iter().position(|turn| matches!(turn, Turn::User(_))).unwrap_or(0);
    let mut messages = Vec::with_capacity(turns.len());
    for turn in &turns[begins..] {
        add(&mut messages, turn);
    }
    let text = |text: &str| SideMessage::User { outcomes: Vec::new(), parts: vec![UserPart::Text(text.to_owned())] };
    match messages.last() {
        Some(SideMessage::User { .. }) => {}
        Some(SideMessage::Assistant { .. }) => messages.push(text(CONTINUE)),
        None => messages.push(text(NO_TEXT)),
    }
    messages
}

fn add<'a>(messages: &mut Vec<SideMessage<'a>>, turn: &'a Turn) {
    match turn {
        Turn::User(parts) | Turn::Files(parts) => {
            let parts = parts.iter().filter(|part| !matches!(part, UserPart::Text(text) if text.trim().is_empty()));
            let mut parts = parts.cloned().peekable();
            if parts.peek().is_some() {
                add_parts(users(messages).1, parts);
            }
        }
        Turn::Tool { call_id, name, text, is_error } => {
            users(messages).0.push(AnsweredCall { call_id, name, text, is_error: *is_error });
        }
        Turn::Assistant { text, calls } if text.trim().is_empty() && calls.is_empty() => {}
        Turn::Assistant { text, calls } => match messages.last_mut() {
            Some(SideMessage::Assistant { text: earlier, calls: made }) if made.is_empty() => {
                append(earlier, text.trim_end());
                made.extend(calls);
            }
            _ => messages
                .push(SideMessage::Assistant { text: text.trim_end().to_owned(), calls: calls.iter().collect() }),
        },
    }
}

/// Returns the outcomes and the parts of the user's message at the end, which may be a new one.
fn users<'m, 'a>(messages: &'m mut Vec<SideMessage<'a>>) -> (&'m mut Vec<AnsweredCall<'a>>, &'m mut Vec<UserPart>) {
    if !matches!(messages.last(), Some(SideMessage::User { .. })) {
        messages.push(SideMessage::User { outcomes: Vec::new(), parts: Vec::new() });
    }
    match messages.last_mut() {
        Some(SideMessage::User { outcomes, parts }) => (outcomes, parts),
        _ => unreachable!("a message of the user was just pushed"),
    }
}

fn add_parts(earlier: &mut Vec<UserPart>, mut parts: impl Iterator<Item = UserPart>) {
    match (earlier.last_mut(), parts.next()) {
        (Some(UserPart::Text(last)), Some(UserPart::Text(text))) => append(last, &text),
        (_, first) => earlier.extend(first),
    }
    earlier.extend(parts);
}

fn append(earlier: &mut String, text: &str) {
    if !earlier.is_empty() && !text.is_empty() {
        earlier.push_str(PARAGRAPH);
    }
    earlier.push_str(text);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(text: &str) -> Turn {
        Turn::user(text)
    }

    fn assistant(text: &str) -> Turn {
        Turn::Assistant { text: text.into(), calls: Vec::new() }
    }

    fn calling(text: &str) -> Turn {
        let call = ToolRequest { id: "c".into(), name: "a__b".into(), input: json!({}), ..ToolRequest::default() };
        Turn::Assistant { text: text.into(), calls: vec![call] }
    }

    fn outcome() -> Turn {
        Turn::Tool { call_id: "c".into(), name: "a__b".into(), text: "3".into(), is_error: false }
    }

    /// Writes each message as its side, its calls or outcomes, and its text.
    fn written(turns: &[Turn]) -> Vec<String> {
        let text_of = |part: &UserPart| match part {
            UserPart::Text(text) | UserPart::Speaker(text) => text.clone(),
            UserPart::File(file) => file.name.clone(),
        };
        let write = |message: &SideMessage<'_>| match message {
            SideMessage::User { outcomes, parts } => {
                let outcomes = outcomes.iter().map(|outcome| format!("={}", outcome.text));
                format!("user {}", outcomes.chain(parts.iter().map(text_of)).collect::<Vec<_>>().join("|"))
            }
            SideMessage::Assistant { text, calls } => format!("assistant {text}{}", "+call".repeat(calls.len())),
        };
        alternating(turns).iter().map(write).collect()
    }

    #[test]
    fn no_side_speaks_twice_in_a_row_and_the_user_speaks_first_and_last() {
        let check = |turns: &[Turn], expected: &[&str]| assert_eq!(written(turns), expected);
        check(&[user("a"), assistant("b"), user("c")], &["user a", "assistant b", "user c"]);
        check(&[assistant("old"), user("card"), user("a")], &["user card\n\na"]);
        check(&[user("a"), assistant("b"), assistant("c")], &["user a", "assistant b\n\nc", "user Continue."]);
        check(&[user("a"), assistant("b"), calling(""), outcome()], &["user a", "assistant b+call", "user =3"]);
        check(
            &[user("a"), calling("b"), outcome(), assistant("c"), user("d"), user("e")],
            &["user a", "assistant b+call", "user =3", "assistant c", "user d\n\ne"],
        );
        check(&[], &["user (no text)"]);
    }

    #[test]
    fn outcomes_stand_first_in_the_message_that_has_the_files_and_the_next_words() {
        let files = Turn::Files(vec![UserPart::Text("[Result]".into())]);
        let turns = [user("a"), calling(""), outcome(), outcome(), files, user("hurry")];
        assert_eq!(written(&turns), ["user a", "assistant +call", "user =3|=3|[Result]\n\nhurry"]);
    }

    #[test]
    fn blank_texts_are_left_out() {
        let turns = [user("a"), assistant(" \n"), user(" "), user("b"), assistant("c \n"), user("d")];
        assert_eq!(written(&turns), ["user a\n\nb", "assistant c", "user d"]);
        assert_eq!(written(&[user(" ")]), ["user (no text)"]);
    }
}
