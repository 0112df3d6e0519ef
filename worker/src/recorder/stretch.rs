//! Appends as OpenTelemetry is told of them: a span for all of them between two flushes. A model's tokens come one by one and
//! each is an append, so that a span for each would be a span per token.

use std::time::{Duration, SystemTime};

use crate::spans::{Spans, Stretch};

pub struct Stretches {
    spans: Spans,
    open: Option<Stretch>,
}

impl Stretches {
    pub fn new(spans: Spans) -> Self {
        Self { spans, open: None }
    }

    /// An append begins; answers when, if anybody wants to know.
    pub fn begin(&self) -> Option<SystemTime> {
        self.spans.are_recorded().then(SystemTime::now)
    }

    /// It has ended, with so many events in the log, or none.
    pub fn add(&mut self, begun: Option<SystemTime>, events: Option<u32>) {
        let Some(since) = begun else { return };
        let until = SystemTime::now();
        let fresh = Stretch { since, until, appends: 0, events: 0, failed: 0, longest: Duration::ZERO };
        let stretch = self.open.get_or_insert(fresh);
        stretch.until = until;
        stretch.appends += 1;
        stretch.longest = stretch.longest.max(until.duration_since(since).unwrap_or_default());
        match events {
            Some(events) => stretch.events += i64::from(events),
            None => stretch.failed += 1,
        }
    }

    /// What comes now belongs to the next span.
    pub fn cut(&mut self) {
        if let Some(stretch) = self.open.take() {
            self.spans.append(stretch);
        }
    }
}

impl Drop for Stretches {
    fn drop(&mut self) {
        self.cut();
    }
}
