//! Wakes the streams of threads whose next run has not come yet.
//!
//! A post in this process wakes them at once. For posts in other processes, one statement polls all threads that wait.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use holdfast_shared::storage::Storage;
use tokio::sync::watch;
use uuid::Uuid;

/// The threads that wait for a run, by their conversations.
#[derive(Default)]
pub struct ThreadArrivals(Mutex<HashMap<Uuid, Weak<ThreadArrival>>>);

/// A thread that waits. The value is the last position of the conversation that is known here.
pub struct ThreadArrival(watch::Sender<i64>);

impl ThreadArrival {
    /// Returns a receiver that sees each change from now on.
    pub fn watch(&self) -> watch::Receiver<i64> {
        self.0.subscribe()
    }
}

impl ThreadArrivals {
    /// Returns the arrival of a conversation's runs. All streams of the conversation share it.
    pub fn of(&self, conversation_id: Uuid) -> Arc<ThreadArrival> {
        let mut waiting = self.waiting();
        if let Some(arrival) = waiting.get(&conversation_id).and_then(Weak::upgrade) {
            return arrival;
        }
        let arrival = Arc::new(ThreadArrival(watch::Sender::new(0)));
        waiting.insert(conversation_id, Arc::downgrade(&arrival));
        arrival
    }

    /// Wakes the streams of a conversation, which has a new run.
    pub fn announce(&self, conversation_id: Uuid) {
        let arrival = self.waiting().get(&conversation_id).and_then(Weak::upgrade);
        if let Some(arrival) = arrival {
            arrival.0.send_modify(|_| {});
        }
    }

    /// Polls all conversations that wait, and forgets those whose streams have ended.
    pub async fn poll(&self, storage: &Storage) {
        let waiting: HashMap<Uuid, Arc<ThreadArrival>> = {
            let mut waiting = self.waiting();
            waiting.retain(|_, arrival| arrival.strong_count() > 0);
            waiting.iter().filter_map(|(id, arrival)| Some((*id, arrival.upgrade()?))).collect()
        };
        if waiting.is_empty() {
            return;
        }
        match storage.last_positions(waiting.keys().copied().collect()).await {
            Ok(positions) => {
                for (id, position) in positions {
                    waiting[&id].0.send_if_modified(|known| std::mem::replace(known, position) != position);
                }
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn Error, "failed to look for runs of threads");
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<Uuid, Weak<ThreadArrival>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_wakes_the_streams_of_its_thread_only() {
        let (arrivals, one, other) = (ThreadArrivals::default(), Uuid::now_v7(), Uuid::now_v7());
        let (first, second) = (arrivals.of(one), arrivals.of(other));
        let (mut woken, mut asleep) = (first.watch(), second.watch());
        let mut shared = arrivals.of(one).watch();
        arrivals.announce(one);
        assert!(woken.has_changed().unwrap() && shared.has_changed().unwrap() && !asleep.has_changed().unwrap());
        woken.mark_unchanged();
        shared.mark_unchanged();
        asleep.mark_unchanged();
        drop((first, woken, shared));
        arrivals.announce(one);
        assert!(arrivals.of(one).watch().has_changed().is_ok_and(|changed| !changed), "an ended stream leaves nothing");
    }
}
