//! Extractors for bodies, queries, paths and headers. Each refuses bad input with a `Problem` of its own.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Bytes, HttpBody},
    extract::{FromRequest, FromRequestParts, Path, Request},
    http::{HeaderMap, HeaderValue, header, request::Parts},
};
use bytes::{Buf, BytesMut};
use futures::StreamExt;
use holdfast_shared::{
    given_json, idempotency::IdempotencyKey, json_size::count_values, storage::RunOptions, whole_numbers::WholeNumbers,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    anonymous_limits::StoredBody,
    app::App,
    auth::{Caller, MAX_NAME_CHARS, is_name},
    in_flight::InFlightGuard,
    lingering_body::LingeringBody,
    problem::Problem,
};

/// A JSON body.
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Problem::unsupported_media_type());
        }
        let (bytes, _in_flight) = read_counted_body(request, app).await?;
        // serde would read a list as an object, field by field.
        if bytes.trim_ascii_start().first() == Some(&b'[') {
            return Err(Problem::invalid_body("The body must be an object, not a list."));
        }
        read_json(&bytes).map(Self)
    }
}

/// Reads a JSON body. An error names the field.
pub fn read_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, Problem> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let invalid = |error: serde_json::Error| Problem::invalid_json(format!("The body is not valid JSON: {error}."));
    let error = match serde_path_to_error::deserialize(WholeNumbers(&mut deserializer)) {
        Ok(read) => return deserializer.end().map(|()| read).map_err(invalid),
        Err(error) => error,
    };
    // For serde_json, null is a wrong syntax of a value of a fixed set, so its category cannot tell.
    serde_json::from_slice::<Value>(json).map_err(invalid)?;
    Err(Problem::invalid_body(format!("The body does not match its schema: {}.", given_json::refusal(&error))))
}

/// The largest body of a route whose limit is not that of all others, in bytes.
#[derive(Clone, Copy)]
pub struct BodyLimit(pub usize);

/// Reads the body of a request, within the limits of its caller.
pub async fn read_body(request: Request, app: &Arc<App>) -> Result<Bytes, Problem> {
    read_counted_body(request, app).await.map(|(bytes, _)| bytes)
}

/// Time in which a client may send the rest of a refused body, so that it reads the refusal.
const LINGER: Duration = Duration::from_secs(2);

/// Reads the body of a request, which counts until the guard is dropped.
async fn read_counted_body(request: Request, app: &Arc<App>) -> Result<(Bytes, InFlightGuard), Problem> {
    let (mut parts, body) = request.into_parts();
    let caller = Caller::from_request_parts(&mut parts, app).await?;
    expect_plain(&parts.headers)?;
    let most = parts.extensions.get::<BodyLimit>().map_or(app.config().max_body_bytes, |limit| limit.0);
    if body.size_hint().lower() > most as u64 {
        return Err(Problem::body_too_large(most));
    }
    let mut in_flight = app.bodies().begin(&caller)?;
    let read = async {
        let (mut pieces, mut bytes) = (LingeringBody::new(body, most as u64, LINGER), BytesMut::new());
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| Problem::invalid_body(format!("The body broke off: {error}.")))?;
            if bytes.len() + piece.len() > most {
                return Err(Problem::body_too_large(most));
            }
            app.bodies().arrived(&mut in_flight, piece.len())?;
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.freeze())
    };
    let bytes = tokio::time::timeout(app.config().body_timeout, read).await.map_err(|_| Problem::body_timeout())??;
    let bytes = without_mark(bytes);
    let most = app.config().max_body_values;
    if count_values(&bytes) > most {
        return Err(Problem::too_many_values(most));
    }
    if parts.extensions.get::<StoredBody>().is_some() {
        app.anonymous_limits().admit_bytes(&caller, bytes.len()).await?;
    }
    Ok((bytes, in_flight))
}

/// Fails if the body is compressed, because no limit would hold for its contents.
pub fn expect_plain(headers: &HeaderMap) -> Result<(), Problem> {
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).into_iter();
    let is_plain = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity");
    if encodings.all(is_plain) { Ok(()) } else { Err(Problem::unsupported_encoding()) }
}

/// Returns a text without the mark of its byte order, which some clients send.
fn without_mark(mut text: Bytes) -> Bytes {
    if text.starts_with(b"\xEF\xBB\xBF") {
        text.advance(3);
    }
    text
}

/// Returns whether the headers say that the body is JSON. A page of another origin can say so only after a preflight.
pub fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = media_type.split(';').next().unwrap_or("").trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// The query string.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = axum::extract::Query::try_from_uri(&parts.uri);
        query
            .map(|query| Self(query.0))
            .map_err(|rejection| Problem::invalid_query(format!("{}.", rejection.body_text())))
    }
}

/// The id of a conversation in the path. Fails with `conversation_not_found` if the text is no id.
pub struct ConversationId(pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for ConversationId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        id_in_path(parts, state).await.map(Self).map_err(Problem::conversation_not_found)
    }
}

/// The id of a run in the path.
pub struct RunId(pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for RunId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        id_in_path(parts, state).await.map(Self).map_err(Problem::run_not_found)
    }
}

/// The id of a plan in the path.
pub struct PlanId(pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for PlanId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        id_in_path(parts, state).await.map(Self).map_err(Problem::plan_not_found)
    }
}

/// The id of an agent in the path.
pub struct AgentId(pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for AgentId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        id_in_path(parts, state).await.map(Self).map_err(Problem::no_such_agent)
    }
}

/// The id of a file in the path.
pub struct FileId(pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for FileId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        id_in_path(parts, state).await.map(Self).map_err(Problem::file_not_found)
    }
}

/// The id of a collection in the path.
pub struct CollectionId(pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for CollectionId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        id_in_path(parts, state).await.map(Self).map_err(Problem::collection_not_found)
    }
}

/// The id of a document in the path.
pub struct DocumentId(pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for DocumentId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        id_in_path(parts, state).await.map(Self).map_err(Problem::document_not_found)
    }
}

/// The id of a memory in the path.
pub struct MemoryId(pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for MemoryId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        id_in_path(parts, state).await.map(Self).map_err(Problem::memory_not_found)
    }
}

/// The id of a briefing in the path.
pub struct BriefingId(pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for BriefingId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        id_in_path(parts, state).await.map(Self).map_err(Problem::briefing_not_found)
    }
}

/// The name of a session in the path; `-` is the default one.
pub struct SessionId(pub String);

impl<S: Send + Sync> FromRequestParts<S> for SessionId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, state).await?;
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) if name == "-" => Ok(Self(caller.default_session())),
            Ok(Path(name)) if is_name(&name) => Ok(Self(name)),
            _ => Err(Problem::invalid_session(MAX_NAME_CHARS)),
        }
    }
}

/// The parent's id in the path, such as a run's, followed by the id or name of one of its parts.
pub struct PartOf<T>(pub T, pub String);

impl<S: Send + Sync> FromRequestParts<S> for PartOf<RunId> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (run, part) = two_in_path(parts, state).await;
        Ok(Self(id(&run).map(RunId).map_err(Problem::run_not_found)?, part))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PartOf<ConversationId> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let (conversation, part) = two_in_path(parts, state).await;
        Ok(Self(id(&conversation).map(ConversationId).map_err(Problem::conversation_not_found)?, part))
    }
}

async fn two_in_path<S: Send + Sync>(parts: &mut Parts, state: &S) -> (String, String) {
    Path::<(String, String)>::from_request_parts(parts, state).await.map(|Path(two)| two).unwrap_or_default()
}

async fn id_in_path<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Uuid, String> {
    let Ok(Path(text)) = Path::<String>::from_request_parts(parts, state).await else {
        return Err("of that name".to_owned());
    };
    id(&text)
}

/// Parses an id; fails with the beginning of the text. Accepts only the usual spelling, so that an id has one URL.
pub fn id(text: &str) -> Result<Uuid, String> {
    Uuid::try_parse(text)
        .ok()
        .filter(|id| id.to_string() == text.to_ascii_lowercase())
        .ok_or_else(|| text.chars().take(64).collect())
}

/// Returns whether `Accept` names `text/event-stream`.
pub fn accepts_event_stream(headers: &HeaderMap) -> bool {
    accepts(headers, "text/event-stream")
}

/// Returns whether `Accept` names `application/json`.
pub fn accepts_json(headers: &HeaderMap) -> bool {
    accepts(headers, "application/json")
}

fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| {
        let essence = range.split(';').next().unwrap_or("").trim();
        essence.eq_ignore_ascii_case(media_type)
    })
}

/// Returns the `Idempotency-Key` header, bound to the request's fingerprint and options. Fails if the key is invalid.
pub fn idempotency_key(
    headers: &HeaderMap,
    fingerprint: &[&str],
    options: &RunOptions,
) -> Result<Option<IdempotencyKey>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let invalid = || Problem::invalid_key(IdempotencyKey::MAX_CHARS);
    let key = value.to_str().map_err(|_| invalid())?;
    if key.trim().is_empty() || key.len() > IdempotencyKey::MAX_CHARS {
        return Err(invalid());
    }
    // Default options add nothing, so the fingerprint equals that of versions without options.
    let extra = (*options != RunOptions::default()).then(|| {
        let mut extra = vec![json!(options.stream), json!(options.client_tools), json!(options.metadata)];
        extra.extend((!options.overrides.is_default()).then(|| json!(options.overrides)));
        extra.extend(options.delay.map(|delay| json!(delay.as_millis() as u64)));
        json!(extra).to_string()
    });
    let parts: Vec<&str> = fingerprint.iter().copied().chain(extra.as_deref()).collect();
    Ok(Some(IdempotencyKey::new(key.to_owned(), &parts)))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only its reading matters")]
    struct Order {
        size: Size,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        Small,
    }

    #[test]
    fn a_body_that_is_json_but_no_order_is_invalid_at_its_field() {
        let check = |json: &str, code: &str, part: &str| {
            let problem = read_json::<Order>(json.as_bytes()).unwrap_err();
            assert!(
                problem.code == code && problem.detail.contains(part),
                "{json}: {} {}",
                problem.code,
                problem.detail
            );
        };
        for value in ["null", "5", "true", "[]", "\"large\""] {
            check(&format!("{{\"size\": {value}}}"), "invalid_body", "size: ");
        }
        check("{}", "invalid_body", "missing field `size`");
        check("{\"size\": 5", "invalid_json", "EOF");
        check("{\"size\": \"small\"} {}", "invalid_json", "trailing");
        read_json::<Order>(b"{\"size\": \"small\"} ").unwrap();
    }
}
