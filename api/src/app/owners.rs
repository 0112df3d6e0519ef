//! Use cases for all data of an owner: the quota of bytes, erasure, and the move to another owner.

use std::{error::Error, sync::Arc, time::Duration};

use holdfast_shared::{
    quotas::{Account, OtherQuotas},
    storage::{Erasure, ErasureStep},
};
use uuid::Uuid;

use super::App;
use crate::{auth::Caller, problem::Problem};

/// Time after which the worker of an erased run no longer appends events.
const LAST_APPEND: Duration = Duration::from_secs(5);

impl App {
    /// Admits a write that starts no run. Fails with `rate_limited`, which says when to retry.
    pub async fn admit_write(&self, caller: &Caller) -> Result<(), Problem> {
        self.anonymous_limits.admit_write(caller).await?;
        self.anonymous_activity.note_write(caller).await
    }

    /// Returns the owner with its quota of bytes, which storage checks for a write.
    pub const fn account<'a>(&self, owner: &'a str) -> Account<'a> {
        Account { owner, max_bytes: self.quotas.bytes }
    }

    /// Removes all data of an owner, also if the client hangs up meanwhile.
    pub async fn erase(self: &Arc<Self>, owner: &str) -> Result<(), Problem> {
        let (app, user) = (Arc::clone(self), owner.to_owned());
        self.to_completion(async move {
            loop {
                let erased = app.storage.erase_some(&user, Erasure::Wanted).await?;
                let is_done = erased.is_done;
                app.publish_erasure(erased).await;
                if is_done {
                    app.anonymous_activity.forget(&user);
                    return Ok(());
                }
            }
        })
        .await
    }

    /// Moves all data of an anonymous user to another owner. Returns the number of moved conversations. Open streams of
    /// the moved runs stay open.
    pub async fn move_owner(self: &Arc<Self>, from: &str, to: &str) -> Result<usize, Problem> {
        let (app, from, to) = (Arc::clone(self), from.to_owned(), to.to_owned());
        self.to_completion(async move {
            let others = OtherQuotas {
                files: app.file_quotas.named,
                memories: Some(app.memory_limits.of(&to)),
                knowledge: app.knowledge_limits.of(&to),
                workspace: Some(app.workspace_limits),
            };
            let moved = app.storage.move_owner(&from, &to, &app.quotas, others).await?;
            app.relay.move_owner(&from, &to);
            app.anonymous_activity.forget(&from);
            Ok(moved)
        })
        .await
    }

    /// Publishes a committed erasure to clients and workers, and removes the run logs.
    async fn publish_erasure(self: &Arc<Self>, erased: ErasureStep) {
        let ErasureStep { ended, runs, conversations, .. } = erased;
        // Order matters: the end of a run fences its worker out of the log, so the removal comes after it.
        for run in &ended {
            self.publish_end(run).await;
        }
        conversations.into_iter().for_each(|id| self.relay.forget(id));
        self.remove_logs(&runs).await;
        if ended.is_empty() {
            return;
        }
        let app = Arc::clone(self);
        self.pending.spawn(async move {
            for run in &ended {
                if let Err(error) = app.queue.signal_cancel(run.run_id).await {
                    tracing::debug!(run.id = %run.run_id, error = &error as &dyn Error, "failed to signal an erasure; the worker reads it with its next lease renewal");
                }
            }
            tokio::time::sleep(LAST_APPEND).await;
            let ids: Vec<Uuid> = ended.iter().map(|run| run.run_id).collect();
            app.remove_logs(&ids).await;
        });
    }

    async fn remove_logs(&self, runs: &[Uuid]) {
        if let Err(error) = self.run_log.remove(runs).await {
            tracing::warn!(
                error = &error as &dyn Error,
                "failed to remove the logs of erased runs; they expire by themselves"
            );
        }
    }
}
