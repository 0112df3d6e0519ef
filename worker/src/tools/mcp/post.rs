//! HTTP POSTs with limits, for the two HTTP transports.

use std::{collections::BTreeMap, time::Duration};

use futures::StreamExt;
use reqwest::{
    Client, Response, StatusCode,
    header::{self, HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId, ServerJsonRpcMessage};
use secrecy::{ExposeSecret, SecretString};

use super::{
    CALLER, answer,
    exchange::McpExchange,
    intake::{Intake, SMALL_BYTES},
    transport_failure::{TransportFailure, TransportFailureKind},
};
use crate::memory_budget::MemoryGuard;

/// Most bytes of an HTTP error's body that are read.
const ERROR_BYTES: usize = 64 * 1024;

/// Most redirects of one request.
const MAX_REDIRECTS: usize = 5;

/// Returns a client that connects only to the given origin: redirects to another one would send secrets elsewhere. It sends
/// these headers with each request, and does not use the environment's proxy.
///
/// Connections are not reused: if the server has just closed one, the client cannot know whether a request was
/// delivered. A call that may have been delivered is not repeated. With a new connection, a missing server shows while
/// connecting.
pub fn client(connect: Duration, headers: HeaderMap) -> reqwest::Result<Client> {
    Client::builder()
        .redirect(redirect::Policy::custom(follow))
        .default_headers(headers)
        .no_proxy()
        .connect_timeout(connect)
        .pool_max_idle_per_host(0)
        .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Follows redirects that keep the method and the body, within one origin.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_body = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT].contains(&attempt.status());
    let stays = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
    if keeps_body && stays && attempt.previous().len() <= MAX_REDIRECTS { attempt.follow() } else { attempt.stop() }
}

/// Returns headers whose values no log shows. Fails with the name of one that HTTP cannot carry.
pub fn headers(headers: &BTreeMap<String, SecretString>) -> Result<HeaderMap, &str> {
    let mut sent = HeaderMap::new();
    for (name, secret) in headers {
        let name_of = HeaderName::from_bytes(name.as_bytes()).ok();
        let value = HeaderValue::from_bytes(secret.expose_secret().as_bytes()).ok();
        let (Some(name_of), Some(mut value)) = (name_of, value) else { return Err(name) };
        value.set_sensitive(true);
        sent.insert(name_of, value);
    }
    Ok(sent)
}

/// Reads a complete body, with memory for a large one. Fails if it is larger than `limit`.
async fn read_body(
    response: Response,
    limit: usize,
    intake: &Intake,
    exchange: Option<&McpExchange>,
) -> Result<(Vec<u8>, Option<MemoryGuard>), TransportFailure> {
    let length = response.content_length().map_or(limit, |length| usize::try_from(length).unwrap_or(usize::MAX));
    if length > limit {
        return Err(TransportFailure::too_large(limit));
    }
    let (mut body, mut memory) = (Vec::new(), None);
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(TransportFailure::of_request)?;
        let bytes = body.len() + chunk.len();
        if bytes > limit {
            return Err(TransportFailure::too_large(limit));
        }
        if bytes > SMALL_BYTES && memory.is_none() {
            memory = Some(intake.reserve(exchange, length).await);
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, memory))
}

/// Returns whether a refusal names the server that issues tokens, as MCP's authorization by OAuth requires (RFC 9728).
fn requires_oauth(response: &Response) -> bool {
    let challenges = response.headers().get_all(header::WWW_AUTHENTICATE);
    challenges.iter().any(|challenge| {
        String::from_utf8_lossy(challenge.as_bytes()).to_ascii_lowercase().contains("resource_metadata")
    })
}

/// Returns the JSON answer to the request `id`, and leaves its memory in the exchange. The body counts before the status,
/// because an error that the server describes is more precise.
pub async fn read_json(
    response: Response,
    id: &RequestId,
    intake: &Intake,
    exchange: Option<&McpExchange>,
) -> Result<ServerJsonRpcMessage, TransportFailure> {
    let status = response.status();
    let own = id.clone();
    let parse = move |text: &[u8], within: Result<(), _>| within.and_then(|()| answer::read(text, &own));
    if status.is_success() {
        let (body, memory) = read_body(response, intake.limits.bytes, intake, exchange).await?;
        let taken = intake.read(body, exchange, memory, parse).await;
        if let Some(exchange) = exchange {
            exchange.deposit(taken.size, taken.memory, None);
        }
        return taken.parsed;
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
    let read = read_body(response, intake.limits.bytes.min(ERROR_BYTES), intake, exchange).await;
    let (body, memory) = read.map_err(|_| status_failure.clone())?;
    match intake.read(body, exchange, memory, parse).await.parsed {
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
