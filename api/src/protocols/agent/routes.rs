//! `/api/agent/stream`: posts a message to a session and returns the agent stream.

use std::sync::Arc;

use axum::{extract::State, http::HeaderMap, response::Response};
use holdfast_shared::{
    agent::PLANNER_ID,
    context::{AgentContext, CONTEXT_TYPES, EntityType, ProjectFocus},
    conversation::Handle,
    run::SubmitMode,
    storage::{RunOptions, Target},
};
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    app::{App, Posting},
    auth::{Caller, MAX_NAME_CHARS, is_name},
    event_stream::{cursor, stream_on},
    extract::{self, JsonBody, Query},
    problem::Problem,
    run_request::{WireQuery, checked_options, default_target, plain_posting},
    wire::Wire,
};

/// The route ignores unknown fields and `conversation_history`, because the server has the history.
#[derive(Deserialize, utoipa::ToSchema)]
pub struct AgentBody {
    message: String,
    /// The session's name, or the id from the frame `session`; `-` is the default session. If absent: the session that
    /// `X-Session-ID` names, else a new conversation.
    session_id: Option<String>,
    /// The kind of thing that the client shows. The server stores it with the run and sends it with the run's states.
    context_type: String,
    /// The server stores this field and the next two with the run.
    entity_id: Option<String>,
    #[serde(rename = "ontologyEntityType")]
    ontology_entity_type: Option<EntityType>,
    #[serde(rename = "projectFocus")]
    project_focus: Option<ProjectFocus>,
    /// The effect on an unfinished run of the conversation, as for `POST /v1/conversations/{id}/messages`.
    #[serde(default)]
    mode: SubmitMode,
}

/// Post a message. The answer streams `session`, then `agent_state`, `text`, `tool_call`, `tool_result` and
/// `context_usage` as they occur, then `done` or `error`, and `[DONE]`.
#[utoipa::path(post, path = "/api/agent/stream", operation_id = "agent_stream", tag = "wires", request_body = AgentBody,
    params(WireQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "Up to 255 characters: the same key and request give the same run."),
        ("Last-Event-ID" = Option<String>, Header, description = "The last event id that the client has, for a repeated request.")),
    responses(
        (status = 200, content_type = "text/event-stream", description = "The agent stream; the header `x-run-id` names the run."),
        (status = 204, description = "The client of a repeated request has all events."),
        (status = 400, body = Problem, description = "empty_content, content_too_long, invalid_session, invalid_context_type, invalid_metadata, invalid_body, invalid_json, invalid_idempotency_key"),
        (status = 422, body = Problem, description = "idempotency_key_reused")
    )
)]
pub async fn post(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<WireQuery>,
    JsonBody(body): JsonBody<AgentBody>,
) -> Result<Response, Problem> {
    let agent_id = stream_agent(&app).await?;
    if agent_id == Some(PLANNER_ID) && !CONTEXT_TYPES.contains(&body.context_type.as_str()) {
        return Err(Problem::invalid_context_type(&body.context_type, &CONTEXT_TYPES));
    }
    let target = target(&app, &caller, body.session_id, agent_id).await?;
    let context = AgentContext {
        session_id: match &target {
            Target::Named { handle: Handle::Session(name), .. } => Some(name.clone()),
            _ => None,
        },
        context_type: body.context_type,
        entity_id: body.entity_id,
        ontology_entity_type: body.ontology_entity_type,
        project_focus: body.project_focus,
    };
    let metadata = context.within(None);
    let conversation = match &target {
        Target::Existing(id) => id.to_string(),
        _ => String::new(),
    };
    let fingerprint = ["agent", &conversation, &metadata.to_string(), &body.message];
    let posting = Posting {
        options: RunOptions {
            max_silence: Some(app.config().agent_stream_silence),
            ..checked_options(&app, None, Vec::new(), Some(metadata), None)?
        },
        ..plain_posting(&headers, &fingerprint, target, body.message.clone(), body.mode)?
    };
    let (committed, subscriber) = app.post_and_follow(&caller, posting, cursor(&headers, None)?).await?;
    stream_on(Wire::Agent, &app, &committed.run, subscriber, query.stream_mode).await
}

/// Returns the agent of new conversations of this route; `None` for the plain model.
async fn stream_agent(app: &App) -> Result<Option<Uuid>, Problem> {
    match app.config().stream_agent.as_str() {
        "none" => Ok(None),
        "planner" => Ok(Some(PLANNER_ID)),
        name => {
            let found = app.storage().agents_named(&[name.to_owned()]).await?;
            let agent = found.get(name).ok_or_else(|| Problem::stream_agent_not_found(name))?;
            Ok(Some(agent.id))
        }
    }
}

/// Returns the conversation of a session. A client without a session name received the conversation's id in the frame
/// `session`, and may send that id. Fails if the name is invalid.
async fn target(
    app: &App,
    caller: &Caller,
    session: Option<String>,
    agent_id: Option<Uuid>,
) -> Result<Target, Problem> {
    let Some(name) = session else { return Ok(default_target(caller, agent_id)) };
    if let Ok(id) = extract::id(&name)
        && app.storage().conversation(&caller.owner, id).await?.is_some()
    {
        return Ok(Target::Existing(id));
    }
    let name = match name.as_str() {
        "-" => caller.default_session(),
        name if is_name(name) => name.to_owned(),
        _ => return Err(Problem::invalid_session(MAX_NAME_CHARS)),
    };
    Ok(Target::Named { handle: Handle::Session(name), agent_id })
}
