//! Memory of silent streams: all on one run, or each on its own run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use clap::Args;
use serde_json::{json, Value};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::bench::{merge, plan, Bench, Tally, Totals};
use crate::stats::{round, rss_report};

#[derive(Args)]
pub struct IdleArgs {
    #[arg(long, default_value_t = 1000)]
    connections: usize,
    /// Give each connection its own run, instead of sharing one.
    #[arg(long)]
    distinct: bool,
    /// Time for which the model is silent; all streams must be open and measured within it.
    #[arg(long, default_value_t = 20_000)]
    hold_ms: u64,
    #[arg(long, default_value_t = 64)]
    connect_concurrency: usize,
}

pub async fn run(bench: &Arc<Bench>, args: IdleArgs) -> Result<Value> {
    let totals = Arc::new(Totals::default());
    let message: Arc<str> = plan(1, 0, args.hold_ms).into();
    let started = Instant::now();
    let (mut before, mut streams) = (bench.procs.sample(), Vec::new());
    if args.distinct {
        streams = bench
            .open(args.connections, args.connect_concurrency, &totals, |bench| {
                let message = message.clone();
                async move { Ok(bench.start(&message).await?.1) }
            })
            .await;
    } else {
        ensure!(bench.adapter.can_resume(), "this adapter has no resume path");
        let (run, origin) = bench.start(&message).await?;
        sleep(Duration::from_millis(200)).await;
        before = bench.procs.sample();
        streams.extend(bench.attach(args.connections, args.connect_concurrency, &Arc::new(run), &totals).await);
        streams.push(origin);
    }
    let (open, took) = (streams.len(), started.elapsed());
    sleep(Duration::from_millis(1500)).await;
    let rss = rss_report(&before, &bench.procs.sample(), open);
    ensure!(started.elapsed() < Duration::from_millis(args.hold_ms), "the first runs ended before the measurement");
    // Read to their ends, so that they do not disturb the next measurement.
    let mut tasks = JoinSet::new();
    for mut stream in streams {
        let (bench, totals) = (bench.clone(), totals.clone());
        tasks.spawn(async move {
            let mut tally = Tally::new(1);
            let outcome = bench.guarded(bench.read_to_end(&mut stream, |seq, _| tally.add(seq))).await;
            totals.finish(outcome.map(|()| tally));
        });
    }
    while tasks.join_next().await.is_some() {}
    Ok(merge(
        totals.json(),
        json!({
            "scenario": "idle", "distinct": args.distinct, "open": open,
            "open_s": round(took.as_secs_f64()), "rss": rss,
        }),
    ))
}
