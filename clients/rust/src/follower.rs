//! One stream of a run's events over as many connections as it needs.

use std::{collections::VecDeque, time::Duration};

use reqwest::{Response, StatusCode};
use tokio::time::timeout;

use crate::{
    client::Client,
    error::{Error, Problem},
    event::{Event, EventId},
    frames::{Frame, FrameParser},
    pauses::Pauses,
};

/// A connection without a byte for this long is dead: the server sends a heartbeat every 15 s.
const SILENCE: Duration = Duration::from_secs(45);
/// A server that never sends the next event would keep a client busy for ever.
const MOST_GAPS: u32 = 5;

pub struct Follower {
    client: Client,
    path: String,
    /// The last event that the caller has.
    cursor: EventId,
    pauses: Pauses,
    gaps: u32,
    connection: Option<Connection>,
    is_over: bool,
}

struct Connection {
    response: Response,
    parser: FrameParser,
    frames: VecDeque<Frame>,
}

/// Why a connection gives no further event. `Cut` asks for another one.
enum Break {
    Cut { retry_after: Option<Duration> },
    Failed(Error),
}

const CUT: Break = Break::Cut { retry_after: None };

impl Follower {
    pub fn new(client: Client, path: String, cursor: EventId) -> Self {
        let pauses = Pauses::new(client.patience());
        Self { client, path, cursor, pauses, gaps: 0, connection: None, is_over: false }
    }

    /// Returns the next event, or none after the end of the run.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        while !self.is_over {
            match self.next_of_connection().await {
                Ok(event) => return Ok(event),
                Err(Break::Cut { retry_after }) => {
                    self.connection = None;
                    self.pauses.next(retry_after, Some(self.cursor)).await?;
                }
                Err(Break::Failed(error)) => {
                    self.is_over = true;
                    return Err(error);
                }
            }
        }
        Ok(None)
    }

    async fn next_of_connection(&mut self) -> Result<Option<Event>, Break> {
        if self.connection.is_none() {
            self.connection = self.connect().await?;
        }
        let Some(connection) = &mut self.connection else {
            self.is_over = true;
            return Ok(None);
        };
        loop {
            match connection.frame().await? {
                Frame::Retry(ms) => {
                    self.pauses.retry = Some(Duration::from_millis(ms));
                    if self.gaps == 0 {
                        self.pauses.succeed();
                    }
                }
                Frame::Data(data) => {
                    let event = Event::read(&data).map_err(|error| Break::Failed(error.into()))?;
                    return self.take(event).map(Some);
                }
            }
        }
    }

    /// Opens a connection; none, if the cursor is the last event.
    async fn connect(&mut self) -> Result<Option<Connection>, Break> {
        let request = self.client.request(reqwest::Method::GET, &self.path);
        let request = request.header("accept", "text/event-stream").header("last-event-id", self.cursor.to_string());
        let response = match timeout(SILENCE, request.send()).await {
            Ok(Ok(response)) => response,
            _ => return Err(CUT),
        };
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        if response.status() != StatusCode::OK {
            let problem = Problem::of(response).await;
            let retry_after = problem.retry_after;
            return Err(if problem.may_pass_within(self.client.patience()) {
                Break::Cut { retry_after }
            } else {
                Break::Failed(Error::Refused(Box::new(problem)))
            });
        }
        if !is_event_stream(&response) {
            return Err(Break::Failed(Error::NoStream));
        }
        Ok(Some(Connection { response, parser: FrameParser::default(), frames: VecDeque::new() }))
    }

    /// Checks that the event continues the log, and moves the cursor.
    fn take(&mut self, event: Event) -> Result<Event, Break> {
        if !event.id.follows(self.cursor, event.base) {
            self.gaps += 1;
            let broken = Error::BrokenLog { event: event.id, cursor: self.cursor };
            return Err(if self.gaps < MOST_GAPS { CUT } else { Break::Failed(broken) });
        }
        self.cursor = event.id;
        self.gaps = 0;
        self.pauses.succeed();
        self.is_over = event.is_terminal();
        Ok(event)
    }
}

fn is_event_stream(response: &Response) -> bool {
    let media_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
    media_type.is_some_and(|media_type| media_type.starts_with("text/event-stream"))
}

impl Connection {
    async fn frame(&mut self) -> Result<Frame, Break> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Ok(frame);
            }
            // A stream that ends before the run's end was cut, however cleanly.
            let Ok(Ok(Some(received))) = timeout(SILENCE, self.response.chunk()).await else { return Err(CUT) };
            self.frames.extend(self.parser.feed(&received).map_err(|_| CUT)?);
        }
    }
}
