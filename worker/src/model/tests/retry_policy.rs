//! The retry policy with upstreams that no network could provide: always ready, or failing at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use holdfast_shared::config::{ModelChoice, Provider};
use tokio::time::Instant;

use super::super::{
    AnswerDelta, Error, Model, Phase, Request,
    retry_policy::{RetryModel, RetryPolicy},
    subject::Subject,
    upstream::{Upstream, UpstreamItem, UpstreamStream},
};

fn subject() -> Arc<Subject> {
    let choice = ModelChoice { provider: Provider::OpenAi, name: "some-model".to_owned() };
    Arc::new(Subject::new(choice, None))
}

/// Answers for ever and is always ready.
struct EndlessUpstream;

impl Upstream for EndlessUpstream {
    fn ask(&self, _: &Request) -> BoxFuture<'static, Result<UpstreamStream, Error>> {
        let word = || Ok(UpstreamItem::Delta(AnswerDelta::Text("word ".to_owned())));
        async move { Ok(stream::repeat_with(word).boxed()) }.boxed()
    }
}

/// Fails, and counts its calls.
struct FailingUpstream(Arc<AtomicU32>);

impl Upstream for FailingUpstream {
    fn ask(&self, _: &Request) -> BoxFuture<'static, Result<UpstreamStream, Error>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        async move { Err(Error::broken(&subject(), "it is a test")) }.boxed()
    }
}

#[tokio::test]
async fn the_total_time_stops_a_provider_that_never_pends() {
    let policy = RetryPolicy { total: Duration::from_millis(50), ..RetryPolicy::of(&super::config(&[])) };
    let model = RetryModel::new(EndlessUpstream, policy, subject());
    let asked_at = Instant::now();
    let mut answer = model.ask(&Request::default()).await.unwrap_or_else(|error| panic!("{error}"));
    let error = loop {
        assert!(asked_at.elapsed() < Duration::from_secs(5), "the answer is still not over");
        if let Some(Err(error)) = answer.next().await {
            break error;
        }
    };
    assert!(matches!(error, Error::Timeout { phase: Phase::Total, .. }), "{error}");
    assert!(answer.next().await.is_none(), "no item follows the error");
}

#[tokio::test(start_paused = true)]
async fn pauses_double() {
    let count = Arc::new(AtomicU32::new(0));
    let policy = RetryPolicy::of(&super::config(&["--model-retries=3"]));
    let asked_at = Instant::now();
    let model = RetryModel::new(FailingUpstream(count.clone()), policy, subject());
    assert_eq!(model.ask(&Request::default()).await.err().map(|error| error.code()), Some("model_broken_stream"));
    assert_eq!(count.load(Ordering::Relaxed), 4);
    let pauses = Duration::from_millis(250 + 500 + 1000);
    assert!(asked_at.elapsed().abs_diff(pauses) < Duration::from_millis(10), "{:?}", asked_at.elapsed());
}
