//! Finds the events at which a client may have frames of a lost worker.

use holdfast_shared::{
    event::{AttemptReason, EventBody, EventKind},
    event_id::EventId,
};

/// Returns whether clients may have got frames that the event supersedes. The log may have lost their events with a worker.
pub fn may_replace(body: &EventBody<'_>, base: EventId, last: EventId) -> bool {
    match body.kind() {
        _ if base < last => true,
        EventKind::RunQueued | EventKind::ApprovalResolved | EventKind::ToolCallCompleted => false,
        EventKind::AttemptStarted => match body {
            EventBody::AttemptStarted(started) => started.reason == AttemptReason::LeaseExpired,
            _ => true,
        },
        _ => true,
    }
}
