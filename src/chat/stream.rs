//! Following one message's run to its end, over as many connections as that takes.
//!
//! A task of its own, so that whoever shows the updates can wait for other things at the same time.

use std::time::Duration;

use holdfast_shared::event_id::EventId;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{
    client::{ChatClient, Post, RequestFailure, RunResult, SILENCE, cause, silent},
    frames::{Event, Frames, Place},
};

/// What there is to know about a message that was sent. The last one is a terminal event, `Ended` or `Refused`.
#[derive(Debug)]
pub enum Update {
    /// The server has the message, and its run is followed.
    Connected(Uuid),
    /// The next event: none is missing before it, none comes twice.
    Event(Event),
    /// The server is away; the next try follows by itself.
    Lost(String),
    /// The run had ended, and its events were not to be had.
    Ended(RunResult),
    /// The server does not want the request.
    Refused(String),
}

/// Sends a message and follows its run.
pub fn follow(client: ChatClient, post: Post) -> mpsc::Receiver<Update> {
    let (updates, receiver) = mpsc::channel(64);
    let reader = RunReader { client, post, run: None, cursor: EventId::ORIGIN, backoff: Backoff::default(), updates };
    tokio::spawn(reader.run());
    receiver
}

struct RunReader {
    client: ChatClient,
    post: Post,
    /// Known once the server has answered; until then the message is sent again.
    run: Option<Uuid>,
    /// The last event that was passed on.
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

    /// One connection; fine if it has brought the run's end.
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
            for event in frames.push(&chunk).iter().filter_map(|data| Event::parse(data)) {
                if self.pass_on(event).await? {
                    return Ok(());
                }
            }
        }
    }

    /// Whether the run has ended with this event.
    async fn pass_on(&mut self, event: Event) -> Result<bool, RequestFailure> {
        match event.place(self.cursor) {
            Place::Known => return Ok(false),
            Place::Gap => {
                return Err(RequestFailure::Away(format!(
                    "events between {} and {} are missing",
                    self.cursor, event.id
                )));
            }
            Place::Next => self.cursor = event.id,
        }
        // Only progress counts: a server that breaks off at once is not asked faster and faster.
        self.backoff = Backoff::default();
        let ends_run = event.is_terminal();
        self.send(Update::Event(event)).await;
        Ok(ends_run)
    }

    async fn send(&self, update: Update) {
        // Nobody listens any more when the chat ends, and then this task ends as well.
        let _ = self.updates.send(update).await;
    }
}

/// Pauses between tries: doubling, with a little chance, so that the clients of a server do not come back as one.
#[derive(Debug)]
pub struct Backoff {
    pause: Duration,
}

impl Backoff {
    const LONGEST: Duration = Duration::from_secs(5);

    pub fn next_pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(Self::LONGEST);
        // The last bytes of such an id are random.
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
