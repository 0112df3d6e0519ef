//! Wake-ups, cancel signals and checks of the embedded mode.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{Notify, mpsc, oneshot};
use uuid::Uuid;

use super::checks::RequestedCheck;
use crate::agent::{AgentCheck, CheckRequest};

#[derive(Default)]
pub struct MemoryQueue {
    wake: Notify,
    listeners: Mutex<Vec<mpsc::UnboundedSender<Uuid>>>,
    checkers: Mutex<Vec<mpsc::UnboundedSender<RequestedCheck>>>,
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

    /// Sends the request to one worker. Returns `None` if there is no worker, or if it gives the check up.
    pub async fn check(&self, request: CheckRequest) -> Option<AgentCheck> {
        let (sender, report) = oneshot::channel();
        {
            let mut check = Some(RequestedCheck::embedded(request, sender));
            let mut checkers = self.checkers.lock().unwrap_or_else(PoisonError::into_inner);
            checkers.retain(|checker| match check.take().map(|check| checker.send(check)) {
                Some(Err(refused)) => {
                    check = Some(refused.0);
                    false
                }
                Some(Ok(())) | None => true,
            });
        }
        report.await.ok()
    }

    pub fn checks(&self) -> mpsc::UnboundedReceiver<RequestedCheck> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.checkers.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        receiver
    }
}
