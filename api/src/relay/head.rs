//! The head of a stream: what comes first behind a cursor, seen without sending it.

use std::time::Duration;

use holdfast_shared::{
    event::{Event, EventBody, EventKind},
    event_id::EventId,
    run::RunError,
};

use super::{
    follower::{Follower, Woken},
    look::Look,
};

impl Follower {
    /// Why the run has failed, if it did so before it gave any output. Waits for the first output or the end, at most
    /// `patience`; not for a client that comes back, which had its answer before.
    pub async fn failure_before_output(&mut self, patience: Duration) -> Option<RunError> {
        if self.cursor != EventId::ORIGIN {
            return None;
        }
        let first = self.first(|event| is_output(event.kind()) || event.is_terminal());
        let first = tokio::time::timeout(patience, first).await.ok().flatten()?;
        match first.body() {
            EventBody::RunFailed(end) => Some(end.error),
            _ => None,
        }
    }

    /// Waits for the end of the run, at most `patience`.
    pub async fn ended(mut self, patience: Duration) {
        // At the end of the patience the run is shown as it is.
        let _ = tokio::time::timeout(patience, self.first(Event::is_terminal)).await;
    }

    /// The first event behind the cursor that is `wanted`. The cursor stays where it is: all of it is still to be sent.
    async fn first(&mut self, wanted: impl Fn(&Event) -> bool) -> Option<Event> {
        let mut at = self.cursor;
        let mut events = self.unsent();
        loop {
            if let Some(found) = events.iter().find(|event| wanted(event)) {
                return Some(found.clone());
            }
            at = events.last().map_or(at, |event| event.id);
            events = match self.look(at).await {
                Look::Events(events) => events,
                Look::CaughtUp | Look::Away => Vec::new(),
                Look::Ended | Look::Gone => return None,
            };
            if !events.is_empty() {
                continue;
            }
            match self.wait(at).await {
                Woken::ToLook => {}
                // Nobody is sent anything yet.
                Woken::HeartbeatDue => self.beaten(),
                Woken::Draining => return None,
            }
        }
    }
}

/// Whether a reader could see something of an event of this kind.
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
