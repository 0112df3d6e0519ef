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
use crate::storage::{self, Claim, ClaimTerms, Leave, Storage};

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
}

enum State {
    /// Waiting for a reason to look.
    Waiting(BoxFuture<'static, ()>),
    /// Looking.
    Claiming(BoxFuture<'static, Vec<Claim>>),
    /// Giving back what was claimed and can no longer be executed.
    Closing(BoxFuture<'static, ()>),
}

/// First wait after an error; it doubles up to the longest.
const BACKOFF: Duration = Duration::from_millis(100);
const LONGEST_BACKOFF: Duration = Duration::from_secs(2);

/// How long a claim in flight is awaited at a shutdown.
const LAST_CLAIM: Duration = Duration::from_secs(2);

impl Claims {
    pub fn new(storage: Storage, queue: Queue, settings: ClaimSettings) -> Self {
        // The first look needs no wake-up: there may be work from before this process was started.
        let state = State::Waiting(futures::future::ready(()).boxed());
        Self { storage, queue, settings, ready: VecDeque::new(), state, swept: None }
    }

    fn wait(&self) -> State {
        let (queue, poll) = (self.queue.clone(), self.settings.poll);
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
        let sweep = self.swept.is_none_or(|swept| now.duration_since(swept) >= self.settings.sweep);
        if sweep {
            self.swept = Some(now);
        }
        State::Claiming(
            claim(self.storage.clone(), self.queue.clone(), self.settings.terms.clone(), free, sweep).boxed(),
        )
    }
}

/// Claims up to `free` runs, trying until the database answers.
async fn claim(storage: Storage, queue: Queue, terms: ClaimTerms, free: usize, sweep: bool) -> Vec<Claim> {
    let mut backoff = BACKOFF;
    let mut claims = Vec::new();
    // What was taken over must not be lost to an error that comes after it, so it stays in `claims`.
    while let Err(error) = claim_into(&mut claims, &storage, &terms, free, sweep).await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            retry_in_ms = backoff.as_millis() as u64,
            "cannot claim runs"
        );
        if !claims.is_empty() {
            break;
        }
        tokio::time::sleep(backoff).await;
        backoff = (backoff * 2).min(LONGEST_BACKOFF);
    }
    if claims.len() == free {
        // There may be more than fits here: pass the wake-up on. Without it, others look a moment later.
        let _ = queue.wake().await;
    }
    claims
}

async fn claim_into(
    claims: &mut Vec<Claim>,
    storage: &Storage,
    terms: &ClaimTerms,
    free: usize,
    sweep: bool,
) -> Result<(), storage::Error> {
    if sweep {
        claims.extend(storage.claim_expired(terms, free).await?);
        if claims.len() < free {
            claims.extend(storage.claim_last_chance(terms).await?);
        }
    }
    if claims.len() < free {
        claims.extend(storage.claim_queued(terms, free - claims.len()).await?);
    }
    Ok(())
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
                    let free = self.settings.slots.saturating_sub(worker.task_count());
                    self.state = if free > 0 { self.claim(free) } else { self.wait() };
                }
                State::Claiming(claiming) => {
                    let claims = ready!(claiming.poll_unpin(cx));
                    self.ready.extend(claims);
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
                            Ok(claims) => unbegun.extend(claims),
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
