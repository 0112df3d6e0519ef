//! The span of all appends between two flushes. A model's tokens arrive one by one and each is an append, so a span for
//! each append would be a span per token.

use std::time::{Duration, SystemTime};

use crate::spans::{AppendStats, Spans};

pub struct AppendSpans {
    spans: Spans,
    /// Boxed, because most runs are not traced.
    open: Option<Box<AppendStats>>,
}

impl AppendSpans {
    pub fn new(spans: Spans) -> Self {
        Self { spans, open: None }
    }

    /// Starts an append. Returns the time, if the run is traced.
    pub fn begin(&self) -> Option<SystemTime> {
        self.spans.are_recorded().then(SystemTime::now)
    }

    /// Ends an append, with the number of its events, or `None` if it failed.
    pub fn add(&mut self, started_at: Option<SystemTime>, events: Option<u32>) {
        let Some(since) = started_at else { return };
        let until = SystemTime::now();
        let empty = AppendStats { since, until, appends: 0, events: 0, failed: 0, longest: Duration::ZERO };
        let stats = self.open.get_or_insert_with(|| Box::new(empty));
        stats.until = until;
        stats.appends += 1;
        stats.longest = stats.longest.max(until.duration_since(since).unwrap_or_default());
        match events {
            Some(events) => stats.events += i64::from(events),
            None => stats.failed += 1,
        }
    }

    /// Ends the span; later appends belong to the next one.
    pub fn close(&mut self) {
        if let Some(stats) = self.open.take() {
            self.spans.append(*stats);
        }
    }
}

impl Drop for AppendSpans {
    fn drop(&mut self) {
        self.close();
    }
}
