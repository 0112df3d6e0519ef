//! Keeps the conversation within its token budget: above the agent's budget, a summary replaces the older messages.
//!
//! The model of the role `summarizer` writes the summary, or else the agent's own. Later runs read the stored summary, so most runs request none. If the
//! model returns no summary, the run continues without the older messages, and a warning says so.

use std::{collections::BTreeSet, error::Error};

use holdfast_shared::{
    agent::{ModelRole, ModelSettings},
    event::{ContextUsage, EventBody},
    excerpt,
    message::Message,
    storable::storable,
    storage::{EarlierMessage, Summary},
    tokens,
};

use super::{
    Stop,
    attachments::LoadedFiles,
    attempt::{Attempt, retry_query},
    context::{RESULTS, line_of_result, turn_of_earlier, turn_of_summary},
    side_call::ask_aside,
};
use crate::model::{ChosenModel, Request, Turn};

/// Divisors of the budget: the newest messages that stay as they are, and the size of a summary.
const KEPT_SHARE: u32 = 2;
const SUMMARY_SHARE: u32 = 4;

/// Brings the conversation of a run within the budget of its agent, and reports the usage of the budget.
pub async fn fit(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let budget = attempt.definition.context_tokens.unwrap_or(attempt.shared.worker.config.context_tokens);
    let older = if used_tokens(attempt) > budget { older_messages(attempt, budget / KEPT_SHARE) } else { 0 };
    // After its first checkpoint, a run has already reported this and continues with the context of its first attempt.
    let is_fresh = attempt.memory.trace.is_empty();
    let mut compressed = false;
    if older > 0 {
        let left_out: Vec<EarlierMessage> = attempt.memory.earlier.drain(..older).collect();
        if is_fresh {
            compressed = summarise(attempt, &left_out, budget / SUMMARY_SHARE).await?;
        }
    }
    let recalled = recall(attempt, budget);
    if is_fresh {
        let tokens = used_tokens(attempt).saturating_add(recalled);
        attempt.recorder.emit(&EventBody::ContextUsage(ContextUsage {
            tokens: tokens.into(),
            budget: budget.into(),
            compressed,
        }));
    }
    Ok(())
}

/// Keeps as many tool results of earlier runs as the messages leave room for, the newest first. Returns their tokens.
fn recall(attempt: &mut Attempt<'_>, budget: u32) -> u32 {
    let most = attempt.shared.worker.config.earlier_result_chars;
    let room = budget.saturating_sub(used_tokens(attempt));
    let (mut tokens, mut is_full) = (0, false);
    for earlier in attempt.memory.earlier.iter_mut().rev() {
        let mut block = cost(RESULTS);
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

/// Estimates the tokens of the conversation with the passages for its newest question; instructions, tools, files and the run's own steps are not counted. Files have a
/// limit of their own.
fn used_tokens(attempt: &Attempt<'_>) -> u32 {
    let memory = &attempt.memory;
    let summary = memory.summary.as_ref().map_or(0, |summary| cost(&summary.content));
    let passages = cost_of_passages(attempt);
    let costs = memory.earlier.iter().map(|earlier| cost_of_message(attempt, &earlier.message));
    let earlier = costs.fold(0, u32::saturating_add);
    summary.saturating_add(passages).saturating_add(earlier).saturating_add(cost_of_message(attempt, &memory.input))
}

fn cost_of_passages(attempt: &Attempt<'_>) -> u32 {
    let passages = attempt.memory.retrieved.iter();
    passages.map(|(_, passage)| tokens::estimate(&passage.text)).fold(0, u32::saturating_add)
}

fn cost_of_message(attempt: &Attempt<'_>, message: &Message) -> u32 {
    cost(&message.content.model_text(attempt.definition.language))
}

fn cost(text: &str) -> u32 {
    tokens::estimate(text).saturating_add(tokens::PER_MESSAGE)
}

/// Returns how many of the earlier messages are older than the newest turns that fit, with the input and its passages, into
/// `room` tokens.
fn older_messages(attempt: &Attempt<'_>, room: u32) -> usize {
    let earlier = &attempt.memory.earlier;
    let own = cost_of_message(attempt, &attempt.memory.input).saturating_add(cost_of_passages(attempt));
    let mut room = room.saturating_sub(own);
    let mut kept_from = earlier.len();
    for turn in earlier.chunk_by(|a, b| a.turn == b.turn).rev() {
        let costs = turn.iter().map(|earlier| cost_of_message(attempt, &earlier.message));
        let cost = costs.fold(0, u32::saturating_add);
        let Some(left) = room.checked_sub(cost) else { break };
        room = left;
        kept_from -= turn.len();
    }
    kept_from
}

/// Requests a summary of the messages that are left out, and stores it. Returns whether there is one.
async fn summarise(attempt: &mut Attempt<'_>, left_out: &[EarlierMessage], tokens: u32) -> Result<bool, Stop> {
    let Some(up_to) = left_out.last().map(|earlier| earlier.turn) else { return Ok(false) };
    let request = request(attempt, left_out, tokens);
    let model = summarizer(attempt).await?;
    match ask_aside(attempt, &model, request).await? {
        Ok((text, usage)) if !text.trim().is_empty() => {
            // A model that ignores the requested length must not fill the budget again.
            let content = excerpt::bytes(storable(text), tokens as usize * 8);
            let summary = Summary { up_to, content };
            let storage = &attempt.shared.worker.storage;
            let claim = attempt.claim;
            // The history of a request belongs to its run alone. Its turns are before all turns of the conversation.
            if up_to >= 0 {
                retry_query(attempt.lease, attempt.recorder, || storage.keep_summary(claim, &summary)).await?;
            }
            attempt.memory.usage += usage;
            attempt.memory.summary = Some(summary);
            return Ok(true);
        }
        Ok(_) => tracing::warn!("the model returned an empty summary of the conversation"),
        Err(error) => {
            tracing::warn!(error = &error as &dyn Error, "failed to summarise the conversation");
        }
    }
    let message = "Older messages could not be summarised for the model, so it answers without them.";
    attempt.warn("context_not_compressed", message);
    Ok(false)
}

fn request(attempt: &Attempt<'_>, left_out: &[EarlierMessage], tokens: u32) -> Request {
    let language = attempt.definition.language;
    let before = attempt.memory.summary.as_ref().map(turn_of_summary);
    let (files, mut sent) = (LoadedFiles::default(), BTreeSet::new());
    let messages = left_out.iter().filter_map(|earlier| turn_of_earlier(earlier, language, &files, &mut sent));
    let words = tokens * 3 / 4;
    let task = format!(
        "Summarise our conversation so far. Your summary will stand in place of the messages above, so keep everything that the conversation needs to continue: \
         facts, names, numbers, decisions, what was asked for and what is still open. Write in the language of the conversation, \
         at most {words} words, and nothing but the summary."
    );
    Request { turns: before.into_iter().chain(messages).chain([Turn::user(task)]).collect(), ..Request::default() }
}

/// Returns the model of the role, or else the agent's own, without the options for answers.
async fn summarizer(attempt: &mut Attempt<'_>) -> Result<ChosenModel, Stop> {
    let worker = &attempt.shared.worker;
    let profiles = retry_query(attempt.lease, attempt.recorder, || worker.storage.profiles()).await?;
    let Some(profile) = profiles.roles.get(&ModelRole::Summarizer).cloned() else {
        return Ok(attempt.chosen_model.without_options());
    };
    let settings = ModelSettings { profile: Some(profile), ..ModelSettings::default() };
    Ok(worker.models.get(Some(&settings), &profiles).unwrap_or_else(|error| {
        tracing::warn!(error = &error as &dyn Error, "failed to set up the model of the role summarizer");
        attempt.chosen_model.without_options()
    }))
}
