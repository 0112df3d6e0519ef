//! The limit for strangers: how many runs those may start whom nobody has named.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{Method, StatusCode},
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
        let _ = app.strangers().admit(&caller).await;
    }
    response
}

pub struct Strangers {
    buckets: RateLimit,
    /// Without one, there is no limit.
    rate: Option<Rate>,
}

impl Strangers {
    pub const fn new(buckets: RateLimit, rate: Option<Rate>) -> Self {
        Self { buckets, rate }
    }

    /// Lets a caller start a run, or says when to come back.
    pub async fn admit(&self, caller: &Caller) -> Result<(), Problem> {
        let Some(rate) = self.rate.filter(|_| caller.is_stranger) else { return Ok(()) };
        caller.admission.count();
        self.take(caller.address, rate).await
    }

    async fn take(&self, address: IpAddr, rate: Rate) -> Result<(), Problem> {
        let bucket = format!("client:{}", one_client(address));
        self.buckets.take(&bucket, rate).await.map_err(|empty| Problem::rate_limited(rate, empty.wait))
    }
}
