//! A model without a model: deterministic answers, for a first try without any provider and for tests.
//!
//! It obeys directives in the last user turn: `[tokens=60]` words, `[delay=20]` ms before each, `[think]` first, `[fail]`
//! half-way. Whatever else is in brackets is ignored. It needs no patience.

use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt, future::BoxFuture, stream};
use holdfast_shared::usage::Usage;
use tokio::{task::yield_now, time::sleep};

use super::{Answer, Delta, Error, Model, Request, Speaker, Turn};

const USUAL_TOKENS: usize = 24;
const MAX_TOKENS: usize = 100_000;
const USUAL_DELAY: u64 = 15;
const MAX_DELAY: u64 = 60_000;

/// Words between two looks at the other tasks when there is no delay.
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
pub struct Scripted;

impl Model for Scripted {
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<Answer, Error>> {
        let last = request.turns.iter().rev().find(|turn| turn.speaker == Speaker::User);
        let script = Script::read(last.map_or("", |turn| &turn.text));
        let read = count_words(request.system.as_deref().unwrap_or_default())
            + request.turns.iter().map(|Turn { text, .. }| count_words(text)).sum::<u64>();
        std::future::ready(Ok(recite(script, read).boxed())).boxed()
    }
}

/// The k-th word of every answer, counted from 1, with the space that follows it: first a greeting, then words that
/// carry their position.
pub fn word(k: usize) -> String {
    match k.checked_sub(1).and_then(|index| GREETING.get(index)) {
        Some(greeting) => format!("{greeting} "),
        None => format!("{}{k} ", CYCLE[k % CYCLE.len()]),
    }
}

/// What the last user turn asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Script {
    tokens: usize,
    delay: Duration,
    thinks: bool,
    fails: bool,
}

impl Script {
    fn read(text: &str) -> Self {
        let mut script =
            Self { tokens: USUAL_TOKENS, delay: Duration::from_millis(USUAL_DELAY), thinks: false, fails: false };
        let directives = text.split('[').skip(1).filter_map(|rest| Some(rest.split_once(']')?.0));
        for directive in directives {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            match (name.trim(), value.trim().parse::<u64>()) {
                ("tokens", Ok(count)) => {
                    script.tokens = usize::try_from(count).map_or(MAX_TOKENS, |c| c.min(MAX_TOKENS))
                }
                ("delay", Ok(ms)) => script.delay = Duration::from_millis(ms.min(MAX_DELAY)),
                ("think", _) => script.thinks = true,
                ("fail", _) => script.fails = true,
                _ => {}
            }
        }
        script
    }

    fn thoughts(&self) -> usize {
        if self.thinks { THOUGHTS.len() } else { 0 }
    }

    /// The item at this place of the answer; after the last one, none.
    fn item(&self, place: usize, read: u64) -> Option<Result<Delta, Error>> {
        let thoughts = self.thoughts();
        if let Some(thought) = THOUGHTS[..thoughts].get(place) {
            return Some(Ok(Delta::Reasoning(format!("{thought} "))));
        }
        let words = if self.fails { self.tokens / 2 } else { self.tokens };
        match place - thoughts {
            index if index < words => Some(Ok(Delta::Text(word(index + 1)))),
            index if index > words => None,
            _ if self.fails => Some(Err(Error::Scripted)),
            _ => Some(Ok(Delta::End(Usage {
                input_tokens: read,
                output_tokens: (thoughts + words) as u64,
                cached_tokens: 0,
                reasoning_tokens: thoughts as u64,
            }))),
        }
    }
}

fn recite(script: Script, read: u64) -> impl Stream<Item = Result<Delta, Error>> + Send + 'static {
    stream::unfold(0, move |place| async move {
        let item = script.item(place, read)?;
        let is_token = matches!(item, Ok(Delta::Text(_) | Delta::Reasoning(_)));
        if is_token && !script.delay.is_zero() {
            sleep(script.delay).await;
        } else if place % BURST == BURST - 1 {
            yield_now().await;
        }
        Some((item, place + 1))
    })
}

fn count_words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

#[cfg(test)]
mod tests;
