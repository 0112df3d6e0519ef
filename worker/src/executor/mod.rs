//! The executor: what a run does between its claim and its end.
//!
//! A plain conversation is one step: the context is read, the model answers, the answer is stored. Whatever happens in
//! between comes back as a `Stop`, which says what is to be done next.

mod context;
mod respond;

use std::{error::Error, sync::Arc, time::Duration};

use holdfast_shared::{
    ending::Ending,
    run::RunError,
    storage::{Begun, Claim, History},
    usage::Usage,
};
use tracing::Instrument;

use crate::{
    Shared,
    lease::{Lease, Signal},
    recorder::{Ended, Fenced, Recorder},
};

/// Why an execution ends early, and what comes next.
#[derive(Debug)]
pub enum Stop {
    /// Finish the run as failed, with the text so far.
    Failed(RunError),
    /// Finish the run as cancelled, with the text so far.
    Cancelled,
    /// Give the run back to the queue.
    Drained,
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
            Signal::Drain => Self::Drained,
            Signal::None | Signal::Fenced => Self::Fenced,
        }
    }
}

const RETRY: Duration = Duration::from_millis(250);

/// Executes a claim to its end, whatever that is.
pub async fn execute(shared: Arc<Shared>, claim: Claim, mut lease: Lease) {
    let span = tracing::info_span!("run", run.id = %claim.run_id, run.attempt = claim.attempt);
    async {
        let worker = &shared.worker;
        match claim.attempt {
            1 => metrics::histogram!("holdfast_queue_wait_seconds").record(age(&claim).as_secs_f64()),
            _ => metrics::counter!("holdfast_takeovers_total").increment(1),
        }
        let executing = Executing::begin();
        let mut recorder = Recorder::start(worker, claim.clone());
        let outcome = work(&shared, &claim, &mut lease, &mut recorder).await;
        let ended = match outcome {
            Ok(usage) => recorder.finish(Ending::Completed { usage }).await,
            Err(Stop::Failed(error)) => {
                // The message may quote the provider, and so the user.
                tracing::warn!(error.code = error.code, "run failed");
                tracing::debug!(error.message = error.message, "run failed");
                recorder.finish(Ending::Failed { error, usage: Usage::default() }).await
            }
            Err(Stop::Cancelled) => recorder.finish(Ending::Cancelled { usage: Usage::default() }).await,
            Err(Stop::Drained) => recorder.hand_over().await,
            Err(Stop::Fenced) => Ended::Fenced,
        };
        drop(executing);
        match ended {
            Ended::Finished { status, next_waits } => {
                if next_waits {
                    let _ = worker.queue.wake().await;
                }
                metrics::counter!("holdfast_runs_ended_total", "status" => status.as_str()).increment(1);
                metrics::histogram!("holdfast_run_seconds").record(age(&claim).as_secs_f64());
                tracing::info!(status = status.as_str(), duration_ms = age(&claim).as_millis() as u64, "run ended");
            }
            Ended::HandedOver => {
                let _ = worker.queue.wake().await;
                tracing::info!("run handed over");
            }
            Ended::Fenced => tracing::info!("run is held by somebody else; this attempt wrote nothing more"),
        }
    }
    .instrument(span)
    .await;
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

/// One attempt's work, from the context to the end of the answer.
async fn work(shared: &Shared, claim: &Claim, lease: &mut Lease, recorder: &mut Recorder) -> Result<Usage, Stop> {
    let history = begin(shared, claim, lease, recorder).await?;
    let request = context::request_of(history);
    respond::respond(shared, claim, lease, recorder, &request).await
}

/// Marks the run as executing and reads its context, as soon as the database lets it.
async fn begin(shared: &Shared, claim: &Claim, lease: &mut Lease, recorder: &mut Recorder) -> Result<History, Stop> {
    let worker = &shared.worker;
    let chosen = worker.models.get(None).map_err(respond::not_connected)?;
    let model = format!("{}/{}", chosen.choice.provider, chosen.choice.name);
    loop {
        let begin = worker.storage.begin(claim, &model, worker.config.history_limit);
        let begun = tokio::select! {
            begun = recorder.alongside(begin) => begun?,
            signal = lease.signalled() => return Err(signal.into()),
        };
        match begun {
            Ok(Begun::Executing(history)) => return Ok(history),
            Ok(Begun::Fenced) => return Err(Stop::Fenced),
            Err(error) => tracing::warn!(error = &error as &dyn Error, "cannot read the run's context yet"),
        }
        tokio::select! {
            waited = recorder.alongside(tokio::time::sleep(RETRY)) => waited?,
            signal = lease.signalled() => return Err(signal.into()),
        }
    }
}

/// Time since the run was submitted, by the clocks of the database and this host.
fn age(claim: &Claim) -> Duration {
    (chrono::Utc::now() - claim.created_at).to_std().unwrap_or_default()
}
