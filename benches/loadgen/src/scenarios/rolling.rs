//! Runs at a human reading rate while the servers are replaced. Clients reconnect until they have everything.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use rand::Rng;
use serde_json::{json, Value};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::bench::{merge, plan, Bench, Tally, Totals};
use crate::client::{RunVars, Stream};
use crate::stats::{round, Latency};

#[derive(Args)]
pub struct RollingArgs {
    #[arg(long, default_value_t = 200)]
    runs: usize,
    #[arg(long, default_value_t = 800)]
    tokens: u32,
    #[arg(long, default_value_t = 50_000)]
    interval_us: u64,
    /// The runs begin within this time.
    #[arg(long, default_value_t = 1_000)]
    ramp_ms: u64,
}

#[derive(Default)]
struct RollingStats {
    /// The longest time between two events of each stream; below, the time between a cut and the next event.
    longest_gap: Latency,
    after_cut: Latency,
    cuts: AtomicU64,
    restarts: AtomicU64,
}

pub async fn run(bench: &Arc<Bench>, args: RollingArgs) -> Result<Value> {
    let (stats, totals, args) = (Arc::new(RollingStats::default()), Arc::new(Totals::default()), Arc::new(args));
    let started = Instant::now();
    let mut runs = JoinSet::new();
    for index in 0..args.runs {
        let (bench, stats, totals, args) = (bench.clone(), stats.clone(), totals.clone(), args.clone());
        runs.spawn(async move {
            sleep(Duration::from_millis(args.ramp_ms * index as u64 / args.runs as u64)).await;
            totals.finish(bench.guarded(read_complete(&bench, &args, &stats)).await);
        });
    }
    runs.join_all().await;
    Ok(merge(
        totals.json(),
        json!({
            "scenario": "rolling", "runs": args.runs, "cuts": stats.cuts.load(Relaxed),
            "begun_anew": stats.restarts.load(Relaxed),
            "longest_gap": stats.longest_gap.summary(), "after_cut": stats.after_cut.summary(),
            "wall_s": round(started.elapsed().as_secs_f64()),
        }),
    ))
}

async fn read_complete(bench: &Bench, args: &RollingArgs, stats: &RollingStats) -> Result<Tally> {
    let (run, mut stream) = begin(bench, args).await?;
    let mut tally = Tally::new(args.tokens);
    let (mut last_id, mut last_at, mut longest, mut done) = (Vec::new(), Instant::now(), Duration::ZERO, false);
    let mut cut_at = None::<Instant>;
    while !done {
        let read = stream
            .read(|event| {
                if event.id.is_empty() {
                    return;
                }
                longest = longest.max(last_at.elapsed());
                last_at = Instant::now();
                if let Some(cut) = cut_at.take() {
                    stats.after_cut.record(cut.elapsed());
                }
                last_id.clear();
                last_id.extend_from_slice(event.id);
                // A run that was handed over in mid-step repeats the step's text.
                if event.name == b"attempt.started" && tally.has_some() {
                    stats.restarts.fetch_add(1, Relaxed);
                    tally = Tally::new(args.tokens);
                }
                done |= bench.adapter.read_event(&event, |seq, _| tally.add(seq));
            })
            .await;
        if !done && !matches!(read, Ok(true)) {
            stats.cuts.fetch_add(1, Relaxed);
            cut_at.get_or_insert_with(Instant::now);
            stream = reconnect(bench, &run, &last_id).await?;
        }
    }
    stats.longest_gap.record(longest);
    Ok(tally)
}

/// Starts a run. Repeats a POST that no server accepted.
async fn begin(bench: &Bench, args: &RollingArgs) -> Result<(RunVars, Stream)> {
    loop {
        match bench.start(&plan(args.tokens, args.interval_us, 0)).await {
            Ok(run_and_stream) => return Ok(run_and_stream),
            Err(_) => pause().await,
        }
    }
}

async fn reconnect(bench: &Bench, run: &RunVars, last_id: &[u8]) -> Result<Stream> {
    loop {
        pause().await;
        if let Ok(resumed) = bench.adapter.resume(run, last_id).await {
            return resumed.context("the run's stream is gone");
        }
    }
}

/// Waits as the server requests when it shuts down: a different time for each client.
async fn pause() {
    let pause = rand::rng().random_range(50..1_000);
    sleep(Duration::from_millis(pause)).await;
}
