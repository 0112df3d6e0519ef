//! Long runs, then replays of their complete logs from the start.
//! Many clients replay together, for the memory; then clients replay one after the other, for the speed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};
use clap::Args;
use serde_json::{json, Value};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::bench::{merge, plan, Bench, Tally, Totals};
use crate::client::RunVars;
use crate::redis::RedisClient;
use crate::stats::{cpu_report, round, Latency};

#[derive(Args)]
pub struct ReplayArgs {
    /// Tokens of each run; each is an event.
    #[arg(long, default_value_t = 50_000)]
    tokens: u32,
    /// Runs to make, one after the other, at full speed.
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// Replays, one after the other, which cycle through the runs.
    #[arg(long, default_value_t = 20)]
    reads: usize,
    /// Clients that replay at the same time, for the memory; 0 omits this measurement.
    #[arg(long, default_value_t = 20)]
    clients: usize,
    /// The server's Redis, HOST:PORT. It is emptied before the replays, so that they come from the database.
    #[arg(long)]
    empty_redis: Option<RedisClient>,
}

#[derive(Default)]
struct Replays {
    totals: Totals,
    first_frame: Latency,
    frames: AtomicU64,
}

pub async fn run(bench: &Arc<Bench>, args: ReplayArgs) -> Result<Value> {
    ensure!(bench.adapter.can_resume(), "this adapter has no resume path");
    let before = bench.procs.sample();
    let started = Instant::now();
    let runs = make_runs(bench, &args).await?;
    let made = started.elapsed();
    let events = args.runs as u64 * u64::from(args.tokens);
    let making = cpu_report(&before, &bench.procs.sample(), made, events);
    if let Some(redis) = args.empty_redis {
        redis.empty().await?;
    }
    sleep(Duration::from_millis(500)).await;
    let kb_per_client = match args.clients {
        0 => None,
        clients => Some(memory_per_client(bench, &runs[0], args.tokens, clients).await?),
    };
    let replays = Replays::default();
    let before = bench.procs.sample();
    let started = Instant::now();
    for run in runs.iter().cycle().take(args.reads) {
        replays.totals.finish(bench.guarded(replay(bench, run, args.tokens, &replays)).await);
    }
    let wall = started.elapsed();
    let frames = replays.frames.load(Relaxed);
    let cpu = cpu_report(&before, &bench.procs.sample(), wall, frames);
    let api_cpu_s = cpu["cpu_s"]["api"].as_f64().unwrap_or_default();
    let report = merge(
        replays.totals.json(),
        json!({
            "scenario": "replay", "from": if args.empty_redis.is_some() { "archive" } else { "log" },
            "tokens_per_run": args.tokens, "made_s": round(made.as_secs_f64()),
            "made_us_per_event": round(made.as_secs_f64() * 1e6 / events as f64), "making": making,
            "first_frame": replays.first_frame.summary(), "frames": frames, "wall_s": round(wall.as_secs_f64()),
            "frames_per_s": round(frames as f64 / wall.as_secs_f64()),
            "frames_per_api_cpu_s": (api_cpu_s > 0.0).then(|| round(frames as f64 / api_cpu_s)),
            "clients": args.clients, "api_kb_per_client": kb_per_client,
        }),
    );
    Ok(merge(report, cpu))
}

async fn make_runs(bench: &Bench, args: &ReplayArgs) -> Result<Vec<Arc<RunVars>>> {
    let message = plan(args.tokens, 0, 0);
    let mut runs = Vec::with_capacity(args.runs);
    for _ in 0..args.runs {
        let (run, mut stream) = bench.start(&message).await?;
        let mut tally = Tally::new(args.tokens);
        bench.guarded(bench.read_to_end(&mut stream, |seq, _| tally.add(seq))).await.context("make a run")?;
        ensure!(tally.gaps() + tally.duplicates() == 0, "a run was not read as it was made");
        runs.push(Arc::new(run));
    }
    Ok(runs)
}

/// Makes one complete replay. Every frame is counted, including frames without a token.
async fn replay(bench: &Bench, run: &RunVars, tokens: u32, replays: &Replays) -> Result<Tally> {
    let mut stream = bench.adapter.resume(run, b"").await?.context("no such stream")?;
    let sent = stream.sent;
    let mut tally = Tally::new(tokens);
    let (mut frames, mut done, mut more) = (0, false, true);
    while !done && more {
        more = stream
            .read(|event| {
                if frames == 0 {
                    replays.first_frame.record(sent.elapsed());
                }
                frames += 1;
                done |= bench.adapter.read_event(&event, |seq, _| tally.add(seq));
            })
            .await?;
    }
    replays.frames.fetch_add(frames, Relaxed);
    Ok(tally)
}

/// Returns the API's largest growth in KiB while `clients` replayed a run at the same time, per client.
async fn memory_per_client(bench: &Arc<Bench>, run: &Arc<RunVars>, tokens: u32, clients: usize) -> Result<f64> {
    let replays = Arc::new(Replays::default());
    let before = bench.procs.rss_kb("api")?;
    let mut peak = before;
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let (bench, run, replays) = (bench.clone(), run.clone(), replays.clone());
        tasks.spawn(async move { bench.guarded(replay(&bench, &run, tokens, &replays)).await });
    }
    while !tasks.is_empty() {
        tokio::select! {
            Some(ended) = tasks.join_next() => {
                let tally = ended??;
                ensure!(tally.gaps() + tally.duplicates() == 0, "a replay was not complete");
            }
            () = sleep(Duration::from_millis(10)) => {}
        }
        peak = peak.max(bench.procs.rss_kb("api")?);
    }
    Ok(round((peak - before) as f64 / clients as f64))
}
