//! `/a2a`: the routes for the clients of the A2A protocol.
//!
//! A run is a task, and a conversation is a context. `card` describes an agent. `request` has the methods of JSON-RPC, `message` a
//! user's message, `answer` its answers, and `call` what the methods share: `send` starts or continues a task, `task` reads, follows and ends one.

mod answer;
mod call;
mod card;
mod message;
mod request;
mod send;
mod task;

use std::sync::Arc;

use axum::{
    extract::{Path, State},
    http::HeaderMap,
    response::Response,
};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    app::App,
    auth::{Caller, is_name},
    extract::JsonBody,
    problem::Problem,
    server_origin::ServerOrigin,
    thread::truncated_id,
};
use call::{A2aCall, refusal};

use card::{CardWords, card};
use request::{A2aMethod, RpcRequest, check_version};
use send::Delivery;

/// The card of the default agent.
#[utoipa::path(get, path = "/a2a/.well-known/agent-card.json", operation_id = "card", tag = "a2a", responses(
    (status = 200, body = Object, description = "The card, for clients of 1.0 and of 0.3."),
    (status = 304, description = "The client has the card, by `If-None-Match`.")
))]
pub async fn default_card(headers: HeaderMap, ServerOrigin(origin): ServerOrigin) -> Response {
    let words = CardWords { name: "Holdfast", description: "The default agent of this server." };
    card(&words, &format!("{origin}/a2a"), &headers)
}

/// The card of the default agent, at the address where the protocol looks for a server's agent.
#[utoipa::path(get, path = "/.well-known/agent-card.json", operation_id = "well_known_card", tag = "a2a", responses(
    (status = 200, body = Object, description = "The card, as at `/a2a`."),
    (status = 304, description = "The client has the card, by `If-None-Match`.")
))]
pub async fn well_known_card(headers: HeaderMap, origin: ServerOrigin) -> Response {
    default_card(headers, origin).await
}

/// The card of an agent.
#[utoipa::path(get, path = "/a2a/agents/{name}/.well-known/agent-card.json", operation_id = "card_of_agent", tag = "a2a",
    params(("name" = String, Path, description = "The name or the id of the agent.")),
    responses(
        (status = 200, body = Object, description = "The card, for clients of 1.0 and of 0.3."),
        (status = 304, description = "The client has the card, by `If-None-Match`."),
        (status = 404, body = Object, description = "agent_not_found")
    )
)]
pub async fn agent_card(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    ServerOrigin(origin): ServerOrigin,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let unknown = || Problem::no_such_agent(truncated_id(&name));
    let id = agent_named(&app, &caller, &name).await?.ok_or_else(unknown)?;
    let agent = app.storage().agent(id).await?.ok_or_else(unknown)?.definition;
    let description = agent.description.as_deref().unwrap_or("An agent of this server.");
    let words = CardWords { name: &agent.name, description };
    let name = percent_encoding::utf8_percent_encode(&name, percent_encoding::NON_ALPHANUMERIC);
    Ok(card(&words, &format!("{origin}/a2a/agents/{name}"), &headers))
}

/// Call a method of A2A by JSON-RPC: send a message, or read, list, follow or cancel tasks.
///
/// A method that fails gives 200 and a JSON-RPC error.
#[utoipa::path(post, path = "/a2a", operation_id = "call", tag = "a2a", request_body = RpcRequest,
    params(
        ("A2A-Version" = Option<String>, Header, description = "`1.0` or `0.3`."),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last frame that the client has, for a repeated request for a stream.")),
    responses(
        (status = 200, description = "The response of JSON-RPC, or a stream of responses; the header `x-run-id` of a stream names the run.", content(
            (Object = "application/json"), (String = "text/event-stream")
        ))
    )
)]
pub async fn post(
    State(app): State<Arc<App>>,
    caller: Caller,
    origin: ServerOrigin,
    headers: HeaderMap,
    body: Result<JsonBody<RpcRequest>, Problem>,
) -> Response {
    answer((&app, &caller), &origin, &headers, body, None).await
}

/// Call a method of A2A: as `POST /a2a`, with the agent of a new conversation.
#[utoipa::path(post, path = "/a2a/agents/{name}", operation_id = "call_agent", tag = "a2a", request_body = RpcRequest,
    params(("name" = String, Path, description = "The name or the id of the agent."),
        ("A2A-Version" = Option<String>, Header, description = "As for `POST /a2a`."),
        ("Last-Event-ID" = Option<String>, Header, description = "As for `POST /a2a`.")),
    responses(
        (status = 200, description = "As for `POST /a2a`.", content(
            (Object = "application/json"), (String = "text/event-stream")
        ))
    )
)]
pub async fn post_to_agent(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
    origin: ServerOrigin,
    headers: HeaderMap,
    body: Result<JsonBody<RpcRequest>, Problem>,
) -> Response {
    answer((&app, &caller), &origin, &headers, body, Some(&name)).await
}

async fn answer(
    (app, caller): (&Arc<App>, &Caller),
    ServerOrigin(origin): &ServerOrigin,
    headers: &HeaderMap,
    body: Result<JsonBody<RpcRequest>, Problem>,
    agent: Option<&str>,
) -> Response {
    let request = match body {
        Ok(JsonBody(request)) => request,
        Err(problem) if problem.code == "invalid_body" => {
            return refusal(Problem::invalid_request(problem.detail), &Value::Null);
        }
        Err(problem) => return refusal(problem, &Value::Null),
    };
    let result = async {
        let (method, version) = request.method()?;
        check_version(headers)?;
        let agent_id = match agent {
            Some(name) => {
                let found = agent_named(app, caller, name).await?;
                Some(found.ok_or_else(|| Problem::agent_not_found(truncated_id(name)))?)
            }
            None => None,
        };
        dispatch(method, &A2aCall { app, caller, headers, origin, request: &request, version, agent_id }).await
    };
    result.await.unwrap_or_else(|problem| refusal(problem, &request.response_id()))
}

async fn dispatch(method: A2aMethod, call: &A2aCall<'_>) -> Result<Response, Problem> {
    match method {
        A2aMethod::Send => send::send(call, Delivery::Whole).await,
        A2aMethod::SendStreaming => send::send(call, Delivery::Streamed).await,
        A2aMethod::GetTask => task::get(call).await,
        A2aMethod::ListTasks => task::list(call).await,
        A2aMethod::CancelTask => task::cancel(call).await,
        A2aMethod::Subscribe => task::subscribe(call).await,
        A2aMethod::PushNotifications => Err(Problem::push_notifications_unsupported()),
        A2aMethod::ExtendedCard => Err(Problem::no_extended_card()),
    }
}

async fn agent_named(app: &App, caller: &Caller, name: &str) -> Result<Option<Uuid>, Problem> {
    if is_name(name) { app.agent_named(caller, name).await } else { Ok(None) }
}
