//! Pauses between tries: each is twice the last one, up to a longest.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// The pauses of one caller. A success resets them.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    has_jitter: bool,
    /// The pauses since the last success, if a try has failed since. Boxed, because most callers never need them.
    pauses: Option<Box<ExponentialBackoff>>,
}

impl Backoff {
    /// Returns pauses without an end.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, has_jitter: false, pauses: None }
    }

    /// Adds up to as much again to each pause, at random, so that many clients do not return at the same moment.
    pub fn with_jitter(self) -> Self {
        Self { has_jitter: true, ..self }
    }

    /// Returns the next pause, after a failure.
    pub fn next_pause(&mut self) -> Duration {
        let begin = || {
            let pauses = ExponentialBuilder::new().with_min_delay(self.first).with_max_delay(self.longest);
            let pauses = pauses.without_max_times();
            Box::new(if self.has_jitter { pauses.with_jitter() } else { pauses }.build())
        };
        self.pauses.get_or_insert_with(begin).next().expect("the pauses have no end")
    }

    /// Waits for the next pause, after a failure.
    pub async fn pause(&mut self) {
        tokio::time::sleep(self.next_pause()).await;
    }

    /// Begins again with the first pause, after a success.
    pub fn reset(&mut self) {
        self.pauses = None;
    }

    /// Whether no try has failed since the last success.
    pub const fn is_fresh(&self) -> bool {
        self.pauses.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_again_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5));
        let mut next = |expected: u64| assert_eq!(backoff.next_pause(), Duration::from_millis(expected));
        [250, 500, 1000, 2000, 4000, 5000, 5000].into_iter().for_each(&mut next);
        assert!(!backoff.is_fresh());
        backoff.reset();
        assert!(backoff.is_fresh());
        assert_eq!(backoff.next_pause(), Duration::from_millis(250));
    }

    #[test]
    fn jitter_adds_up_to_as_much_again() {
        let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5)).with_jitter();
        for least in [250, 500, 1000, 2000, 4000, 5000, 5000] {
            let pause = backoff.next_pause().as_millis();
            assert!((least..=2 * least).contains(&pause), "{pause} ms instead of {least} ms and some more");
        }
    }
}
