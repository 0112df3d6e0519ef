//! Rate limits for anonymous callers, by address: one for runs, one for all other writes, one for reads. Cancels, answers,
//! streams and repeated requests have no limit.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{Method, StatusCode, request::Parts},
    middleware::Next,
    response::Response,
};
use holdfast_shared::rate_limit::{Rate, RateLimit};

use crate::{
    app::App,
    auth::{Caller, one_client},
    problem::Problem,
};

/// Counts an anonymous caller's write that ended with 400 as if it had started a run, because the refusal was work,
/// too. Reads do not count here, nor requests that a limit has counted already.
pub async fn count_refused(
    State(app): State<Arc<App>>,
    caller: Result<Caller, Problem>,
    request: Request,
    next: Next,
) -> Response {
    let is_write = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let response = next.run(request).await;
    if is_write
        && (response.status() == StatusCode::BAD_REQUEST || response.extensions().get::<RefusedWrite>().is_some())
        && let Some(caller) = caller.ok().filter(|caller| !caller.admission.was_counted())
    {
        // An empty bucket needs no handling here: it refuses the next run.
        let _ = app.anonymous_limits().admit(&caller).await;
    }
    response
}

/// Marks the answer to a write that is refused as if with 400, on a wire whose refusals have another status.
#[derive(Debug, Clone, Copy)]
pub struct RefusedWrite;

pub struct AnonymousLimits {
    buckets: RateLimit,
    /// `None` for no limit.
    run_rate: Option<Rate>,
    write_rate: Option<Rate>,
    read_rate: Option<Rate>,
}

/// A caller whose write passed the rate limit.
pub struct AdmittedWriter(pub Caller);

impl FromRequestParts<Arc<App>> for AdmittedWriter {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        app.admit_write(&caller).await?;
        Ok(Self(caller))
    }
}

impl AnonymousLimits {
    pub const fn new(
        buckets: RateLimit,
        run_rate: Option<Rate>,
        write_rate: Option<Rate>,
        read_rate: Option<Rate>,
    ) -> Self {
        Self { buckets, run_rate, write_rate, read_rate }
    }

    /// Admits a run. Fails with `rate_limited`, which says when to retry, if the caller has reached its limit.
    pub async fn admit(&self, caller: &Caller) -> Result<(), Problem> {
        let Some(rate) = self.run_rate.filter(|_| caller.is_unnamed) else { return Ok(()) };
        self.take(caller, "client", rate).await.map_err(|wait| Problem::rate_limited(rate, wait))
    }

    /// Admits a write that starts no run. Fails with `rate_limited`, which says when to retry.
    pub async fn admit_write(&self, caller: &Caller) -> Result<(), Problem> {
        let Some(rate) = self.write_rate.filter(|_| caller.is_unnamed) else { return Ok(()) };
        self.take(caller, "write", rate).await.map_err(|wait| Problem::writes_limited(rate, wait))
    }

    /// Admits a read that is no stream. Fails with `rate_limited`, which says when to retry.
    pub async fn admit_read(&self, caller: &Caller) -> Result<(), Problem> {
        let Some(rate) = self.read_rate.filter(|_| caller.is_unnamed) else { return Ok(()) };
        self.take(caller, "read", rate).await.map_err(|wait| Problem::reads_limited(rate, wait))
    }

    async fn take(&self, caller: &Caller, kind: &str, rate: Rate) -> Result<(), Duration> {
        caller.admission.count();
        let bucket = format!("{kind}:{}", one_client(caller.address));
        self.buckets.take(&bucket, rate).await.map_err(|empty| empty.wait)
    }
}
