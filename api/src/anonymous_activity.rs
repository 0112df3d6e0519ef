//! Records the last visit of anonymous users, at most once per interval. The sweeper removes users that do not return.

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

/// The anonymous users whose visit this process has recorded lately.
pub struct AnonymousActivity {
    storage: Storage,
    /// Time for which the process does not record a user again.
    interval: Duration,
    noted: Mutex<HashMap<String, Note>>,
}

/// A record of a visit.
struct Note {
    at: Instant,
    /// False while the database stores it.
    is_stored: bool,
}

/// Longest time for which the process does not record a user again.
const NOTE_INTERVAL: Duration = Duration::from_secs(12 * 60 * 60);

/// Users in memory. Beyond it, the process clears the map and records all users again.
const MAX_USERS: usize = 100_000;

impl AnonymousActivity {
    /// `forgotten_after` is the absence after which the sweeper removes a user.
    pub fn new(storage: Storage, forgotten_after: Option<Duration>) -> Self {
        // Four records within the absence keep an active user, however short the absence is.
        let interval = forgotten_after.map_or(NOTE_INTERVAL, |absence| NOTE_INTERVAL.min(absence / 4));
        Self { storage, interval, noted: Mutex::default() }
    }

    /// Records a caller who is about to write. Order matters: this precedes the write, so that the sweeper finds all
    /// data of an anonymous user.
    pub async fn note_write(&self, caller: &Caller) -> Result<(), Problem> {
        if caller.kind == CallerKind::Anonymous && !self.has_note(&caller.owner, |note| note.is_stored) {
            self.storage.remember_anonymous(&caller.owner).await?;
            self.keep_note(&caller.owner, true);
        }
        Ok(())
    }

    /// Records a caller who reads and may have written before.
    fn note_read(self: &Arc<Self>, owner: String) {
        if self.has_note(&owner, |_| true) {
            return;
        }
        self.keep_note(&owner, false);
        let activity = Arc::clone(self);
        tokio::spawn(async move {
            let noted = activity.storage.see_anonymous(&owner).await;
            match noted {
                Ok(true) => activity.keep_note(&owner, true),
                // The first write must record an owner who has no data yet.
                Ok(false) | Err(_) => activity.forget(&owner),
            }
            if let Err(error) = noted {
                tracing::debug!(error = &error as &dyn Error, "failed to record the visit of an anonymous user");
            }
        });
    }

    fn has_note(&self, owner: &str, counts: fn(&Note) -> bool) -> bool {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.get(owner).is_some_and(|note| note.at.elapsed() < self.interval && counts(note))
    }

    fn keep_note(&self, owner: &str, is_stored: bool) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() >= MAX_USERS {
            noted.clear();
        }
        noted.insert(owner.to_owned(), Note { at: Instant::now(), is_stored });
    }

    /// Makes the next request of the owner record it again.
    pub fn forget(&self, owner: &str) {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).remove(owner);
    }
}

/// Records the visits of returning anonymous users.
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
