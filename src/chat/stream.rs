//! Follows one message's run to its end, over any number of connections.
//!
//! It runs in its own task, so that the exchange can wait for input at the same time.

use std::time::Duration;

use holdfast_shared::event_id::EventId;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{
    client::{ChatClient, Post, RequestFailure, RunResult, SILENCE, cause, silent},
    frames::{ClientEvent, CursorOrder, Frames},
};

/// An update about a message. The last update is a terminal event, `Ended` or `Refused`.
#[derive(Debug)]
pub enum Update {
    /// The server has the message, and this run answers it.
    Connected(Uuid),
    /// The next event. No event is missing before it, and none is repeated.
    Event(ClientEvent),
    /// The server is away; the task retries.
    Lost(String),
    /// The run has ended, and the server no longer has its events.
    Ended(RunResult),
    /// The server refused the request.
    Refused(String),
}

/// Starts a task that sends a message and follows its run; returns its updates.
pub fn follow(client: ChatClient, post: Post) -> mpsc::Receiver<Update> {
    let (updates, receiver) = mpsc::channel(64);
    let reader = RunReader { client, post, run: None, cursor: EventId::ORIGIN, backoff: Backoff::default(), updates };
    tokio::spawn(reader.run());
    receiver
}

struct RunReader {
    client: ChatClient,
    post: Post,
    /// The run's id from the first response. Without it, each attempt sends the message again.
    run: Option<Uuid>,
    /// The last event in the updates.
    cursor: EventId,
    backoff: Backoff,
    updates: mpsc::Sender<Update>,
}

impl RunReader {
    async fn run(mut self) {
        while !self.updates.is_closed() {
            let pause = match self.read_stream().await {
                Ok(()) => return,
                Err(RequestFailure::Refused(problem)) => return self.send(Update::Refused(problem.detail)).await,
                Err(RequestFailure::Away(reason)) => {
                    self.send(Update::Lost(reason)).await;
                    self.backoff.next_pause()
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Reads one connection. Fails unless the connection delivered the end of the run.
    async fn read_stream(&mut self) -> Result<(), RequestFailure> {
        let run_stream = match self.run {
            None => self.client.post(&self.post).await?,
            Some(run) => self.client.resume(run, self.cursor).await?,
        };
        self.run = Some(run_stream.run);
        self.send(Update::Connected(run_stream.run)).await;
        let Some(mut stream) = run_stream.stream else {
            let run = self.client.read(run_stream.run).await?;
            self.send(Update::Ended(run)).await;
            return Ok(());
        };
        let mut frames = Frames::default();
        loop {
            let chunk = tokio::time::timeout(SILENCE, stream.chunk()).await.map_err(|_| silent())?;
            let chunk = chunk.map_err(|error| RequestFailure::Away(cause(&error)))?;
            let chunk = chunk.ok_or_else(|| RequestFailure::Away("the stream ended before the run did".to_owned()))?;
            for event in frames.push(&chunk).into_iter().filter_map(ClientEvent::parse) {
                if self.pass_on(event).await? {
                    return Ok(());
                }
            }
        }
    }

    /// Sends an event as an update if it is the next one. Returns whether it ends the run; fails if events are missing.
    async fn pass_on(&mut self, event: ClientEvent) -> Result<bool, RequestFailure> {
        match event.order_after(self.cursor) {
            CursorOrder::Duplicate => return Ok(false),
            CursorOrder::Gap => {
                return Err(RequestFailure::Away(format!(
                    "events between {} and {} are missing",
                    self.cursor, event.id
                )));
            }
            CursorOrder::Next => self.cursor = event.id,
        }
        // Only an event resets the pauses, so that a server that accepts and breaks off gets fewer requests.
        self.backoff = Backoff::default();
        let ends_run = event.is_terminal();
        self.send(Update::Event(event)).await;
        Ok(ends_run)
    }

    async fn send(&self, update: Update) {
        // The receiver is gone when the chat ends; the task ends then too.
        let _ = self.updates.send(update).await;
    }
}

/// Pauses between attempts. Each is twice the last, with jitter, so that clients do not reconnect at the same moment.
#[derive(Debug)]
pub struct Backoff {
    pause: Duration,
}

impl Backoff {
    const LONGEST: Duration = Duration::from_secs(5);

    pub fn next_pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(Self::LONGEST);
        // The last bytes of a version 7 UUID are random.
        let chance = u32::from(Uuid::now_v7().as_bytes()[15]);
        pause + pause * chance / 1024
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self { pause: Duration::from_millis(250) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_five_seconds_and_a_quarter() {
        let mut backoff = Backoff::default();
        for least in [250, 500, 1000, 2000, 4000, 5000, 5000] {
            let pause = backoff.next_pause().as_millis();
            assert!((least..=least * 5 / 4).contains(&pause), "{pause} ms instead of {least} ms and a little");
        }
    }
}
