//! The run log in Redis: `shared/src/run_log/append.lua`.

use crate::event::{Event, id};

/// The answer of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// The log has the events.
    Stored,
    /// A later attempt has written.
    Fenced,
    /// The log has lost events before these.
    Behind,
}

/// Appends consecutive events of one attempt. `after_gap` allows missing events, which the archive has.
pub fn append(log: &mut Vec<Event>, events: &[Event], after_gap: bool) -> Appended {
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return Appended::Stored };
    let newest = log.last().map_or(id(0, 0), |event| event.id);
    if newest.attempt > first.id.attempt {
        return Appended::Fenced;
    }
    let next = if newest.attempt == first.id.attempt { newest.n + 1 } else { 1 };
    if last.id.n < next {
        return Appended::Stored;
    }
    if first.id.n > next && !after_gap {
        return Appended::Behind;
    }
    log.extend(events.iter().filter(|event| event.id.n >= next));
    Appended::Stored
}
