//! Follows one message's run to its end, over any number of connections.
//!
//! It runs in its own task, so that the exchange can wait for input at the same time.

use std::{io, pin::pin, time::Duration};

use futures::{Stream, TryStreamExt, stream};
use holdfast_shared::{backoff::Backoff, event_id::EventId};
use reqwest::Response;
use sse_stream::{Sse, SseStream};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{
    client::{ChatClient, Post, RequestFailure, RunResult, SILENCE, cause, silence},
    events::{ClientEvent, CursorOrder},
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
    let reader = RunReader { client, post, run: None, cursor: EventId::ORIGIN, backoff: reconnections(), updates };
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
        let Some(stream) = run_stream.stream else {
            let run = self.client.read(run_stream.run).await?;
            self.send(Update::Ended(run)).await;
            return Ok(());
        };
        let mut frames = pin!(frames_of(stream));
        while let Some(frame) = frames.try_next().await.map_err(|lost| RequestFailure::Away(reason(lost)))? {
            if let Some(event) = frame.data.and_then(ClientEvent::parse)
                && self.pass_on(event).await?
            {
                return Ok(());
            }
        }
        Err(RequestFailure::Away("the stream ended before the run did".to_owned()))
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
        self.backoff.reset();
        let ends_run = event.is_terminal();
        self.send(Update::Event(event)).await;
        Ok(ends_run)
    }

    async fn send(&self, update: Update) {
        // The receiver is gone when the chat ends; the task ends then too.
        let _ = self.updates.send(update).await;
    }
}

/// Parses a response. It fails when nothing comes for too long; heartbeats are bytes, too.
fn frames_of(response: Response) -> impl Stream<Item = Result<Sse, sse_stream::Error>> {
    let bytes = stream::try_unfold(response, async |mut response| {
        let chunk = tokio::time::timeout(SILENCE, response.chunk()).await.map_err(|_| io::Error::other(silence()))?;
        let chunk = chunk.map_err(|error| io::Error::other(cause(&error)))?;
        Ok::<_, io::Error>(chunk.map(|chunk| (chunk, response)))
    });
    SseStream::from_bytes_stream(bytes)
}

/// Returns the network's own message.
fn reason(lost: sse_stream::Error) -> String {
    match lost {
        sse_stream::Error::Body(network) => network.to_string(),
        malformed => malformed.to_string(),
    }
}

/// Pauses between attempts, with jitter, so that clients do not reconnect at the same moment.
pub fn reconnections() -> Backoff {
    Backoff::new(Duration::from_millis(250), Duration::from_secs(5)).with_jitter()
}
