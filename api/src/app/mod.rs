//! The use cases: what the routes ask for, made of storage, log, queue and relay.

mod access;
mod after;
mod answers;
mod owners;
mod schemas;
mod search;
mod standing;
mod versions;

use std::{sync::Arc, time::Duration};

use holdfast_shared::{
    config::{ApiConfig, ModelChoice, ToolsConfig},
    conversation::{Conversation, Handle},
    event::Event,
    event_id::EventId,
    message::Message,
    queue::Queue,
    quotas::Quotas,
    run::Run,
    run_log::RunLog,
    schema::SchemaChecks,
    storage::{self, CancelOutcome, NewRun, Storage, SubmitOutcome, Target},
};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::{
    auth::{Auth, Caller},
    bodies::Bodies,
    metrics::Metrics,
    problem::Problem,
    relay::{Opened, Relay},
    searches::Searches,
    seen::Seen,
    spans,
    strangers::Strangers,
    streams::Streams,
    unread::Unread,
};

/// What the use cases are made of.
pub struct Parts {
    pub storage: Storage,
    pub run_log: RunLog,
    pub queue: Queue,
    pub relay: Arc<Relay>,
    pub auth: Arc<Auth>,
    pub strangers: Strangers,
    pub seen: Seen,
    pub quotas: Quotas,
    pub streams: Streams,
    pub config: ApiConfig,
    pub tools: ToolsConfig,
    pub model: Option<ModelChoice>,
    pub metrics: Metrics,
}

/// One process's API.
pub struct App {
    storage: Storage,
    run_log: RunLog,
    queue: Queue,
    relay: Arc<Relay>,
    auth: Arc<Auth>,
    strangers: Strangers,
    seen: Arc<Seen>,
    quotas: Quotas,
    streams: Streams,
    config: ApiConfig,
    tools: ToolsConfig,
    model: Option<ModelChoice>,
    schemas: SchemaChecks,
    bodies: Bodies,
    unread: Unread,
    searches: Searches,
    metrics: Metrics,
    /// What must come to an end although no request waits for it.
    pending: TaskTracker,
}

/// A message that is committed with its run.
pub struct Posted {
    pub conversation: Conversation,
    pub message: Message,
    pub run: Run,
}

/// Time that this has when the process ends; a worker's lease settles the rest.
const SETTLE: Duration = Duration::from_secs(2);

impl App {
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts {
            storage,
            run_log,
            queue,
            relay,
            auth,
            strangers,
            seen,
            quotas,
            streams,
            config,
            tools,
            model,
            metrics,
        } = parts;
        let schemas = SchemaChecks::new(&tools);
        let bodies = Bodies::new(config.bodies_bytes, config.bodies_per_caller_bytes, config.max_body_bytes);
        let unread = Unread::new(config.answers_bytes, config.answers_per_caller_bytes, config.answer_timeout);
        let searches = Searches::new(config.searches);
        Arc::new(Self {
            seen: Arc::new(seen),
            storage,
            run_log,
            queue,
            relay,
            auth,
            strangers,
            quotas,
            streams,
            config,
            tools,
            model,
            schemas,
            bodies,
            unread,
            searches,
            metrics,
            pending: TaskTracker::new(),
        })
    }

    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    pub fn run_log(&self) -> &RunLog {
        &self.run_log
    }

    pub fn relay(&self) -> &Arc<Relay> {
        &self.relay
    }

    pub fn auth(&self) -> &Arc<Auth> {
        &self.auth
    }

    pub const fn strangers(&self) -> &Strangers {
        &self.strangers
    }

    pub const fn seen(&self) -> &Arc<Seen> {
        &self.seen
    }

    pub const fn bodies(&self) -> &Bodies {
        &self.bodies
    }

    pub const fn unread(&self) -> &Unread {
        &self.unread
    }

    pub const fn streams(&self) -> &Streams {
        &self.streams
    }

    pub fn config(&self) -> &ApiConfig {
        &self.config
    }

    /// Whether agents with stdio servers, which are commands on a worker's host, are accepted from clients.
    pub const fn takes_commands(&self) -> bool {
        self.tools.mcp_stdio
    }

    /// The deployment's model, where this process is a worker, too.
    pub const fn model(&self) -> Option<&ModelChoice> {
        self.model.as_ref()
    }

    /// Variables of the workers that agents may use.
    pub fn agent_secrets(&self) -> &[String] {
        &self.tools.agent_secrets
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Commits a message with its run and wakes a worker.
    pub async fn post(self: &Arc<Self>, caller: &Caller, new: NewRun) -> Result<Posted, Problem> {
        let (posted, _) = self.submit(caller, new).await?;
        Ok(posted)
    }

    /// The same, and follows the run: from its first event on, or from `cursor` where the request is a repeated one.
    pub async fn post_and_follow(
        self: &Arc<Self>,
        caller: &Caller,
        new: NewRun,
        cursor: EventId,
    ) -> Result<(Posted, Opened), Problem> {
        // Order matters: a stream too many is refused before anything is committed.
        let stream = self.streams.open(caller)?;
        // Watching is begun meanwhile, because nothing of the run may be missed.
        let (watch, submitted) = tokio::join!(self.relay.watch_new(new.run_id), self.submit(caller, new));
        let (posted, queued) = submitted?;
        let (owner, run) = (&caller.owner, Arc::new(posted.run.clone()));
        let opened = match queued {
            Some(queued) => Opened::Stream(Box::new(self.relay.open_new(watch, owner, &run, queued, stream))),
            None => self.relay.resume(owner, &run, cursor, stream).await?,
        };
        Ok((posted, opened))
    }

    /// The same, but the head waits for the run's first output: a run that fails before it is a problem and no stream.
    pub async fn post_and_hear(
        self: &Arc<Self>,
        caller: &Caller,
        new: NewRun,
        cursor: EventId,
    ) -> Result<(Posted, Opened), Problem> {
        let (posted, mut opened) = self.post_and_follow(caller, new, cursor).await?;
        self.hear(&posted.run, &mut opened).await?;
        Ok((posted, opened))
    }

    /// Waits for the run's first output. A run that fails before it is a problem.
    pub async fn hear(&self, run: &Run, opened: &mut Opened) -> Result<(), Problem> {
        if let Opened::Stream(follower) = opened
            && let Some(error) = follower.failure_before_output(self.config.head_wait).await
        {
            return Err(Problem::run_failed(run.id, &error));
        }
        Ok(())
    }

    /// The owner's run, for one more stream of it: from the database only where nobody follows it here. Its status may be
    /// another by now.
    pub async fn run_to_follow(&self, owner: &str, run_id: Uuid) -> Result<Arc<Run>, Problem> {
        if let Some(run) = self.relay.remembered(owner, run_id) {
            return Ok(run);
        }
        let run = self.storage.run_without_answer(owner, run_id).await?;
        run.map(Arc::new).ok_or_else(|| Problem::run_not_found(run_id))
    }

    /// Asks for the end of a run, and sees to it if its worker does not.
    pub async fn cancel(self: &Arc<Self>, owner: &str, run_id: Uuid) -> Result<Run, Problem> {
        let (app, user) = (Arc::clone(self), owner.to_owned());
        let cancelled = self.to_its_end(async move {
            let cancelled = app.storage.request_cancel(&user, run_id).await?;
            match &cancelled {
                CancelOutcome::Ended(ended) => app.follow_up(vec![ended.clone()], Vec::new()),
                CancelOutcome::Requested => app.follow_up(Vec::new(), vec![run_id]),
                CancelOutcome::Over | CancelOutcome::NotFound => {}
            }
            Ok(cancelled)
        });
        if matches!(cancelled.await?, CancelOutcome::NotFound) {
            return Err(Problem::run_not_found(run_id));
        }
        self.storage.run(owner, run_id).await?.ok_or_else(|| Problem::run_not_found(run_id))
    }

    /// Hides a conversation and cancels what it has not finished.
    pub async fn delete_conversation(self: &Arc<Self>, owner: &str, id: Uuid) -> Result<(), Problem> {
        let (app, user) = (Arc::clone(self), owner.to_owned());
        let deleted = self.to_its_end(async move {
            let cancelled = app.storage.delete_conversation(&user, id).await?;
            Ok(cancelled.map(|(ended, requested)| {
                app.relay.forget(id);
                app.follow_up(ended, requested)
            }))
        });
        deleted.await?.ok_or_else(|| Problem::conversation_not_found(id))
    }

    /// Waits until what this process has begun has come to an end.
    pub async fn settle(&self) {
        self.pending.close();
        let _ = tokio::time::timeout(SETTLE, self.pending.wait()).await;
    }

    async fn submit(self: &Arc<Self>, caller: &Caller, new: NewRun) -> Result<(Posted, Option<Event>), Problem> {
        if let Some(content) = new.input.content() {
            self.check_content(content)?;
        }
        // A repeated request stores nothing, so no limit refuses it. Order matters: nothing is stored without the admissions.
        if let Some(key) = new.key.as_ref().filter(|_| caller.is_stranger) {
            match self.storage.repeated(&caller.owner, key).await? {
                Some(SubmitOutcome::Repeated(repeated)) => {
                    let (conversation, message, run) = *repeated;
                    spans::concerns(&run);
                    return Ok((Posted { conversation, message, run }, None));
                }
                Some(_) => return Err(Problem::key_reused()),
                None => {}
            }
        }
        self.strangers.admit(caller).await?;
        self.seen.before_write(caller).await?;
        self.expect_access_to(caller, &new.target).await?;
        self.compile_client_tools(caller, &new.options.client_tools).await?;
        let (app, user, target, max) = (Arc::clone(self), caller.owner.clone(), named(&new.target), new.max_unfinished);
        let (replaced, agent) = (new.input.replace_from().unwrap_or_default(), agent_of(&new.target));
        let submitted = self.to_its_end(async move {
            let span = spans::submit(new.traceparent, new.run_id);
            let submitted = app.storage.submit(&user, &app.quotas, &new).await?;
            drop(span);
            Ok(match submitted {
                // From here on the message is committed: whatever fails now costs time only.
                SubmitOutcome::Accepted(accepted) => {
                    app.wake();
                    app.follow_up(accepted.ended, accepted.cancel_requested);
                    let posted =
                        Posted { conversation: accepted.conversation, message: accepted.message, run: accepted.run };
                    Ok((posted, Some(accepted.queued)))
                }
                SubmitOutcome::Repeated(repeated) => {
                    let (conversation, message, run) = *repeated;
                    Ok((Posted { conversation, message, run }, None))
                }
                refused => Err(refused),
            })
        });
        let submitted = submitted.await?.inspect(|(posted, _)| spans::concerns(&posted.run));
        submitted.map_err(|refused| match refused {
            SubmitOutcome::KeyReused => Problem::key_reused(),
            SubmitOutcome::Busy => Problem::conversation_busy(target),
            SubmitOutcome::TooMany => Problem::too_many_queued(target, max),
            SubmitOutcome::TooManyRuns(max) => Problem::too_many_runs(max),
            SubmitOutcome::QuotaExceeded(max) => Problem::quota_exceeded(max),
            SubmitOutcome::MetadataTooLarge => Problem::invalid_metadata(self.config.max_metadata_bytes),
            SubmitOutcome::MessageNotFound => Problem::message_not_found(replaced, &target),
            SubmitOutcome::MessageExists => Problem::message_exists(&target),
            SubmitOutcome::NothingToAnswer => Problem::nothing_to_answer(replaced),
            SubmitOutcome::AgentNotFound => Problem::agent_not_found(agent),
            _ => Problem::conversation_not_found(target),
        })
    }

    fn check_content(&self, content: &str) -> Result<(), Problem> {
        if content.trim().is_empty() {
            return Err(Problem::empty_content());
        }
        if content.contains('\0') {
            return Err(Problem::invalid_content());
        }
        if content.len() > self.config.max_content_bytes {
            return Err(Problem::content_too_long(content.len(), self.config.max_content_bytes));
        }
        Ok(())
    }

    /// Does what was asked for to its end, also when the client hangs up meanwhile: a commit without what follows it would
    /// be half done.
    async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, storage::Error>> + Send + 'static,
    ) -> Result<T, Problem> {
        match self.pending.spawn(work).await {
            Ok(done) => Ok(done?),
            Err(panicked) => {
                tracing::error!(error = %panicked, "a use case panicked");
                Err(Problem::internal())
            }
        }
    }
}

/// What the client calls the conversation that it talks to.
pub fn named(target: &Target) -> String {
    match target {
        Target::Existing(id) => id.to_string(),
        Target::Named { handle: Handle::Session(name), .. } => format!("of session {name}"),
        Target::Named { handle: Handle::Chat(name), .. } => name.clone(),
        Target::Named { handle: Handle::Agent(id), .. } => format!("with agent {id}"),
        Target::New { .. } => String::new(),
    }
}

fn agent_of(target: &Target) -> Uuid {
    match target {
        Target::Existing(_) => Uuid::nil(),
        Target::Named { agent_id, .. } | Target::New { agent_id } => agent_id.unwrap_or_default(),
    }
}
