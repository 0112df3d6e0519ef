//! The executor: what a run does between its claim and its end.
//!
//! A small graph: input → process (a model call) → tools → process … → respond. Each node leaves a checkpoint; an attempt
//! goes on behind its run's newest one. What the nodes share is in `attempt`, what they know of the run in `memory`. Whatever
//! happens in between comes back as a `Stop`, which says what is to be done next.

mod attempt;
mod compress;
mod context;
mod limits;
mod memory;
mod process;
mod tools;

use std::{sync::Arc, time::Duration};

use holdfast_shared::{
    ending::Ending,
    event::AttemptReason,
    run::RunError,
    storage::{Claim, Release},
    telemetry::Span,
    trace::Node,
};
use tracing::Instrument;

use crate::{
    Shared,
    lease::{Lease, Signal},
    recorder::{Ended, Fenced, Recorder},
    spans::{self, Spans},
};
use attempt::Attempt;

/// Why an execution ends early, and what comes next.
#[derive(Debug)]
pub enum Stop {
    /// Finish the run as failed, with the text so far.
    Failed(RunError),
    /// Finish the run as cancelled, with the text so far.
    Cancelled,
    /// Give the run back to the queue.
    Drained,
    /// Let go of the run until a human, or the client, has answered.
    Waiting,
    /// Somebody else holds the run: write nothing.
    Fenced,
}

impl From<Fenced> for Stop {
    fn from(_: Fenced) -> Self {
        Self::Fenced
    }
}

impl From<Signal> for Stop {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Cancel => Self::Cancelled,
            Signal::Leave | Signal::Yield | Signal::Drain => Self::Drained,
            Signal::None | Signal::Fenced => Self::Fenced,
        }
    }
}

/// Executes a claim to its end, whatever that is.
pub async fn execute(shared: Arc<Shared>, claim: Claim, mut lease: Lease) {
    let spans = Spans::of(&claim);
    let mut span = spans.attempt(&claim);
    let spans = spans.under(&span);
    drop(spans.claim(&claim));
    let (first_token_ms, trace_id) = (tracing::field::Empty, spans.trace_id());
    let logged =
        tracing::info_span!("run", run.id = %claim.run_id, run.attempt = claim.attempt, trace_id, first_token_ms);
    async {
        let worker = &shared.worker;
        match claim.reason {
            AttemptReason::Claimed => {
                metrics::histogram!("holdfast_queue_wait_seconds").record(age(&claim).as_secs_f64());
            }
            AttemptReason::LeaseExpired => metrics::counter!("holdfast_takeovers_total").increment(1),
            AttemptReason::Drain | AttemptReason::Resumed => {}
        }
        let executing = Executing::begin();
        let mut recorder = Recorder::start(worker, claim.clone(), spans);
        let outcome = work(&shared, &claim, &mut lease, &mut recorder, (&mut span, spans)).await;
        let ended = Box::pin(end(recorder, outcome, &mut span)).await;
        drop(executing);
        spans::tell_end(&mut span, ended);
        match ended {
            Ended::Finished { status, next_waits } => {
                if next_waits {
                    let _ = worker.queue.wake().await;
                }
                metrics::counter!("holdfast_runs_ended_total", "status" => status.as_str()).increment(1);
                metrics::histogram!("holdfast_run_seconds").record(age(&claim).as_secs_f64());
                tracing::info!(status = status.as_str(), duration_ms = age(&claim).as_millis() as u64, "run ended");
            }
            Ended::Left(Release::Queued) => {
                let _ = worker.queue.wake().await;
                tracing::info!("run handed over");
            }
            Ended::Left(Release::Waiting) => tracing::info!("run waits for an answer"),
            Ended::Fenced => tracing::info!("run is held by somebody else; this attempt wrote nothing more"),
        }
    }
    .instrument(logged)
    .await;
}

/// Does what is to be done next, once nothing is executed any more.
async fn end(recorder: Recorder, outcome: Result<(), Stop>, span: &mut Span) -> Ended {
    match outcome {
        Ok(()) => recorder.finish(Ending::Completed).await,
        Err(Stop::Failed(error)) => {
            span.fail(&error.code);
            tracing::warn!(error.code = error.code, error.message = error.message, "run failed");
            recorder.finish(Ending::Failed(error)).await
        }
        Err(Stop::Cancelled) => recorder.finish(Ending::Cancelled).await,
        Err(Stop::Drained) => recorder.leave(Release::Queued).await,
        Err(Stop::Waiting) => recorder.leave(Release::Waiting).await,
        Err(Stop::Fenced) => Ended::Fenced,
    }
}

/// Counts a run as executing, also when it panics.
struct Executing;

impl Executing {
    fn begin() -> Self {
        metrics::gauge!("holdfast_runs_executing").increment(1);
        Self
    }
}

impl Drop for Executing {
    fn drop(&mut self) {
        metrics::gauge!("holdfast_runs_executing").decrement(1);
    }
}

/// Where the graph goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Process,
    Tools,
    Respond,
}

/// One attempt's way through the graph. A run listens to its model for most of its life: all else is boxed while it goes on,
/// so that such a run holds no memory for it.
async fn work(
    shared: &Shared,
    claim: &Claim,
    lease: &mut Lease,
    recorder: &mut Recorder,
    (span, spans): (&mut Span, Spans),
) -> Result<(), Stop> {
    let mut attempt = Box::pin(Attempt::begin(shared, claim, lease, recorder, spans)).await?;
    spans::tell_agent(span, claim, &attempt.definition, &attempt.chosen);
    let mut next = attempt.memory.next();
    loop {
        let gone_on = match next {
            Next::Process => process::process(&mut attempt).await,
            Next::Tools => Box::pin(tools::call_tools(&mut attempt)).await,
            Next::Respond => {
                attempt.checkpoint(Node::Respond, Default::default());
                return Ok(());
            }
        };
        if let Err(Stop::Failed(error)) = &gone_on {
            attempt.step.fail(&error.code);
        }
        next = gone_on?;
    }
}

/// Time since the run was submitted, by the clocks of the database and this host.
fn age(claim: &Claim) -> Duration {
    (chrono::Utc::now() - claim.created_at).to_std().unwrap_or_default()
}
