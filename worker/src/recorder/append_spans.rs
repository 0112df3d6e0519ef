//! Appends as OpenTelemetry is told of them: a span for all of them between two flushes. A model's tokens come one by one and
//! each is an append, so that a span for each would be a span per token.

use std::time::{Duration, SystemTime};

use crate::spans::{AppendStats, Spans};

pub struct AppendSpans {
    spans: Spans,
    open: Option<AppendStats>,
}

impl AppendSpans {
    pub fn new(spans: Spans) -> Self {
        Self { spans, open: None }
    }

    /// An append begins; answers when, if anybody wants to know.
    pub fn begin(&self) -> Option<SystemTime> {
        self.spans.are_recorded().then(SystemTime::now)
    }

    /// It has ended, with so many events in the log, or none.
    pub fn add(&mut self, started_at: Option<SystemTime>, events: Option<u32>) {
        let Some(since) = started_at else { return };
        let until = SystemTime::now();
        let empty = AppendStats { since, until, appends: 0, events: 0, failed: 0, longest: Duration::ZERO };
        let stats = self.open.get_or_insert(empty);
        stats.until = until;
        stats.appends += 1;
        stats.longest = stats.longest.max(until.duration_since(since).unwrap_or_default());
        match events {
            Some(events) => stats.events += i64::from(events),
            None => stats.failed += 1,
        }
    }

    /// What comes now belongs to the next span.
    pub fn close(&mut self) {
        if let Some(stats) = self.open.take() {
            self.spans.append(stats);
        }
    }
}

impl Drop for AppendSpans {
    fn drop(&mut self) {
        self.close();
    }
}
