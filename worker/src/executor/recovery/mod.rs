//! The recovery from a turn in which the model gave no answer.
//!
//! A step asks once more after silence. After a refusal of its length, it asks with a shorter request (`length`), and after one of
//! a file with fewer files (`files`). Each has few tries. Faults that pass by themselves are retried below (`model`).

mod files;
mod length;

use holdfast_shared::{file::Attachment, finish_reason::FinishReason, run::RunError};

use super::{Stop, attempt::Attempt, step_request};
use crate::model;

pub use length::{ShortenedResults, shorten};

/// The tries of a step so far.
#[derive(Default)]
pub struct Recovery {
    was_silent: bool,
    shortenings: u32,
    /// Files that the step leaves out since a refusal, to see whether one of them was its reason.
    left_out: Vec<Attachment>,
}

impl Recovery {
    /// Returns whether the step asks again after the model has said nothing. Warns if it does not.
    pub fn asks_again(&mut self, attempt: &mut Attempt<'_>, reason: FinishReason) -> bool {
        let why = match reason {
            // The model would use up its tokens again, and the filter would judge as before.
            FinishReason::Length => "it has used up its tokens before it began to answer; max_tokens may be too low",
            FinishReason::ContentFilter => "its provider withheld the answer",
            _ if !self.was_silent => {
                self.was_silent = true;
                tracing::warn!("the model has said nothing; asking again");
                return true;
            }
            _ => "it ended its answer twice without a word",
        };
        attempt.warn("empty_answer", format!("The model has said nothing: {why}."));
        false
    }

    /// Changes what the step asks for after a refusal, or fails if nothing is left to change.
    pub async fn mend(
        &mut self,
        attempt: &mut Attempt<'_>,
        error: model::Error,
        limit: Option<&str>,
    ) -> Result<(), Stop> {
        if !error.is_of_input() {
            return Err(stop_for(attempt, error));
        }
        let request = step_request::build(attempt, limit).await?;
        // A body that is too large is mostly so because of its files.
        let is_of_length = error.is_too_long() || (error.is_too_large() && !request.has_files());
        if is_of_length {
            length::mend(self, attempt, error, &request)
        } else {
            files::mend(self, attempt, error, limit).await
        }
    }

    /// Notes what the refusals of the step have taught, now that the model has answered.
    pub fn settle(&mut self, attempt: &mut Attempt<'_>) {
        files::settle(std::mem::take(&mut self.left_out), attempt);
    }
}

/// Returns the end of a run whose model has failed.
pub fn stop_for(attempt: &Attempt<'_>, error: model::Error) -> Stop {
    tracing::warn!(%error, "failed to get an answer from the model");
    let sentence = with_words(attempt, error.reason(), &error);
    let retry_after = error.retry_after().map(|pause| pause.as_secs().max(1));
    let failure = RunError { retry_after, ..RunError::new(error.code(), sentence) };
    Stop::Failed(failure.with_details(error.to_string()))
}

/// Adds the provider's words to the sentence for users, in development mode only: they may quote the conversation and name things
/// that users must not see. Otherwise only operators read them, in the details of the error.
fn with_words(attempt: &Attempt<'_>, sentence: String, error: &model::Error) -> String {
    match error.words().filter(|_| attempt.shared.worker.is_development) {
        Some(words) => format!("{sentence} ({words})"),
        None => sentence,
    }
}
