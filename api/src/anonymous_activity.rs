//! When anonymous users were last here, noted seldom: the sweeper forgets those who do not come back.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use holdfast_shared::storage::Storage;

use crate::{
    app::App,
    auth::{self, Caller, CallerKind},
    problem::Problem,
};

/// The anonymous users that this process has noted lately.
pub struct AnonymousActivity {
    storage: Storage,
    /// Time for which a user is not noted again.
    interval: Duration,
    noted: Mutex<HashMap<String, Instant>>,
}

/// Longest time for which a user is not noted again.
const NOTE_INTERVAL: Duration = Duration::from_secs(12 * 60 * 60);

/// Users that are kept; beyond it, the process begins to note all of them again.
const MAX_USERS: usize = 100_000;

impl AnonymousActivity {
    /// `forgotten_after` is the absence after which the sweeper forgets a user.
    pub fn new(storage: Storage, forgotten_after: Option<Duration>) -> Self {
        // A user who is here all the time is noted often enough, however short the absence is.
        let interval = forgotten_after.map_or(NOTE_INTERVAL, |absence| NOTE_INTERVAL.min(absence / 4));
        Self { storage, interval, noted: Mutex::default() }
    }

    /// Notes a caller who is about to write something. Order matters: before the write, so that nothing of an anonymous user is
    /// stored that no sweep would find.
    pub async fn note_write(&self, caller: &Caller) -> Result<(), Problem> {
        if caller.kind == CallerKind::Anonymous && self.is_due(&caller.owner) {
            self.storage.remember_anonymous(&caller.owner).await.inspect_err(|_| self.forget(&caller.owner))?;
        }
        Ok(())
    }

    /// Notes a caller who reads something and may have written before.
    fn note_read(self: &Arc<Self>, owner: String) {
        if !self.is_due(&owner) {
            return;
        }
        let activity = Arc::clone(self);
        tokio::spawn(async move {
            let noted = activity.storage.see_anonymous(&owner).await;
            // An owner who has nothing yet is to be remembered with the first write.
            if !matches!(noted, Ok(true)) {
                activity.forget(&owner);
            }
            if let Err(error) = noted {
                tracing::debug!(error = &error as &dyn Error, "failed to note that an anonymous user is here");
            }
        });
    }

    fn is_due(&self, owner: &str) -> bool {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.get(owner).is_some_and(|at| at.elapsed() < self.interval) {
            return false;
        }
        if noted.len() >= MAX_USERS {
            noted.clear();
        }
        noted.insert(owner.to_owned(), Instant::now());
        true
    }

    /// Has the owner noted again.
    pub fn forget(&self, owner: &str) {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).remove(owner);
    }
}

/// Notes anonymous users who come back, whatever they ask for.
pub async fn note(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if let Some(caller) = auth::caller_of(&request)
        && caller.kind == CallerKind::Anonymous
        && !caller.is_new_user
        && request.method().is_safe()
    {
        app.anonymous_activity().note_read(caller.owner.clone());
    }
    next.run(request).await
}
