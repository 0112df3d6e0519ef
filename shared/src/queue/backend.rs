//! The claims as an apalis backend: a stream of runs that this process has just been given.
//!
//! It never ends with an error, because apalis would end the worker and drop what it is running: whatever goes wrong is
//! logged and tried again.

use std::{
    collections::VecDeque,
    convert::Infallible,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use apalis_core::{
    backend::{Backend, BackendConfig, finalize::Ephemeral},
    task::{Task, builder::TaskBuilder, task_id::TaskId},
    worker::context::WorkerContext,
};
use futures::{FutureExt, future::BoxFuture};

use super::Queue;
use crate::storage::{self, Claim, ClaimTerms, Release, Room, Storage};

/// How claims are made.
#[derive(Debug, Clone)]
pub struct ClaimSettings {
    pub terms: ClaimTerms,
    /// Runs that are executed at the same time.
    pub slots: usize,
    /// How often to poll without a wake-up.
    pub poll: Duration,
    /// How often to poll for expired leases.
    pub sweep: Duration,
}

/// Runs for this worker, as they come.
pub struct Claims {
    storage: Storage,
    queue: Queue,
    settings: ClaimSettings,
    /// Claimed and not handed out yet.
    ready: VecDeque<Claim>,
    state: ClaimsState,
    swept: Option<Instant>,
    /// What the last poll for suspects has found.
    room: Room,
    /// Has the worker's runs handed over, as far as the room asks for it.
    make_room: MakeRoom,
}

/// Called with what each poll for suspects has found.
pub type MakeRoom = Box<dyn Fn(Room) + Send>;

/// What one poll is for.
#[derive(Clone, Copy)]
struct ClaimPoll {
    free: usize,
    /// Runs of dead workers.
    expired: bool,
    /// Suspects, which then come first or after the runs of dead workers.
    suspects: Option<SuspectOrder>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SuspectOrder {
    First,
    Second,
}

/// What one poll has brought.
#[derive(Default)]
struct ClaimedRuns {
    claims: Vec<Claim>,
    /// Unknown, if the poll was not for suspects.
    room: Option<Room>,
}

enum ClaimsState {
    /// Waiting for a reason to poll.
    Waiting(BoxFuture<'static, ()>),
    /// Looking.
    Claiming(BoxFuture<'static, ClaimedRuns>),
    /// Giving back what was claimed and can no longer be executed.
    Closing(BoxFuture<'static, ()>),
}

/// First wait after an error; it doubles up to the longest.
const BACKOFF: Duration = Duration::from_millis(100);
const LONGEST_BACKOFF: Duration = Duration::from_secs(2);

/// How long a claim in flight is awaited at a shutdown.
const LAST_CLAIM: Duration = Duration::from_secs(2);

impl Claims {
    pub fn new(storage: Storage, queue: Queue, settings: ClaimSettings, make_room: MakeRoom) -> Self {
        // The first poll needs no wake-up: there may be work from before this process was started.
        let state = ClaimsState::Waiting(futures::future::ready(()).boxed());
        Self { storage, queue, settings, ready: VecDeque::new(), state, swept: None, room: Room::default(), make_room }
    }

    fn wait(&self) -> ClaimsState {
        let (queue, poll) = (self.queue.clone(), self.settings.poll);
        if self.room.is_reserved() {
            // A wake-up is for a worker that may claim: this one leaves it to the others.
            return ClaimsState::Waiting(tokio::time::sleep(poll).boxed());
        }
        let wait = async move {
            if let Err(error) = queue.wait_for_wake_up(poll).await {
                tracing::debug!(error = &error as &dyn std::error::Error, "looking for runs without wake-ups");
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
            // Whatever else the worker claimed first would take the room away.
            Room::Clearing | Room::Cleared | Room::Alone => Some(SuspectOrder::First),
            Room::Scarce => Some(SuspectOrder::Second),
            Room::Enough => expired.then_some(SuspectOrder::Second),
        };
        let poll = ClaimPoll { free, expired, suspects };
        ClaimsState::Claiming(
            claim(self.storage.clone(), self.queue.clone(), self.settings.terms.clone(), poll).boxed(),
        )
    }
}

/// Claims up to `poll.free` runs, trying until the database answers.
async fn claim(storage: Storage, queue: Queue, terms: ClaimTerms, poll: ClaimPoll) -> ClaimedRuns {
    let mut backoff = BACKOFF;
    let mut found = ClaimedRuns::default();
    // What was taken over must not be lost to an error that comes after it, so it stays in `found`.
    while let Err(error) = claim_into(&mut found, &storage, &terms, poll).await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            retry_in_ms = backoff.as_millis() as u64,
            "cannot claim runs"
        );
        if !found.claims.is_empty() {
            break;
        }
        tokio::time::sleep(backoff).await;
        backoff = (backoff * 2).min(LONGEST_BACKOFF);
    }
    if found.claims.len() == poll.free {
        // There may be more than fits here: pass the wake-up on. Without it, others poll a moment later.
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

    /// Whether further claims are welcome beside what was found.
    fn takes_more(&self, free: usize) -> bool {
        self.claims.len() < free && !self.room.is_some_and(Room::is_reserved)
    }
}

/// Puts claims back that nobody has begun to execute.
async fn give_back(storage: Storage, queue: Queue, claims: Vec<Claim>) {
    for claim in claims {
        match storage.release(&claim, None, claim.started.id, Release::Queued).await {
            Ok(_) => drop(queue.wake().await),
            Err(error) => {
                tracing::warn!(run.id = %claim.run_id, error = &error as &dyn std::error::Error, "a claimed run waits for its lease to expire")
            }
        }
    }
}

impl Backend for Claims {
    type Task = Task<Claim>;
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
                return Poll::Ready(Some(Ok(TaskBuilder::new(claim).task_id(TaskId::String(id)).build())));
            }
            match &mut self.state {
                ClaimsState::Waiting(wait) => {
                    ready!(wait.poll_unpin(cx));
                    let executing = worker.task_count();
                    let free = match self.room {
                        Room::Alone if executing > 0 => 0,
                        _ => self.settings.slots.saturating_sub(executing),
                    };
                    self.state = if free > 0 { self.claim(free) } else { self.wait() };
                }
                ClaimsState::Claiming(claiming) => {
                    let found = ready!(claiming.poll_unpin(cx));
                    self.ready.extend(found.claims);
                    if let Some(room) = found.room {
                        self.room = room;
                        (self.make_room)(room);
                    }
                    self.state = self.wait();
                }
                ClaimsState::Closing(_) => return Poll::Ready(None),
            }
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        loop {
            match &mut self.state {
                ClaimsState::Waiting(_) => {
                    let unstarted = self.ready.drain(..).collect();
                    self.state =
                        ClaimsState::Closing(give_back(self.storage.clone(), self.queue.clone(), unstarted).boxed());
                }
                // A claim in flight may be committed: it is awaited, though not for ever, and then given back.
                ClaimsState::Claiming(claiming) => {
                    let claiming = std::mem::replace(claiming, futures::future::pending().boxed());
                    let (storage, queue) = (self.storage.clone(), self.queue.clone());
                    let mut unstarted: Vec<Claim> = self.ready.drain(..).collect();
                    let closing = async move {
                        match tokio::time::timeout(LAST_CLAIM, claiming).await {
                            Ok(found) => unstarted.extend(found.claims),
                            Err(_) => {
                                tracing::warn!("what was just claimed, if anything, waits for its lease to expire")
                            }
                        }
                        give_back(storage, queue, unstarted).await;
                    };
                    self.state = ClaimsState::Closing(closing.boxed());
                }
                ClaimsState::Closing(closing) => {
                    ready!(closing.poll_unpin(cx));
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl BackendConfig for Claims {
    type Args = Claim;
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
