//! Keeps the conversation within its token budget: the newest messages stay as they are, and a summary stands in place of the others.
//!
//! The summary of what falls out is made after the answer before (`due_summary`). Only a question that comes too soon waits for
//! it. A question for which none was made, such as a very long one, has it made before its own answer. If the model returns no
//! summary, the run continues without the older messages, and a warning says so.

use std::{error::Error, time::Duration};

use holdfast_shared::{
    agent::Profiles,
    event::{ContextUsage, EventBody},
    message::Message,
    storage::{EarlierMessage, NewDueSummary, Progress, Summary, SummaryScope},
    tokens,
};

use super::{
    Stop,
    attempt::Attempt,
    context::{RESULTS, line_of_result, text_of_summary},
    retry_query::retry_query,
    steering::has_joined,
    summariser::{Extended, OlderMessages, Summariser, model_of_role},
    verbatim::{ContextRoom, SizedMessage, due_turn, kept_from, total},
};

/// Pause between two looks for the summary that another worker makes.
const LOOK: Duration = Duration::from_millis(100);

/// Brings the conversation of a run within the budget of its agent, and reports the usage of the budget.
pub async fn fit(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    // After its first checkpoint, a run has already reported this and continues with the context of its first attempt.
    let is_fresh = attempt.memory.trace.is_empty();
    if is_fresh && !is_covered(attempt) {
        await_summary(attempt).await?;
    }
    if is_fresh && !is_covered(attempt) {
        make_summary(attempt).await?;
    }
    leave_out(attempt);
    let recalled = recall(attempt);
    if is_fresh {
        let tokens = used_tokens(attempt).saturating_add(recalled);
        let first = first_verbatim(attempt);
        attempt.recorder.emit(&EventBody::ContextUsage(ContextUsage {
            tokens: tokens.into(),
            budget: attempt.budget.into(),
            compressed: attempt.memory.shown_summary().is_some(),
            verbatim_from: first.map(|message| message.id),
            verbatim_from_client_id: first.and_then(|message| message.client_id.clone()),
        }));
    }
    Ok(())
}

/// Returns the first message that the model reads word by word, if there are older ones.
fn first_verbatim<'a>(attempt: &'a Attempt<'_>) -> Option<&'a Message> {
    let memory = &attempt.memory;
    let first = memory.earlier.first().map_or(&memory.input, |earlier| &earlier.message);
    memory.older.filter(|_| !memory.has_given_history).map(|_| first)
}

/// Returns the index of the first earlier message that the model reads word by word.
fn verbatim(attempt: &Attempt<'_>) -> usize {
    let (memory, messages) = (&attempt.memory, sizes(attempt));
    let room = attempt.budget.saturating_sub(size_of_question(attempt));
    if memory.older.is_none() && total(&messages) <= room {
        return 0;
    }
    kept_from(&messages, room.saturating_sub(memory.summary.as_ref().map_or(0, size_of_summary)))
}

/// Returns whether the summary covers all messages that the model does not read word by word.
fn is_covered(attempt: &Attempt<'_>) -> bool {
    let memory = &attempt.memory;
    let left_out = verbatim(attempt).checked_sub(1).map(|last| memory.earlier[last].turn).or(memory.older);
    left_out.is_none_or(|turn| memory.covered().is_some_and(|covered| covered >= turn))
}

/// Waits while a worker makes the summary that is due after an earlier answer, and takes the newest one.
async fn await_summary(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    if attempt.memory.has_given_history {
        return Ok(());
    }
    let (storage, scope) = (&attempt.shared.worker.storage, scope(attempt));
    let is_under_way = || storage.is_summary_under_way(scope.conversation_id, scope.run_id);
    while retry_query(attempt.lease, attempt.recorder, is_under_way).await? {
        attempt.alongside(tokio::time::sleep(LOOK)).await?;
    }
    let newest = retry_query(attempt.lease, attempt.recorder, || storage.newest_summary(&scope)).await?;
    attempt.memory.summary = newest.or(attempt.memory.summary.take());
    Ok(())
}

/// Makes the summary before the answer.
async fn make_summary(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let room = room(attempt);
    let summary = size_of_summary(&Summary { up_to: 0, content: String::new() }) + room.of_summary();
    let left = attempt.budget.saturating_sub(size_of_question(attempt)).saturating_sub(summary);
    let messages = sizes(attempt);
    // If all messages fit beside a summary, only older ones lack one.
    let fits = total(&messages) <= left;
    let kept = if fits { 0 } else { kept_from(&messages, room.after_summary().min(left)) };
    let earlier = std::mem::take(&mut attempt.memory.earlier);
    let Some(up_to) = kept.checked_sub(1).map(|last| earlier[last].turn).or(attempt.memory.older) else {
        attempt.memory.earlier = earlier;
        return Ok(());
    };
    let worker = &attempt.shared.worker;
    let profiles: Profiles = retry_query(attempt.lease, attempt.recorder, || worker.storage.profiles()).await?;
    let summariser = Summariser {
        shared: attempt.shared,
        model: model_of_role(&worker.models, &profiles).unwrap_or_else(|| attempt.chosen_model.without_options()),
        language: attempt.definition.language,
        date: attempt.memory.date.clone(),
        spans: attempt.spans,
        signs_of_life: attempt.signs_of_life.clone(),
        tokens: room.of_summary(),
    };
    let older = if attempt.memory.has_given_history {
        OlderMessages::Given(&earlier)
    } else {
        OlderMessages::Stored(scope(attempt))
    };
    let before = attempt.memory.summary.take();
    let made = Box::pin(summariser.extend(&older, before, up_to));
    let Extended { summary, usage, outcome } = attempt.alongside(made).await?;
    attempt.memory.earlier = earlier;
    attempt.memory.summary = summary;
    attempt.memory.usage += usage;
    if let Err(error) = outcome {
        tracing::warn!(error = &error as &dyn Error, "failed to summarise the conversation");
        let message = "Older messages could not be summarised for the model, so it answers without them.";
        attempt.warn("context_not_compressed", message);
    }
    Ok(())
}

/// Leaves the messages out that the model does not read word by word.
fn leave_out(attempt: &mut Attempt<'_>) {
    let kept = verbatim(attempt);
    if let Some(last) = attempt.memory.earlier.drain(..kept).next_back() {
        attempt.memory.older = Some(last.turn);
    }
}

/// Notes the summary that is to be made after the end of the run, if the next question will need a longer one.
pub fn note_due(attempt: &mut Attempt<'_>) {
    let memory = &attempt.memory;
    // A child's conversation has no other question, and a given history comes again with the next request.
    if attempt.claim.is_child || memory.has_given_history {
        return;
    }
    let mut messages = sizes(attempt);
    messages.push(SizedMessage { turn: memory.input_turn, tokens: size_of_message(attempt, &memory.input) });
    let joined = memory.trace.iter().filter(|message| has_joined(message));
    messages
        .extend(joined.map(|message| SizedMessage { turn: attempt.claim.position, tokens: size(&message.content) }));
    let answer = attempt.recorder.text();
    if !answer.is_empty() {
        messages.push(SizedMessage { turn: attempt.claim.position, tokens: size(answer) });
    }
    let most = attempt.window.messages(memory.is_standing);
    let due = due_turn(&messages, most, memory.covered(), room(attempt)).max(memory.older);
    if let Some(up_to) = due.filter(|turn| memory.covered().is_none_or(|covered| covered < *turn)) {
        let lease_ms = attempt.shared.worker.config.lease.as_millis() as u64;
        let due = NewDueSummary { up_to, tokens: room(attempt).of_summary(), lease_ms };
        attempt.is_summary_due = true;
        attempt.recorder.note_for_next_flush(Progress { due_summaries: vec![due], ..Progress::default() });
    }
}

/// Keeps as many tool results of earlier runs as the messages leave room for, the newest first. Returns their tokens.
fn recall(attempt: &mut Attempt<'_>) -> u32 {
    let most = attempt.shared.worker.config.earlier_result_chars;
    let room = attempt.budget.saturating_sub(used_tokens(attempt));
    let (mut tokens, mut is_full) = (0, false);
    for earlier in attempt.memory.earlier.iter_mut().rev() {
        let mut block = size(RESULTS);
        earlier.results.retain_mut(|result| {
            result.truncate(most);
            let more = block + tokens::estimate(&line_of_result(result)) + 1;
            is_full |= tokens + more > room;
            if !is_full {
                tokens += more;
                // The first result of a block pays for the heading.
                block = 0;
            }
            !is_full
        });
    }
    tokens
}

/// Estimates the tokens of the conversation with the passages for its newest question; instructions, tools, files and the run's
/// own steps are not counted. Files have a limit of their own.
fn used_tokens(attempt: &Attempt<'_>) -> u32 {
    let summary = attempt.memory.shown_summary().map_or(0, size_of_summary);
    summary.saturating_add(total(&sizes(attempt))).saturating_add(size_of_question(attempt))
}

fn room(attempt: &Attempt<'_>) -> ContextRoom {
    ContextRoom { budget: attempt.budget, passages: size_of_passages(attempt) }
}

fn sizes(attempt: &Attempt<'_>) -> Vec<SizedMessage> {
    let sized = |earlier: &EarlierMessage| SizedMessage {
        turn: earlier.turn,
        tokens: size_of_message(attempt, &earlier.message),
    };
    attempt.memory.earlier.iter().map(sized).collect()
}

fn size_of_question(attempt: &Attempt<'_>) -> u32 {
    size_of_message(attempt, &attempt.memory.input).saturating_add(size_of_passages(attempt))
}

fn size_of_passages(attempt: &Attempt<'_>) -> u32 {
    let passages = attempt.memory.retrieved.iter();
    passages.map(|(_, passage)| tokens::estimate(&passage.text)).fold(0, u32::saturating_add)
}

fn size_of_message(attempt: &Attempt<'_>, message: &Message) -> u32 {
    size(&message.content.model_text(attempt.definition.language))
}

fn size_of_summary(summary: &Summary) -> u32 {
    size(&text_of_summary(summary))
}

fn size(text: &str) -> u32 {
    tokens::estimate(text).saturating_add(tokens::PER_MESSAGE)
}

/// Returns the messages that the run can read.
fn scope(attempt: &Attempt<'_>) -> SummaryScope {
    let claim = attempt.claim;
    SummaryScope {
        run_id: claim.run_id,
        conversation_id: claim.conversation_id,
        before: claim.position,
        seen_at: claim.created_at,
    }
}
