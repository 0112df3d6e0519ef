//! Rate limits for anonymous callers: of the runs that they start, and of everything else that they write. Cancels, answers and
//! repeated requests have no limit.

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

/// Counts a stranger's write that was refused with 400 as if it had started a run: to refuse it was work, too. Reads do
/// not count, nor what was counted already.
pub async fn count_refused(
    State(app): State<Arc<App>>,
    caller: Result<Caller, Problem>,
    request: Request,
    next: Next,
) -> Response {
    let is_write = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let response = next.run(request).await;
    if is_write
        && response.status() == StatusCode::BAD_REQUEST
        && let Some(caller) = caller.ok().filter(|caller| !caller.admission.was_counted())
    {
        // An empty bucket refuses the next run anyway.
        let _ = app.anonymous_limits().admit(&caller).await;
    }
    response
}

pub struct AnonymousLimits {
    buckets: RateLimit,
    /// Without one, there is no limit.
    run_rate: Option<Rate>,
    write_rate: Option<Rate>,
}

/// A caller whose write was admitted.
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
    pub const fn new(buckets: RateLimit, run_rate: Option<Rate>, write_rate: Option<Rate>) -> Self {
        Self { buckets, run_rate, write_rate }
    }

    /// Lets a caller start a run, or says when to come back.
    pub async fn admit(&self, caller: &Caller) -> Result<(), Problem> {
        let Some(rate) = self.run_rate.filter(|_| caller.is_unnamed) else { return Ok(()) };
        self.take(caller, "client", rate).await.map_err(|wait| Problem::rate_limited(rate, wait))
    }

    /// Lets a caller write something that starts no run, or says when to come back.
    pub async fn admit_write(&self, caller: &Caller) -> Result<(), Problem> {
        let Some(rate) = self.write_rate.filter(|_| caller.is_unnamed) else { return Ok(()) };
        self.take(caller, "write", rate).await.map_err(|wait| Problem::writes_limited(rate, wait))
    }

    async fn take(&self, caller: &Caller, kind: &str, rate: Rate) -> Result<(), Duration> {
        caller.admission.count();
        let bucket = format!("{kind}:{}", one_client(caller.address));
        self.buckets.take(&bucket, rate).await.map_err(|empty| empty.wait)
    }
}
