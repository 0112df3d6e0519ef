//! Wake-ups and cancel signals of the embedded mode.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

#[derive(Default)]
pub struct MemoryQueue {
    wake: Notify,
    listeners: Mutex<Vec<mpsc::UnboundedSender<Uuid>>>,
}

impl MemoryQueue {
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    pub async fn wait_for_wake_up(&self, timeout: Duration) {
        // The end of the time-out is as good a reason to poll as a wake-up.
        let _ = tokio::time::timeout(timeout, self.wake.notified()).await;
    }

    pub fn signal_cancel(&self, run_id: Uuid) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.send(run_id).is_ok());
    }

    pub fn cancels(&self) -> mpsc::UnboundedReceiver<Uuid> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        receiver
    }
}
