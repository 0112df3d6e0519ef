//! Runs at a human reading rate, many at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use serde_json::{json, Value};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::bench::{merge, plan, Bench, Tally, Totals};
use crate::redis::RedisClient;
use crate::stats::{cpu_report, round, stamp_age, stamp_now, Latency};

#[derive(Args)]
pub struct PacedArgs {
    #[arg(long, default_value_t = 500)]
    runs: usize,
    #[arg(long, default_value_t = 200)]
    tokens: u32,
    #[arg(long, default_value_t = 50_000)]
    interval_us: u64,
    /// The runs start evenly spread over this time.
    #[arg(long, default_value_t = 2_000)]
    ramp_ms: u64,
    /// The server's Redis, HOST:PORT: its memory per token of the ended runs is reported.
    #[arg(long)]
    redis: Option<RedisClient>,
}

#[derive(Default)]
struct Arrivals {
    /// From the upstream's emission to arrival.
    delivery: Latency,
    /// Time between arrivals beyond the interval.
    gap_excess: Latency,
}

pub async fn run(bench: &Arc<Bench>, args: PacedArgs) -> Result<Value> {
    let args = Arc::new(args);
    let (totals, arrivals) = (Arc::new(Totals::default()), Arc::new(Arrivals::default()));
    let redis_before = used_memory(&args.redis).await?;
    let before = bench.procs.sample();
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for i in 0..args.runs {
        let offset = Duration::from_millis(args.ramp_ms * i as u64 / args.runs.max(1) as u64);
        let (bench, args, totals, arrivals) = (bench.clone(), args.clone(), totals.clone(), arrivals.clone());
        tasks.spawn(async move {
            sleep(offset).await;
            totals.finish(bench.guarded(paced_run(&bench, &args, &arrivals)).await);
        });
    }
    while tasks.join_next().await.is_some() {}
    let wall = started.elapsed();
    let cpu = cpu_report(&before, &bench.procs.sample(), wall, totals.tokens());
    // The server first closes its subscriptions to ended runs.
    sleep(Duration::from_secs(1)).await;
    let kept = used_memory(&args.redis).await?.zip(redis_before).map(|(after, before)| after - before);
    let report = merge(
        totals.json(),
        json!({
            "scenario": "paced", "runs": args.runs, "wall_s": round(wall.as_secs_f64()),
            "ideal_wall_s": round((args.ramp_ms * 1000 + args.interval_us * u64::from(args.tokens)) as f64 / 1e6),
            "delivery": arrivals.delivery.summary(), "gap_excess": arrivals.gap_excess.summary(),
            "redis_bytes_per_token": kept.map(|bytes| round(bytes / totals.tokens() as f64)),
        }),
    );
    Ok(merge(report, cpu))
}

async fn used_memory(redis: &Option<RedisClient>) -> Result<Option<f64>> {
    Ok(match redis {
        Some(redis) => Some(redis.used_memory().await?),
        None => None,
    })
}

async fn paced_run(bench: &Bench, args: &PacedArgs, arrivals: &Arrivals) -> Result<Tally> {
    let (_, mut stream) = bench.start(&plan(args.tokens, args.interval_us, 0)).await?;
    let mut tally = Tally::new(args.tokens);
    let (mut ages, mut gaps) = (Vec::new(), Vec::new());
    let mut last: Option<Instant> = None;
    let (mut done, mut more) = (false, true);
    while !done && more {
        more = stream
            .read(|event| {
                let (now, wall) = (Instant::now(), stamp_now());
                done |= bench.adapter.read_event(&event, |seq, stamp| {
                    tally.add(seq);
                    ages.push(stamp_age(wall, stamp));
                    if let Some(last) = last.replace(now) {
                        gaps.push(((now - last).as_micros() as u64).saturating_sub(args.interval_us));
                    }
                });
            })
            .await?;
        arrivals.delivery.record_many(&std::mem::take(&mut ages));
        arrivals.gap_excess.record_many(&std::mem::take(&mut gaps));
    }
    Ok(tally)
}
