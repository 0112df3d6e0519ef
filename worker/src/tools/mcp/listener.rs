//! The notifications and requests of a server that the worker accepts: changes of its tools, and progress of its calls.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    },
    service::NotificationContext,
};

use crate::signs_of_life::SignsOfLife;

/// Offers no capability: no sampling, no roots, no elicitation.
#[derive(Default)]
pub struct NotificationListener {
    changes: AtomicU64,
    /// The last progress of each request that waits for its answer, by its token.
    progress: Mutex<HashMap<String, RequestProgress>>,
}

/// The last progress of one request, which is a sign of life of its run too.
struct RequestProgress {
    last: Option<Instant>,
    of_run: Option<SignsOfLife>,
}

/// Notes the progress of one request until it is dropped.
pub struct ProgressWatch<'a> {
    listener: &'a NotificationListener,
    token: String,
}

impl ProgressWatch<'_> {
    /// Returns when the server has last reported progress.
    pub fn last(&self) -> Option<Instant> {
        self.listener.progress().get(&self.token).and_then(|progress| progress.last)
    }
}

impl Drop for ProgressWatch<'_> {
    fn drop(&mut self) {
        self.listener.progress().remove(&self.token);
    }
}

impl NotificationListener {
    /// Returns how often the tools have changed on this connection.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Notes the progress that the server reports for this token, also as signs of life of the run.
    pub fn watch(&self, token: &ProgressToken, of_run: Option<SignsOfLife>) -> ProgressWatch<'_> {
        // A server may have turned the number into a text.
        let token = token.0.to_string();
        self.progress().insert(token.clone(), RequestProgress { last: None, of_run });
        ProgressWatch { listener: self, token }
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<String, RequestProgress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientHandler for NotificationListener {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        if let Some(progress) = self.progress().get_mut(&progress.progress_token.0.to_string()) {
            progress.last = Some(Instant::now());
            progress.of_run.iter().for_each(SignsOfLife::note);
        }
    }

    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("holdfast", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
