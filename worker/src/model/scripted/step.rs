//! One step of the scripted model: it calls tools as long as directives are left, and then answers.

use std::time::Duration;

use holdfast_shared::finish_reason::FinishReason;

use super::{
    THOUGHTS,
    script::{FailPoint, Script, ScriptedCall},
};
use crate::model::{AnswerDelta, CallDelta, ToolSpec, Turn};

/// Most characters of a tool's outcome that are quoted.
const QUOTED_CHARS: usize = 200;

/// The content of one answer: thoughts, then `lead`, then words.
#[derive(Debug)]
pub(super) struct ScriptedStep {
    pub thoughts: usize,
    pub lead: Vec<AnswerDelta>,
    pub words: usize,
    /// Whether the answer then fails.
    pub fails: bool,
    /// Why the answer ends, if it does not fail.
    pub finish: FinishReason,
    pub delay: Duration,
}

impl ScriptedStep {
    /// Returns the step after these turns, which follow the script's turn.
    pub fn next(script: Script, since: &[Turn], offered: &[ToolSpec]) -> Self {
        let outcomes: Vec<&Turn> = since.iter().filter(|turn| matches!(turn, Turn::Tool { .. })).collect();
        let (steps, calls) = match (script.parallel, outcomes.len()) {
            (true, 0) => (0, script.calls.as_slice()),
            (true, _) => (1, &[][..]),
            (false, count) => (count.min(script.calls.len()), script.calls.get(count..=count).unwrap_or_default()),
        };
        let fails_here = script.fails == Some(FailPoint::InStep(steps + 1));
        if calls.is_empty() || offered.is_empty() {
            return Self::answering(&script, &outcomes, fails_here || script.fails == Some(FailPoint::AtTheEnd));
        }
        Self::calling(&script, calls, offered, fails_here)
    }

    /// Returns a reviewer's verdict on the plan in the text, whose steps have directives of their own.
    pub fn verdict(text: &str) -> Self {
        let verdict = if text.contains("[review=changes]") { "changes_requested" } else { "approved" };
        let script = Script { tokens: 0, delay: Duration::ZERO, ..Script::read("") };
        let lead = vec![AnswerDelta::Text(format!("{{\"verdict\": \"{verdict}\", \"notes\": \"scripted\"}}"))];
        Self { lead, ..Self::answering(&script, &[], false) }
    }

    fn answering(script: &Script, outcomes: &[&Turn], fails: bool) -> Self {
        Self {
            thoughts: if script.thinks { THOUGHTS.len() } else { 0 },
            lead: outcomes.iter().filter_map(|turn| quote(turn)).map(AnswerDelta::Text).collect(),
            words: if fails { script.tokens / 2 } else { script.tokens },
            fails,
            finish: script.finish,
            delay: script.delay,
        }
    }

    fn calling(script: &Script, calls: &[ScriptedCall], offered: &[ToolSpec], fails: bool) -> Self {
        let names: Vec<String> = calls.iter().map(|call| call.name(offered)).collect();
        let mut lead =
            vec![AnswerDelta::Text("Calling ".to_owned()), AnswerDelta::Text(format!("{}. ", names.join(", ")))];
        let pieces = names.into_iter().zip(calls).enumerate();
        lead.extend(pieces.flat_map(|(index, (name, call))| pieces_of(index, name, &call.arguments)));
        if fails {
            // In the middle of the arguments of the first call.
            lead.truncate(3);
        }
        Self { thoughts: 0, lead, words: 0, fails, finish: FinishReason::ToolCalls, delay: script.delay }
    }
}

/// Returns a call, with its arguments split in two.
fn pieces_of(index: usize, name: String, arguments: &str) -> [AnswerDelta; 2] {
    let (begin, end) = arguments.split_at(arguments.ceil_char_boundary(arguments.len() / 2));
    let first = CallDelta { index, name: Some(name), arguments: begin.to_owned(), signature: None };
    let second = CallDelta { index, name: None, arguments: end.to_owned(), signature: None };
    [AnswerDelta::Call(first), AnswerDelta::Call(second)]
}

/// Returns a line with the outcome of a call.
fn quote(turn: &Turn) -> Option<String> {
    let Turn::Tool { name, text, .. } = turn else { return None };
    let text = text.chars().take(QUOTED_CHARS).map(|c| if c.is_control() { ' ' } else { c });
    Some(format!("{name}: {}\n", text.collect::<String>()))
}
