//! The batcher of appends: it sends the appends of all runs of a process to Redis, many in one write. A separate write
//! per token would cost more than the rest of the token's way.

use std::{sync::LazyLock, time::Duration};

use redis::{Cmd, ErrorKind, Pipeline, RedisResult, Script, ServerErrorKind};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{EventBatch, Gap};
use crate::redis_link::{Link, within};

static APPEND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("append.lua")));

/// Pause after a write of several appends, because more will follow. A single append leaves at once.
const LINGER: Duration = Duration::from_millis(2);

/// Most appends in one write.
const MAX_BATCH: usize = 256;

/// Time-out of an append, before the worker repeats it.
const APPEND_LIMIT: Duration = Duration::from_secs(2);

/// The words of one append's command, and about the bytes of all but the lines.
const APPEND_WORDS: usize = 13;
const APPEND_OVERHEAD: usize = 160;

/// Sends appends to Redis; cheap to clone.
#[derive(Clone)]
pub struct AppendBatcher {
    publish: &'static str,
    pending: mpsc::UnboundedSender<PendingAppend>,
}

struct PendingAppend {
    append: Cmd,
    answer: oneshot::Sender<RedisResult<String>>,
}

/// The expiry of a stream.
#[derive(Debug, Clone, Copy)]
pub struct Expiry {
    /// Time until the stream expires.
    pub after: Duration,
    /// Whether the script sets the expiry of an existing stream too.
    pub renew: bool,
}

impl AppendBatcher {
    /// Starts the batcher, which ends with the last clone.
    pub fn start(connection: Link) -> Self {
        let (pending, appends) = mpsc::unbounded_channel();
        let publish = connection.publish_command();
        tokio::spawn(send_batches(appends, connection));
        Self { publish, pending }
    }

    /// Appends a batch to the stream of this name, after this number of entries if it is known. Returns the script's
    /// answer, or an error after a limited time.
    pub async fn append(
        &self,
        name: String,
        batch: &EventBatch,
        gap: Gap,
        entries: Option<u64>,
        expiry: Expiry,
    ) -> RedisResult<String> {
        let mut append = Cmd::with_capacity(APPEND_WORDS, APPEND_OVERHEAD + batch.lines.len());
        append.arg("EVALSHA");
        append.arg(APPEND.get_hash()).arg(1).arg(name).arg(batch.attempt).arg(batch.first).arg(batch.last);
        append.arg(if gap == Gap::Archived { "archived" } else { "refuse" });
        append.arg(&batch.lines[..]).arg(expiry.after.as_millis() as u64);
        append.arg(entries.map_or_else(String::new, |entries| entries.to_string()));
        append.arg(if expiry.renew { "renew" } else { "keep" }).arg(self.publish);
        let (answer, response) = oneshot::channel();
        // The batcher ends only with the process, so a failed send needs no report.
        let _ = self.pending.send(PendingAppend { append, answer });
        response.await.unwrap_or_else(|_| Err((ErrorKind::Io, "the process ends").into()))
    }
}

async fn send_batches(mut appends: mpsc::UnboundedReceiver<PendingAppend>, connection: Link) {
    let most = connection.most_in_pipeline().min(MAX_BATCH);
    let mut not_before = Instant::now();
    let mut batch = Vec::new();
    while let Some(first) = appends.recv().await {
        tokio::time::sleep_until(not_before).await;
        batch.push(first);
        while batch.len() < most
            && let Ok(next) = appends.try_recv()
        {
            batch.push(next);
        }
        if batch.len() > 1 {
            not_before = Instant::now() + LINGER;
        }
        // A slow answer delays only the runs of this write, because a run has one append in flight.
        tokio::spawn(write(std::mem::take(&mut batch), connection.clone()));
    }
}

async fn write(batch: Vec<PendingAppend>, mut connection: Link) {
    let mut pipe = Pipeline::with_capacity(batch.len());
    pipe.ignore_errors();
    let mut pending = Vec::with_capacity(batch.len());
    for PendingAppend { append, answer } in batch {
        pipe.add_command(append);
        pending.push(answer);
    }
    // Each caller repeats its append after the limit.
    match within(APPEND_LIMIT, answers_to(&pipe, &mut connection)).await {
        Ok(answers) => pending.into_iter().zip(answers).for_each(|(pending, answer)| drop(pending.send(answer))),
        Err(error) => pending.into_iter().for_each(|pending| drop(pending.send(Err(error.clone())))),
    }
}

/// Sends the appends, again if Redis does not know the script: it was restarted, or its scripts were flushed.
async fn answers_to(pipe: &Pipeline, connection: &mut Link) -> RedisResult<Vec<RedisResult<String>>> {
    let answers = send(pipe, connection).await?;
    if !answers.iter().any(is_unknown) {
        return Ok(answers);
    }
    APPEND.prepare_invoke().load_async(connection).await?;
    send(pipe, connection).await
}

/// Sends the appends. A lone one is no pipeline, because a Cluster's driver follows the redirections of commands only.
async fn send(pipe: &Pipeline, connection: &mut Link) -> RedisResult<Vec<RedisResult<String>>> {
    let mut appends = pipe.cmd_iter();
    match (appends.next(), appends.next()) {
        (Some(only), None) => Ok(vec![only.query_async(connection).await]),
        _ => pipe.query_async(connection).await,
    }
}

fn is_unknown(answer: &RedisResult<String>) -> bool {
    answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
}
