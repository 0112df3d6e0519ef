//! The head of a stream: waits for events after the cursor without sending them.

use std::time::Duration;

use holdfast_shared::{
    event::{Event, EventBody, EventKind},
    event_id::EventId,
    run::RunError,
};

use super::{
    poll::PollResult,
    subscriber::{Subscriber, WakeReason},
};

impl Subscriber {
    /// Waits up to `max_wait` for the first output or the end, and returns the error if the run failed without output.
    /// Returns `None` at once for a reconnecting client, because its first request has received an answer.
    pub async fn failure_before_output(&mut self, max_wait: Duration) -> Option<RunError> {
        if self.cursor != EventId::ORIGIN {
            return None;
        }
        let first = self.find_event(|event| is_output(event.kind()) || event.is_terminal());
        let first = tokio::time::timeout(max_wait, first).await.ok().flatten()?;
        match first.body() {
            EventBody::RunFailed(end) => Some(end.error),
            _ => None,
        }
    }

    /// Waits up to `max_wait` for the end of the run.
    pub async fn await_end(mut self, max_wait: Duration) {
        // After a time-out, the caller returns the run as it is.
        let _ = tokio::time::timeout(max_wait, self.find_event(Event::is_terminal)).await;
    }

    /// Waits for the first event after the cursor that matches. The cursor does not move, so the subscriber sends all
    /// events later.
    async fn find_event(&mut self, matches: impl Fn(&Event) -> bool) -> Option<Event> {
        let mut at = self.cursor;
        let mut events = self.unsent_events();
        loop {
            if let Some(found) = events.iter().find(|event| matches(event)) {
                return Some(found.clone());
            }
            at = events.last().map_or(at, |event| event.id);
            events = match self.poll(at).await {
                PollResult::Events(events) => events,
                PollResult::CaughtUp | PollResult::Unavailable => Vec::new(),
                PollResult::Ended | PollResult::Gone => return None,
            };
            if !events.is_empty() {
                continue;
            }
            match self.wait(at).await {
                WakeReason::Changed => {}
                // The API has not begun to answer, so it sends no heartbeat.
                WakeReason::HeartbeatDue => self.reset_heartbeat(),
                WakeReason::Draining => return None,
            }
        }
    }
}

/// Returns whether a reader can see an event of this kind.
const fn is_output(kind: EventKind) -> bool {
    match kind {
        EventKind::MessageDelta
        | EventKind::MessageCompleted
        | EventKind::ReasoningDelta
        | EventKind::ToolCallDelta
        | EventKind::ToolCallStarted
        | EventKind::ToolCallCompleted
        | EventKind::ApprovalRequested => true,
        EventKind::RunQueued
        | EventKind::AttemptStarted
        | EventKind::StepStarted
        | EventKind::StepCompleted
        | EventKind::ApprovalResolved
        | EventKind::AgentState
        | EventKind::ContextUsage
        | EventKind::WarningRaised
        | EventKind::RunCompleted
        | EventKind::RunFailed
        | EventKind::RunCancelled
        | EventKind::Unknown => false,
    }
}
