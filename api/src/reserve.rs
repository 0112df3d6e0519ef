//! Connections in reserve: when callers hold all others, the server still answers probes and operators.
//!
//! A connection says what it is for only with its first request. So the server accepts beyond the ordinary limit, reads one
//! request within a short time, and refuses it unless the reserve is meant for it.

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::{
    auth::{Caller, CallerKind},
    problem::Problem,
};

/// In the extensions of a request: its connection is one of the reserve.
#[derive(Debug, Clone, Copy)]
pub struct ReservedConnection;

/// What probes and Prometheus ask for.
pub const PROBE_PATHS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Refuses a request on a reserved connection, unless a probe or an operator sends it.
pub async fn keep(caller: Result<Caller, Problem>, request: Request, next: Next) -> Response {
    let is_reserved = request.extensions().get::<ReservedConnection>().is_some();
    // In development mode every caller is an operator, so that says nothing.
    let is_operator = || caller.is_ok_and(|caller| caller.is_operator && caller.kind == CallerKind::Jwt);
    if is_reserved && !PROBE_PATHS.contains(&request.uri().path()) && !is_operator() {
        return Problem::connections_exhausted().into_response();
    }
    next.run(request).await
}
