//! The stream of a thread: the events of its runs, one run after the other. It stays open while no run is live.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures::{Stream, stream};
use holdfast_shared::{conversation::Conversation, event::Event, event_id::EventId, run::Run};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::history::states_before_answer;
use crate::{
    app::App,
    auth::Caller,
    in_flight::InFlightGuard,
    problem::Problem,
    protocols::langgraph::wire::{Channel, Channels, RunCheckpoints, ThreadFold, ThreadView, position_of},
    relay::{Next, ReadError, SLICE_BYTES, StreamGauge, Subscriber, ThreadArrival, TruncatedStream, WakeReason},
    streams::OpenStream,
    thread::current_run,
    wire::{self, Block},
};

/// Most runs of a thread that a client with a cursor gets again.
const REPLAYED_RUNS: usize = 8;

/// The code of a run whose events have expired.
const EVENTS_GONE: &str = "events_gone";

/// A client's stream of a thread.
pub struct ThreadStream {
    app: Arc<App>,
    caller: Caller,
    thread: Conversation,
    channels: Channels,
    /// The sequence number of the last event that the client has.
    since: u64,
    place: StreamPlace,
    /// The position of the run that the stream has last reached.
    position: i64,
    arrivals: watch::Receiver<i64>,
    /// Whether the thread may have a next run that no arrival announces again.
    may_have_next: bool,
    _arrival: Arc<ThreadArrival>,
    /// When the server truncates the stream, if ever.
    ends_at: Option<Instant>,
    heartbeat_at: Instant,
    _gauge: StreamGauge,
}

enum StreamPlace {
    /// In the events of a run.
    Run(Box<FollowedRun>),
    /// After the newest run.
    Idle(OpenStream),
    /// At the end of the stream, which the server truncates next.
    Truncating,
    Over,
}

/// A run that the stream follows from its start.
struct FollowedRun {
    run: Arc<Run>,
    subscriber: Subscriber,
    fold: ThreadFold,
    /// Events of the last slice that the fold has not got yet.
    unfolded: VecDeque<Event>,
    /// The event at which the client has seen the run wait.
    paused_at: Option<EventId>,
    has_ended: bool,
    _memory: Option<InFlightGuard>,
}

impl ThreadStream {
    /// Begins a stream. Without a cursor, it begins at the start of the run that the thread waits for, or else of its newest run.
    pub async fn begin(
        app: &Arc<App>,
        caller: Caller,
        thread: Conversation,
        channels: Channels,
        since: Option<u64>,
    ) -> Result<Self, Problem> {
        let permit = app.streams().open(&caller)?;
        let arrival = app.relay().arrivals().of(thread.id);
        // Order matters: a run that comes after this line wakes the stream.
        let arrivals = arrival.watch();
        let position = first_position(app, &caller, &thread, since).await? - 1;
        let mut stream = Self {
            app: Arc::clone(app),
            ends_at: permit.ends_at(true),
            heartbeat_at: Instant::now() + app.relay().heartbeat(),
            caller,
            thread,
            channels,
            since: since.unwrap_or(0),
            place: StreamPlace::Idle(permit),
            position,
            arrivals,
            _arrival: arrival,
            may_have_next: true,
            _gauge: StreamGauge::new(),
        };
        // A refusal of the first run is the status of the response, because clients come back at once after a cut.
        stream.may_have_next = stream.begin_next_run().await?;
        Ok(stream)
    }

    /// Returns the bytes of the stream.
    pub fn into_bytes(self) -> impl Stream<Item = Result<Bytes, TruncatedStream>> + Send {
        stream::unfold(self, |mut stream| async { Some((stream.next().await?, stream)) })
    }

    async fn next(&mut self) -> Option<Result<Bytes, TruncatedStream>> {
        loop {
            match &self.place {
                StreamPlace::Over => return None,
                StreamPlace::Truncating => return Some(self.truncate().await),
                StreamPlace::Run(_) | StreamPlace::Idle(_) if self.ends_at.is_some_and(|end| Instant::now() >= end) => {
                    return Some(Ok(self.last_words()));
                }
                StreamPlace::Run(_) | StreamPlace::Idle(_) => {}
            }
            match self.advance().await {
                Ok(Advance::Events(bytes)) if bytes.is_empty() => continue,
                Ok(Advance::Events(bytes)) => {
                    self.heartbeat_at = Instant::now() + self.app.relay().heartbeat();
                    return Some(Ok(bytes.into()));
                }
                Ok(Advance::Nothing) => {}
                Err(TruncatedStream) => return Some(self.truncate().await),
            }
            match self.wait().await {
                WakeReason::Changed => self.may_have_next = true,
                WakeReason::TimedOut if Instant::now() < self.heartbeat_at => {}
                WakeReason::TimedOut => {
                    self.heartbeat_at = Instant::now() + self.app.relay().heartbeat();
                    return Some(Ok(Bytes::from_static(wire::HEARTBEAT)));
                }
                WakeReason::Draining => {
                    self.place = StreamPlace::Truncating;
                    return Some(Ok(wire::reconnect_hint()));
                }
            }
        }
    }

    /// Moves on without waiting.
    async fn advance(&mut self) -> Result<Advance, TruncatedStream> {
        if let StreamPlace::Run(followed) = &mut self.place
            && !followed.has_ended
        {
            return followed.advance(&self.app).await;
        }
        self.place = match std::mem::replace(&mut self.place, StreamPlace::Over) {
            StreamPlace::Run(followed) => StreamPlace::Idle(followed.into_permit()),
            place => place,
        };
        if !self.may_have_next {
            return Ok(Advance::Nothing);
        }
        match self.begin_next_run().await {
            Ok(found) => {
                self.may_have_next = found;
                Ok(if found { Advance::Events(Vec::new()) } else { Advance::Nothing })
            }
            // The database is away. The next heartbeat tries again.
            Err(problem) if problem.is_temporary() && matches!(self.place, StreamPlace::Idle(_)) => {
                Ok(Advance::Nothing)
            }
            Err(problem) => {
                tracing::debug!(problem.code, problem.detail, "failed to follow the next run of a thread");
                Err(TruncatedStream)
            }
        }
    }

    /// Begins the next run of the thread, if there is one.
    async fn begin_next_run(&mut self) -> Result<bool, Problem> {
        // Order matters: a run that comes after this line wakes the next wait.
        self.arrivals.borrow_and_update();
        let (storage, owner) = (self.app.storage(), &self.caller.owner);
        let Some((id, position)) = storage.next_run(owner, self.thread.id, self.position).await? else {
            return Ok(false);
        };
        let run = storage.run_without_answer(owner, id).await?.map(Arc::new);
        self.position = position;
        let Some(run) = run else { return Ok(true) };
        let StreamPlace::Idle(permit) = std::mem::replace(&mut self.place, StreamPlace::Over) else { return Ok(true) };
        let subscriber = match self.app.relay().open(owner, &run, EventId::ORIGIN, permit).await {
            Ok(Some(subscriber)) => subscriber,
            Err(problem) if problem.code != EVENTS_GONE => return Err(problem),
            // The events of the run have expired, so the stream continues after it.
            Ok(None) | Err(_) => {
                self.place = StreamPlace::Idle(self.app.streams().open(&self.caller)?);
                return Ok(true);
            }
        };
        let mut view = ThreadView {
            channels: self.channels.clone(),
            run_id: run.id,
            answer: run.output_message_id,
            position: position.unsigned_abs(),
            since: self.since,
            history: Arc::default(),
            checkpoints: RunCheckpoints { before: self.thread.id, input: run.input_message_id, step: 0 },
        };
        let mut memory = None;
        if self.channels.has(Channel::Values) || self.channels.has(Channel::Checkpoints) {
            let _turn = self.app.read_limit().begin(&self.caller).await?;
            let _assembled = self.app.unread_answers().assemble(&self.caller, self.app.config().max_page_bytes)?;
            (view.history, view.checkpoints) = states_before_answer(&self.app, owner, &run).await?;
            // The history, one encoding of it, and the frames before that.
            let bytes = 2 * view.history.bytes() + SLICE_BYTES;
            memory = Some(self.app.unread_answers().hold(&self.caller, bytes)?);
        }
        let fold = ThreadFold::new(view);
        let unfolded = VecDeque::new();
        let followed =
            FollowedRun { run, subscriber, fold, unfolded, paused_at: None, has_ended: false, _memory: memory };
        self.place = StreamPlace::Run(Box::new(followed));
        Ok(true)
    }

    /// Waits for an event, for the next run, or for the next heartbeat.
    async fn wait(&mut self) -> WakeReason {
        let until = self.ends_at.map_or(self.heartbeat_at, |end| self.heartbeat_at.min(end));
        if let StreamPlace::Run(followed) = &mut self.place {
            return followed.subscriber.wait(until).await;
        }
        let drain = self.app.relay().drain();
        tokio::select! {
            biased;
            () = drain.cancelled() => WakeReason::Draining,
            // The stream holds the sender, so it cannot be gone.
            _ = self.arrivals.changed() => WakeReason::Changed,
            () = sleep_until(until) => WakeReason::TimedOut,
        }
    }

    fn last_words(&mut self) -> Bytes {
        match std::mem::replace(&mut self.place, StreamPlace::Truncating) {
            StreamPlace::Run(followed) => followed.subscriber.permit.last_words(),
            StreamPlace::Idle(permit) => permit.last_words(),
            StreamPlace::Truncating | StreamPlace::Over => Bytes::new(),
        }
    }

    async fn truncate(&mut self) -> Result<Bytes, TruncatedStream> {
        self.place = StreamPlace::Over;
        // The server discards frames of the poll that returns an error, so this one lets it send them first.
        tokio::task::yield_now().await;
        Err(TruncatedStream)
    }
}

/// The result of a step without waiting.
enum Advance {
    /// The next events, which may be none of those that the client wants.
    Events(Vec<u8>),
    /// There is nothing to send yet.
    Nothing,
}

impl FollowedRun {
    /// Returns the permit for the stream, which continues with another run.
    fn into_permit(self: Box<Self>) -> OpenStream {
        let Self { subscriber, .. } = *self;
        subscriber.permit
    }

    async fn advance(&mut self, app: &App) -> Result<Advance, TruncatedStream> {
        if !self.unfolded.is_empty() {
            return Ok(Advance::Events(self.fold_some()));
        }
        match self.subscriber.next().await {
            Ok(Next::Events(slice)) => {
                self.unfolded.extend(slice.events().cloned());
                self.subscriber.note_sent(self.unfolded.len());
                Ok(Advance::Events(self.fold_some()))
            }
            Ok(Next::CaughtUp) => Ok(self.pause(app).await.map_or(Advance::Nothing, Advance::Events)),
            Ok(Next::Ended) => {
                self.has_ended = true;
                Ok(Advance::Events(Vec::new()))
            }
            Err(ReadError::Storage(error)) => {
                tracing::debug!(%error, "failed to read the events of a thread's run; trying again");
                Ok(Advance::Nothing)
            }
            // The run or its events were deleted during the stream.
            Err(ReadError::ForeignCursor | ReadError::EventsGone | ReadError::NoSuchRun) => Err(TruncatedStream),
        }
    }

    /// Folds events until the client has enough to read: each may have all messages of the thread.
    fn fold_some(&mut self) -> Vec<u8> {
        while let Some(event) = self.unfolded.pop_front() {
            self.fold.push(&event);
            self.has_ended = event.is_terminal();
            if self.fold.bytes() >= SLICE_BYTES {
                break;
            }
        }
        self.fold.take()
    }

    /// Returns the events of a pause, once, if the run waits now. The subscriber must have the run's newest event.
    async fn pause(&mut self, app: &App) -> Option<Vec<u8>> {
        let position = self.subscriber.position();
        if position.block != Block::Waiting || self.paused_at == Some(position.id) {
            return None;
        }
        if !app.relay().is_waiting_after(self.run.id, position.id).await.unwrap_or(false) {
            return None;
        }
        self.paused_at = Some(position.id);
        self.fold.pause();
        Some(self.fold.take())
    }
}

/// Returns the position of the run that a stream begins with.
async fn first_position(app: &App, caller: &Caller, thread: &Conversation, since: Option<u64>) -> Result<i64, Problem> {
    let Some(since) = since else {
        let Some(run) = current_run(app, caller, thread).await? else { return Ok(1) };
        return Ok(app.storage().run_position(run.id).await?.unwrap_or(1));
    };
    let newest = app.storage().newest_positions(&caller.owner, thread.id, REPLAYED_RUNS).await?;
    let has_frames = |position: &&i64| position.unsigned_abs() >= position_of(since);
    let first = newest.iter().rev().find(has_frames);
    Ok(first.copied().unwrap_or_else(|| newest.first().map_or(1, |newest| newest + 1)))
}
