//! The use cases. Routes call them; they combine storage, run log, queue and relay.

mod access;
mod additions;
mod after;
mod agent_checks;
mod answers;
mod content;
mod knowledge;
mod owners;
mod plans;
mod posting;
mod repeated_upload;
mod schemas;
mod search;
mod standing;
mod submit;
mod uploads;
mod versions;
mod workspace;

use std::{sync::Arc, time::Duration};

use holdfast_knowledge::Knowledge;
use holdfast_shared::{
    config::{ApiConfig, FilesConfig, ModelChoice, ToolsConfig, WebSearchConfig},
    conversation::Conversation,
    file_store::FileStore,
    message::Message,
    queue::Queue,
    quotas::{FileLimits, KnowledgeLimits, MemoryLimits, Quotas, WorkspaceLimits},
    run::{Run, RunStatus},
    run_log::RunLog,
    schema::SchemaChecks,
    storage::{self, CancelOutcome, Storage, TakeBackOutcome},
    turns::Turns,
};
use holdfast_workspace::{WebSearch, Workspace};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::{
    anonymous_activity::AnonymousActivity, anonymous_limits::AnonymousLimits, auth::Authenticator, bodies::Bodies,
    metrics::Metrics, problem::Problem, read_limit::ReadLimit, relay::Relay, search_limit::SearchLimit,
    streams::Streams, unread_answers::UnreadAnswers,
};

pub use content::{ContentInput, InputPiece, fingerprint};
pub use knowledge::SubmittedDocument;
pub use plans::EditedPlan;
pub use posting::Posting;
pub use submit::conversation_label;
pub use uploads::{UploadRange, time_at_least_rate};
pub use workspace::UndoneChanges;

/// The dependencies of the use cases.
pub struct Parts {
    pub storage: Storage,
    pub file_store: FileStore,
    pub run_log: RunLog,
    pub queue: Queue,
    pub relay: Arc<Relay>,
    pub auth: Arc<Authenticator>,
    pub anonymous_limits: AnonymousLimits,
    pub anonymous_activity: AnonymousActivity,
    pub quotas: Quotas,
    pub file_quotas: FileLimits,
    pub knowledge_limits: KnowledgeLimits,
    pub workspace_limits: WorkspaceLimits,
    pub memory_limits: MemoryLimits,
    pub web_search: WebSearchConfig,
    pub streams: Streams,
    pub config: ApiConfig,
    pub files: FilesConfig,
    pub tools: ToolsConfig,
    pub model: Option<ModelChoice>,
    pub metrics: Metrics,
}

/// The API of one process.
pub struct App {
    storage: Storage,
    file_store: FileStore,
    workspace: Workspace,
    workspace_limits: WorkspaceLimits,
    knowledge: Knowledge,
    knowledge_limits: KnowledgeLimits,
    web_search: Option<WebSearch>,
    run_log: RunLog,
    queue: Queue,
    relay: Arc<Relay>,
    auth: Arc<Authenticator>,
    anonymous_limits: AnonymousLimits,
    anonymous_activity: Arc<AnonymousActivity>,
    quotas: Quotas,
    file_quotas: FileLimits,
    memory_limits: MemoryLimits,
    streams: Streams,
    config: ApiConfig,
    files: FilesConfig,
    tools: ToolsConfig,
    model: Option<ModelChoice>,
    schemas: SchemaChecks,
    bodies: Bodies,
    unread_answers: UnreadAnswers,
    search_limit: SearchLimit,
    read_limit: ReadLimit,
    restores: Turns,
    workspace_changes: Turns,
    web_searches: Turns,
    agent_checks: Turns,
    metrics: Metrics,
    /// Tasks that must finish although no request waits for them.
    pending: TaskTracker,
}

/// A message that is committed with its run, and their conversation.
pub struct PostedMessage {
    pub conversation: Conversation,
    pub message: Message,
    pub run: Run,
}

/// Time for pending tasks when the process ends. If one does not finish, the expiry of a worker's lease does its work.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);

impl App {
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts {
            storage,
            file_store,
            run_log,
            queue,
            relay,
            auth,
            anonymous_limits,
            anonymous_activity,
            quotas,
            file_quotas,
            knowledge_limits,
            workspace_limits,
            memory_limits,
            web_search,
            streams,
            config,
            files,
            tools,
            model,
            metrics,
        } = parts;
        let schemas = SchemaChecks::new(&tools);
        let bodies = Bodies::new(config.bodies_bytes, config.bodies_per_caller_bytes);
        let unread_answers =
            UnreadAnswers::new(config.answers_bytes, config.answers_per_caller_bytes, config.answer_timeout);
        let (search_limit, read_limit) = (SearchLimit::new(config.searches), ReadLimit::new(config.reads));
        let workspace = Workspace::new(&storage, workspace_limits);
        Arc::new(Self {
            anonymous_activity: Arc::new(anonymous_activity),
            // The API makes no vectors of questions.
            knowledge: Knowledge::new(&storage, knowledge_limits, 0),
            knowledge_limits,
            storage,
            file_store,
            workspace,
            workspace_limits,
            web_search: WebSearch::new(&web_search),
            run_log,
            queue,
            relay,
            auth,
            anonymous_limits,
            quotas,
            file_quotas,
            memory_limits,
            streams,
            config,
            files,
            tools,
            model,
            schemas,
            bodies,
            unread_answers,
            search_limit,
            read_limit,
            restores: Turns::new(versions::RESTORES),
            workspace_changes: Turns::new(workspace::CHANGES),
            web_searches: Turns::new(workspace::WEB_SEARCHES),
            agent_checks: Turns::new(agent_checks::AGENT_CHECKS),
            metrics,
            pending: TaskTracker::new(),
        })
    }

    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    pub const fn file_store(&self) -> &FileStore {
        &self.file_store
    }

    pub const fn files(&self) -> &FilesConfig {
        &self.files
    }

    pub fn run_log(&self) -> &RunLog {
        &self.run_log
    }

    pub fn relay(&self) -> &Arc<Relay> {
        &self.relay
    }

    pub fn auth(&self) -> &Arc<Authenticator> {
        &self.auth
    }

    pub const fn anonymous_limits(&self) -> &AnonymousLimits {
        &self.anonymous_limits
    }

    pub const fn anonymous_activity(&self) -> &Arc<AnonymousActivity> {
        &self.anonymous_activity
    }

    pub const fn bodies(&self) -> &Bodies {
        &self.bodies
    }

    pub const fn memory_limits(&self) -> MemoryLimits {
        self.memory_limits
    }

    pub const fn unread_answers(&self) -> &UnreadAnswers {
        &self.unread_answers
    }

    pub const fn read_limit(&self) -> &ReadLimit {
        &self.read_limit
    }

    pub const fn streams(&self) -> &Streams {
        &self.streams
    }

    pub fn config(&self) -> &ApiConfig {
        &self.config
    }

    /// Returns whether clients may define agents with stdio servers, which are commands on a worker's host.
    pub const fn takes_commands(&self) -> bool {
        self.tools.mcp_stdio
    }

    /// Returns the deployment's model if this process is also a worker.
    pub const fn model(&self) -> Option<&ModelChoice> {
        self.model.as_ref()
    }

    /// Returns the names of the workers' environment variables that agents may use.
    pub fn agent_secrets(&self) -> &[String] {
        &self.tools.agent_secrets
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the owner's run for one more stream of it. It reads the database only if no other client streams the run
    /// from this process. The status may be outdated.
    pub async fn run_to_stream(&self, owner: &str, run_id: Uuid) -> Result<Arc<Run>, Problem> {
        if let Some(run) = self.relay.remembered(owner, run_id) {
            return Ok(run);
        }
        let run = self.storage.run_without_answer(owner, run_id).await?;
        run.map(Arc::new).ok_or_else(|| Problem::run_not_found(run_id))
    }

    /// Requests the end of a run, and ends it here if its worker does not. Fails if the owner has no such run.
    pub async fn cancel(self: &Arc<Self>, owner: &str, run_id: Uuid) -> Result<Run, Problem> {
        let (storage, user) = (self.storage.clone(), owner.to_owned());
        self.end_with(owner, run_id, async move { storage.request_cancel(&user, run_id).await }).await
    }

    /// Does what `cancel` does, and takes the run's message and its answer back. A run that has ended keeps both.
    pub async fn roll_back(self: &Arc<Self>, owner: &str, run_id: Uuid) -> Result<Run, Problem> {
        let (storage, user) = (self.storage.clone(), owner.to_owned());
        self.end_with(owner, run_id, async move { storage.roll_back(&user, run_id).await }).await
    }

    async fn end_with(
        self: &Arc<Self>,
        owner: &str,
        run_id: Uuid,
        cancel: impl Future<Output = Result<CancelOutcome, storage::Error>> + Send + 'static,
    ) -> Result<Run, Problem> {
        let app = Arc::clone(self);
        let cancelled = self.to_completion(async move {
            let cancelled = cancel.await?;
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

    /// Cancels a run whose client has disconnected, after `grace`, unless it waits for an answer then. No request waits for the task.
    pub fn cancel_abandoned(self: &Arc<Self>, owner: String, run_id: Uuid, grace: Duration) {
        let app = Arc::clone(self);
        self.pending.spawn(async move {
            // A shutdown does not wait for the time.
            if tokio::time::timeout(grace, app.relay.until_draining()).await.is_ok() {
                return;
            }
            // Another client, or the one that has come back, still wants the answer.
            if !grace.is_zero() && app.relay.is_followed(run_id) {
                return;
            }
            let cancelled = async {
                let run = app.storage.run_without_answer(&owner, run_id).await?;
                if run.is_some_and(|run| matches!(run.status, RunStatus::Queued | RunStatus::Running)) {
                    app.cancel(&owner, run_id).await?;
                }
                Ok::<(), Problem>(())
            };
            if let Err(problem) = cancelled.await {
                tracing::warn!(run.id = %run_id, problem.code, problem.detail, "failed to cancel a run whose client has disconnected");
            }
        });
    }

    /// Takes a message back. Fails if a run has begun with it.
    pub async fn take_back(self: &Arc<Self>, owner: &str, run_id: Uuid) -> Result<Run, Problem> {
        let (app, user) = (Arc::clone(self), owner.to_owned());
        let taken = self.to_completion(async move {
            let taken = app.storage.take_back(&user, run_id).await?;
            if let TakeBackOutcome::TakenBack(ended) = &taken {
                app.follow_up(vec![ended.clone()], Vec::new());
            }
            Ok(taken)
        });
        match taken.await? {
            TakeBackOutcome::TakenBack(_) => {}
            TakeBackOutcome::Begun => return Err(Problem::run_begun(run_id)),
            TakeBackOutcome::NotFound => return Err(Problem::run_not_found(run_id)),
        }
        self.storage.run(owner, run_id).await?.ok_or_else(|| Problem::run_not_found(run_id))
    }

    /// Hides a conversation and cancels its unfinished runs. Fails if the owner has no such conversation.
    pub async fn delete_conversation(self: &Arc<Self>, owner: &str, id: Uuid) -> Result<(), Problem> {
        let (app, user) = (Arc::clone(self), owner.to_owned());
        let deleted = self.to_completion(async move {
            let cancelled = app.storage.delete_conversation(&user, id).await?;
            Ok(cancelled.map(|(ended, requested)| {
                app.relay.forget(id);
                app.follow_up(ended, requested)
            }))
        });
        deleted.await?.ok_or_else(|| Problem::conversation_not_found(id))
    }

    /// Waits for pending tasks, up to `SETTLE_TIMEOUT`.
    pub async fn settle(&self) {
        self.pending.close();
        let _ = tokio::time::timeout(SETTLE_TIMEOUT, self.pending.wait()).await;
    }

    /// Runs `work` to completion, also if the client hangs up meanwhile: a commit needs the steps that follow it.
    /// The work begins at once, so that the future of the caller's request does not hold it too.
    pub fn to_completion<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> impl Future<Output = Result<T, Problem>> {
        let task = self.pending.spawn(work);
        async move {
            task.await.unwrap_or_else(|panicked| {
                tracing::error!(error = %panicked, "failed to complete a use case: it panicked");
                Err(Problem::internal())
            })
        }
    }
}
