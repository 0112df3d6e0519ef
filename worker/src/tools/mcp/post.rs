//! HTTP POSTs with limits, for the two HTTP transports.

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

/// Most bytes of an HTTP error's body that are read.
const ERROR_BYTES: usize = 64 * 1024;

/// Returns a client that connects only to the given address: without redirects, which would send secrets elsewhere, and
/// without the environment's proxy.
///
/// Connections are not reused: if the server has just closed one, the client cannot know whether a request was
/// delivered. A call that may have been delivered is not repeated. With a new connection, a missing server shows while
/// connecting.
pub fn client(connect: Duration) -> reqwest::Result<Client> {
    Client::builder()
        .redirect(redirect::Policy::none())
        .no_proxy()
        .connect_timeout(connect)
        .pool_max_idle_per_host(0)
        .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Reads a complete body. Fails if it is larger than `limit`.
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

/// Returns the bytes of a body, up to a limit.
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

/// Returns whether a refusal names the server that issues tokens, as MCP's authorization by OAuth requires (RFC 9728).
fn requires_oauth(response: &Response) -> bool {
    let challenges = response.headers().get_all(header::WWW_AUTHENTICATE);
    challenges.iter().any(|challenge| {
        String::from_utf8_lossy(challenge.as_bytes()).to_ascii_lowercase().contains("resource_metadata")
    })
}

/// Returns the JSON answer to the request `id`. The body counts before the status, because an error that the server
/// describes is more precise.
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
    let status_failure = TransportFailure::new(TransportFailureKind::Status(status.as_u16()), format!("HTTP {status}"));
    let body = read_body(response, limit.min(ERROR_BYTES)).await.map_err(|_| status_failure.clone())?;
    match answer::read(&body, id) {
        Ok(message @ ServerJsonRpcMessage::Error(_)) => Ok(message),
        _ => Err(status_failure),
    }
}

/// Returns the value of a name in the `_meta` of a call.
pub fn meta<'a>(message: &'a ClientJsonRpcMessage, name: &str) -> Option<&'a str> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    let ClientRequest::CallToolRequest(call) = &request.request else { return None };
    call.params.meta.as_ref()?.get(name)?.as_str()
}

/// Returns the header that names the owner of the run, if the server requires one.
pub fn caller<'a>(message: &ClientJsonRpcMessage, header: Option<&'a str>) -> Option<(&'a str, HeaderValue)> {
    Some((header?, HeaderValue::from_bytes(meta(message, CALLER)?.as_bytes()).ok()?))
}
