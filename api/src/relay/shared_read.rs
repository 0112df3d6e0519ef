//! A shared read: the events of one read of a run's log, for all clients that need them at about the same time.
//!
//! Clients that replay a run together reach one cursor together. The process reads the log once for them, and encodes
//! the events once per view. The whole answer of a long run is one event, and not every client needs a copy of it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use holdfast_shared::event::Event;

use super::{
    batch::{Batch, MemoryUse, Slice},
    log_reader::{Next, ReadError},
};
use crate::wire::LogPosition;

/// The events of one read after a position. It is dropped after the last client that needs it.
#[derive(Default)]
pub struct SharedRead {
    /// Held by the client that reads for the others.
    reader: tokio::sync::Mutex<()>,
    batches: OnceLock<Vec<Arc<Batch>>>,
}

impl SharedRead {
    /// Returns a read that has the events already.
    pub fn of(position: LogPosition, events: Vec<Event>) -> Arc<Self> {
        let shared_read = Self::default();
        shared_read.set_events(position, events);
        Arc::new(shared_read)
    }

    /// Reads the events after `position`, unless another client has read them; waits while another client reads them.
    /// Clients share only events: their absence is true for one moment, so each client must find it out for itself.
    pub async fn fill(
        &self,
        position: LogPosition,
        read: impl Future<Output = Result<Next<Vec<Event>>, ReadError>>,
    ) -> Result<Next<()>, ReadError> {
        let reader = self.reader.try_lock();
        if reader.is_err() {
            drop(self.reader.lock().await);
        }
        if self.batches.get().is_some() {
            return Ok(Next::Events(()));
        }
        Ok(match read.await? {
            Next::Events(events) => {
                self.set_events(position, events);
                Next::Events(())
            }
            Next::CaughtUp => Next::CaughtUp,
            Next::Ended => Next::Ended,
        })
    }

    /// Returns the events, if a client has read them. Each slice and its frames keep the read alive, so a client that
    /// comes while they are being sent uses it too.
    pub fn slices(self: &Arc<Self>) -> VecDeque<Slice> {
        let batches = self.batches.get().into_iter().flatten();
        batches.map(|batch| Slice::of_read(Arc::clone(batch), Arc::<Self>::clone(self))).collect()
    }

    /// Of two clients that have read the events, the first sets them for both.
    fn set_events(&self, position: LogPosition, events: Vec<Event>) {
        self.batches.get_or_init(|| Batch::split(position, events, &MemoryUse::default()));
    }
}

/// The shared reads of a run that clients are using, by their positions.
#[derive(Default)]
pub struct SharedReads(Mutex<HashMap<LogPosition, Weak<SharedRead>>>);

impl SharedReads {
    /// Returns the read of the clients at a position.
    pub fn at(&self, position: LogPosition) -> Arc<SharedRead> {
        let mut shared_reads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared_read) = shared_reads.get(&position).and_then(Weak::upgrade) {
            return shared_read;
        }
        shared_reads.retain(|_, shared_read| shared_read.strong_count() > 0);
        let shared_read = Arc::default();
        shared_reads.insert(position, Arc::downgrade(&shared_read));
        shared_read
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use bytes::Bytes;
    use chrono::DateTime;
    use holdfast_shared::{
        event::{EventBody, MessageDelta},
        event_id::EventId,
    };
    use tokio::sync::Notify;
    use uuid::Uuid;

    use super::*;
    use crate::wire::{Block, Detail, View, Wire};

    const VIEW: View = View {
        wire: Wire::Native,
        detail: Detail::All,
        run_id: Uuid::nil(),
        conversation_id: Uuid::nil(),
        message_id: Uuid::nil(),
        created_at: DateTime::UNIX_EPOCH,
        context: None,
        plan: None,
    };

    fn first_event() -> Event {
        let body = EventBody::MessageDelta(MessageDelta { message_id: Uuid::nil(), text: "word ".into() });
        Event::new(EventId::first_of(0), DateTime::UNIX_EPOCH, &body)
    }

    #[test]
    fn clients_at_one_position_share_a_read_until_the_last_drops_it() {
        let shared_reads = SharedReads::default();
        let shared_read = shared_reads.at(LogPosition::START);
        shared_read.set_events(LogPosition::START, vec![first_event()]);
        let same = shared_reads.at(LogPosition::START);
        assert!(Arc::ptr_eq(&shared_read, &same));
        let other = shared_reads.at(LogPosition { id: EventId::first_of(0), block: Block::None });
        assert!(other.slices().is_empty());
        drop((shared_read, same));
        assert!(shared_reads.at(LogPosition::START).slices().is_empty());
    }

    /// Returns the results of two clients that come to a position one after the other, and whether the second one read.
    async fn read_by_two(result: fn() -> Next<Vec<Event>>) -> (Next<()>, Next<()>, bool) {
        let shared_read = SharedRead::default();
        let (started, first_may_end) = (Notify::new(), Notify::new());
        let mut second_read = false;
        let first = shared_read.fill(LogPosition::START, async {
            started.notify_one();
            first_may_end.notified().await;
            Ok(result())
        });
        let second = async {
            started.notified().await;
            let read = async {
                second_read = true;
                Ok(result())
            };
            let mut filled = pin!(shared_read.fill(LogPosition::START, read));
            assert!(futures::poll!(&mut filled).is_pending(), "the first client still reads");
            first_may_end.notify_one();
            filled.await
        };
        let (first, second) = tokio::join!(first, second);
        (first.unwrap(), second.unwrap(), second_read)
    }

    #[tokio::test]
    async fn a_client_that_comes_during_a_read_gets_its_events() {
        let results = read_by_two(|| Next::Events(vec![first_event()])).await;
        assert!(matches!(results, (Next::Events(()), Next::Events(()), false)));
    }

    #[tokio::test]
    async fn clients_do_not_share_the_absence_of_events() {
        let results = read_by_two(|| Next::CaughtUp).await;
        assert!(matches!(results, (Next::CaughtUp, Next::CaughtUp, true)));
    }

    #[tokio::test]
    async fn the_next_client_reads_after_a_reader_disconnects() {
        let shared_read = Arc::new(SharedRead::default());
        let mut disconnected = Box::pin(shared_read.fill(LogPosition::START, std::future::pending()));
        assert!(futures::poll!(&mut disconnected).is_pending());
        drop(disconnected);
        let read = std::future::ready(Ok(Next::Events(vec![first_event()])));
        assert!(matches!(shared_read.fill(LogPosition::START, read).await, Ok(Next::Events(()))));
        assert_eq!(shared_read.slices().len(), 1);
    }

    #[test]
    fn unsent_frames_keep_a_shared_read_alive() {
        let shared_reads = SharedReads::default();
        let shared_read = shared_reads.at(LogPosition::START);
        shared_read.set_events(LogPosition::START, vec![first_event()]);
        let frames = |shared_read: Arc<SharedRead>| -> Option<Bytes> {
            shared_read.slices().pop_front().map(|slice| slice.frames(&VIEW))
        };
        let sent = frames(shared_read).unwrap();
        let sent_too = frames(shared_reads.at(LogPosition::START)).unwrap();
        assert_eq!(sent.as_ptr(), sent_too.as_ptr());
        drop((sent, sent_too));
        assert!(frames(shared_reads.at(LogPosition::START)).is_none());
    }
}
