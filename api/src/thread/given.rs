//! The history that a client brings into a thread without messages: texts and files of user and assistant, which become messages
//! of the conversation. Once the thread has messages, no history of a client has an effect.

use std::{collections::HashSet, sync::Arc};

use holdfast_shared::{
    config::ApiConfig, conversation::Conversation, message::Role, overrides::GivenMessage, storage::AddedMessage,
};
use uuid::Uuid;

use super::files::{FILES, UiPart, content_of};
use crate::{
    app::App,
    auth::{Caller, CallerKind},
    problem::Problem,
};

/// About how many bytes a stored message has beside its texts, and a file that it names.
pub const TURN_BYTES: usize = 64;
pub const FILE_BYTES: usize = 256;

/// The text in place of a file that no address of this server names.
const MISSING_FILE: &str = "[A file that this server does not have]";

/// The most that the server keeps of a history.
#[derive(Debug, Clone, Copy)]
pub struct HistoryBound {
    /// Messages, calls and results.
    pub turns: usize,
    /// Bytes of JSON, roughly.
    pub bytes: usize,
}

impl HistoryBound {
    /// Returns the bound for a caller.
    pub const fn of(config: &ApiConfig, caller: &Caller) -> Self {
        Self { turns: config.max_history, bytes: most_bytes(config, caller) }
    }

    /// Returns how many of the newest turns stay, for the sizes of all, newest first.
    pub fn kept(self, newest_first: impl Iterator<Item = usize>) -> usize {
        let mut bytes = 0;
        let fits = |size: &usize| {
            bytes += size;
            bytes <= self.bytes
        };
        newest_first.take(self.turns).take_while(fits).count()
    }
}

/// Returns the most bytes of what a caller's request brings for the model beside its message.
pub const fn most_bytes(config: &ApiConfig, caller: &Caller) -> usize {
    match caller.kind {
        CallerKind::Anonymous => config.anonymous_given_history_bytes,
        CallerKind::Jwt | CallerKind::Developer => config.given_history_bytes,
    }
}

/// A message of a client's history.
pub struct GivenTurn {
    /// The client's name for it.
    pub id: Option<String>,
    /// `User` or `Assistant`.
    pub role: Role,
    pub parts: Vec<UiPart>,
}

impl GivenTurn {
    fn is_blank(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, UiPart::Text { text } if text.trim().is_empty()))
    }

    fn stored_bytes(&self) -> usize {
        TURN_BYTES + self.parts.iter().map(bytes_of_part).sum::<usize>()
    }
}

/// The history of a request, as its thread stores it.
#[derive(Default)]
pub struct GivenHistoryOfThread {
    pub messages: Vec<AddedMessage>,
    /// Number of older messages beyond the bound.
    pub left_out: usize,
}

impl GivenHistoryOfThread {
    /// Returns the messages that the thread takes, without the oldest ones beyond the caller's bound. `newest` is the client's name
    /// for the message after them.
    pub async fn of(
        app: &Arc<App>,
        caller: &Caller,
        mut turns: Vec<GivenTurn>,
        newest: Option<&str>,
    ) -> Result<Self, Problem> {
        turns.retain(|turn| !turn.is_blank());
        let bound = HistoryBound::of(app.config(), caller);
        // Order matters: the files of a message that is left out are not stored.
        let left_out = turns.len() - bound.kept(turns.iter().rev().map(GivenTurn::stored_bytes));
        turns.drain(..left_out);
        let files =
            turns.iter().flat_map(|turn| &turn.parts).filter(|part| matches!(part, UiPart::File { .. })).count();
        if files > app.files().max_attachments {
            return Err(Problem::too_many_attachments(app.files().max_attachments));
        }
        let mut names: HashSet<String> = newest.map(str::to_owned).into_iter().collect();
        let mut messages = Vec::with_capacity(turns.len());
        for GivenTurn { id, role, parts } in turns {
            let parts = parts.into_iter().map(with_known_file).collect();
            let content = content_of(app, caller, parts).await?;
            if content.text.contains('\0') {
                return Err(Problem::invalid_content());
            }
            // Names are unique in a thread.
            let client_id = id.filter(|id| names.insert(id.clone()));
            messages.push(AddedMessage { id: Uuid::now_v7(), client_id, role, content });
        }
        Ok(Self { messages, left_out })
    }
}

/// Returns the messages of a history that a run has read, for its conversation.
pub fn messages_of_given(history: &[GivenMessage]) -> Vec<AddedMessage> {
    let is_blank = |given: &GivenMessage| given.content.text.trim().is_empty() && given.content.attachments.is_empty();
    let added = |given: &GivenMessage| AddedMessage {
        id: Uuid::now_v7(),
        client_id: None,
        role: given.role,
        content: given.content.clone(),
    };
    history.iter().filter(|given| !is_blank(given)).map(added).collect()
}

/// Returns messages that a thread may have stored, for a run that reads them from its client.
pub fn given_again(messages: &[AddedMessage]) -> Vec<GivenMessage> {
    let given = |AddedMessage { role, content, .. }: &AddedMessage| GivenMessage {
        role: *role,
        content: content.clone(),
        results: Vec::new(),
    };
    messages.iter().map(given).collect()
}

/// Returns whether a thread takes the history that its client brings.
pub fn takes_history(thread: Option<&Conversation>) -> bool {
    thread.is_none_or(|thread| thread.last_message_at.is_none())
}

fn with_known_file(part: UiPart) -> UiPart {
    match part {
        UiPart::File { url, .. } if !url.starts_with("data:") && !url.contains(FILES) => {
            UiPart::Text { text: MISSING_FILE.to_owned() }
        }
        part => part,
    }
}

/// Returns about how many bytes a stored part has.
pub fn bytes_of_part(part: &UiPart) -> usize {
    match part {
        UiPart::Text { text } | UiPart::Speaker(text) => json_bytes(text),
        // The contents are a file of the caller.
        UiPart::File { .. } => FILE_BYTES,
    }
}

/// Returns the bytes of a text in JSON, where a control character has six.
pub fn json_bytes(text: &str) -> usize {
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

    #[test]
    fn the_newest_turns_within_both_bounds_are_kept() {
        let check = |turns: usize, bytes: usize, kept: usize| {
            let bound = HistoryBound { turns, bytes };
            assert_eq!(bound.kept([5, 10, 1].into_iter()), kept, "{bound:?}");
        };
        check(9, 16, 3);
        check(9, 15, 2);
        check(2, 16, 2);
        check(9, 14, 1);
        check(9, 4, 0);
    }
}
