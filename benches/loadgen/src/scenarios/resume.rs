//! Connections that break at random tokens, and clients that reconnect.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use clap::Args;
use rand::Rng;
use serde_json::{json, Value};
use tokio::time::sleep;

use crate::bench::{closed_loop, merge, plan, Bench, Tally, Totals};
use crate::client::CursorKind;
use crate::stats::{cpu_report, round, Latency};

#[derive(Args)]
pub struct ResumeArgs {
    #[arg(long, default_value_t = 500)]
    runs: usize,
    #[arg(long, default_value_t = 50)]
    concurrency: usize,
    #[arg(long, default_value_t = 100)]
    tokens: u32,
    #[arg(long, default_value_t = 10_000)]
    interval_us: u64,
    /// The client stays away for a random time up to this.
    #[arg(long, default_value_t = 100)]
    away_ms: u64,
    /// Disconnects of each run.
    #[arg(long, default_value_t = 1)]
    drops: usize,
}

#[derive(Default)]
struct Resumes {
    first_event: Latency,
    first_new: Latency,
    exact: AtomicU64,
    gone: AtomicU64,
    replayed: AtomicU64,
    without_id: AtomicU64,
}

pub async fn run(bench: &Arc<Bench>, args: ResumeArgs) -> Result<Value> {
    ensure!(bench.adapter.can_resume(), "this adapter has no resume path");
    let (resumes, totals, args) = (Arc::new(Resumes::default()), Arc::new(Totals::default()), Arc::new(args));
    let before = bench.procs.sample();
    let started = Instant::now();
    let shared = (bench.clone(), resumes.clone(), totals.clone(), args.clone());
    closed_loop(args.runs, args.concurrency, move |_| {
        let (bench, resumes, totals, args) = shared.clone();
        async move {
            match bench.guarded(resumed_run(&bench, &args, &resumes)).await {
                Ok(Some(tally)) => {
                    resumes.exact.fetch_add(u64::from(tally.gaps() + tally.duplicates() == 0), Relaxed);
                    totals.finish(Ok(tally));
                }
                Ok(None) => {
                    resumes.gone.fetch_add(1, Relaxed);
                }
                Err(error) => totals.finish(Err(error)),
            }
        }
    })
    .await;
    let wall = started.elapsed();
    let report = merge(
        totals.json(),
        json!({
            "scenario": "resume", "runs": args.runs,
            "semantics": if bench.adapter.cursor == CursorKind::Replay { "full replay" } else { "from last event id" },
            "exact": resumes.exact.load(Relaxed),
            // The run had ended before the client reconnected, and the server no longer streams it.
            "gone": resumes.gone.load(Relaxed),
            "tokens_sent_again": resumes.replayed.load(Relaxed),
            "without_event_id": resumes.without_id.load(Relaxed),
            "first_event": resumes.first_event.summary(), "first_new_token": resumes.first_new.summary(),
            "wall_s": round(wall.as_secs_f64()),
        }),
    );
    Ok(merge(report, cpu_report(&before, &bench.procs.sample(), wall, totals.tokens())))
}

/// Reads one run with `drops` disconnects; `None` if the server no longer had the stream.
async fn resumed_run(bench: &Bench, args: &ResumeArgs, shared: &Resumes) -> Result<Option<Tally>> {
    let (run, mut stream) = bench.start(&plan(args.tokens, args.interval_us, 0)).await?;
    let mut tally = Tally::new(args.tokens);
    let mut last_id = Vec::new();
    let mut drop_points: Vec<u32> =
        (0..args.drops).map(|_| rand::rng().random_range(0..args.tokens.max(2) - 1)).collect();
    drop_points.sort_unstable();
    drop_points.dedup();
    let mut drop_points = drop_points.into_iter();
    let mut newest: Option<u32> = None;
    // When the pending resume was sent, until its first event and first new token.
    let (mut await_event, mut await_new) = (None::<Instant>, None::<Instant>);
    loop {
        let drop_at = drop_points.next();
        let (mut done, mut cut, mut more) = (false, false, true);
        while !done && !cut && more {
            more = stream
                .read(|event| {
                    // This client has not seen the events after the cut in this read.
                    if cut {
                        return;
                    }
                    if let Some(sent) = await_event.take() {
                        shared.first_event.record(sent.elapsed());
                    }
                    if !event.id.is_empty() {
                        last_id.clear();
                        last_id.extend_from_slice(event.id);
                    }
                    done |= bench.adapter.read_event(&event, |seq, _| {
                        tally.add(seq);
                        if newest.is_none_or(|n| seq > n) {
                            newest = Some(seq);
                            if let Some(sent) = await_new.take() {
                                shared.first_new.record(sent.elapsed());
                            }
                        } else {
                            shared.replayed.fetch_add(1, Relaxed);
                        }
                        cut |= drop_at.is_some_and(|at| seq >= at);
                    });
                })
                .await?;
        }
        if !cut {
            return Ok(Some(tally));
        }
        drop(stream);
        let away = rand::rng().random_range(0..=args.away_ms);
        sleep(Duration::from_millis(away)).await;
        if bench.adapter.cursor == CursorKind::Replay {
            // A client of this kind rebuilds the message from the replay.
            tally = Tally::new(args.tokens);
        } else if last_id.is_empty() {
            shared.without_id.fetch_add(1, Relaxed);
        }
        match bench.adapter.resume(&run, &last_id).await? {
            None => return Ok(None),
            Some(resumed) => stream = resumed,
        }
        (await_event, await_new) = (Some(stream.sent), Some(stream.sent));
    }
}
