//! A built-in model with deterministic answers, for a first try without a provider and for tests.
//!
//! It obeys directives in the last user turn: `[tokens=60]` words, `[delay=20]` ms before each, `[think]` first,
//! `[fail]` half-way. `[finish=length]` (or another reason) ends the answer. `[call=NAME {json}]`, `[approval]` and
//! `[clienttool]` call tools, one a step, or all at once with `[parallel]`. `[fail=2]` fails half-way through the
//! second step. `[delegate=NAME task]` gives a task, with directives of its own, to a subagent.
//! `[cite]` quotes the first passage of a document that it has, and `[cite=2]` cites the second. A planner obeys `[plan={json}]` and
//! `[questions=a|b]`, and a reviewer `[review=approve]` or `[review=changes]`. A planner that is to
//! create a project creates one that the user's words name. `[gate=NAME]` waits for a test (`gate`). Other text in brackets is ignored, and the line with the date
//! is as if it were not there. The model needs no retry policy.

use futures::{FutureExt, Stream, StreamExt, future::BoxFuture, stream};
use holdfast_shared::{time_zone::without_line, usage::Usage};
use tokio::{task::yield_now, time::sleep};

use super::{AnswerDelta, AnswerForm, AnswerStream, Error, Model, Request, Turn, UserPart};

mod gate;
mod project;
mod script;
mod step;
mod tools;

pub use tools::tools;

use step::ScriptedStep;

/// Words between two yields to other tasks when there is no delay.
const BURST: usize = 64;

const GREETING: [&str; 12] = [
    "This",
    "is",
    "Holdfast's",
    "scripted",
    "model;",
    "set",
    "CHAT_MODEL_PROVIDER",
    "to",
    "connect",
    "a",
    "real",
    "one.",
];
const CYCLE: [&str; 12] =
    ["anchor", "beacon", "cable", "dock", "eddy", "fathom", "gale", "harbour", "island", "jetty", "keel", "lantern"];
const THOUGHTS: [&str; 5] = ["Let", "me", "think", "about", "that."];

/// The built-in model.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScriptedModel;

impl Model for ScriptedModel {
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<AnswerStream, Error>> {
        let asked_at = request.turns.iter().rposition(|turn| matches!(turn, Turn::User(_)));
        let (text, since) = match asked_at.map(|at| request.turns.split_at(at)) {
            Some((_, [Turn::User(parts), since @ ..])) => (text_of(parts), since),
            _ => (String::new(), request.turns.as_slice()),
        };
        let step = match &request.form {
            _ if request.tool_mode.is_demand() && !request.tools.is_empty() => {
                ScriptedStep::next(request, &text, since)
            }
            AnswerForm::Text => ScriptedStep::next(request, &text, since),
            AnswerForm::Verdict => ScriptedStep::verdict(&text),
            AnswerForm::Json(format) => ScriptedStep::json(format.schema.as_ref()),
        };
        let read = count_words(request.system.as_deref().unwrap_or_default())
            + request.turns.iter().map(words_of).sum::<u64>();
        std::future::ready(Ok(recite(step, read).boxed())).boxed()
    }
}

/// Returns the k-th word of every answer, counted from 1, with the space that follows it. The first words are a
/// greeting; the others contain their position.
pub fn word(k: usize) -> String {
    match k.checked_sub(1).and_then(|index| GREETING.get(index)) {
        Some(greeting) => format!("{greeting} "),
        None => format!("{}{k} ", CYCLE[k % CYCLE.len()]),
    }
}

/// Returns the item at this position of the step, or `None` after the last one.
fn item(step: &ScriptedStep, position: usize, read: u64) -> Option<Result<AnswerDelta, Error>> {
    if let Some(thought) = THOUGHTS[..step.thoughts].get(position) {
        return Some(Ok(AnswerDelta::Reasoning(format!("{thought} "))));
    }
    let position = position - step.thoughts;
    if let Some(delta) = step.lead.get(position) {
        return Some(Ok(delta.clone()));
    }
    match position - step.lead.len() {
        index if index < step.words => Some(Ok(AnswerDelta::Text(word(index + 1)))),
        index if index > step.words => None,
        _ if step.fails => Some(Err(Error::Scripted)),
        _ => {
            let usage = Usage {
                input_tokens: read,
                output_tokens: (step.thoughts + step.lead.len() + step.words) as u64,
                cached_tokens: 0,
                reasoning_tokens: step.thoughts as u64,
            };
            Some(Ok(AnswerDelta::End(usage, step.finish)))
        }
    }
}

fn recite(step: ScriptedStep, read: u64) -> impl Stream<Item = Result<AnswerDelta, Error>> + Send + 'static {
    let gate = step.gate.as_ref().and_then(|name| gate::file(std::env::var_os(gate::FOLDER), name));
    stream::unfold((step, 0, gate), move |(step, position, mut gate)| async move {
        let item = item(&step, position, read)?;
        if position > 0
            && let Some(file) = gate.take()
        {
            gate::wait(&file).await;
        }
        let is_token = matches!(item, Ok(AnswerDelta::Text(_) | AnswerDelta::Reasoning(_)));
        if is_token && !step.delay.is_zero() {
            sleep(step.delay).await;
        } else if position % BURST == BURST - 1 {
            yield_now().await;
        }
        Some((item, (step, position + 1, gate)))
    })
}

fn words_of(turn: &Turn) -> u64 {
    match turn {
        Turn::User(parts) | Turn::Files(parts) => count_words(&text_of(parts)),
        Turn::Assistant { text, .. } | Turn::Tool { text, .. } => count_words(text),
    }
}

/// Returns the texts of a turn. A file counts as its name and its type.
fn text_of(parts: &[UserPart]) -> String {
    let texts = parts.iter().map(|part| match part {
        UserPart::Text(text) | UserPart::Speaker(text) => without_line(text).to_owned(),
        UserPart::File(file) => format!("({} {})", file.name, file.media_type),
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn count_words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

#[cfg(test)]
mod tests;
