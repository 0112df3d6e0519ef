//! Shared by the scenarios: runs that are read to their ends, counts of the tokens that arrived, watchers.

use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{anyhow, Context, Result};
use serde_json::{json, Value};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::client::{Adapter, RunVars, Stream};
use crate::stats::{Latency, Procs};

/// The context of every scenario.
pub struct Bench {
    pub adapter: Arc<Adapter>,
    pub procs: Procs,
    pub run_timeout: Duration,
}

/// Returns the user message that tells the upstream what to emit.
pub fn plan(tokens: u32, interval_us: u64, ttft_ms: u64) -> String {
    format!("fake:tokens={tokens},interval_us={interval_us},ttft_ms={ttft_ms}")
}

/// Counts how often each token arrived on one stream.
pub struct Tally(Vec<u16>);

impl Tally {
    pub fn new(tokens: u32) -> Tally {
        Tally(vec![0; tokens as usize])
    }
    pub fn add(&mut self, seq: u32) {
        if let Some(count) = self.0.get_mut(seq as usize) {
            *count = count.saturating_add(1);
        }
    }
    pub fn gaps(&self) -> u64 {
        self.0.iter().filter(|c| **c == 0).count() as u64
    }
    pub fn duplicates(&self) -> u64 {
        self.0.iter().map(|c| u64::from(c.saturating_sub(1))).sum()
    }
    pub fn has_some(&self) -> bool {
        self.arrivals() > 0
    }
    fn arrivals(&self) -> u64 {
        self.0.len() as u64 - self.gaps()
    }
}

/// Counters that the tasks of one scenario share.
#[derive(Default)]
pub struct Totals {
    completed: AtomicU64,
    failed: AtomicU64,
    tokens: AtomicU64,
    gaps: AtomicU64,
    duplicates: AtomicU64,
    first_error: OnceLock<String>,
}

impl Totals {
    pub fn finish(&self, outcome: Result<Tally>) {
        match outcome {
            Ok(tally) => {
                self.completed.fetch_add(1, Relaxed);
                self.tokens.fetch_add(tally.arrivals(), Relaxed);
                self.gaps.fetch_add(tally.gaps(), Relaxed);
                self.duplicates.fetch_add(tally.duplicates(), Relaxed);
            }
            Err(error) => {
                self.failed.fetch_add(1, Relaxed);
                let _ = self.first_error.set(format!("{error:#}"));
            }
        }
    }

    pub fn completed(&self) -> u64 {
        self.completed.load(Relaxed)
    }

    pub fn tokens(&self) -> u64 {
        self.tokens.load(Relaxed)
    }

    pub fn json(&self) -> Value {
        json!({
            "completed": self.completed(), "failed": self.failed.load(Relaxed), "tokens": self.tokens(),
            "gaps": self.gaps.load(Relaxed), "duplicates": self.duplicates.load(Relaxed),
            "first_error": self.first_error.get(),
        })
    }
}

pub fn merge(mut base: Value, more: Value) -> Value {
    if let (Some(base), Value::Object(more)) = (base.as_object_mut(), more) {
        base.extend(more);
    }
    base
}

/// Runs `job` for 0..n with at most `concurrency` at a time.
pub async fn closed_loop<F, Fut>(n: usize, concurrency: usize, job: F)
where
    F: Fn(usize) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..concurrency.min(n) {
        let (next, job) = (next.clone(), job.clone());
        workers.spawn(async move {
            loop {
                let i = next.fetch_add(1, Relaxed);
                if i >= n {
                    return;
                }
                job(i).await;
            }
        });
    }
    while workers.join_next().await.is_some() {}
}

/// Statistics of many complete runs.
#[derive(Default)]
pub struct RunStats {
    pub totals: Totals,
    pub first_delta: Latency,
    pub complete_run: Latency,
}

impl Bench {
    pub async fn guarded<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        timeout(self.run_timeout, future).await.unwrap_or_else(|_| Err(anyhow!("timed out")))
    }

    /// Starts a run; the connection is made before the clock starts.
    pub async fn start(&self, message: &str) -> Result<(RunVars, Stream)> {
        let mut run = self.adapter.prepare(message).await?;
        let connection = self.adapter.connect().await?;
        let stream = self.adapter.start(connection, &mut run).await?;
        Ok((run, stream))
    }

    /// Calls `sink` with sequence number and stamp of each token, up to the end of the stream.
    pub async fn read_to_end(&self, stream: &mut Stream, mut sink: impl FnMut(u32, u64)) -> Result<()> {
        let mut done = false;
        while !done && stream.read(|event| done |= self.adapter.read_event(&event, &mut sink)).await? {}
        Ok(())
    }

    /// Executes `n` runs of `tokens` tokens with at most `concurrency` at a time, and reads each to its end.
    pub async fn complete_runs(
        self: &Arc<Self>,
        n: usize,
        concurrency: usize,
        message: &str,
        tokens: u32,
    ) -> Arc<RunStats> {
        let runs = Arc::new(RunStats::default());
        let (bench, message, shared) = (self.clone(), Arc::<str>::from(message), runs.clone());
        closed_loop(n, concurrency, move |_| {
            let (bench, message, runs) = (bench.clone(), message.clone(), shared.clone());
            async move {
                let outcome = bench.guarded(bench.complete_run(&message, tokens, &runs)).await;
                runs.totals.finish(outcome);
            }
        })
        .await;
        runs
    }

    pub async fn complete_run(&self, message: &str, tokens: u32, runs: &RunStats) -> Result<Tally> {
        let (_, mut stream) = self.start(message).await?;
        let mut tally = Tally::new(tokens);
        let mut waiting = Some(&runs.first_delta);
        let sent = stream.sent;
        self.read_to_end(&mut stream, |seq, _| {
            if let Some(latency) = waiting.take() {
                latency.record(sent.elapsed());
            }
            tally.add(seq);
        })
        .await?;
        runs.complete_run.record(sent.elapsed());
        Ok(tally)
    }

    /// Attaches `n` watchers to one run. Returns the open streams.
    pub async fn attach(
        self: &Arc<Self>,
        n: usize,
        concurrency: usize,
        run: &Arc<RunVars>,
        totals: &Arc<Totals>,
    ) -> Vec<Stream> {
        let run = run.clone();
        self.open(n, concurrency, totals, move |bench| {
            let run = run.clone();
            async move { bench.adapter.resume(&run, b"").await?.context("no such stream") }
        })
        .await
    }

    /// Opens `n` streams with at most `concurrency` attempts at a time. Failed attempts are counted in `totals`.
    pub async fn open<F, Fut>(
        self: &Arc<Self>,
        n: usize,
        concurrency: usize,
        totals: &Arc<Totals>,
        opener: F,
    ) -> Vec<Stream>
    where
        F: Fn(Arc<Bench>) -> Fut,
        Fut: Future<Output = Result<Stream>> + Send + 'static,
    {
        let semaphore = Arc::new(Semaphore::new(concurrency));
        let mut tasks = JoinSet::new();
        for _ in 0..n {
            let (bench, semaphore, totals, opening) =
                (self.clone(), semaphore.clone(), totals.clone(), opener(self.clone()));
            tasks.spawn(async move {
                let _permit = semaphore.acquire().await.ok()?;
                bench.guarded(opening).await.map_err(|error| totals.finish(Err(error))).ok()
            });
        }
        let mut streams = Vec::with_capacity(n);
        while let Some(joined) = tasks.join_next().await {
            streams.extend(joined.ok().flatten());
        }
        streams
    }
}
