//! A reading: what one read of a run's log has given, for all clients that need it meanwhile.
//!
//! Clients that replay a run together are at the same place at about the same time. They read it once, and encode it once
//! per view; the whole answer of a long run is a single event, and need not be held by each of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use bytes::Bytes;
use holdfast_shared::{event::Event, event_id::EventId, storage};

use super::{
    Relay,
    feed::Feed,
    replay::Replayed,
    window::{Next, ReplayBuffer},
};
use crate::wire::{Before, View};

/// The events that were read behind a place; it goes when the last client that needs it has gone on.
#[derive(Default)]
pub struct Reading {
    /// Held by whoever reads for the others.
    turn: tokio::sync::Mutex<()>,
    window: OnceLock<Mutex<ReplayBuffer>>,
}

impl Reading {
    pub fn of(place: Before, events: Vec<Event>) -> Arc<Self> {
        let reading = Self::default();
        reading.give(place, events);
        Arc::new(reading)
    }

    /// The frames after `cursor`, as a client with this view is sent them. They hold on to the reading: whoever comes while
    /// they are on their way is sent the same.
    pub fn after(self: &Arc<Self>, cursor: EventId, view: &View) -> Next {
        let next = self.window().map_or(Next::Elsewhere, |mut window| window.after(cursor, view));
        match next {
            Next::Frames { frames, behind, events, ended } => {
                let frames = Bytes::from_owner(FramesRead { frames, _reading: Arc::clone(self) });
                Next::Frames { frames, behind, events, ended }
            }
            next => next,
        }
    }

    /// The events after `cursor`, as far as they were read.
    pub fn events_after(&self, cursor: EventId) -> Vec<Event> {
        self.window().and_then(|window| window.events_after(cursor)).unwrap_or_default()
    }

    /// Reads what is behind `place`, unless somebody has; who comes while somebody reads waits for what that gives. Only events
    /// are shared: that there are none is true at one moment, so everybody finds it out alone.
    async fn fill(
        &self,
        place: Before,
        read: impl Future<Output = Result<Replayed, storage::Error>>,
    ) -> Result<Replayed<()>, storage::Error> {
        let turn = self.turn.try_lock();
        if turn.is_err() {
            drop(self.turn.lock().await);
        }
        if self.window.get().is_some() {
            return Ok(Replayed::Events(()));
        }
        Ok(read.await?.map(|events| self.give(place, events)))
    }

    /// Of two clients that have read the same, the first gives it to both.
    fn give(&self, place: Before, events: Vec<Event>) {
        self.window.get_or_init(|| {
            let mut window = ReplayBuffer::new(usize::MAX);
            window.anchor(place);
            window.extend(events);
            Mutex::new(window)
        });
    }

    fn window(&self) -> Option<MutexGuard<'_, ReplayBuffer>> {
        self.window.get().map(|window| window.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct FramesRead {
    frames: Bytes,
    _reading: Arc<Reading>,
}

impl AsRef<[u8]> for FramesRead {
    fn as_ref(&self) -> &[u8] {
        &self.frames
    }
}

/// The readings of a run that somebody makes or has, by their places.
#[derive(Default)]
pub struct Readings(Mutex<HashMap<Before, Weak<Reading>>>);

impl Readings {
    fn at(&self, place: Before) -> Arc<Reading> {
        let mut readings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reading) = readings.get(&place).and_then(Weak::upgrade) {
            return reading;
        }
        readings.retain(|_, reading| reading.strong_count() > 0);
        let reading = Arc::default();
        readings.insert(place, Arc::downgrade(&reading));
        reading
    }
}

impl Relay {
    /// Reads on behind `place`, together with all who are there.
    pub(super) async fn read(&self, feed: &Feed, place: Before) -> Result<Replayed<Arc<Reading>>, storage::Error> {
        let reading = feed.readings.at(place);
        let filled = reading.fill(place, self.replay(feed.run_id, place.id)).await?;
        Ok(filled.map(|()| reading))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use chrono::DateTime;
    use holdfast_shared::event::{EventBody, MessageDelta};
    use tokio::sync::Notify;
    use uuid::Uuid;

    use super::*;
    use crate::wire::{Shows, Wire};

    const VIEW: View = View {
        wire: Wire::Native,
        shows: Shows::Everything,
        run_id: Uuid::nil(),
        conversation_id: Uuid::nil(),
        message_id: Uuid::nil(),
        created_at: DateTime::UNIX_EPOCH,
        context: None,
    };

    fn first_event() -> Event {
        let body = EventBody::MessageDelta(MessageDelta { message_id: Uuid::nil(), text: "word ".into() });
        Event::new(EventId::first_of(0), DateTime::UNIX_EPOCH, &body)
    }

    #[test]
    fn what_was_read_at_a_place_is_shared_until_nobody_needs_it() {
        let readings = Readings::default();
        let reading = readings.at(Before::START);
        reading.give(Before::START, vec![first_event()]);
        let same = readings.at(Before::START);
        assert!(Arc::ptr_eq(&reading, &same));
        let other = readings.at(Before::cursor(EventId::first_of(0)));
        assert!(other.events_after(EventId::first_of(0)).is_empty());
        drop((reading, same));
        assert!(readings.at(Before::START).events_after(EventId::ORIGIN).is_empty());
    }

    /// What two clients are told who come to the same place one after the other, and whether the second had to read.
    async fn read_by_two(found: fn() -> Replayed) -> (Replayed<()>, Replayed<()>, bool) {
        let reading = Reading::default();
        let (begun, first_may_end) = (Notify::new(), Notify::new());
        let mut second_read = false;
        let first = reading.fill(Before::START, async {
            begun.notify_one();
            first_may_end.notified().await;
            Ok(found())
        });
        let second = async {
            begun.notified().await;
            let read = async {
                second_read = true;
                Ok(found())
            };
            let mut filled = pin!(reading.fill(Before::START, read));
            assert!(futures::poll!(&mut filled).is_pending(), "the first still reads");
            first_may_end.notify_one();
            filled.await
        };
        let (first, second) = tokio::join!(first, second);
        (first.unwrap(), second.unwrap(), second_read)
    }

    #[tokio::test]
    async fn who_comes_while_somebody_reads_is_given_the_same_events() {
        let told = read_by_two(|| Replayed::Events(vec![first_event()])).await;
        assert!(matches!(told, (Replayed::Events(()), Replayed::Events(()), false)));
    }

    #[tokio::test]
    async fn that_there_is_nothing_everybody_finds_out_alone() {
        let told = read_by_two(|| Replayed::Nothing).await;
        assert!(matches!(told, (Replayed::Nothing, Replayed::Nothing, true)));
    }

    #[tokio::test]
    async fn who_goes_away_while_reading_leaves_it_to_the_next() {
        let reading = Reading::default();
        let mut gone = Box::pin(reading.fill(Before::START, std::future::pending()));
        assert!(futures::poll!(&mut gone).is_pending());
        drop(gone);
        let read = std::future::ready(Ok(Replayed::Events(vec![first_event()])));
        assert!(matches!(reading.fill(Before::START, read).await, Ok(Replayed::Events(()))));
        assert_eq!(reading.events_after(EventId::ORIGIN).len(), 1);
    }

    #[test]
    fn frames_on_their_way_are_sent_to_whoever_comes_meanwhile() {
        let readings = Readings::default();
        let reading = readings.at(Before::START);
        reading.give(Before::START, vec![first_event()]);
        let frames = |reading: Arc<Reading>| match reading.after(EventId::ORIGIN, &VIEW) {
            Next::Frames { frames, .. } => Some(frames),
            _ => None,
        };
        let sent = frames(reading).unwrap();
        let sent_too = frames(readings.at(Before::START)).unwrap();
        assert_eq!(sent.as_ptr(), sent_too.as_ptr());
        drop((sent, sent_too));
        assert!(frames(readings.at(Before::START)).is_none());
    }
}
