//! The conversation before a run's input, as its model reads it.

use serde::{Deserialize, Serialize};

use super::Summary;
use crate::{excerpt, message::Message, time_zone::RunDate};

/// The conversation at the time of the run's submission.
#[derive(Debug)]
pub struct History {
    /// The newest summary of older turns. It may cover some of `earlier` too.
    pub summary: Option<Summary>,
    /// The newest messages of earlier turns, oldest first, within the window. It never has a later message.
    pub earlier: Vec<EarlierMessage>,
    /// The turn of the newest message that is older than those.
    pub older: Option<i64>,
    /// The message that the run answers.
    pub input: Message,
    /// The turn of that message.
    pub input_turn: i64,
    /// True for the conversation with an agent to which its briefings go.
    pub is_standing: bool,
}

/// A message before the run's own input.
#[derive(Debug, Clone, PartialEq)]
pub struct EarlierMessage {
    /// The number of its turn. A run's input and its answer are one turn.
    pub turn: i64,
    /// The message itself.
    pub message: Message,
    /// Results of the tools that the message's run called, newest first.
    pub results: Vec<EarlierResult>,
    /// The date that the model read with the message; `None` if no run began with it.
    pub date: Option<RunDate>,
    /// The name of its author among several, if a client tells it.
    pub speaker: Option<String>,
}

/// The beginning of a tool's input and output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierResult {
    /// Name of the tool, as the model knows it.
    pub name: String,
    /// JSON. It has one character more than the window if it was longer.
    pub input: String,
    /// Output of the tool, limited as `input` is.
    pub output: Option<String>,
    /// JSON of the error of a failed call, limited as `input` is.
    pub error: Option<String>,
    /// The call, if its result is kept; a result that the client brings is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

impl EarlierResult {
    /// Truncates input and result to `most` characters each, with a mark. That of a kept result says how to read on.
    pub fn truncate(&mut self, most: usize) {
        truncate(&mut self.input, most, None);
        let kept = |offset| self.call_id.as_deref().map(|call_id| excerpt::read_on(call_id, offset));
        if let Some(output) = &mut self.output {
            truncate(output, most, kept(most));
        }
        // The words of a kept error are longer than its JSON by another beginning.
        if let Some(error) = &mut self.error {
            truncate(error, most, kept(0));
        }
    }
}

fn truncate(text: &mut String, most: usize, read_on: Option<String>) {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.push('…');
        text.extend(read_on.map(|read_on| format!("[cut{read_on}")));
    }
}

/// The earlier messages that a run's model may read word by word: the newest ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Messages of a usual conversation.
    pub usual: usize,
    /// Messages of a standing conversation.
    pub standing: usize,
    /// Bytes of their texts. The oldest of them may exceed it.
    pub bytes: usize,
    /// Characters of each input and each result of earlier runs' tools; 0 for no results.
    pub result_chars: usize,
}

impl Window {
    /// Returns the number of messages of a conversation.
    pub const fn messages(&self, is_standing: bool) -> usize {
        if is_standing { self.standing } else { self.usual }
    }
}

/// Joins the run whose model read the message `earlier` as its input: the newest before this run, or the one that started with a
/// message that a fork has copied. A message and its own run have one time, so a message that joined another run has none.
macro_rules! join_dated {
    () => {
        "
        left join agent_runs started on started.id {is:earlier.run_id}
            and started.created_at = earlier.created_at
            and earlier.role = 'user'
        left join agent_runs dated on dated.id {is:
            coalesce(
                case
                    when earlier.role = 'user'
                    then (
                        select answering.id
                        from agent_runs answering
                        where answering.conversation_id = $2
                          and answering.position >= earlier.turn
                          and answering.position < $3
                          and answering.input_message_id = earlier.id
                        order by answering.position desc
                        limit 1
                    )
                end,
                started.id
            )
        }"
    };
}
pub(super) use join_dated;
