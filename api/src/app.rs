//! The use cases: what the routes ask for, made of storage, log, queue and relay.

use std::{error::Error, sync::Arc, time::Duration};

use holdfast_shared::{
    config::ApiConfig,
    conversation::Conversation,
    ending::Ending,
    event::Event,
    event_id::EventId,
    message::Message,
    queue::Queue,
    run::Run,
    run_log::{Batch, Gap, RunLog},
    storage::{Cancelled, EndedRun, NewRun, Storage, Submitted, Target},
    usage::Usage,
};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::{
    metrics::Metrics,
    problem::Problem,
    relay::{Opened, Relay},
};

/// One process's API.
pub struct App {
    storage: Storage,
    run_log: RunLog,
    queue: Queue,
    relay: Arc<Relay>,
    config: ApiConfig,
    metrics: Metrics,
    /// Cancels that wait for a worker.
    pending: TaskTracker,
}

/// A message that is committed with its run.
pub struct Posted {
    pub conversation: Conversation,
    pub message: Message,
    pub run: Run,
}

/// Time that cancels have to settle when the process ends; a worker's lease settles the rest.
const SETTLE: Duration = Duration::from_secs(2);

impl App {
    pub fn new(
        storage: Storage,
        run_log: RunLog,
        queue: Queue,
        relay: Arc<Relay>,
        config: ApiConfig,
        metrics: Metrics,
    ) -> Arc<Self> {
        Arc::new(Self { storage, run_log, queue, relay, config, metrics, pending: TaskTracker::new() })
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

    pub fn config(&self) -> &ApiConfig {
        &self.config
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Commits a message with its run and wakes a worker.
    pub async fn post(self: &Arc<Self>, owner: &str, new: NewRun) -> Result<Posted, Problem> {
        let (posted, _) = self.submit(owner, new).await?;
        Ok(posted)
    }

    /// The same, and follows the run: from its first event on, or from `cursor` where the request is a repeated one.
    pub async fn post_and_follow(
        self: &Arc<Self>,
        owner: &str,
        new: NewRun,
        cursor: EventId,
    ) -> Result<(Posted, Opened), Problem> {
        // Watching is begun meanwhile, because nothing of the run may be missed.
        let (watch, submitted) = tokio::join!(self.relay.watch(new.run_id), self.submit(owner, new));
        let (posted, queued) = submitted?;
        let opened = match queued {
            Some(queued) => Opened::Stream(Box::new(self.relay.open_new(watch, queued))),
            None => self.relay.open(posted.run.id, cursor).await?,
        };
        Ok((posted, opened))
    }

    async fn submit(self: &Arc<Self>, owner: &str, new: NewRun) -> Result<(Posted, Option<Event>), Problem> {
        if new.content.trim().is_empty() {
            return Err(Problem::empty_content());
        }
        if new.content.len() > self.config.max_content_bytes {
            return Err(Problem::content_too_long(new.content.len(), self.config.max_content_bytes));
        }
        match self.storage.submit(owner, &new).await? {
            Submitted::Accepted(accepted) => {
                // From here on the message is committed: whatever fails now costs time only.
                self.wake().await;
                for ended in &accepted.ended {
                    self.show_end(ended).await;
                }
                for run_id in accepted.cancel_requested {
                    self.pursue_cancel(run_id).await;
                }
                let posted =
                    Posted { conversation: accepted.conversation, message: accepted.message, run: accepted.run };
                Ok((posted, Some(accepted.queued)))
            }
            Submitted::Repeated(repeated) => {
                let (conversation, message, run) = *repeated;
                Ok((Posted { conversation, message, run }, None))
            }
            Submitted::KeyReused => Err(Problem::key_reused()),
            Submitted::Busy => Err(Problem::conversation_busy(target_id(&new.target))),
            Submitted::ConversationNotFound => Err(Problem::conversation_not_found(target_id(&new.target))),
            Submitted::AgentNotFound => Err(Problem::agent_not_found(target_id(&new.target))),
        }
    }

    /// Asks for the end of a run, and sees to it if its worker does not.
    pub async fn cancel(self: &Arc<Self>, owner: &str, run_id: Uuid) -> Result<Run, Problem> {
        self.cancel_unfinished(owner, run_id).await?;
        self.storage.run(owner, run_id).await?.ok_or_else(|| Problem::run_not_found(run_id))
    }

    /// Hides a conversation and cancels what it has not finished.
    pub async fn delete_conversation(self: &Arc<Self>, owner: &str, id: Uuid) -> Result<(), Problem> {
        let runs =
            self.storage.delete_conversation(owner, id).await?.ok_or_else(|| Problem::conversation_not_found(id))?;
        for run_id in runs {
            self.cancel_unfinished(owner, run_id).await?;
        }
        Ok(())
    }

    /// Waits until the cancels of this process have come to an end.
    pub async fn settle(&self) {
        self.pending.close();
        let _ = tokio::time::timeout(SETTLE, self.pending.wait()).await;
    }

    async fn cancel_unfinished(self: &Arc<Self>, owner: &str, run_id: Uuid) -> Result<(), Problem> {
        match self.storage.request_cancel(owner, run_id).await? {
            Cancelled::NotFound => return Err(Problem::run_not_found(run_id)),
            Cancelled::Over => {}
            Cancelled::Ended(ended) => self.show_end(&ended).await,
            Cancelled::Requested => self.pursue_cancel(run_id).await,
        }
        Ok(())
    }

    /// Tells the run's worker, and ends the run here if the worker has not done so in time.
    async fn pursue_cancel(self: &Arc<Self>, run_id: Uuid) {
        if let Err(error) = self.queue.signal_cancel(run_id).await {
            tracing::debug!(run.id = %run_id, error = &error as &dyn Error, "the worker learns of a cancel with its next renewal");
        }
        let app = Arc::clone(self);
        self.pending.spawn(async move {
            tokio::time::sleep(app.config.cancel_grace).await;
            match app.storage.end_run(run_id, &Ending::Cancelled { usage: Usage::default() }).await {
                Ok(Some(ended)) => app.show_end(&ended).await,
                Ok(None) => {}
                Err(error) => tracing::warn!(run.id = %run_id, error = &error as &dyn Error, "a cancelled run is left to its worker's lease"),
            }
        });
    }

    /// Shows the end of a run that was ended here.
    async fn show_end(&self, ended: &EndedRun) {
        metrics::counter!("holdfast_runs_ended_total", "status" => ended.status.as_str()).increment(1);
        if ended.next_waits {
            self.wake().await;
        }
        let Some(batch) = Batch::of(&ended.events) else { return };
        if let Err(error) = self.run_log.append(ended.run_id, &batch, Gap::Archived).await {
            tracing::debug!(run.id = %ended.run_id, error = &error as &dyn Error, "clients see the run's end a little later");
        }
    }

    async fn wake(&self) {
        if let Err(error) = self.queue.wake().await {
            tracing::debug!(error = &error as &dyn Error, "workers find the run with their next look");
        }
    }
}

fn target_id(target: &Target) -> Uuid {
    match target {
        Target::Existing(id) => *id,
        Target::New { agent_id } => agent_id.unwrap_or_default(),
    }
}
