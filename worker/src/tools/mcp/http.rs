//! Streamable HTTP: rmcp's transport over our own POSTs, which have limits and report their failures.
//!
//! rmcp keeps the session: its id, the standing stream of notifications, and a new session when the server has
//! forgotten the old one. rmcp also resumes streams that a server closes on purpose.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use reqwest::{
    Client, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use rmcp::{
    model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage},
    transport::{
        StreamableHttpClientTransport,
        common::client_side_sse::ExponentialBackoff,
        streamable_http_client::{
            StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
        },
    },
};
use secrecy::{ExposeSecret, SecretString};

use super::{
    events::{EventIntake, McpEventStream},
    exchange::McpExchange,
    intake::Intake,
    post,
    transport_failure::{TransportFailure, TransportFailureKind},
};

pub type HttpError = StreamableHttpError<reqwest::Error>;
type HttpHeaders = HashMap<HeaderName, HeaderValue>;

/// Tries to resume a stream, each after a longer pause. A server that is gone must not hold its calls until their
/// time-outs.
const RESUMPTIONS: usize = 2;
const RESUMPTION_PAUSE: Duration = Duration::from_millis(200);

/// Most concurrent POSTs of one connection.
const CONCURRENT_POSTS: usize = 64;

#[derive(Clone)]
pub struct Http {
    client: Client,
    caller_header: Option<String>,
    events: EventIntake,
    /// The last session in which the server has answered a request.
    answered: Arc<Mutex<Option<String>>>,
    standing: Arc<Mutex<StandingStreams>>,
}

/// The standing streams that the server has ended soon after their beginning, one after the other.
#[derive(Default)]
struct StandingStreams {
    short: u32,
    began: Option<Instant>,
}

/// A standing stream that ends sooner is short.
const SHORT_STREAM: Duration = Duration::from_secs(10);

/// Most short streams, after which the client asks for no other: some hosts end each stream at once.
const SHORT_STREAMS: u32 = 3;

impl StandingStreams {
    /// Notes that a stream begins now. Returns false if too many before it were short.
    fn begins(&mut self, now: Instant) -> bool {
        let is_short = self.began.replace(now).is_some_and(|began| now - began < SHORT_STREAM);
        self.short = if is_short { self.short + 1 } else { 0 };
        self.short < SHORT_STREAMS
    }
}

impl Http {
    pub fn new(client: Client, intake: Intake, caller_header: Option<String>) -> Self {
        Self {
            client,
            caller_header,
            events: EventIntake::new(intake),
            answered: Arc::default(),
            standing: Arc::default(),
        }
    }

    pub fn transport(self, url: &str, bearer: Option<SecretString>) -> StreamableHttpClientTransport<Self> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url).max_concurrent_requests(CONCURRENT_POSTS);
        let mut resumption = ExponentialBackoff::default();
        resumption.max_times = Some(RESUMPTIONS);
        resumption.base_duration = RESUMPTION_PAUSE;
        config.retry_config = Arc::new(resumption);
        config.auth_header = bearer.map(|secret| secret.expose_secret().to_owned());
        StreamableHttpClientTransport::with_client(self, config)
    }

    /// Notes an answer in a session, and returns whether it is not the first one.
    ///
    /// Invariant: a session's first request opens no other session, or a request that the server always refuses would open one
    /// for ever.
    fn note_answer(&self, session: &str) -> bool {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let was_answered = answered.as_deref() == Some(session);
        *answered = Some(session.to_owned());
        was_answered
    }

    /// Reads the response to a request's POST. Fails only if the session must be opened again; every other failure
    /// becomes an answer.
    async fn read(
        &self,
        response: Response,
        id: RequestId,
        exchange: Option<McpExchange>,
        asked_in: Option<Arc<str>>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let status = response.status();
        let session = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        let was_answered = asked_in.as_deref().is_some_and(|session| self.note_answer(session));
        if status == StatusCode::ACCEPTED {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status.is_success() && has_type(&response, "text/event-stream") {
            return Ok(StreamableHttpPostResponse::Sse(self.events.of_post(response, id, exchange), session));
        }
        if status.is_success() && !has_type(&response, "application/json") {
            let failure = TransportFailure::new(
                TransportFailureKind::Malformed,
                "the answer is neither JSON nor a stream of events",
            );
            return Ok(StreamableHttpPostResponse::Json(failure.into_answer(id), session));
        }
        let answer = match post::read_json(response, &id, &self.events.intake, exchange.as_ref()).await {
            Ok(ServerJsonRpcMessage::Error(error)) if asked_in.is_some() && ends_session(status, &error.error) => {
                if was_answered || status == StatusCode::NOT_FOUND {
                    return Err(StreamableHttpError::SessionExpired);
                }
                ServerJsonRpcMessage::Error(error)
            }
            Ok(answer) => answer,
            Err(failure) if asked_in.is_some() && failure.kind == TransportFailureKind::Status(404) => {
                return Err(StreamableHttpError::SessionExpired);
            }
            // A token that is no longer valid is refused again when the session opens.
            Err(failure)
                if was_answered
                    && matches!(
                        failure.kind,
                        TransportFailureKind::Status(400) | TransportFailureKind::Unauthorized
                    ) =>
            {
                return Err(StreamableHttpError::SessionExpired);
            }
            Err(failure) => failure.into_answer(id),
        };
        Ok(StreamableHttpPostResponse::Json(answer, session))
    }
}

impl StreamableHttpClient for Http {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        url: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        bearer: Option<String>,
        headers: HttpHeaders,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let mut post = self.client.post(url.as_ref()).header(ACCEPT, "application/json, text/event-stream");
        if let Some(bearer) = bearer {
            post = post.bearer_auth(bearer);
        }
        for (name, value) in headers {
            post = post.header(name, value);
        }
        if let Some((name, caller)) = post::caller(&message, self.caller_header.as_deref()) {
            post = post.header(name, caller);
        }
        let exchange = McpExchange::of(&message);
        self.events.expect(&message, exchange.as_ref());
        if let Some(session) = &session {
            post = post.header("mcp-session-id", session.as_ref());
        }
        let sent = post.json(&message).send().await;
        let ClientJsonRpcMessage::Request(request) = message else {
            let accepted = sent.and_then(Response::error_for_status);
            accepted.map_err(reqwest::Error::without_url)?;
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        match sent {
            Ok(response) => self.read(response, request.id, exchange, session).await,
            Err(error) => {
                Ok(StreamableHttpPostResponse::Json(TransportFailure::of_request(error).into_answer(request.id), None))
            }
        }
    }

    async fn delete_session(
        &self,
        url: Arc<str>,
        session: Arc<str>,
        bearer: Option<String>,
        headers: HttpHeaders,
    ) -> Result<(), HttpError> {
        self.client.delete_session(url, session, bearer, headers).await.map_err(without_url)
    }

    async fn get_stream(
        &self,
        url: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        bearer: Option<String>,
        headers: HttpHeaders,
    ) -> Result<McpEventStream, HttpError> {
        let begins = |standing: &Mutex<StandingStreams>| {
            standing.lock().unwrap_or_else(PoisonError::into_inner).begins(Instant::now())
        };
        if last_event.is_none() && !begins(&self.standing) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        let mut get = self.client.get(url.as_ref()).header(ACCEPT, "text/event-stream, application/json");
        if let Some(session) = session {
            get = get.header("mcp-session-id", session.as_ref());
        }
        if let Some(last_event) = last_event {
            get = get.header("last-event-id", last_event);
        }
        if let Some(bearer) = bearer {
            get = get.bearer_auth(bearer);
        }
        for (name, value) in headers {
            get = get.header(name, value);
        }
        let response = get.send().await.map_err(reqwest::Error::without_url)?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        let response = response.error_for_status().map_err(reqwest::Error::without_url)?;
        if !has_type(&response, "text/event-stream") {
            return Err(StreamableHttpError::UnexpectedContentType(None));
        }
        Ok(self.events.of_get(response))
    }
}

/// Removes the URL, because rmcp logs errors and a URL may contain a key.
fn without_url(error: HttpError) -> HttpError {
    match error {
        HttpError::Client(error) => HttpError::Client(error.without_url()),
        error => error,
    }
}

fn has_type(response: &Response, expected: &str) -> bool {
    let found = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    found.to_ascii_lowercase().starts_with(expected.as_bytes())
}

/// Returns whether an error says that the server does not know the session, so that no tool has run. Servers say so in many ways
/// after a restart, but always in the transport's own codes or about the request as a whole; a tool's errors have others.
fn ends_session(status: StatusCode, error: &ErrorData) -> bool {
    let is_refused = [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND].contains(&status);
    is_refused && [-32_000, -32_001, -32_600].contains(&error.code.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_each_standing_stream_at_once_is_asked_four_times() {
        let (mut standing, start) = (StandingStreams::default(), Instant::now());
        let mut begins = |seconds: u64| standing.begins(start + Duration::from_secs(seconds));
        assert_eq!([0, 1, 2, 3, 4].map(&mut begins), [true, true, true, false, false]);
        assert_eq!([20, 21, 40].map(begins), [true; 3], "one that lasted begins the count again");
    }
}
