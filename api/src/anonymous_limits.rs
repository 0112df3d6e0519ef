//! Limits for anonymous callers: by address, rates of runs, of all other writes, of reads, and of stored bytes; and the cap for
//! the data of all of them. Cancels, answers, streams and repeated requests have no limit.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{Method, StatusCode, request::Parts},
    middleware::Next,
    response::Response,
};
use holdfast_shared::rate_limit::{KIBIBYTE, Rate, RateLimit, byte_bucket};

use crate::{
    anonymous_data::AnonymousData,
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
    /// In kibibytes.
    byte_rate: Option<Rate>,
    data: AnonymousData,
}

/// The rate limits of one address. `None` for no limit.
#[derive(Debug, Clone, Copy)]
pub struct AnonymousRates {
    /// Runs.
    pub runs: Option<Rate>,
    /// All other writes.
    pub writes: Option<Rate>,
    /// Reads that are no streams.
    pub reads: Option<Rate>,
    /// Stored kibibytes.
    pub kibibytes: Option<Rate>,
}

/// A caller whose write passed the rate limit. The bytes of the request's body count as stored ones.
pub struct AdmittedWriter(pub Caller);

/// Marks a request whose body is stored.
#[derive(Debug, Clone, Copy)]
pub struct StoredBody;

impl FromRequestParts<Arc<App>> for AdmittedWriter {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        app.admit_write(&caller).await?;
        parts.extensions.insert(StoredBody);
        Ok(Self(caller))
    }
}

impl AnonymousLimits {
    pub const fn new(buckets: RateLimit, rates: AnonymousRates, data: AnonymousData) -> Self {
        let AnonymousRates { runs, writes, reads, kibibytes } = rates;
        Self { buckets, run_rate: runs, write_rate: writes, read_rate: reads, byte_rate: kibibytes, data }
    }

    /// Returns the bytes that all anonymous users together may keep; `None` for no limit.
    pub const fn most_bytes_of_all(&self) -> Option<u64> {
        self.data.most()
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

    /// Admits bytes that a write stores. Fails with `byte_rate_limited`, which says when to retry, or with
    /// `anonymous_data_full`. Less than a kibibyte takes nothing from the address, because the other rates limit it.
    pub async fn admit_bytes(&self, caller: &Caller, bytes: usize) -> Result<(), Problem> {
        if !caller.is_unnamed {
            return Ok(());
        }
        let kibibytes = u32::try_from(bytes / KIBIBYTE).unwrap_or(u32::MAX);
        if let (Some(rate), Some(kibibytes)) = (self.byte_rate, NonZeroU32::new(kibibytes)) {
            caller.admission.count();
            // Workers know the group only.
            let client = caller.group.clone().unwrap_or_else(|| one_client(caller.address).to_string());
            let taken = self.buckets.take_many(&byte_bucket(&client), rate, kibibytes).await;
            taken.map_err(|empty| Problem::bytes_limited(rate, empty.wait))?;
        }
        // Order matters: refused bytes fill nothing, or one address could fill the share of all others.
        self.data.admit(bytes).await
    }

    async fn take(&self, caller: &Caller, kind: &str, rate: Rate) -> Result<(), Duration> {
        caller.admission.count();
        let bucket = format!("{kind}:{}", one_client(caller.address));
        self.buckets.take(&bucket, rate).await.map_err(|empty| empty.wait)
    }
}
