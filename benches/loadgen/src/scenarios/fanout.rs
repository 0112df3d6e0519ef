//! One run, many watchers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use clap::Args;
use serde_json::{json, Value};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::bench::{merge, plan, Bench, Tally, Totals};
use crate::client::Stream;
use crate::stats::{cpu_report, round, rss_report, stamp_age, stamp_now, Latency};

#[derive(Args)]
pub struct FanoutArgs {
    #[arg(long, default_value_t = 1000)]
    subscribers: usize,
    #[arg(long, default_value_t = 50)]
    tokens: u32,
    #[arg(long, default_value_t = 100_000)]
    interval_us: u64,
    /// Time before the first token, in which all subscribers must attach.
    #[arg(long, default_value_t = 8_000)]
    lead_ms: u64,
    #[arg(long, default_value_t = 64)]
    connect_concurrency: usize,
}

pub async fn run(bench: &Arc<Bench>, args: FanoutArgs) -> Result<Value> {
    ensure!(bench.adapter.can_resume(), "this adapter has no resume path");
    let (totals, delivery) = (Arc::new(Totals::default()), Arc::new(Latency::default()));
    let (run, origin) = bench.start(&plan(args.tokens, args.interval_us, args.lead_ms)).await?;
    let origin_sent = origin.sent;
    sleep(Duration::from_millis(200)).await;
    let memory_before = bench.procs.sample();
    let attaching = Instant::now();
    let streams = bench.attach(args.subscribers, args.connect_concurrency, &Arc::new(run), &totals).await;
    let (attach, attached) = (attaching.elapsed(), streams.len());
    let in_time = origin_sent.elapsed() < Duration::from_millis(args.lead_ms);
    let idle = bench.procs.sample();
    let streaming = Instant::now();
    let mut tasks = JoinSet::new();
    for stream in streams.into_iter().chain([origin]) {
        let (bench, totals, delivery) = (bench.clone(), totals.clone(), delivery.clone());
        tasks.spawn(async move { totals.finish(bench.guarded(watch(&bench, stream, args.tokens, &delivery)).await) });
    }
    while tasks.join_next().await.is_some() {}
    let (wall, delivered) = (origin_sent.elapsed(), totals.tokens());
    let end = bench.procs.sample();
    let report = merge(
        totals.json(),
        json!({
            "scenario": "fanout", "subscribers": args.subscribers, "attached": attached,
            "attach_s": round(attach.as_secs_f64()), "attached_in_time": in_time,
            "wall_s": round(wall.as_secs_f64()), "delivery": delivery.summary(),
            "rss_idle": rss_report(&memory_before, &idle, attached),
            "rss_end": rss_report(&memory_before, &end, attached),
            "deliveries_per_s_while_streaming":
                round(delivered as f64 / (wall.as_secs_f64() - args.lead_ms as f64 / 1e3).max(0.001)),
        }),
    );
    Ok(merge(report, cpu_report(&idle, &end, streaming.elapsed(), delivered)))
}

async fn watch(bench: &Bench, mut stream: Stream, tokens: u32, delivery: &Latency) -> Result<Tally> {
    let mut tally = Tally::new(tokens);
    let (mut done, mut more) = (false, true);
    while !done && more {
        let mut ages = Vec::new();
        more = stream
            .read(|event| {
                let wall = stamp_now();
                done |= bench.adapter.read_event(&event, |seq, stamp| {
                    tally.add(seq);
                    ages.push(stamp_age(wall, stamp));
                });
            })
            .await?;
        delivery.record_many(&ages);
    }
    Ok(tally)
}
