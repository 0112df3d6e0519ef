//! The deadline of a run: the end of its time as a whole, or of its time without a sign of life, whichever comes first.

use std::{
    pin::Pin,
    time::{Duration, Instant},
};

use holdfast_shared::run::RunError;
use tokio::time::{Sleep, sleep_until};

use super::limits::RunLimits;
use crate::signs_of_life::SignsOfLife;

/// A time that a run without a limit does not reach.
const NEVER: Duration = Duration::from_secs(86_400 * 365 * 30);

/// The deadline of one attempt.
pub struct Deadline {
    limits: RunLimits,
    /// End of the time of the whole run.
    end: Instant,
    signs: SignsOfLife,
    /// Ends at the deadline, or before it after a sign of life: a sign moves no timer.
    sleep: Pin<Box<Sleep>>,
}

impl Deadline {
    /// Returns the deadline of a run that earlier attempts have worked on for `worked`. The attempt's start is a sign of life.
    pub fn new(limits: RunLimits, worked: Duration, signs: SignsOfLife) -> Self {
        let now = Instant::now();
        let end = now + limits.duration.saturating_sub(worked).min(NEVER);
        Self { limits, end, signs, sleep: Box::pin(sleep_until(now.into())) }
    }

    /// Waits until the deadline has passed, and returns the error of the run.
    pub async fn passed(&mut self) -> RunError {
        loop {
            self.sleep.as_mut().await;
            let now = Instant::now();
            if now >= self.end {
                return self.limits.duration_exceeded();
            }
            let silent_at = self.limits.silence.map(|silence| self.signs.last() + silence.min(NEVER));
            if silent_at.is_some_and(|at| now >= at) {
                return self.limits.silence_exceeded();
            }
            let next = silent_at.map_or(self.end, |at| at.min(self.end));
            self.sleep.as_mut().reset(next.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use holdfast_shared::agent::Limits;
    use tokio::time::timeout;

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);
    const SHORT: Duration = Duration::from_millis(40);

    fn deadline(duration: Option<Duration>, silence: Option<Duration>, signs: &SignsOfLife) -> Deadline {
        let max_duration_ms = duration.map(|duration| duration.as_millis() as u64);
        let limits = RunLimits::of(Limits { max_duration_ms, ..Limits::default() }, silence);
        Deadline::new(limits, Duration::ZERO, signs.clone())
    }

    #[tokio::test]
    async fn silence_and_the_whole_time_each_pass_a_deadline() {
        let signs = SignsOfLife::default();
        let message = deadline(None, Some(SHORT), &signs).passed().await.message;
        assert!(message.contains("no sign of life for 40 ms"), "{message}");
        let message = deadline(Some(SHORT), Some(LONG), &signs).passed().await.message;
        assert!(message.contains("longer than 40 ms (max_duration_ms)"), "{message}");
        let mut none = deadline(None, None, &signs);
        assert!(timeout(SHORT, none.passed()).await.is_err());
    }

    #[tokio::test]
    async fn each_sign_of_life_begins_the_silence_again() {
        let signs = SignsOfLife::default();
        let mut deadline = deadline(Some(SHORT * 8), Some(SHORT * 3), &signs);
        let giving_signs = async {
            loop {
                // The run of this test writes a delta every few milliseconds.
                tokio::time::sleep(SHORT / 8).await;
                signs.note();
            }
        };
        let error = tokio::select! {
            error = deadline.passed() => error,
            () = giving_signs => pending().await,
        };
        assert!(error.message.contains("max_duration_ms"), "{}", error.message);
    }
}
