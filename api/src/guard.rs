//! What is around every request: a span of the log that says which one it is, an answer where its handler panics, and the
//! headers of every answer.
//!
//! All of it ends with the head of the answer: layers that wrap a body, as ready-made ones do, would cost a stream something with
//! each frame.

use std::panic::AssertUnwindSafe;

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use tracing::Instrument;

use crate::{headers, host, problem::Problem};

/// Answers a request, whatever happens.
pub async fn guarded(request: Request, next: Next) -> Response {
    let span = tracing::info_span!("request", method = %request.method(), uri = %request.uri());
    let answer = async {
        let answered = match host::check(&request) {
            Ok(()) => AssertUnwindSafe(next.run(request)).catch_unwind().await,
            Err(refused) => Ok(refused.into_response()),
        };
        let mut response = answered.unwrap_or_else(|_| {
            tracing::error!("a request panicked");
            Problem::internal().into_response()
        });
        headers::complete(&mut response);
        tracing::debug!(status = response.status().as_u16(), "request answered");
        response
    };
    answer.instrument(span).await
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, http::StatusCode, middleware, routing::get};
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;

    use super::*;

    async fn broken() -> StatusCode {
        panic!("on purpose")
    }

    #[tokio::test]
    async fn a_panic_is_answered() {
        let router = Router::new().route("/", get(broken)).layer(middleware::from_fn(guarded));
        let response = TowerToHyperService::new(router).call(Request::new(Body::empty())).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
