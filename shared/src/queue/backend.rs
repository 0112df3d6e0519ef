//! The claims as an apalis backend: a stream of the runs that this process has claimed.
//!
//! The stream never returns an error, because apalis would end the worker and drop its runs. The backend logs each
//! failure and retries.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use apalis_core::{
    backend::{Backend, BackendConfig, finalize::Ephemeral},
    task::{Task, builder::TaskBuilder, task_id::TaskId},
    worker::context::WorkerContext,
};
use futures::{FutureExt, future::BoxFuture};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use super::Queue;
use crate::{
    backoff::Backoff,
    ingestion_places::IngestionPlaces,
    storage::{self, Claim, ClaimTerms, Release, Room, Storage},
};

/// The settings of claims.
#[derive(Debug, Clone)]
pub struct ClaimSettings {
    /// Holder, lease and crash limit of each claim.
    pub terms: ClaimTerms,
    /// Runs that the worker executes at the same time.
    pub slots: usize,
    /// Interval of polls without a wake-up.
    pub poll: Duration,
    /// Interval of the search for expired leases.
    pub sweep: Duration,
    /// The worker's places for ingestions of documents.
    pub places: IngestionPlaces,
    /// Ends the claims.
    pub shutdown: CancellationToken,
}

/// A stream of claimed runs for this worker.
pub struct Claims {
    storage: Storage,
    queue: Queue,
    settings: ClaimSettings,
    /// Claims that apalis has not fetched yet.
    ready: VecDeque<Claim>,
    state: ClaimsState,
    swept: Option<Instant>,
    /// The result of the last search for suspects.
    room: Room,
    /// Hands over the worker's runs, as the room requires.
    make_room: MakeRoom,
}

/// Receives the result of each search for suspects.
pub type MakeRoom = Box<dyn Fn(Room) + Send>;

/// The purpose of one poll.
#[derive(Clone, Copy)]
struct ClaimPoll {
    free: usize,
    /// Whether the poll looks for runs of dead workers.
    expired: bool,
    /// Whether the poll looks for suspects, and whether those precede the runs of dead workers.
    suspects: Option<SuspectOrder>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SuspectOrder {
    First,
    Second,
}

/// The result of one poll.
#[derive(Default)]
struct ClaimedRuns {
    claims: Vec<Claim>,
    /// `None` if the poll did not look for suspects.
    room: Option<Room>,
}

enum ClaimsState {
    /// The backend waits for a reason to poll.
    Waiting(BoxFuture<'static, ()>),
    /// A poll is under way, in a task of its own: apalis polls no backend while the last runs end, and would leave them
    /// without the connection of a claim in flight.
    Claiming(JoinHandle<ClaimedRuns>),
    /// The backend returns claims that this worker no longer executes.
    Closing(BoxFuture<'static, ()>),
}

/// Pauses after an error.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Pause after a claim of several runs, so that the next claim finds more. After a claim of one run there is none.
const LINGER: Duration = Duration::from_millis(2);

/// Time-out of a claim in flight at a shutdown.
const LAST_CLAIM: Duration = Duration::from_secs(2);

impl Claims {
    /// Returns the stream. `make_room` receives the result of each search for suspects.
    pub fn new(storage: Storage, queue: Queue, settings: ClaimSettings, make_room: MakeRoom) -> Self {
        // The first poll needs no wake-up: runs may wait since before this process started.
        let state = ClaimsState::Waiting(futures::future::ready(()).boxed());
        Self { storage, queue, settings, ready: VecDeque::new(), state, swept: None, room: Room::default(), make_room }
    }

    /// Waits for a reason to claim, after a claim of this many runs.
    fn wait(&self, claimed: usize) -> ClaimsState {
        let (queue, poll) = (self.queue.clone(), self.settings.poll);
        if self.room.is_reserved() {
            // A wake-up is for a worker that may claim, so this one leaves it to the others.
            return ClaimsState::Waiting(tokio::time::sleep(poll).boxed());
        }
        let wait = async move {
            if claimed > 1 {
                tokio::time::sleep(LINGER).await;
            }
            if let Err(error) = queue.wait_for_wake_up(poll).await {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "failed to wait for a wake-up; the worker polls without it"
                );
                tokio::time::sleep(poll).await;
            }
        };
        ClaimsState::Waiting(wait.boxed())
    }

    fn claim(&mut self, free: usize) -> ClaimsState {
        let now = Instant::now();
        let expired = self.swept.is_none_or(|swept| now.duration_since(swept) >= self.settings.sweep);
        if expired {
            self.swept = Some(now);
        }
        let suspects = match self.room {
            // Any other claim would take the room from the suspect.
            Room::Clearing | Room::Cleared | Room::Alone => Some(SuspectOrder::First),
            Room::Scarce => Some(SuspectOrder::Second),
            Room::Enough => expired.then_some(SuspectOrder::Second),
        };
        let poll = ClaimPoll { free, expired, suspects };
        let ingestions = self.settings.places.claimable();
        let terms = ClaimTerms { ingestions, ..self.settings.terms.clone() };
        let (storage, queue, shutdown) = (self.storage.clone(), self.queue.clone(), self.settings.shutdown.clone());
        ClaimsState::Claiming(tokio::spawn(async move {
            let mut found = claim(&storage, &queue, &terms, poll, &shutdown).await;
            if shutdown.is_cancelled() {
                // The worker executes nothing more, and its last run may end much later.
                give_back(&storage, &queue, std::mem::take(&mut found.claims)).await;
            }
            found
        }))
    }
}

/// Claims up to `poll.free` runs, and retries until the database answers or the worker ends.
async fn claim(
    storage: &Storage,
    queue: &Queue,
    terms: &ClaimTerms,
    poll: ClaimPoll,
    shutdown: &CancellationToken,
) -> ClaimedRuns {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    let mut found = ClaimedRuns::default();
    // Invariant: claims stay in `found` after a later error, because their runs already belong to this worker.
    while let Err(error) = claim_into(&mut found, storage, terms, poll).await {
        let pause = backoff.next_pause();
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            retry_in_ms = pause.as_millis() as u64,
            "failed to claim runs"
        );
        if !found.claims.is_empty() || shutdown.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            break;
        }
    }
    if !found.claims.is_empty() && found.claims.len() >= poll.free.saturating_sub(terms.reserved) {
        // More runs may wait than fit here, so another worker gets the wake-up. Without it, that worker polls a moment
        // later.
        let _ = queue.wake().await;
    }
    found
}

async fn claim_into(
    found: &mut ClaimedRuns,
    storage: &Storage,
    terms: &ClaimTerms,
    poll: ClaimPoll,
) -> Result<(), storage::Error> {
    if poll.suspects == Some(SuspectOrder::First) {
        found.claim_suspects(storage, terms, poll.free).await?;
    }
    if poll.expired && found.takes_more(poll.free) {
        let free = poll.free - found.claims.len();
        found.claims.extend(storage.claim_expired(terms, free).await?);
    }
    if poll.suspects == Some(SuspectOrder::Second) && found.takes_more(poll.free) {
        found.claim_suspects(storage, terms, poll.free).await?;
    }
    if found.takes_more(poll.free) {
        let free = poll.free - found.claims.len();
        found.claims.extend(storage.claim_queued(terms, free).await?);
    }
    Ok(())
}

impl ClaimedRuns {
    async fn claim_suspects(
        &mut self,
        storage: &Storage,
        terms: &ClaimTerms,
        free: usize,
    ) -> Result<(), storage::Error> {
        let suspects = storage.claim_suspects(terms, free - self.claims.len()).await?;
        self.claims.extend(suspects.claims);
        self.room = Some(suspects.room);
        Ok(())
    }

    /// Returns whether the poll may claim more.
    fn takes_more(&self, free: usize) -> bool {
        self.claims.len() < free && !self.room.is_some_and(Room::is_reserved)
    }
}

/// Gives a claimed ingestion its place.
fn placed(places: &IngestionPlaces, claim: Claim) -> Claim {
    let place = claim.ingestion.map(|_| Arc::new(places.take()));
    Claim { place, ..claim }
}

/// Returns the result of a poll, or of none if its task has panicked.
fn unless_panicked(joined: Result<ClaimedRuns, JoinError>) -> ClaimedRuns {
    joined.unwrap_or_else(|error| {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "a claim panicked; its runs, if any, wait for their lease to expire"
        );
        ClaimedRuns::default()
    })
}

/// Returns claims that the worker has not started to execute.
async fn give_back(storage: &Storage, queue: &Queue, claims: Vec<Claim>) {
    for claim in claims {
        match storage.release(&claim, None, claim.started.id, Release::Queued).await {
            Ok(_) => drop(queue.wake().await),
            Err(error) => {
                tracing::warn!(run.id = %claim.run_id, error = &error as &dyn std::error::Error, "failed to return a claimed run, which now waits for its lease to expire")
            }
        }
    }
}

impl Backend for Claims {
    type Task = Task<Arc<Claim>>;
    type Error = Infallible;

    fn poll_ready(&mut self, _: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        worker: &WorkerContext,
    ) -> Poll<Option<Result<Self::Task, Infallible>>> {
        loop {
            if let Some(claim) = self.ready.pop_front() {
                let id = format!("{}-{}", claim.run_id.simple(), claim.attempt);
                return Poll::Ready(Some(Ok(TaskBuilder::new(Arc::new(claim)).task_id(TaskId::String(id)).build())));
            }
            match &mut self.state {
                ClaimsState::Waiting(wait) => {
                    ready!(wait.poll_unpin(cx));
                    let executing = worker.task_count();
                    let free = match self.room {
                        Room::Alone if executing > 0 => 0,
                        _ => self.settings.slots.saturating_sub(executing),
                    };
                    self.state = if free > 0 { self.claim(free) } else { self.wait(0) };
                }
                ClaimsState::Claiming(claiming) => {
                    let found = unless_panicked(ready!(claiming.poll_unpin(cx)));
                    let claimed = found.claims.len();
                    self.ready.extend(found.claims.into_iter().map(|claim| placed(&self.settings.places, claim)));
                    if let Some(room) = found.room {
                        self.room = room;
                        (self.make_room)(room);
                    }
                    self.state = self.wait(claimed);
                }
                ClaimsState::Closing(_) => return Poll::Ready(None),
            }
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        loop {
            if let ClaimsState::Closing(closing) = &mut self.state {
                return closing.poll_unpin(cx).map(Ok);
            }
            let (storage, queue) = (self.storage.clone(), self.queue.clone());
            let mut unstarted: Vec<Claim> = self.ready.drain(..).collect();
            let nothing = ClaimsState::Closing(futures::future::ready(()).boxed());
            let last = match std::mem::replace(&mut self.state, nothing) {
                ClaimsState::Claiming(claiming) => Some(claiming),
                ClaimsState::Waiting(_) | ClaimsState::Closing(_) => None,
            };
            let closing = async move {
                // A claim in flight may be committed, so the backend awaits it for a limited time.
                if let Some(claiming) = last {
                    match tokio::time::timeout(LAST_CLAIM, claiming).await {
                        Ok(joined) => unstarted.extend(unless_panicked(joined).claims),
                        Err(_) => {
                            tracing::warn!(
                                "failed to await the last claim; its runs, if any, wait for their lease to expire"
                            )
                        }
                    }
                }
                give_back(&storage, &queue, unstarted).await;
            };
            self.state = ClaimsState::Closing(closing.boxed());
        }
    }
}

impl BackendConfig for Claims {
    type Args = Arc<Claim>;
    type Id = String;
    type Kind = Ephemeral;
    type Config = ();
    type Layer = tower_layer::Identity;

    fn config(&self) -> &() {
        &()
    }

    fn middleware(&mut self, _: &mut WorkerContext) -> Self::Layer {
        tower_layer::Identity::new()
    }
}
