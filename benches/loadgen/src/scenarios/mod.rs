//! The scenarios, one per file. Each returns one JSON object.

mod bulk;
mod embedded;
mod fanout;
mod idle;
mod paced;
mod replay;
mod resume;
mod rolling;
mod tools;
mod ttft;

use std::sync::Arc;

use anyhow::Result;
use clap::Subcommand;
use serde_json::Value;

use crate::bench::Bench;

#[derive(Subcommand)]
pub enum Scenario {
    /// Time from POST to the first text delta, closed loop.
    Ttft(ttft::TtftArgs),
    /// Concurrent runs at full speed: tokens per second end to end, CPU per token.
    Throughput(bulk::ThroughputArgs),
    /// Minimal runs (one token), closed loop: finished runs per second.
    Jobs(bulk::JobsArgs),
    /// Concurrent runs at a human reading rate: delivery latency and jitter, CPU, Redis memory per token.
    Paced(paced::PacedArgs),
    /// One run, many watchers.
    Fanout(fanout::FanoutArgs),
    /// Drop each connection at a random token, reconnect, check the union.
    Resume(resume::ResumeArgs),
    /// Paced runs while the servers are replaced, with clients that reconnect until they have everything.
    Rolling(rolling::RollingArgs),
    /// Memory per idle SSE connection, or per idle run.
    Idle(idle::IdleArgs),
    /// Long runs, then replays of their complete logs from the start.
    Replay(replay::ReplayArgs),
    /// The overhead of a tool call beside the tool. Needs `--start-body '{"agent_id":"{prep}","input":"{msg}"}'`.
    Tools(tools::ToolsArgs),
    /// A server of one process on a fresh data folder: memory at rest, time to its first answer.
    Embedded(embedded::EmbeddedArgs),
}

pub async fn run(bench: &Arc<Bench>, scenario: Scenario) -> Result<Value> {
    match scenario {
        Scenario::Ttft(args) => ttft::run(bench, args).await,
        Scenario::Throughput(args) => bulk::throughput(bench, args).await,
        Scenario::Jobs(args) => bulk::jobs(bench, args).await,
        Scenario::Paced(args) => paced::run(bench, args).await,
        Scenario::Fanout(args) => fanout::run(bench, args).await,
        Scenario::Resume(args) => resume::run(bench, args).await,
        Scenario::Rolling(args) => rolling::run(bench, args).await,
        Scenario::Idle(args) => idle::run(bench, args).await,
        Scenario::Replay(args) => replay::run(bench, args).await,
        Scenario::Tools(args) => tools::run(&bench.adapter, args).await,
        Scenario::Embedded(args) => embedded::run(bench, args).await,
    }
}
