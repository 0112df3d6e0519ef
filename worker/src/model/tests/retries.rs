//! Which failures are retried, and which are not.

use std::time::{Duration, Instant};

use super::{Reply, ask, wires, wires::openai};

#[tokio::test]
async fn a_retry_waits_as_long_as_the_provider_requests() {
    for wire in wires() {
        let limited = Reply::json(429, "{}").header("retry-after: 1");
        let asked_at = Instant::now();
        let outcome = ask(&wire, &[], vec![limited, wire.complete_reply()]).await;
        assert_eq!(outcome.deltas, wire.deltas(), "{}", wire.provider);
        assert!(asked_at.elapsed() >= Duration::from_secs(1), "{}", wire.provider);
        assert_eq!(outcome.requests.len(), 2);
    }
}

#[tokio::test]
async fn a_longer_rate_limit_than_allowed_is_final_at_once() {
    for wire in wires() {
        let limited = Reply::json(429, r#"{"error":{"message":"come back later"}}"#).header("retry-after: 61");
        let outcome = ask(&wire, &[], vec![limited, wire.complete_reply()]).await;
        assert_eq!(outcome.code(), Some("model_rate_limited"), "{}", wire.provider);
        assert!(outcome.message().contains("come back later"), "{}", outcome.message());
        assert_eq!(outcome.requests.len(), 1);
    }
}

#[tokio::test]
async fn a_pause_beyond_the_total_time_is_final_at_once() {
    let limited = Reply::json(429, "{}").header("retry-after: 50");
    let asked_at = Instant::now();
    let outcome = ask(&openai(), &["--model-total-ms=10000"], vec![limited]).await;
    assert_eq!(outcome.code(), Some("model_rate_limited"));
    assert!(asked_at.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn two_failures_are_retried() {
    for wire in wires() {
        for status in [500, 503, 529, 408] {
            let failed = Reply::json(status, "{}");
            let outcome = ask(&wire, &[], vec![failed.clone(), failed, wire.complete_reply()]).await;
            assert_eq!(outcome.deltas, wire.deltas(), "{} {status}", wire.provider);
        }
    }
}

#[tokio::test]
async fn a_third_failure_is_final() {
    for wire in wires() {
        let outcome = ask(&wire, &[], vec![Reply::json(500, r#"{"error":{"message":"oops"}}"#)]).await;
        assert_eq!(outcome.code(), Some("model_unavailable"), "{}", wire.provider);
        assert!(outcome.message().contains("oops (status 500)"), "{}", outcome.message());
        assert_eq!(outcome.requests.len(), 3);
    }
}

#[tokio::test]
async fn refused_requests_are_not_retried() {
    for wire in wires() {
        for status in [400, 401, 403, 404, 422] {
            let outcome = ask(&wire, &[], vec![Reply::json(status, "{}"), wire.complete_reply()]).await;
            assert_eq!(outcome.requests.len(), 1, "{} {status}", wire.provider);
            assert!(outcome.error.is_some());
        }
    }
}

#[tokio::test]
async fn silence_lost_connections_and_truncation_before_the_first_delta_are_retried() {
    for wire in wires() {
        let head = wire.reply();
        let broken = [
            Reply::silence(),
            Reply::silence().then_reset(),
            head.clone(),
            head.clone().then_hang(),
            head.clone().then_cut(),
            head.then_reset(),
        ];
        for broken in broken {
            let outcome = ask(&wire, &["--model-first-byte-ms=80"], vec![broken.clone(), wire.complete_reply()]).await;
            assert_eq!(outcome.deltas, wire.deltas(), "{} {broken:?}: {outcome:?}", wire.provider);
        }
    }
}

#[tokio::test]
async fn an_overload_reported_with_status_200_is_retried() {
    let overloaded =
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n";
    for wire in wires().into_iter().take(2) {
        let outcome = ask(&wire, &[], vec![wire.reply().chunk(overloaded), wire.complete_reply()]).await;
        assert_eq!(outcome.deltas, wire.deltas(), "{}", wire.provider);
    }
}
