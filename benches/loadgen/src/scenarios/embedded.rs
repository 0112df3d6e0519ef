//! A server of one process, started here on fresh data folders: its memory at rest, its time to a first answer, its
//! first token.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{ensure, Context, Result};
use clap::Args;
use serde_json::{json, Value};
use tokio::time::sleep;

use crate::bench::{merge, plan, Bench};
use crate::client::HttpConnection;
use crate::stats::{round, Latency, Procs};

#[derive(Args)]
pub struct EmbeddedArgs {
    /// The executable; it receives its address (that of --base) and its data folder by HOLDFAST_ADDR and
    /// HOLDFAST_DATA_DIR.
    #[arg(long)]
    program: PathBuf,
    /// Starts, each with one answer.
    #[arg(long, default_value_t = 9)]
    starts: usize,
    /// Runs of the last start, one at a time, for the first token.
    #[arg(long, default_value_t = 200)]
    n: usize,
    /// Time between a start and the reading of the memory.
    #[arg(long, default_value_t = 3_000)]
    rest_ms: u64,
}

/// A server of one process. Dropping it ends the process and removes the data folder.
struct EmbeddedServer {
    process: Child,
    folder: PathBuf,
}

impl EmbeddedServer {
    fn start(bench: &Bench, program: &PathBuf) -> Result<EmbeddedServer> {
        let folder = std::env::temp_dir().join(format!("holdfast-bench-{}", uuid::Uuid::new_v4()));
        let process = Command::new(program)
            .env_remove("DATABASE_URL")
            .env_remove("REDIS_URL")
            .env("HOLDFAST_ADDR", bench.adapter.host())
            .env("HOLDFAST_DATA_DIR", &folder)
            .spawn()
            .context("start the program")?;
        Ok(EmbeddedServer { process, folder })
    }

    fn rss_mib(&self) -> Result<f64> {
        let sample = Procs::parse(&format!("server={}", self.process.id()))?.sample();
        Ok(round(sample["server"].rss_kb as f64 / 1024.0))
    }
}

impl Drop for EmbeddedServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub async fn run(bench: &Arc<Bench>, args: EmbeddedArgs) -> Result<Value> {
    let message = plan(20, 5_000, 0);
    let first_answer = Latency::default();
    for _ in 0..args.starts {
        let started = Instant::now();
        let _server = EmbeddedServer::start(bench, &args.program)?;
        bench.guarded(first_delta(bench, &message)).await.context("a first answer")?;
        first_answer.record(started.elapsed());
    }
    let server = EmbeddedServer::start(bench, &args.program)?;
    bench.guarded(wait_until_connected(bench)).await?;
    sleep(Duration::from_millis(args.rest_ms)).await;
    let at_rest = server.rss_mib()?;
    bench.complete_runs(20, 1, &message, 20).await;
    let runs = bench.complete_runs(args.n, 1, &message, 20).await;
    Ok(merge(
        runs.totals.json(),
        json!({
            "scenario": "embedded", "rss_at_rest_mib": at_rest, "rss_after_mib": server.rss_mib()?,
            "start_to_first_delta": first_answer.summary(), "first_delta": runs.first_delta.summary(),
        }),
    ))
}

/// Waits until the server listens.
async fn wait_until_connected(bench: &Bench) -> Result<HttpConnection> {
    loop {
        match bench.adapter.connect().await {
            Ok(connection) => return Ok(connection),
            Err(_) => sleep(Duration::from_millis(1)).await,
        }
    }
}

/// Waits for the first delta of a first run.
async fn first_delta(bench: &Bench, message: &str) -> Result<()> {
    let connection = wait_until_connected(bench).await?;
    let mut run = bench.adapter.prepare(message).await?;
    let mut stream = bench.adapter.start(connection, &mut run).await?;
    let (mut tokens, mut more) = (0, true);
    while tokens == 0 && more {
        more = stream.read(|event| _ = bench.adapter.read_event(&event, |_, _| tokens += 1)).await?;
    }
    ensure!(tokens > 0, "the stream ended without a token");
    Ok(())
}
