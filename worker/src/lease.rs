//! Leases: one statement renews all runs of this process. Signals stop a run early.

use std::{
    collections::{HashMap, HashSet},
    error::Error,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use futures::task::AtomicWaker;
use holdfast_shared::storage::{Claim, RenewedLease};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::WorkerState;

/// Why a run should stop. A later variant outranks an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Signal {
    /// The run continues.
    #[default]
    None,
    /// The process is about to end, or another run needs it: the run is handed over at its next step.
    Release,
    /// Another run needs the worker for itself: the run is handed over as soon as no call of a `once` tool is in
    /// flight.
    Yield,
    /// The process ends: the run is handed over at once.
    Drain,
    /// The owner has cancelled the run.
    Cancel,
    /// Another worker holds the run: this one drops everything and writes nothing.
    Fenced,
}

/// Registry of the runs that this process executes.
#[derive(Default)]
pub struct Leases(Mutex<HeldRuns>);

#[derive(Default)]
struct HeldRuns {
    entries: HashMap<Uuid, LeaseEntry>,
    /// The signal that each run has from its start.
    initial: Signal,
}

struct LeaseEntry {
    attempt: u32,
    signal: Arc<RaisedSignal>,
}

/// The signal of a run, and the waker of its executor, which looks at the signal before each event.
#[derive(Default)]
struct RaisedSignal {
    signal: Mutex<Signal>,
    executor: AtomicWaker,
}

/// Handle of one held run. Dropping it unregisters the run.
pub struct Lease {
    shared: Arc<WorkerState>,
    run_id: Uuid,
    attempt: u32,
    signal: Arc<RaisedSignal>,
}

impl Lease {
    /// Registers a claim, whose lease is renewed from now on.
    pub fn hold(shared: &Arc<WorkerState>, claim: &Claim) -> Self {
        let signal = shared.leases.register(claim.run_id, claim.attempt);
        Self { shared: Arc::clone(shared), run_id: claim.run_id, attempt: claim.attempt, signal }
    }

    /// Returns whether the run should be handed over between two steps.
    pub fn should_release(&self) -> bool {
        self.signal.current() >= Signal::Release
    }

    /// Returns whether the run should start no more work.
    pub fn should_yield(&self) -> bool {
        self.signal.current() >= Signal::Yield
    }

    /// Resolves with the signal that stops the run. Cancel-safe.
    pub async fn stop_signal(&mut self) -> Signal {
        self.until(Signal::Yield).await
    }

    /// Resolves with the first signal that is at least `signal`. Cancel-safe.
    pub async fn until(&mut self, signal: Signal) -> Signal {
        poll_fn(|context| {
            // Order matters: a signal that is raised after the look wakes the executor.
            self.signal.executor.register(context.waker());
            let current = self.signal.current();
            if current >= signal { Poll::Ready(current) } else { Poll::Pending }
        })
        .await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let leases = &mut self.shared.leases.lock().entries;
        if leases.get(&self.run_id).is_some_and(|entry| entry.attempt == self.attempt) {
            leases.remove(&self.run_id);
        }
    }
}

impl Leases {
    /// Registers an attempt, which fences an earlier one of the same run in this process.
    fn register(&self, run_id: Uuid, attempt: u32) -> Arc<RaisedSignal> {
        let signal = Arc::<RaisedSignal>::default();
        let entry = LeaseEntry { attempt, signal: Arc::clone(&signal) };
        let mut held = self.lock();
        signal.raise(held.initial);
        if let Some(earlier) = held.entries.insert(run_id, entry) {
            earlier.signal.raise(Signal::Fenced);
        }
        signal
    }

    /// Signals the run's executor, if this process executes the run.
    fn signal(&self, run_id: Uuid, signal: Signal) {
        if let Some(entry) = self.lock().entries.get(&run_id) {
            entry.signal.raise(signal);
        }
    }

    /// Stops an attempt that another one has followed. The later one may be this process's too, and continues.
    fn fence(&self, run_id: Uuid, attempt: u32) {
        if let Some(entry) = self.lock().entries.get(&run_id).filter(|entry| entry.attempt == attempt) {
            entry.signal.raise(Signal::Fenced);
        }
    }

    /// Signals every run of this process, also those that begin later: the process is about to end.
    pub fn signal_from_now_on(&self, signal: Signal) {
        // Order matters: a run that begins after this line has the signal from its start.
        self.lock().initial = signal;
        self.signal_all(signal);
    }

    /// Signals every run of this process. Returns how many runs did not have this signal yet.
    pub fn signal_all(&self, signal: Signal) -> usize {
        self.lock().entries.values().filter(|entry| entry.signal.raise(signal)).count()
    }

    /// Returns the number of runs of this process.
    pub fn count(&self) -> usize {
        self.lock().entries.len()
    }

    fn attempts(&self) -> HashMap<Uuid, u32> {
        self.lock().entries.iter().map(|(run_id, entry)| (*run_id, entry.attempt)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HeldRuns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RaisedSignal {
    fn current(&self) -> Signal {
        *self.lock()
    }

    /// Raises the signal and wakes the executor. Returns `false` if the signal was as high before.
    fn raise(&self, signal: Signal) -> bool {
        let mut current = self.lock();
        if signal <= *current {
            return false;
        }
        *current = signal;
        drop(current);
        self.executor.wake();
        true
    }

    fn lock(&self) -> MutexGuard<'_, Signal> {
        self.signal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renews all leases three times per lease duration, until `stop`.
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
        // A run that is claimed while the statement runs is not among the renewed ones, and need not be.
        let previous = shared.leases.attempts();
        let renewal = tokio::time::timeout(interval, shared.worker.storage.renew(&shared.holder, lease)).await;
        pause = match renewal {
            Ok(Ok(renewed)) => {
                unknown = settle(&shared, &previous, &renewed, &unknown).await;
                interval
            }
            Ok(Err(error)) => {
                tracing::warn!(error = &error as &dyn Error, runs = previous.len(), "failed to renew leases");
                retry_pause(interval)
            }
            Err(_) => {
                tracing::warn!(runs = previous.len(), "failed to renew leases in time");
                retry_pause(interval)
            }
        };
    }
}

fn retry_pause(interval: Duration) -> Duration {
    (interval / 5).min(Duration::from_secs(1))
}

/// Applies the result of a renewal. Returns the attempts that the database assigns to this holder and that this process
/// does not execute.
async fn settle(
    shared: &WorkerState,
    previous: &HashMap<Uuid, u32>,
    renewed: &[RenewedLease],
    previously_unknown: &HashSet<(Uuid, u32)>,
) -> HashSet<(Uuid, u32)> {
    let renewals: HashMap<Uuid, RenewedLease> = renewed.iter().map(|renewed| (renewed.run_id, *renewed)).collect();
    for (run_id, attempt) in previous {
        match renewals.get(run_id) {
            Some(renewed) if renewed.attempt == *attempt => {
                if renewed.cancel_requested {
                    shared.leases.signal(*run_id, Signal::Cancel);
                }
            }
            _ => shared.leases.fence(*run_id, *attempt),
        }
    }
    let now = shared.leases.attempts();
    let held = renewed.iter().map(|renewed| (renewed.run_id, renewed.attempt));
    let unknown: HashSet<_> = held.filter(|(run_id, _)| !now.contains_key(run_id)).collect();
    // A claim that has not reached its executor is unknown for a moment; a claim that stays unknown was lost.
    let lost: Vec<_> = unknown.intersection(previously_unknown).copied().collect();
    if !lost.is_empty() {
        tracing::warn!(runs = lost.len(), "the result of a claim was lost; its runs start again");
        if let Err(error) = shared.worker.storage.give_back(&shared.holder, lost).await {
            tracing::warn!(error = &error as &dyn Error, "failed to release lost claims; the next renewal tries again");
        }
    }
    unknown
}

/// Forwards cancel signals to the runs of this process, until `stop`.
pub async fn listen_for_cancels(shared: Arc<WorkerState>, stop: CancellationToken) {
    let retry = shared.worker.config.poll;
    let mut cancels = loop {
        match shared.worker.queue.cancels().await {
            Ok(cancels) => break cancels,
            Err(error) => tracing::warn!(
                error = &error as &dyn Error,
                "failed to subscribe to cancels; they arrive with the lease's renewal"
            ),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_begins_during_the_drain_is_handed_over_too() {
        let leases = Leases::default();
        let earlier = leases.register(Uuid::from_u128(1), 1);
        leases.signal_from_now_on(Signal::Release);
        let later = leases.register(Uuid::from_u128(2), 1);
        assert_eq!((earlier.current(), later.current()), (Signal::Release, Signal::Release));
    }

    #[test]
    fn a_renewal_of_an_earlier_attempt_does_not_stop_the_next_one() {
        let leases = Leases::default();
        let earlier = leases.register(Uuid::from_u128(1), 3);
        let later = leases.register(Uuid::from_u128(1), 4);
        leases.fence(Uuid::from_u128(1), 3);
        assert_eq!((earlier.current(), later.current()), (Signal::Fenced, Signal::None));
        leases.fence(Uuid::from_u128(1), 4);
        assert_eq!(later.current(), Signal::Fenced);
    }

    #[test]
    fn a_run_that_begins_after_another_was_given_room_stays() {
        let leases = Leases::default();
        assert_eq!(leases.signal_all(Signal::Release), 0);
        assert_eq!(leases.register(Uuid::from_u128(1), 1).current(), Signal::None);
    }
}
