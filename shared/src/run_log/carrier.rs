//! Carries the appends of all runs of a process to Redis, many in one write: a write of its own for each token would cost
//! more than all the rest of its way.

use std::{sync::LazyLock, time::Duration};

use redis::{Cmd, ErrorKind, RedisResult, Script, ServerErrorKind};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{Batch, Gap};
use crate::redis_link::Link;

static APPEND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("append.lua")));

/// Pause after a write that carried several appends: more are to be expected. One that comes alone goes at once.
const LINGER: Duration = Duration::from_millis(2);

/// Most appends in one write.
const LOAD: usize = 256;

/// The way to Redis; cheap to clone.
#[derive(Clone)]
pub struct Carrier {
    waiting: mpsc::UnboundedSender<Waiting>,
}

struct Waiting {
    append: Cmd,
    answer: oneshot::Sender<RedisResult<String>>,
}

/// When a stream is to be gone.
#[derive(Debug, Clone, Copy)]
pub struct Expiry {
    pub after: Duration,
    /// Whether it is to be set even where the stream is there.
    pub renew: bool,
}

impl Carrier {
    /// Carries until the last clone is gone.
    pub fn start(connection: Link) -> Self {
        let (waiting, appends) = mpsc::unbounded_channel();
        tokio::spawn(carry(appends, connection));
        Self { waiting }
    }

    /// Appends a batch to the stream of this name, behind so many entries if that is known, and answers what the script says.
    pub async fn append(
        &self,
        name: String,
        batch: &Batch,
        gap: Gap,
        entries: Option<u64>,
        expiry: Expiry,
    ) -> RedisResult<String> {
        let mut append = redis::cmd("EVALSHA");
        append.arg(APPEND.get_hash()).arg(1).arg(name).arg(batch.attempt).arg(batch.first).arg(batch.last);
        append.arg(if gap == Gap::Archived { "archived" } else { "refuse" });
        append.arg(&batch.lines[..]).arg(expiry.after.as_millis() as u64);
        append.arg(entries.map_or_else(String::new, |entries| entries.to_string()));
        append.arg(if expiry.renew { "renew" } else { "keep" });
        let (answer, answered) = oneshot::channel();
        // Nobody hears that nobody carries any more but at the end of the process.
        let _ = self.waiting.send(Waiting { append, answer });
        answered.await.unwrap_or_else(|_| Err((ErrorKind::Io, "the process ends").into()))
    }
}

async fn carry(mut appends: mpsc::UnboundedReceiver<Waiting>, connection: Link) {
    let mut not_before = Instant::now();
    let mut load = Vec::new();
    while let Some(first) = appends.recv().await {
        tokio::time::sleep_until(not_before).await;
        load.push(first);
        while load.len() < LOAD
            && let Ok(next) = appends.try_recv()
        {
            load.push(next);
        }
        if load.len() > 1 {
            not_before = Instant::now() + LINGER;
        }
        // A slow answer holds up nobody but those who wait for it: a run has one append on its way.
        tokio::spawn(write(std::mem::take(&mut load), connection.clone()));
    }
}

async fn write(load: Vec<Waiting>, mut connection: Link) {
    let mut pipe = redis::Pipeline::with_capacity(load.len());
    pipe.ignore_errors();
    let mut waiting = Vec::with_capacity(load.len());
    for Waiting { append, answer } in load {
        pipe.add_command(append);
        waiting.push(answer);
    }
    let mut answers = pipe.query_async::<Vec<RedisResult<String>>>(&mut connection).await;
    // Redis was started anew, or its scripts were flushed.
    if answers.as_ref().is_ok_and(|answers| answers.iter().any(is_unknown)) {
        answers = match APPEND.prepare_invoke().load_async(&mut connection).await {
            Ok(_) => pipe.query_async(&mut connection).await,
            Err(error) => Err(error),
        };
    }
    // Whoever has waited too long asks again, and does not hear this.
    match answers {
        Ok(answers) => waiting.into_iter().zip(answers).for_each(|(waiting, answer)| drop(waiting.send(answer))),
        Err(error) => waiting.into_iter().for_each(|waiting| drop(waiting.send(Err(error.clone())))),
    }
}

fn is_unknown(answer: &RedisResult<String>) -> bool {
    answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Server(ServerErrorKind::NoScript))
}
