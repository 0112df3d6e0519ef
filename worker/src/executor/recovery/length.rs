//! Shorter requests for a provider that has refused one as too long: first without the results of earlier runs' tools, then with
//! the beginnings of the run's own oldest results, then without the oldest turns. The summary and the newest input stay.

use std::collections::BTreeSet;

use holdfast_shared::{excerpt, storage::EarlierMessage, tokens, trace::TraceRole};

use super::{Recovery, stop_for};
use crate::{
    executor::{Stop, attempt::Attempt, context::line_of_result, memory::Memory},
    model::{self, Request},
    refusals,
};

/// Most times that a step asks with a shorter request.
const MOST_TRIES: u32 = 6;

/// Characters that stay of a result.
const SHORT_CHARS: usize = 500;

/// The results of the run that requests have the beginnings of, by their calls.
#[derive(Default)]
pub struct ShortenedResults {
    calls: BTreeSet<String>,
    /// True after the warning of the attempt.
    is_told: bool,
}

impl ShortenedResults {
    /// Returns a result as requests have it.
    pub fn shown(&self, call_id: &str, text: &str) -> String {
        if self.calls.contains(call_id) { excerpt::chars(text, SHORT_CHARS) } else { text.to_owned() }
    }
}

/// Shortens the next request after a refusal of this one. Fails if that has not helped, or if nothing is left to shorten.
pub(super) fn mend(
    recovery: &mut Recovery,
    attempt: &mut Attempt<'_>,
    error: model::Error,
    request: &Request,
) -> Result<(), Stop> {
    let refused = request.tokens();
    let model = attempt.model_of_step().choice().path();
    // The estimate has no tokens of files, so it says nothing of other requests.
    if !request.has_files() {
        attempt.shared.refusals.note_length(attempt.claim.owner_id.clone(), model, refused);
    }
    recovery.shortenings += 1;
    let room = if recovery.shortenings == 1 { refusals::below(refused) } else { refused / 2 };
    if recovery.shortenings > MOST_TRIES || !shorten(attempt, refused - room) {
        return Err(stop_for(attempt, error.as_too_long()));
    }
    tracing::warn!(%error, tokens = refused, "the request was too long for the model; asking with a shorter one");
    Ok(())
}

/// Takes about so many tokens from later requests, and warns once. Returns false if nothing is left to take.
pub fn shorten(attempt: &mut Attempt<'_>, excess: u32) -> bool {
    let language = attempt.definition.language;
    let cost = |earlier: &EarlierMessage| {
        tokens::estimate(&earlier.message.content.model_text(language)).saturating_add(tokens::PER_MESSAGE)
    };
    if !take_tokens(&mut attempt.memory, excess, cost) {
        return false;
    }
    if !std::mem::replace(&mut attempt.memory.shortened.is_told, true) {
        let model = attempt.model_of_step().choice().clone();
        let message = format!(
            "The conversation is too long for {model}, so the model gets only the beginnings of older results, or answers without the oldest messages."
        );
        attempt.warn("context_shortened", message);
    }
    true
}

fn take_tokens(memory: &mut Memory, excess: u32, cost: impl Fn(&EarlierMessage) -> u32) -> bool {
    let mut left = excess;
    for earlier in &mut memory.earlier {
        if left > 0 && !earlier.results.is_empty() {
            let lines = std::mem::take(&mut earlier.results);
            let taken: u32 = lines.iter().map(|result| tokens::estimate(&line_of_result(result))).sum();
            left = left.saturating_sub(taken);
        }
    }
    for message in memory.trace.iter().filter(|message| message.role == TraceRole::Tool) {
        let Some(call_id) = message.call_id.as_ref().filter(|id| left > 0 && !memory.shortened.calls.contains(*id))
        else {
            continue;
        };
        let text = memory.referred.text_of(call_id).unwrap_or(&message.content);
        let taken = tokens::estimate(text).saturating_sub(tokens::estimate(&excerpt::chars(text, SHORT_CHARS)));
        if taken > 0 {
            memory.shortened.calls.insert(call_id.clone());
            left = left.saturating_sub(taken);
        }
    }
    // Messages of one turn go together.
    while left > 0
        && let Some(turn) = memory.earlier.first().map(|earlier| earlier.turn)
    {
        let end = memory.earlier.iter().position(|earlier| earlier.turn != turn).unwrap_or(memory.earlier.len());
        let taken: u32 = memory.earlier.drain(..end).map(|earlier| cost(&earlier)).sum();
        // The summary after the answer covers the turn; the summary before stays.
        memory.older = Some(turn);
        left = left.saturating_sub(taken);
    }
    left < excess
}
