//! How a recorder ends: FINISH and LEAVE, repeated until the database has answered.
//!
//! Only the database's answer means that another worker holds the run. A signal of the lease does not count here. After
//! the commit, the next renewal misses the run although its last events are not in the log yet.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use chrono::Utc;
use holdfast_shared::{
    backoff::Backoff,
    ending::Ending,
    parts::PartsBuilder,
    run::RunError,
    storage::{self, Answer, ArchiveChunk, FinishOutcome, Release, ReleaseOutcome},
};

use super::{LeaseLost, Recorder, RecorderOutcome};
use crate::spans;

/// Pauses after a failed try.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Refusals of the run's data before the run is failed without it.
pub const REFUSALS: usize = 5;

/// Longest time for appending the last events of a run; later, clients read them from the archive.
const LAST_APPEND: Duration = Duration::from_secs(2);

impl Recorder {
    /// Ends the run in the database, and only then appends its end to the log.
    pub async fn finish(mut self, ending: Ending) -> RecorderOutcome {
        let Ok(tail) = self.settle_flushes().await else { return RecorderOutcome::Fenced };
        self.finish_with(tail, &ending).await
    }

    /// Releases the run without an end; its text so far stays readable.
    pub async fn release(mut self, leave: Release) -> RecorderOutcome {
        let Ok(tail) = self.settle_flushes().await else { return RecorderOutcome::Fenced };
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut refusals = 0;
        loop {
            let mut span = self.spans.commit("leave", tail.as_ref());
            let result = self.flushes.storage().release(&self.claim, tail.as_ref(), self.last, leave).await;
            let result = result.inspect_err(|error| spans::fail_commit(&mut span, error));
            drop(span);
            match result {
                Ok(ReleaseOutcome::Released { events, asked, .. }) => {
                    self.append_deferred();
                    for event in &events {
                        self.appends.push(event.id.n, &[event.line(), &b"\n"[..]].concat());
                    }
                    self.append_rest().await;
                    return RecorderOutcome::Released { release: leave, asked: asked.map(Box::new) };
                }
                Ok(ReleaseOutcome::CancelRequested) => return self.finish_with(tail, &Ending::Cancelled).await,
                Ok(ReleaseOutcome::Fenced) => return RecorderOutcome::Fenced,
                Err(error) => {
                    refusals += usize::from(error.refuses_write());
                    tracing::warn!(error = &error as &dyn Error, "failed to release the run; trying again");
                }
            }
            if refusals >= REFUSALS {
                return self
                    .finish_with(tail.map(ArchiveChunk::without_progress), &Ending::Failed(progress_not_stored()))
                    .await;
            }
            backoff.pause().await;
        }
    }

    async fn finish_with(&mut self, mut tail: Option<ArchiveChunk>, ending: &Ending) -> RecorderOutcome {
        self.complete_answer().await;
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut refusals = 0;
        let without_progress = Ending::Failed(progress_not_stored());
        let failure = Ending::Failed(RunError::new("answer_not_stored", "the database refused the answer"));
        loop {
            let no_answer = Answer { usage: self.answer.usage, ..Answer::default() };
            // A database that can be reached and refuses a write again and again will not accept it later either. It may
            // accept the answer without the progress.
            let (ending, answer) = match refusals / REFUSALS {
                0 => (ending, &self.answer),
                1 => (&without_progress, &self.answer),
                _ => (&failure, &no_answer),
            };
            let finish = self.flushes.storage().finish(&self.claim, tail.as_ref(), self.last, answer, ending);
            let mut span = self.spans.commit("finish", tail.as_ref());
            let result = finish.await.inspect_err(|error| spans::fail_commit(&mut span, error));
            drop(span);
            match result {
                Ok(FinishOutcome::Ended(closed)) => {
                    self.append_deferred();
                    if let Ending::Failed(error) = ending {
                        metrics::counter!("holdfast_run_failures_total", "code" => error.code.clone()).increment(1);
                    }
                    for event in &closed.events {
                        self.appends.push(event.id.n, &[event.line(), &b"\n"[..]].concat());
                    }
                    self.append_rest().await;
                    return RecorderOutcome::Finished { status: ending.status(), closed };
                }
                Ok(FinishOutcome::Fenced) => return RecorderOutcome::Fenced,
                Err(error) => {
                    refusals += usize::from(error.refuses_write());
                    if refusals == REFUSALS {
                        tail = tail.map(ArchiveChunk::without_progress);
                        backoff.reset();
                    }
                    tracing::warn!(error = &error as &dyn Error, "failed to finish the run; trying again");
                }
            }
            backoff.pause().await;
        }
    }

    /// Adds the text and the parts of earlier attempts to the answer. Repeats until the database has answered. Damaged rows
    /// are left out, because a run must be able to end.
    async fn complete_answer(&mut self) {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let earlier = loop {
            match self.earlier_parts().await {
                Ok(earlier) => break earlier,
                Err(error) if error.is_damage() => {
                    tracing::error!(
                        error = &error as &dyn Error,
                        "the run's earlier answer is damaged; the run ends without it"
                    );
                    break PartsBuilder::default();
                }
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn Error,
                        "failed to read the run's earlier answer; trying again"
                    );
                }
            }
            backoff.pause().await;
        };
        let parts = earlier.followed_by(&self.claim.started, std::mem::take(&mut self.parts));
        self.answer.parts = parts.into_parts(Utc::now().timestamp_millis());
        self.answer.parts.complete_text(&self.answer.text);
    }

    /// Returns the parts of earlier attempts, after adding their text to the answer.
    async fn earlier_parts(&mut self) -> Result<PartsBuilder, storage::Error> {
        if !self.knows_answer {
            let earlier = self.flushes.storage().earlier_answer(&self.claim).await?;
            self.continue_from(earlier);
        }
        if self.claim.is_fresh() {
            return Ok(PartsBuilder::default());
        }
        self.flushes.storage().earlier_parts(&self.claim).await
    }

    /// Waits until no flush is in flight, while appends continue.
    async fn settle_flushes(&mut self) -> Result<Option<ArchiveChunk>, LeaseLost> {
        loop {
            if !self.flushes.is_trying() {
                return Ok(self.flushes.take_tail());
            }
            self.step().await?;
        }
    }

    /// Appends the deferred events, which are committed now.
    pub fn append_deferred(&mut self) {
        let deferred = Bytes::from(std::mem::take(&mut self.deferred));
        let mut start = 0;
        for (index, end) in memchr::memchr_iter(b'\n', &deferred).enumerate() {
            self.appends.push(self.deferred_first + index as u32, &deferred[start..=end]);
            start = end + 1;
        }
    }

    /// Appends the committed events. All of them are in the archive, so a log that lost some may have a gap.
    async fn append_rest(&mut self) {
        self.appends.mark_all_archived();
        let rest = async {
            while !self.appends.is_idle() {
                if self.appends.step().await.is_err() {
                    return;
                }
                self.appends.mark_all_archived();
            }
        };
        if tokio::time::timeout(LAST_APPEND, rest).await.is_err() {
            tracing::debug!("failed to append the run's last events in time; clients receive them from the archive");
        }
    }
}

/// Returns the error of a run whose progress the database refuses.
pub fn progress_not_stored() -> RunError {
    RunError::new("state_not_stored", "the database refused the run's progress")
}
