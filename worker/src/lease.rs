//! Leases: one statement keeps all runs of this process; and the signals that end a run early.

use std::{
    collections::{HashMap, HashSet},
    error::Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use holdfast_shared::storage::{Claim, Renewed};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::WorkerState;

/// Why a run should stop. Later ones outrank earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// Go on.
    None,
    /// The process is about to end, or another run needs it: hand the run over at the next step.
    Release,
    /// Another run needs the worker for itself: hand the run over, as soon as no call is under way that must not be repeated.
    Yield,
    /// The process ends: hand the run over at once.
    Drain,
    /// The owner wants it to end.
    Cancel,
    /// Somebody else holds it: drop everything, write nothing.
    Fenced,
}

/// The runs that this process executes.
#[derive(Default)]
pub struct Leases(Mutex<HashMap<Uuid, LeaseEntry>>);

struct LeaseEntry {
    attempt: u32,
    signal: watch::Sender<Signal>,
}

/// One held run; it is given up when this is dropped.
pub struct Lease {
    shared: Arc<WorkerState>,
    run_id: Uuid,
    attempt: u32,
    signal: watch::Receiver<Signal>,
}

impl Lease {
    /// Begins to keep the lease of a claim.
    pub fn hold(shared: &Arc<WorkerState>, claim: &Claim) -> Self {
        let (sender, signal) = watch::channel(Signal::None);
        shared.leases.lock().insert(claim.run_id, LeaseEntry { attempt: claim.attempt, signal: sender });
        Self { shared: Arc::clone(shared), run_id: claim.run_id, attempt: claim.attempt, signal }
    }

    /// Whether the run should be handed over where one step has ended and the next has not begun.
    pub fn should_release(&self) -> bool {
        *self.signal.borrow() >= Signal::Release
    }

    /// Whether the run should begin nothing more.
    pub fn should_yield(&self) -> bool {
        *self.signal.borrow() >= Signal::Yield
    }

    /// Resolves when the run should stop, with the reason. Cancel-safe.
    pub async fn stop_signal(&mut self) -> Signal {
        self.until(Signal::Yield).await
    }

    /// Resolves at the first signal that is at least `signal`. Cancel-safe.
    pub async fn until(&mut self, signal: Signal) -> Signal {
        match self.signal.wait_for(|current| *current >= signal).await {
            Ok(signal) => *signal,
            // The entry was replaced by a later attempt in this same process.
            Err(_) => Signal::Fenced,
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut leases = self.shared.leases.lock();
        if leases.get(&self.run_id).is_some_and(|entry| entry.attempt == self.attempt) {
            leases.remove(&self.run_id);
        }
    }
}

impl Leases {
    /// Tells the run's executor, if it is in this process.
    fn signal(&self, run_id: Uuid, signal: Signal) {
        if let Some(entry) = self.lock().get(&run_id) {
            entry.raise(signal);
        }
    }

    /// Tells every run of this process; returns how many did not have this signal yet.
    pub fn signal_all(&self, signal: Signal) -> usize {
        self.lock().values().filter(|entry| entry.raise(signal)).count()
    }

    fn attempts(&self) -> HashMap<Uuid, u32> {
        self.lock().iter().map(|(run_id, entry)| (*run_id, entry.attempt)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, LeaseEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseEntry {
    fn raise(&self, signal: Signal) -> bool {
        self.signal.send_if_modified(|current| {
            let raised = signal > *current;
            *current = signal.max(*current);
            raised
        })
    }
}

/// Renews all leases three times per lease, until `stop`.
pub async fn keep(shared: Arc<WorkerState>, stop: CancellationToken) {
    let lease = shared.worker.config.lease;
    let interval = lease / 3;
    let mut unknown = HashSet::new();
    let mut pause = interval;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        // What is claimed while the statement runs is not in its answer, and need not be.
        let previous = shared.leases.attempts();
        let renewal = tokio::time::timeout(interval, shared.worker.storage.renew(&shared.holder, lease)).await;
        pause = match renewal {
            Ok(Ok(renewed)) => {
                unknown = settle(&shared, &previous, &renewed, &unknown).await;
                interval
            }
            Ok(Err(error)) => {
                tracing::warn!(error = &error as &dyn Error, runs = previous.len(), "cannot renew leases");
                retry_pause(interval)
            }
            Err(_) => {
                tracing::warn!(runs = previous.len(), "renewing leases takes too long");
                retry_pause(interval)
            }
        };
    }
}

fn retry_pause(interval: Duration) -> Duration {
    (interval / 5).min(Duration::from_secs(1))
}

/// Applies the answer to a renewal; answers the runs that the database says are ours and that nobody here knows of.
async fn settle(
    shared: &WorkerState,
    previous: &HashMap<Uuid, u32>,
    renewed: &[Renewed],
    previously_unknown: &HashSet<Uuid>,
) -> HashSet<Uuid> {
    let renewals: HashMap<Uuid, Renewed> = renewed.iter().map(|renewed| (renewed.run_id, *renewed)).collect();
    for (run_id, attempt) in previous {
        match renewals.get(run_id) {
            Some(renewed) if renewed.attempt == *attempt => {
                if renewed.cancel_requested {
                    shared.leases.signal(*run_id, Signal::Cancel);
                }
            }
            _ => shared.leases.signal(*run_id, Signal::Fenced),
        }
    }
    let now = shared.leases.attempts();
    let unknown: HashSet<Uuid> = renewals.into_keys().filter(|run_id| !now.contains_key(run_id)).collect();
    // A claim on its way to its executor is unknown for a moment; one that stays unknown was lost.
    let lost: Vec<Uuid> = unknown.intersection(previously_unknown).copied().collect();
    if !lost.is_empty() {
        tracing::warn!(runs = lost.len(), "the answer to a claim was lost; its runs start again");
        if let Err(error) = shared.worker.storage.void_unknown(&shared.holder, lost).await {
            tracing::warn!(error = &error as &dyn Error, "lost claims keep their lease a little longer");
        }
    }
    unknown
}

/// Passes cancel signals on to the runs of this process, until `stop`.
pub async fn listen_for_cancels(shared: Arc<WorkerState>, stop: CancellationToken) {
    let retry = shared.worker.config.poll;
    let mut cancels = loop {
        match shared.worker.queue.cancels().await {
            Ok(cancels) => break cancels,
            Err(error) => tracing::warn!(error = &error as &dyn Error, "cancels arrive late, with the lease's renewal"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(retry) => {}
        }
    };
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            cancelled = cancels.recv() => match cancelled {
                Some(run_id) => shared.leases.signal(run_id, Signal::Cancel),
                None => return,
            },
        }
    }
}
