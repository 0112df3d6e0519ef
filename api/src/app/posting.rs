//! Posting a message: the fields that a route fills in, and the three ways to wait for its run.

use std::sync::Arc;

use holdfast_shared::{
    config::ApiConfig,
    event_id::EventId,
    idempotency::IdempotencyKey,
    run::{Run, SubmitMode},
    storage::{AddedMessage, MessageInput, NewRun, RunOptions, Target},
    time_zone::RunZone,
};
use uuid::Uuid;

use super::{App, PostedMessage};
use crate::{auth::Caller, problem::Problem, relay::Subscriber, spans};

/// A message that a caller posts, as its route has read it.
pub struct Posting {
    /// The conversation of the message.
    pub target: Target,
    /// The message, or the message that the run answers again.
    pub input: MessageInput,
    /// Messages that the client has from elsewhere, for a conversation without messages.
    pub given: Vec<AddedMessage>,
    /// The id that the client gave its message.
    pub client_message_id: Option<String>,
    /// The effect on unfinished runs of the conversation.
    pub mode: SubmitMode,
    /// How the run is executed.
    pub options: RunOptions,
    /// The client's idempotency key.
    pub key: Option<IdempotencyKey>,
}

impl Posting {
    /// Returns a message with the defaults of all that a client need not say.
    pub fn new(target: Target, input: MessageInput) -> Self {
        Self {
            target,
            input,
            given: Vec::new(),
            client_message_id: None,
            mode: SubmitMode::default(),
            options: RunOptions::default(),
            key: None,
        }
    }

    /// Returns the run of the message, with an id, the deployment's limits, and the zone and the span of the request. Fails if
    /// there is no such zone.
    pub(super) fn into_run(self, caller: &Caller, config: &ApiConfig) -> Result<NewRun, Problem> {
        let Self { target, mut input, given, client_message_id, mode, mut options, key } = self;
        (options.overrides.links, options.overrides.speaker) = input.take_for_worker();
        let zone = RunZone { named: caller.time_zone()?, otherwise: config.time_zone.clone() };
        Ok(NewRun {
            run_id: Uuid::now_v7(),
            target,
            input,
            given,
            client_message_id,
            mode,
            options: RunOptions { zone, ..options },
            max_metadata: config.max_metadata_bytes,
            key,
            max_unfinished: config.max_queued,
            caller_group: caller.group.clone(),
            traceparent: spans::of_request(),
        })
    }
}

impl App {
    /// Commits a message with its run and wakes a worker. Fails if a limit, a quota or the request's content forbids
    /// it.
    pub async fn post(self: &Arc<Self>, caller: &Caller, posting: Posting) -> Result<PostedMessage, Problem> {
        let (committed, _) = self.submit(caller, posting.into_run(caller, self.config())?).await?;
        Ok(committed)
    }

    /// Calls `post` and opens a stream of the run: from its first event, or from `cursor` if the request is a repeated
    /// one.
    pub async fn post_and_follow(
        self: &Arc<Self>,
        caller: &Caller,
        posting: Posting,
        cursor: EventId,
    ) -> Result<(PostedMessage, Option<Subscriber>), Problem> {
        let new = posting.into_run(caller, self.config())?;
        // Order matters: the limit on streams refuses the request before the commit.
        let stream = self.streams.open(caller)?;
        // The relay subscribes concurrently, because the stream must not miss any event of the run.
        let (topic, submitted) = tokio::join!(self.relay.open_topic(new.run_id), self.submit(caller, new));
        let (committed, queued) = submitted?;
        let (owner, run) = (&caller.owner, Arc::new(committed.run.clone()));
        let subscriber = match queued {
            Some(queued) => Some(self.relay.open_new(topic, owner, &run, queued, stream)),
            None => Box::pin(self.relay.resume(owner, &run, cursor, stream)).await?,
        };
        Ok((committed, subscriber))
    }

    /// Calls `post_and_follow` and waits for the run's first output. Fails with `run_failed` if the run fails before
    /// that.
    pub async fn post_and_await_output(
        self: &Arc<Self>,
        caller: &Caller,
        posting: Posting,
        cursor: EventId,
    ) -> Result<(PostedMessage, Option<Subscriber>), Problem> {
        let (committed, mut subscriber) = self.post_and_follow(caller, posting, cursor).await?;
        self.await_output(&committed.run, subscriber.as_mut()).await?;
        Ok((committed, subscriber))
    }

    /// Waits for the run's first output, up to `head_wait`. Fails with `run_failed` if the run fails before that.
    pub async fn await_output(&self, run: &Run, subscriber: Option<&mut Subscriber>) -> Result<(), Problem> {
        if let Some(subscriber) = subscriber
            && let Some(error) = subscriber.failure_before_output(EventId::ORIGIN, self.config.head_wait).await
        {
            return Err(Problem::run_failed(run.id, &error));
        }
        Ok(())
    }
}
