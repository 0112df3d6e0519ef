//! First token: from the POST, over an open connection, to the first text delta.

use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use serde_json::{json, Value};

use crate::bench::{merge, plan, Bench};

#[derive(Args)]
pub struct TtftArgs {
    #[arg(long, default_value_t = 500)]
    n: usize,
    #[arg(long, default_value_t = 1)]
    concurrency: usize,
    #[arg(long, default_value_t = 20)]
    tokens: u32,
    /// Above 0, so that a run does not end before a slow server has attached its reader.
    #[arg(long, default_value_t = 5_000)]
    interval_us: u64,
    /// Runs before the reported ones.
    #[arg(long, default_value_t = 20)]
    warmup: usize,
}

pub async fn run(bench: &Arc<Bench>, args: TtftArgs) -> Result<Value> {
    let message = plan(args.tokens, args.interval_us, 0);
    bench.complete_runs(args.warmup, args.concurrency, &message, args.tokens).await;
    let runs = bench.complete_runs(args.n, args.concurrency, &message, args.tokens).await;
    Ok(merge(
        runs.totals.json(),
        json!({
            "scenario": "ttft", "concurrency": args.concurrency, "interval_us": args.interval_us,
            "first_delta": runs.first_delta.summary(), "whole_run": runs.complete_run.summary(),
        }),
    ))
}
