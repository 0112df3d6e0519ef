//! Time-outs and retries of model calls.
//!
//! A retry is made only before the first delta: later, clients have already seen a part that a new answer would not
//! continue.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, Stream, StreamExt, TryStreamExt, future::BoxFuture};
use holdfast_shared::config::ModelConfig;
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout_at};

use super::{
    AnswerDelta, AnswerStream, Error, Model, Phase, Request,
    subject::Subject,
    upstream::{Upstream, UpstreamItem, UpstreamStream},
};

/// Time limits and retries of one model call.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryPolicy {
    /// From the request to the first item, for each try.
    pub first_byte: Duration,
    /// Between two items.
    pub idle: Duration,
    /// From the first request to the end of the answer, including all tries.
    pub total: Duration,
    /// Tries after the first one.
    pub retries: u32,
    /// Pause before the second try; it doubles before each further one.
    pub retry: Duration,
    /// Longest pause that the provider may request.
    pub retry_after_max: Duration,
}

impl RetryPolicy {
    pub fn of(config: &ModelConfig) -> Self {
        Self {
            first_byte: config.model_first_byte,
            idle: config.model_idle,
            total: config.model_total,
            retries: config.model_retries,
            retry: config.model_retry,
            retry_after_max: config.model_retry_after_max,
        }
    }

    /// Returns the pause before the next try, or `None` if the error is final.
    pub fn pause_after(&self, error: &Error, tries: u32) -> Option<Duration> {
        if tries > self.retries || !error.may_pass() {
            return None;
        }
        let own = self.retry.saturating_mul(1 << (tries - 1).min(16));
        match error.retry_after() {
            Some(requested) if requested > self.retry_after_max => None,
            // Never less than the policy's own pause, even for "Retry-After: 0".
            Some(requested) => Some(requested.max(own)),
            None => Some(own),
        }
    }
}

/// A `Model` made of an `Upstream`.
pub(super) struct RetryModel<U> {
    upstream: Arc<U>,
    policy: RetryPolicy,
    subject: Arc<Subject>,
}

impl<U: Upstream> RetryModel<U> {
    pub fn new(upstream: U, policy: RetryPolicy, subject: Arc<Subject>) -> Self {
        Self { upstream: Arc::new(upstream), policy, subject }
    }
}

impl<U: Upstream> Model for RetryModel<U> {
    fn ask(&self, request: &Request) -> BoxFuture<'static, Result<AnswerStream, Error>> {
        let (upstream, request) = (self.upstream.clone(), request.clone());
        let (policy, subject) = (self.policy, self.subject.clone());
        async move {
            let ends_at = Instant::now() + policy.total;
            let mut tries = 1;
            let has_files = request.has_files();
            let explain = move |error: Error| if has_files { error } else { error.without_files() };
            loop {
                let error = match first_delta(&*upstream, &request, policy, ends_at, &subject).await {
                    Ok(answer) => return Ok(answer.map_err(explain).inspect_err(count).boxed()),
                    Err(error) => explain(error),
                };
                count(&error);
                let Some(pause) = policy.pause_after(&error, tries) else { return Err(error) };
                if Instant::now() + pause >= ends_at {
                    return Err(error);
                }
                tracing::warn!(
                    model.error = error.code(),
                    model.tries = tries,
                    pause_ms = pause.as_millis() as u64,
                    "failed to get an answer from the model; trying again"
                );
                sleep(pause).await;
                tries += 1;
            }
        }
        .boxed()
    }

    fn max_tools(&self) -> usize {
        self.upstream.max_tools()
    }

    fn takes_names(&self) -> bool {
        self.upstream.takes_names()
    }
}

/// Counts a failure, whether before or after the first delta.
fn count(error: &Error) {
    metrics::counter!("holdfast_model_failures_total", "code" => error.code()).increment(1);
}

/// Makes one try and waits for the first delta, which becomes the first item of the stream.
async fn first_delta<U: Upstream>(
    upstream: &U,
    request: &Request,
    policy: RetryPolicy,
    ends_at: Instant,
    subject: &Arc<Subject>,
) -> Result<TimedAnswer, Error> {
    let first_byte_at = Instant::now() + policy.first_byte;
    let Ok(items) = timeout_at(first_byte_at.min(ends_at), upstream.ask(request)).await else {
        return Err(first_delta_timeout(subject, &policy, first_byte_at, ends_at));
    };
    let mut answer = TimedAnswer {
        items: Some(items?),
        first: None,
        policy,
        first_byte_at: Some(first_byte_at),
        silent_since: None,
        ends_at,
        alarm: Box::pin(sleep_until(first_byte_at.min(ends_at))),
        subject: subject.clone(),
    };
    answer.first = match answer.next().await {
        Some(first) => Some(first?),
        None => return Err(truncation(subject)),
    };
    Ok(answer)
}

/// An answer under its time limits. It ends at the first error.
struct TimedAnswer {
    /// Dropped at the end of the answer, which closes the connection or returns it to the pool.
    items: Option<UpstreamStream>,
    first: Option<AnswerDelta>,
    policy: RetryPolicy,
    /// `None` after the first item.
    first_byte_at: Option<Instant>,
    /// When the wait for the provider started. The time that the reader takes does not count against the provider.
    silent_since: Option<Instant>,
    ends_at: Instant,
    /// Fires at the deadline or earlier, so that it need not be reset for each delta.
    alarm: Pin<Box<Sleep>>,
    subject: Arc<Subject>,
}

impl Stream for TimedAnswer {
    type Item = Result<AnswerDelta, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        loop {
            let Some(items) = &mut this.items else { return Poll::Ready(None) };
            let Poll::Ready(signal) = items.poll_next_unpin(cx) else { break };
            this.first_byte_at = None;
            this.silent_since = None;
            let item = match signal {
                // An endless stream never pends, so the total time is checked here too.
                Some(Ok(_)) if Instant::now() >= this.ends_at => {
                    Err(timeout(&this.subject, Phase::Total, this.policy.total))
                }
                Some(Ok(UpstreamItem::Alive)) => continue,
                Some(Ok(UpstreamItem::Delta(delta))) => Ok(delta),
                Some(Err(error)) => Err(error),
                None => Err(truncation(&this.subject)),
            };
            if matches!(item, Ok(AnswerDelta::End(..)) | Err(_)) {
                this.items = None;
            }
            return Poll::Ready(Some(item));
        }
        let silent_since = *this.silent_since.get_or_insert_with(Instant::now);
        let signal_by = this.first_byte_at.unwrap_or(silent_since + this.policy.idle);
        let deadline = signal_by.min(this.ends_at);
        // Only the change from the first-byte limit to the idle limit can move the deadline forward.
        if this.alarm.deadline() > deadline {
            this.alarm.as_mut().reset(deadline);
        }
        while this.alarm.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                this.items = None;
                return Poll::Ready(Some(Err(this.timeout_error(signal_by))));
            }
            this.alarm.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

impl TimedAnswer {
    /// Returns the error of the limit that the provider exceeded.
    fn timeout_error(&self, signal_by: Instant) -> Error {
        match self.first_byte_at {
            Some(first_byte_at) => first_delta_timeout(&self.subject, &self.policy, first_byte_at, self.ends_at),
            None if self.ends_at <= signal_by => timeout(&self.subject, Phase::Total, self.policy.total),
            None => timeout(&self.subject, Phase::Idle, self.policy.idle),
        }
    }
}

/// Returns the error of the limit that was exceeded before the first item.
fn first_delta_timeout(subject: &Subject, policy: &RetryPolicy, first_byte_at: Instant, ends_at: Instant) -> Error {
    if first_byte_at <= ends_at {
        timeout(subject, Phase::FirstByte, policy.first_byte)
    } else {
        timeout(subject, Phase::Total, policy.total)
    }
}

fn timeout(subject: &Subject, phase: Phase, limit: Duration) -> Error {
    Error::Timeout { model: subject.choice.clone(), phase, limit }
}

fn truncation(subject: &Subject) -> Error {
    Error::broken(subject, "it ended before it was complete")
}
