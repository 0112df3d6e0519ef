//! Access tokens for Vertex AI: one for all runs of this process, refreshed before its end.
//!
//! A task of its own requests a token, at most one at a time, and all callers that need it wait for that task. So a
//! cancelled run takes no token from another, and an ended token costs one request. `credentials` has what proves the
//! identity, `grant` the protocols that turn it into a token.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use holdfast_shared::config::ModelConfig;
use secrecy::SecretString;
use tokio::time::{Instant, timeout};

use super::connect::ConnectError;

mod credentials;
mod grant;

use credentials::GoogleCredentials;
use grant::Granter;
pub(super) use grant::TokenFailure;

/// Time before a token's end at which it is refreshed. The metadata server keeps its token until 5 minutes before.
const REFRESH_BEFORE: Duration = Duration::from_secs(240);
/// Time before a token's end at which no request begins with it.
const UNUSABLE_BEFORE: Duration = Duration::from_secs(10);
/// Pause after a failed refresh of a token that is still usable.
const REST: Duration = Duration::from_secs(10);

/// A token that Google has issued, and the project that it is for.
pub(super) struct GoogleToken {
    pub secret: SecretString,
    pub project: String,
    refresh_at: Instant,
    unusable_at: Instant,
}

/// The source of this process's tokens.
#[derive(Clone)]
pub(super) struct GoogleTokens {
    source: Arc<TokenSource>,
}

struct TokenSource {
    granter: Granter,
    /// Project that pays for the requests of a user.
    quota_project: Option<String>,
    /// Longest time of one request for a token, from the connection to the end of the answer.
    limit: Duration,
    state: Mutex<TokenState>,
}

#[derive(Default)]
struct TokenState {
    newest: Option<Arc<GoogleToken>>,
    /// The request under way.
    flight: Option<TokenFlight>,
    /// No early refresh begins before.
    rests_until: Option<Instant>,
}

type TokenFlight = Shared<BoxFuture<'static, Result<Arc<GoogleToken>, TokenFailure>>>;

impl GoogleTokens {
    /// Reads the credentials that the settings choose. Returns `None` if there are none, so that requests need no
    /// token. Makes no request.
    pub fn load(config: &ModelConfig) -> Result<Option<Self>, ConnectError> {
        let Some(credentials) = GoogleCredentials::load(&config.vertex)? else { return Ok(None) };
        let quota_project = credentials.quota_project();
        let limit = config.model_connect;
        let granter = Granter::new(credentials, config.vertex.project(), limit)?;
        let source = TokenSource { granter, quota_project, limit, state: Mutex::default() };
        Ok(Some(Self { source: Arc::new(source) }))
    }

    /// Returns a token that lasts. Waits for a new one only if there is none.
    pub async fn get(&self) -> Result<Arc<GoogleToken>, TokenFailure> {
        let flight = {
            let mut state = self.source.lock();
            let now = Instant::now();
            match &state.newest {
                Some(token) if now < token.unusable_at => {
                    let token = Arc::clone(token);
                    let rests = state.rests_until.is_some_and(|rests_until| now < rests_until);
                    if now >= token.refresh_at && !rests {
                        // The flight's task needs no caller.
                        drop(self.join_flight(&mut state));
                    }
                    return Ok(token);
                }
                _ => self.join_flight(&mut state),
            }
        };
        flight.await
    }

    /// Returns a token in place of one that Vertex AI has refused. Callers with the same refused token share a request.
    pub async fn replace(&self, refused: &Arc<GoogleToken>) -> Result<Arc<GoogleToken>, TokenFailure> {
        self.source.lock().newest.take_if(|newest| Arc::ptr_eq(newest, refused));
        self.get().await
    }

    pub fn quota_project(&self) -> Option<&str> {
        self.source.quota_project.as_deref()
    }

    fn join_flight(&self, state: &mut TokenState) -> TokenFlight {
        let start = || {
            let source = Arc::clone(&self.source);
            let task = tokio::spawn(async move { source.refresh().await });
            task.map(|end| end.unwrap_or_else(|_| Err(TokenFailure::lost()))).boxed().shared()
        };
        state.flight.get_or_insert_with(start).clone()
    }
}

impl TokenSource {
    async fn refresh(&self) -> Result<Arc<GoogleToken>, TokenFailure> {
        let asked_at = Instant::now();
        let granted = timeout(self.limit, self.granter.request()).await;
        let granted = granted.unwrap_or(Err(TokenFailure::TimedOut { limit: self.limit }));
        let mut state = self.lock();
        state.flight = None;
        match granted {
            Ok(grant) => {
                let end_before = |longest: Duration, part: u32| {
                    asked_at + grant.lasts.saturating_sub(longest.min(grant.lasts / part))
                };
                let token = Arc::new(GoogleToken {
                    refresh_at: end_before(REFRESH_BEFORE, 4),
                    unusable_at: end_before(UNUSABLE_BEFORE, 10),
                    secret: grant.token,
                    project: grant.project,
                });
                state.newest = Some(Arc::clone(&token));
                Ok(token)
            }
            Err(failure) => {
                let now = Instant::now();
                // Callers report the failure, except those that still have a token.
                if state.newest.as_ref().is_some_and(|token| now < token.unusable_at) {
                    state.rests_until = Some(now + REST);
                    tracing::warn!(%failure, "failed to refresh the access token for Vertex AI; the old one still lasts");
                }
                Err(failure)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, TokenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
