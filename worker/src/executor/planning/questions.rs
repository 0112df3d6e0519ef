//! Questions that end a run: the user's next message has the answers.

use std::borrow::Cow;

use holdfast_shared::{
    event::{EventBody, MessageDelta, QuestionAsked},
    storable::storable,
    storage::Progress,
    trace::{Node, TraceRole},
};
use serde_json::Value;

use crate::executor::{Stop, attempt::Attempt, knowledge::without_marks, retry_query::retry_query};

/// Most questions of one run, and the longest one, in characters.
const MAX_QUESTIONS: usize = 2;
const MAX_CHARS: usize = 1000;

/// Reads the arguments of `ask_clarifying_questions`.
pub fn read_questions(input: &Value) -> Vec<String> {
    let texts = input["questions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let questions = texts.map(|text| storable(text.trim().chars().take(MAX_CHARS).collect()));
    questions.filter(|question: &String| !question.is_empty()).take(MAX_QUESTIONS).collect()
}

/// Asks the questions in the answer of the run, which they end.
pub async fn ask_questions(attempt: &mut Attempt<'_>, questions: &[String]) -> Result<(), Stop> {
    let (storage, claim) = (&attempt.shared.worker.storage, attempt.claim);
    let before = || storage.round_before(claim.conversation_id, claim.position);
    let round = retry_query(attempt.lease, attempt.recorder, before).await?;
    attempt.spans.strategy("ask_clarifying_questions", None);
    ask_after(attempt, "", questions, round.saturating_add(1));
    Ok(())
}

/// Asks the questions after an opening.
pub fn ask_after(attempt: &mut Attempt<'_>, opening: &str, questions: &[String], round: u32) {
    let lines: Vec<String> = match questions {
        [only] => vec![only.clone()],
        several => several.iter().enumerate().map(|(index, question)| format!("{}. {question}", index + 1)).collect(),
    };
    let before = if attempt.memory.text().is_empty() { "" } else { "\n\n" };
    let between = if opening.is_empty() { "" } else { "\n\n" };
    let text = format!("{before}{opening}{between}{}", lines.join("\n"));
    // The arguments of a call are no place for citations.
    let text = if attempt.memory.has_knowledge { without_marks(&text) } else { text };
    let message_id = attempt.claim.output_message_id;
    attempt.recorder.emit(&EventBody::MessageDelta(MessageDelta { message_id, text: text.as_str().into() }));
    attempt.recorder.emit(&EventBody::QuestionAsked(QuestionAsked {
        questions: questions.iter().map(|question| Cow::from(question.as_str())).collect(),
        round,
    }));
    let step = attempt.memory.step;
    let message = attempt.memory.push(TraceRole::Assistant, text, step).clone();
    attempt.checkpoint(Node::Process, Progress { messages: vec![message], ..Progress::default() });
}
