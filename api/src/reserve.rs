//! Reserved connections: when callers hold all ordinary connections, the server still answers probes and operators.
//!
//! The server learns the purpose of a connection only from its first request. So it accepts connections beyond the
//! ordinary limit, reads one request within a short time-out, and refuses it unless a probe or an operator sends it.

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::{
    auth::{Caller, CallerKind},
    problem::Problem,
};

/// Marks, in the extensions of a request, that its connection is a reserved one.
#[derive(Debug, Clone, Copy)]
pub struct ReservedConnection;

/// Paths that probes and Prometheus request.
pub const PROBE_PATHS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Refuses a request on a reserved connection with `connections_exhausted`, unless a probe or an operator sends it.
pub async fn keep(caller: Result<Caller, Problem>, request: Request, next: Next) -> Response {
    let is_reserved = request.extensions().get::<ReservedConnection>().is_some();
    // In development mode every caller is an operator, so the role proves nothing there.
    let is_operator = || caller.is_ok_and(|caller| caller.is_operator && caller.kind == CallerKind::Jwt);
    if is_reserved && !PROBE_PATHS.contains(&request.uri().path()) && !is_operator() {
        return Problem::connections_exhausted().into_response();
    }
    next.run(request).await
}
