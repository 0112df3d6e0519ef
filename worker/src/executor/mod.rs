//! The executor: what a run does between its claim and its end.
//!
//! A small graph: input → process (a model call) → tools → process … → respond. Each node writes a checkpoint, and an
//! attempt continues after the newest checkpoint of its run. The nodes share `attempt`; `memory` has the state of the
//! run. An execution that ends early returns a `Stop`, which decides what follows.

mod attachments;
mod attempt;
mod budget;
mod call_plan;
mod compress;
mod context;
mod deadline;
mod delegate;
mod due_summary;
mod embedding;
mod extracted;
mod ingestion;
mod knowledge;
mod limits;
mod linked_files;
mod mcp_servers;
mod memory;
mod outcome;
mod overridden;
mod planning;
mod process;
mod recovery;
mod results;
mod retry_query;
mod side_call;
mod steering;
mod step_answer;
mod step_call;
mod step_request;
mod summariser;
mod tool_choice;
mod tools;
mod tree;
mod verbatim;
mod workspace;

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
    WorkerState, family,
    lease::{Lease, Signal},
    recorder::{LeaseLost, Recorder, RecorderOutcome},
    spans::{self, Spans},
};
use attempt::Attempt;
pub use due_summary::sweep as sweep_due_summaries;

/// Why an execution ends early, and what follows.
#[derive(Debug)]
pub enum Stop {
    /// Finish the run as failed; the text so far is kept.
    Failed(RunError),
    /// Finish the run as cancelled; the text so far is kept.
    Cancelled,
    /// Return the run to the queue.
    Drained,
    /// Return the run to the queue, where it waits at least for this time.
    PutOff(Duration),
    /// Suspend the run until a human or the client has answered.
    Waiting,
    /// Suspend the run until its children have ended.
    WaitingForChildren,
    /// Another worker holds the run: write nothing.
    Fenced,
}

impl From<LeaseLost> for Stop {
    fn from(_: LeaseLost) -> Self {
        Self::Fenced
    }
}

impl From<Signal> for Stop {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Cancel => Self::Cancelled,
            Signal::Release | Signal::Yield | Signal::Drain => Self::Drained,
            Signal::None | Signal::Fenced => Self::Fenced,
        }
    }
}

/// Executes a claim until its run has ended or is released, or until the lease is lost.
pub async fn execute(shared: Arc<WorkerState>, claim: Arc<Claim>, mut lease: Lease) {
    let spans = Spans::of(&claim);
    let mut span = spans.attempt(&claim);
    let spans = spans.under(&span);
    drop(spans.claim(&claim));
    let (first_token_ms, trace_id) = (tracing::field::Empty, spans.trace_id());
    let run_span =
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
        let executing = ExecutingGuard::begin();
        let mut recorder = Recorder::start(&shared, Arc::clone(&claim), spans);
        let (outcome, is_summary_due) = work(&shared, &claim, &mut lease, &mut recorder, (&mut span, spans)).await;
        let recorder_outcome = Box::pin(end(recorder, outcome, &mut span)).await;
        drop(executing);
        spans::set_end(&mut span, &recorder_outcome);
        match recorder_outcome {
            RecorderOutcome::Finished { status, closed } => {
                let (run_id, duration, leaves_place) = (claim.run_id, age(&claim), claim.place.is_some());
                // Order matters: the last clone of the claim goes before the wake-up, because it has the place for which another
                // document may wait.
                let share = claim.caller_group.clone().unwrap_or_else(|| claim.owner_id.clone());
                drop(claim);
                drop(lease);
                if closed.next_waits || leaves_place {
                    let _ = worker.queue.wake().await;
                }
                Box::pin(family::follow_up(&shared, run_id, &closed)).await;
                metrics::counter!("holdfast_runs_ended_total", "status" => status.as_str()).increment(1);
                metrics::histogram!("holdfast_run_seconds").record(duration.as_secs_f64());
                tracing::info!(status = status.as_str(), duration_ms = duration.as_millis() as u64, "run ended");
                if is_summary_due {
                    Box::pin(due_summary::make_after(&shared, run_id, share)).await;
                }
            }
            RecorderOutcome::Released { release, asked } => {
                if let Some(top) = asked {
                    Box::pin(family::publish(&shared, &top)).await;
                }
                if !matches!(release, Release::Waiting | Release::Later(_)) {
                    // The run is queued, or its children are.
                    let _ = worker.queue.wake().await;
                }
                match release {
                    Release::Queued => tracing::info!("run handed over"),
                    Release::Later(_) => tracing::info!("run put off"),
                    Release::Waiting => tracing::info!("run waits for an answer"),
                    Release::WaitingForChildren => tracing::info!("run waits for its children"),
                }
            }
            RecorderOutcome::Fenced => tracing::info!("another worker holds the run; this attempt wrote nothing more"),
        }
    }
    .instrument(run_span)
    .await;
}

/// Writes the end of the execution: finishes the run, releases it, or writes nothing.
async fn end(recorder: Recorder, outcome: Result<(), Stop>, span: &mut Span) -> RecorderOutcome {
    match outcome {
        Ok(()) => recorder.finish(Ending::Completed).await,
        Err(Stop::Failed(error)) => {
            span.fail(&error.code);
            tracing::warn!(error.code = error.code, error.message = error.message, "run failed");
            recorder.finish(Ending::Failed(error)).await
        }
        Err(Stop::Cancelled) => recorder.finish(Ending::Cancelled).await,
        Err(Stop::Drained) => recorder.release(Release::Queued).await,
        Err(Stop::PutOff(pause)) => recorder.release(Release::Later(pause)).await,
        Err(Stop::Waiting) => recorder.release(Release::Waiting).await,
        Err(Stop::WaitingForChildren) => recorder.release(Release::WaitingForChildren).await,
        Err(Stop::Fenced) => RecorderOutcome::Fenced,
    }
}

/// Guard that counts a run as executing, also when the run panics.
struct ExecutingGuard;

impl ExecutingGuard {
    fn begin() -> Self {
        metrics::gauge!("holdfast_runs_executing").increment(1);
        Self
    }
}

impl Drop for ExecutingGuard {
    fn drop(&mut self) {
        metrics::gauge!("holdfast_runs_executing").decrement(1);
    }
}

/// The node that the graph executes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextNode {
    Process,
    Tools,
    Plan,
    Respond,
}

/// Executes an attempt. Returns its end, and whether a summary is to be made after the end of the run.
async fn work(
    shared: &WorkerState,
    claim: &Claim,
    lease: &mut Lease,
    recorder: &mut Recorder,
    (span, spans): (&mut Span, Spans),
) -> (Result<(), Stop>, bool) {
    if let Some(work) = claim.ingestion {
        return (Box::pin(ingestion::ingest(shared, claim, work, lease, recorder)).await, false);
    }
    let mut attempt = match Box::pin(Attempt::begin(shared, claim, lease, recorder, spans)).await {
        Ok(attempt) => attempt,
        Err(stop) => return (Err(stop), false),
    };
    spans::set_agent(span, claim, &attempt.definition, &attempt.chosen_model);
    let outcome = execute_nodes(&mut attempt).await;
    if matches!(outcome, Ok(()) | Err(Stop::Failed(_) | Stop::Cancelled)) {
        compress::note_due(&mut attempt);
    }
    (outcome, attempt.is_summary_due)
}

/// Executes the nodes of one attempt. A run waits for its model most of the time: all other futures are boxed, so that
/// a waiting run holds no memory for them.
async fn execute_nodes(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let mut next = attempt.memory.next();
    loop {
        let result = match next {
            NextNode::Process => process::process(attempt).await,
            NextNode::Tools => Box::pin(tools::call_tools(attempt)).await,
            NextNode::Plan => Box::pin(planning::advance(attempt)).await,
            NextNode::Respond => {
                attempt.checkpoint(Node::Respond, Default::default());
                return Ok(());
            }
        };
        if let Err(Stop::Failed(error)) = &result {
            attempt.step.fail(&error.code);
        }
        next = result?;
    }
}

/// Returns the time since a worker could begin the run, by the clocks of the database and this host.
fn age(claim: &Claim) -> Duration {
    (chrono::Utc::now() - claim.due_at).to_std().unwrap_or_default()
}
