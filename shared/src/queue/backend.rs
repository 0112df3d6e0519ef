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
use crate::storage::{self, Claim, ClaimTerms, Leave, Room, Storage};

/// How claims are made.
#[derive(Debug, Clone)]
pub struct ClaimSettings {
    pub terms: ClaimTerms,
    /// Runs that are executed at the same time.
    pub slots: usize,
    /// How often to look without a wake-up.
    pub poll: Duration,
    /// How often to look for expired leases.
    pub sweep: Duration,
}

/// Runs for this worker, as they come.
pub struct Claims {
    storage: Storage,
    queue: Queue,
    settings: ClaimSettings,
    /// Claimed and not handed out yet.
    ready: VecDeque<Claim>,
    state: State,
    swept: Option<Instant>,
    /// What the last look for suspects has found.
    room: Room,
    /// Has the worker's runs handed over, as far as the room asks for it.
    make_room: MakeRoom,
}

/// Called with what each look for suspects has found.
pub type MakeRoom = Box<dyn Fn(Room) + Send>;

/// What one look is for.
#[derive(Clone, Copy)]
struct Look {
    free: usize,
    /// Runs of dead workers.
    expired: bool,
    /// Suspects, which then come first or after the runs of dead workers.
    suspects: Option<Turn>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    First,
    Second,
}

/// What one look has brought.
#[derive(Default)]
struct Found {
    claims: Vec<Claim>,
    /// Unknown, if the look was not for suspects.
    room: Option<Room>,
}

enum State {
    /// Waiting for a reason to look.
    Waiting(BoxFuture<'static, ()>),
    /// Looking.
    Claiming(BoxFuture<'static, Found>),
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
        // The first look needs no wake-up: there may be work from before this process was started.
        let state = State::Waiting(futures::future::ready(()).boxed());
        Self { storage, queue, settings, ready: VecDeque::new(), state, swept: None, room: Room::default(), make_room }
    }

    fn wait(&self) -> State {
        let (queue, poll) = (self.queue.clone(), self.settings.poll);
        if self.room.is_reserved() {
            // A wake-up is for a worker that may claim: this one leaves it to the others.
            return State::Waiting(tokio::time::sleep(poll).boxed());
        }
        let wait = async move {
            if let Err(error) = queue.woken(poll).await {
                tracing::debug!(error = &error as &dyn std::error::Error, "looking for runs without wake-ups");
                tokio::time::sleep(poll).await;
            }
        };
        State::Waiting(wait.boxed())
    }

    fn claim(&mut self, free: usize) -> State {
        let now = Instant::now();
        let expired = self.swept.is_none_or(|swept| now.duration_since(swept) >= self.settings.sweep);
        if expired {
            self.swept = Some(now);
        }
        let suspects = match self.room {
            // Whatever else the worker claimed first would take the room away.
            Room::Clearing | Room::Cleared | Room::Alone => Some(Turn::First),
            Room::Scarce => Some(Turn::Second),
            Room::Enough => expired.then_some(Turn::Second),
        };
        let look = Look { free, expired, suspects };
        State::Claiming(claim(self.storage.clone(), self.queue.clone(), self.settings.terms.clone(), look).boxed())
    }
}

/// Claims up to `look.free` runs, trying until the database answers.
async fn claim(storage: Storage, queue: Queue, terms: ClaimTerms, look: Look) -> Found {
    let mut backoff = BACKOFF;
    let mut found = Found::default();
    // What was taken over must not be lost to an error that comes after it, so it stays in `found`.
    while let Err(error) = claim_into(&mut found, &storage, &terms, look).await {
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
    if found.claims.len() == look.free {
        // There may be more than fits here: pass the wake-up on. Without it, others look a moment later.
        let _ = queue.wake().await;
    }
    found
}

async fn claim_into(
    found: &mut Found,
    storage: &Storage,
    terms: &ClaimTerms,
    look: Look,
) -> Result<(), storage::Error> {
    if look.suspects == Some(Turn::First) {
        found.claim_suspects(storage, terms, look.free).await?;
    }
    if look.expired && found.takes_more(look.free) {
        let free = look.free - found.claims.len();
        found.claims.extend(storage.claim_expired(terms, free).await?);
    }
    if look.suspects == Some(Turn::Second) && found.takes_more(look.free) {
        found.claim_suspects(storage, terms, look.free).await?;
    }
    if found.takes_more(look.free) {
        let free = look.free - found.claims.len();
        found.claims.extend(storage.claim_queued(terms, free).await?);
    }
    Ok(())
}

impl Found {
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
        match storage.leave(&claim, None, claim.started.id, Leave::Queued).await {
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
                State::Waiting(wait) => {
                    ready!(wait.poll_unpin(cx));
                    let executing = worker.task_count();
                    let free = match self.room {
                        Room::Alone if executing > 0 => 0,
                        _ => self.settings.slots.saturating_sub(executing),
                    };
                    self.state = if free > 0 { self.claim(free) } else { self.wait() };
                }
                State::Claiming(claiming) => {
                    let found = ready!(claiming.poll_unpin(cx));
                    self.ready.extend(found.claims);
                    if let Some(room) = found.room {
                        self.room = room;
                        (self.make_room)(room);
                    }
                    self.state = self.wait();
                }
                State::Closing(_) => return Poll::Ready(None),
            }
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        loop {
            match &mut self.state {
                State::Waiting(_) => {
                    let unbegun = self.ready.drain(..).collect();
                    self.state = State::Closing(give_back(self.storage.clone(), self.queue.clone(), unbegun).boxed());
                }
                // A claim in flight may be committed: it is awaited, though not for ever, and then given back.
                State::Claiming(claiming) => {
                    let claiming = std::mem::replace(claiming, futures::future::pending().boxed());
                    let (storage, queue) = (self.storage.clone(), self.queue.clone());
                    let mut unbegun: Vec<Claim> = self.ready.drain(..).collect();
                    let closing = async move {
                        match tokio::time::timeout(LAST_CLAIM, claiming).await {
                            Ok(found) => unbegun.extend(found.claims),
                            Err(_) => {
                                tracing::warn!("what was just claimed, if anything, waits for its lease to expire")
                            }
                        }
                        give_back(storage, queue, unbegun).await;
                    };
                    self.state = State::Closing(closing.boxed());
                }
                State::Closing(closing) => {
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
