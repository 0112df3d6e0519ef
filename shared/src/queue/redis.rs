//! Wake-ups, cancel signals and checks of the scaled-out mode: a list of sentinels, and channels.

use std::time::Duration;

use redis::{PushInfo, PushKind, RedisError, Value};
use secrecy::SecretString;
use serde::Serialize;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{Error, checks::RequestedCheck};
use crate::{
    agent::{AgentCheck, CHECK_PATIENCE, CheckRequest},
    redis_link::{Link, Use, within},
};

const WAKE_LIST: &str = "holdfast:wake";
const CANCEL_CHANNEL: &str = "holdfast:cancel";
const CHECK_CHANNEL: &str = "holdfast:checks";

/// Most sentinels in the list. More would only wake workers for nothing.
const MAX_SENTINELS: isize = 1024;

/// Time-out of a wake-up or a signal. Workers poll a moment later anyway.
const SIGNAL_LIMIT: Duration = Duration::from_millis(500);

/// Longest pop. A worker then polls once without need.
const LONGEST_POP: Duration = Duration::from_secs(2);

/// Time after a pop's own time-out at which its connection counts as dead.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct RedisQueue {
    url: SecretString,
    commands: Link,
    /// A separate connection, because a blocked pop delays all commands after it.
    blocking: Link,
}

impl RedisQueue {
    pub async fn connect(url: &SecretString) -> Result<Self, Error> {
        let commands = Link::open(url, Use::Prompt, drop).await.map_err(doing("open a connection"))?;
        let blocking = Link::open(url, Use::Blocking, drop).await.map_err(doing("open a connection"))?;
        Ok(Self { url: url.clone(), commands, blocking })
    }

    pub async fn wake(&self) -> Result<(), Error> {
        let mut push = redis::pipe();
        push.lpush(WAKE_LIST, 1).ignore().ltrim(WAKE_LIST, 0, MAX_SENTINELS - 1).ignore();
        within(SIGNAL_LIMIT, push.query_async(&mut self.commands.clone())).await.map_err(doing("wake a worker"))
    }

    pub async fn wait_for_wake_up(&self, timeout: Duration) -> Result<(), Error> {
        // A longer pop would hide a dead connection for longer.
        let timeout = timeout.min(LONGEST_POP);
        let mut pop = redis::cmd("BLPOP");
        pop.arg(WAKE_LIST).arg(timeout.as_secs_f64());
        let popped: Result<Result<Value, RedisError>, _> =
            tokio::time::timeout(timeout + GRACE, pop.query_async(&mut self.blocking.clone())).await;
        match popped {
            Ok(popped) => popped.map(drop).map_err(doing("wait for a wake-up")),
            Err(_) => {
                self.blocking.doubt();
                Ok(())
            }
        }
    }

    pub async fn signal_cancel(&self, run_id: Uuid) -> Result<(), Error> {
        self.publish(CANCEL_CHANNEL.to_owned(), run_id.to_string().as_bytes(), "signal a cancel").await
    }

    pub async fn cancels(&self) -> Result<mpsc::UnboundedReceiver<Uuid>, Error> {
        self.listen(CANCEL_CHANNEL.to_owned(), "listen for cancels", |text| str::from_utf8(text).ok()?.parse().ok())
            .await
    }

    /// Publishes the request, which Redis keeps nowhere, and waits for the report.
    pub async fn check(&self, request: &CheckRequest) -> Result<Option<AgentCheck>, Error> {
        let read = |text: &[u8]| serde_json::from_slice(text).ok();
        // Order matters: a worker may report at once.
        let mut reports = self.listen(report_channel(request.id), "listen for a report", read).await?;
        self.publish(CHECK_CHANNEL.to_owned(), &encoded(request), "request a check").await?;
        Ok(reports.recv().await)
    }

    pub async fn checks(&self) -> Result<mpsc::UnboundedReceiver<RequestedCheck>, Error> {
        let queue = self.clone();
        self.listen(CHECK_CHANNEL.to_owned(), "listen for checks", move |text| {
            let request = serde_json::from_slice(text);
            let unreadable = |_| tracing::warn!("failed to read a check; its sender may be of another version");
            Some(RequestedCheck::scaled_out(request.map_err(unreadable).ok()?, queue.clone()))
        })
        .await
    }

    /// Returns whether the caller is the first that takes the check.
    pub async fn take_check(&self, id: Uuid) -> Result<bool, Error> {
        let mut set = redis::cmd("SET");
        set.arg(format!("holdfast:check:{id}")).arg(1).arg("NX").arg("PX").arg(2 * CHECK_PATIENCE.as_millis() as u64);
        let set = within(SIGNAL_LIMIT, set.query_async(&mut self.commands.clone())).await;
        set.map(|value: Value| value == Value::Okay).map_err(doing("take a check"))
    }

    pub async fn report_check(&self, id: Uuid, report: &AgentCheck) -> Result<(), Error> {
        self.publish(report_channel(id), &encoded(report), "report a check").await
    }

    async fn publish(&self, channel: String, text: &[u8], what: &'static str) -> Result<(), Error> {
        let mut publish = redis::cmd(self.commands.publish_command());
        publish.arg(channel).arg(text);
        within(SIGNAL_LIMIT, publish.query_async(&mut self.commands.clone())).await.map_err(doing(what))
    }

    /// Returns what is published on a channel from now on, as `read` reads it.
    async fn listen<T: Send + 'static>(
        &self,
        channel: String,
        what: &'static str,
        read: impl Fn(&[u8]) -> Option<T> + Send + Sync + 'static,
    ) -> Result<mpsc::UnboundedReceiver<T>, Error> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let listener = sender.clone();
        let link = Link::open(&self.url, Use::Prompt, move |info| {
            if let Some(item) = payload(&info).and_then(&read) {
                let _ = sender.send(item);
            }
        });
        let link = link.await.map_err(doing("open a connection"))?;
        within(SIGNAL_LIMIT, link.subscribe(channel)).await.map_err(doing(what))?;
        tokio::spawn(hold_until_closed(link, listener));
        Ok(receiver)
    }
}

fn report_channel(check: Uuid) -> String {
    format!("holdfast:check:{check}")
}

fn encoded(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("it has text keys only")
}

/// Keeps the subscription's connection until its receiver is dropped.
async fn hold_until_closed<T>(connection: Link, sender: mpsc::UnboundedSender<T>) {
    sender.closed().await;
    drop(connection);
}

fn doing(doing: &'static str) -> impl FnOnce(RedisError) -> Error {
    move |source| Error { doing, source }
}

/// Returns the text of a published message.
fn payload(info: &PushInfo) -> Option<&[u8]> {
    match (&info.kind, info.data.get(1)) {
        (PushKind::Message | PushKind::SMessage, Some(Value::BulkString(text))) => Some(text),
        _ => None,
    }
}
