//! The outermost middleware: a log span that identifies the request, a problem if its handler panics, and default
//! headers.
//!
//! All of it ends with the head of the answer. Ready-made layers wrap the body, which costs a stream time for each
//! frame.

use std::panic::AssertUnwindSafe;

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use tracing::Instrument;

use crate::{headers, host, path, problem::Problem};

/// Answers a request, also if its handler panics.
pub async fn guarded(request: Request, next: Next) -> Response {
    let span = tracing::info_span!("request", method = %request.method(), uri = %request.uri());
    let answer = async {
        let result = match host::check(&request).and_then(|()| path::check(&request)) {
            Ok(()) => AssertUnwindSafe(next.run(request)).catch_unwind().await,
            Err(refused) => Ok(refused.into_response()),
        };
        let mut response = result.unwrap_or_else(|_| {
            tracing::error!("failed to answer a request: its handler panicked");
            Problem::internal().into_response()
        });
        headers::complete(&mut response);
        tracing::debug!(status = response.status().as_u16(), "answered a request");
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
    async fn a_panicking_handler_gives_an_internal_error() {
        let router = Router::new().route("/", get(broken)).layer(middleware::from_fn(guarded));
        let response = TowerToHyperService::new(router).call(Request::new(Body::empty())).await.unwrap();
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
