//! Runs at full speed: of many tokens (`throughput`), or of one (`jobs`).

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use serde_json::{json, Value};

use crate::bench::{merge, plan, Bench};
use crate::stats::{cpu_report, round};

#[derive(Args)]
pub struct ThroughputArgs {
    /// Runs in flight.
    #[arg(long, default_value_t = 64)]
    runs: usize,
    /// Runs in total.
    #[arg(long, default_value_t = 640)]
    n: usize,
    #[arg(long, default_value_t = 200)]
    tokens: u32,
}

#[derive(Args)]
pub struct JobsArgs {
    #[arg(long, default_value_t = 10_000)]
    n: usize,
    #[arg(long, default_value_t = 64)]
    concurrency: usize,
}

pub async fn throughput(bench: &Arc<Bench>, args: ThroughputArgs) -> Result<Value> {
    bulk(bench, "throughput", args.n, args.runs, args.tokens).await
}

pub async fn jobs(bench: &Arc<Bench>, args: JobsArgs) -> Result<Value> {
    bulk(bench, "jobs", args.n, args.concurrency, 1).await
}

async fn bulk(bench: &Arc<Bench>, name: &str, n: usize, concurrency: usize, tokens: u32) -> Result<Value> {
    let before = bench.procs.sample();
    let started = Instant::now();
    let runs = bench.complete_runs(n, concurrency, &plan(tokens, 0, 0), tokens).await;
    let wall = started.elapsed();
    let (arrived, completed) = (runs.totals.tokens(), runs.totals.completed());
    let report = merge(
        runs.totals.json(),
        json!({
            "scenario": name, "concurrency": concurrency, "wall_s": round(wall.as_secs_f64()),
            "tokens_per_s": round(arrived as f64 / wall.as_secs_f64()),
            "runs_per_s": round(completed as f64 / wall.as_secs_f64()),
            "first_delta": runs.first_delta.summary(), "whole_run": runs.complete_run.summary(),
        }),
    );
    Ok(merge(report, cpu_report(&before, &bench.procs.sample(), wall, arrived)))
}
