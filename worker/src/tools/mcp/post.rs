//! HTTP POSTs with limits, for the two transports that speak HTTP.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use reqwest::{
    Client, Response, StatusCode,
    header::{self, HeaderValue},
    redirect,
};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId, ServerJsonRpcMessage};

use super::{
    CALLER, answer,
    transport_failure::{TransportFailure, TransportFailureKind},
};

/// Longest body of an HTTP error that is read.
const ERROR_BYTES: usize = 64 * 1024;

/// A client that goes where it is told to: no redirects, which would take secrets elsewhere, and no proxy of the environment.
///
/// Sockets are not used again: of a request on a socket that the server has just closed, nobody knows whether it was
/// delivered, and a call that may have been delivered is not repeated. Where a server is gone, connecting says so.
pub fn client(connect: Duration) -> reqwest::Result<Client> {
    Client::builder()
        .redirect(redirect::Policy::none())
        .no_proxy()
        .connect_timeout(connect)
        .pool_max_idle_per_host(0)
        .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// A whole body, unless it is larger than `limit`.
pub async fn read_body(response: Response, limit: usize) -> Result<Vec<u8>, TransportFailure> {
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(TransportFailure::too_large(limit));
    }
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(TransportFailure::of_request)?;
        if body.len() + chunk.len() > limit {
            return Err(TransportFailure::too_large(limit));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The bytes of a body, up to a limit.
pub fn limited_body(response: Response, limit: usize) -> impl Stream<Item = Result<Bytes, BodyError>> + Send {
    let mut left = limit;
    response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(|error| BodyError::Broken(error.without_url()))?;
        left = left.checked_sub(chunk.len()).ok_or(BodyError::TooLong)?;
        Ok(chunk)
    })
}

/// Why a body was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("the answer is too large")]
    TooLong,
    #[error(transparent)]
    Broken(reqwest::Error),
}

/// Whether a refusal says where tokens are given out, as MCP's authorization by OAuth has it (RFC 9728).
fn requires_oauth(response: &Response) -> bool {
    let challenges = response.headers().get_all(header::WWW_AUTHENTICATE);
    challenges.iter().any(|challenge| {
        String::from_utf8_lossy(challenge.as_bytes()).to_ascii_lowercase().contains("resource_metadata")
    })
}

/// The JSON answer to the request `id`. The body comes before the status: an error that the server describes says more.
pub async fn read_json(
    response: Response,
    id: &RequestId,
    limit: usize,
) -> Result<ServerJsonRpcMessage, TransportFailure> {
    let status = response.status();
    if status.is_success() {
        return answer::read(&read_body(response, limit).await?, id);
    }
    if status == StatusCode::UNAUTHORIZED && requires_oauth(&response) {
        return Err(TransportFailure::new(
            TransportFailureKind::OAuth,
            format!("HTTP {status}, with a place to sign in (OAuth)"),
        ));
    }
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(TransportFailure::new(TransportFailureKind::Unauthorized, format!("HTTP {status}")));
    }
    let nothing_said = TransportFailure::new(TransportFailureKind::Status(status.as_u16()), format!("HTTP {status}"));
    let body = read_body(response, limit.min(ERROR_BYTES)).await.map_err(|_| nothing_said.clone())?;
    match answer::read(&body, id) {
        Ok(message @ ServerJsonRpcMessage::Error(_)) => Ok(message),
        _ => Err(nothing_said),
    }
}

/// What the `_meta` of a call has under a name.
pub fn meta<'a>(message: &'a ClientJsonRpcMessage, name: &str) -> Option<&'a str> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    let ClientRequest::CallToolRequest(call) = &request.request else { return None };
    call.params.meta.as_ref()?.get(name)?.as_str()
}

/// The header that names the owner of the run, for a server that wants one.
pub fn caller<'a>(message: &ClientJsonRpcMessage, header: Option<&'a str>) -> Option<(&'a str, HeaderValue)> {
    Some((header?, HeaderValue::from_bytes(meta(message, CALLER)?.as_bytes()).ok()?))
}
