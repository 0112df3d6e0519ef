//! `/v1/briefings`: briefings for a user, and the conversations about them.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
};
use chrono::{DateTime, Utc};
use holdfast_shared::{
    briefing::Briefing,
    hidden::{is_visible, without_hidden},
    page::Page,
    storable::{has_nul, is_too_deep},
    storage::{NewBriefing, RunOptions, StoredBriefing},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    anonymous_limits::AdmittedWriter,
    app::App,
    auth::{Caller, MAX_NAME_CHARS, is_name},
    extract::{BriefingId, JsonBody, Query, idempotency_key},
    page_sizes::ListQuery,
    problem::Problem,
};

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBriefingBody {
    /// The agent with which the user can discuss the briefing.
    agent_id: Uuid,
    title: String,
    summary: String,
    /// Such as `P1`; absent for none.
    priority: Option<String>,
    /// Any JSON for the front end; no model receives it.
    data: Option<Value>,
    /// Now, if absent.
    created_at: Option<DateTime<Utc>>,
    /// The owner of the briefing; the caller by default. Only an operator may name another owner.
    owner_id: Option<String>,
}

/// The conversation about a briefing.
#[derive(Serialize, utoipa::ToSchema)]
pub struct StartedConversation {
    conversation_id: Uuid,
    /// The message that shows the briefing's card.
    message_id: Uuid,
}

/// Store a briefing, once per `Idempotency-Key` and caller.
#[utoipa::path(post, path = "/v1/briefings", tag = "briefings", request_body = NewBriefingBody, responses(
    (status = 201, body = Briefing), (status = 400, body = Problem, description = "invalid_briefing, content_too_long, invalid_content, agent_not_found, owner_not_admitted, invalid_user, invalid_idempotency_key"),
    (status = 403, body = Problem, description = "operator_needed: the briefing is for another owner; quota_exceeded"),
    (status = 422, body = Problem, description = "idempotency_key_reused")
))]
pub async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<NewBriefingBody>,
) -> Result<impl IntoResponse, Problem> {
    let agent_id = body.agent_id;
    let owner = owner_of(&caller, body.owner_id.as_deref())?;
    let fingerprint =
        json!([owner, agent_id, body.title, body.summary, body.priority, body.data, body.created_at]).to_string();
    let key = idempotency_key(&headers, &["briefing", &fingerprint], &RunOptions::default())?;
    let authored = key.map(|key| (caller.owner.clone(), key));
    let outcome = match app.storage().repeated_briefing(authored.as_ref()).await? {
        Some(repeated) => repeated,
        None => {
            app.admit_write(&caller).await?;
            app.anonymous_limits().admit_bytes(&caller, fingerprint.len()).await?;
            app.expect_access(&caller, agent_id).await?;
            if owner != caller.owner {
                app.expect_access_of(&owner, agent_id).await?;
            }
            let new = NewBriefing { authored, ..checked(&app, body)? };
            app.storage().create_briefing(app.account(&owner), new).await?
        }
    };
    let briefing = match outcome {
        StoredBriefing::Stored(briefing) | StoredBriefing::Repeated(briefing) => briefing,
        StoredBriefing::KeyReused => return Err(Problem::key_reused()),
        StoredBriefing::AgentNotFound => return Err(Problem::agent_not_found(agent_id)),
    };
    let location = format!("/v1/briefings/{}", briefing.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(briefing)))
}

/// List briefings, newest first.
#[utoipa::path(get, path = "/v1/briefings", tag = "briefings", params(ListQuery), responses((status = 200, body = Page<Briefing>)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<Briefing>>, Problem> {
    let size = query.size(&app)?;
    let page = app.storage().briefings(&caller.owner, size, query.cursor.as_deref()).await?;
    page.map(Json).ok_or_else(Problem::invalid_cursor)
}

/// Read a briefing.
#[utoipa::path(get, path = "/v1/briefings/{id}", tag = "briefings", params(("id" = Uuid, Path)), responses(
    (status = 200, body = Briefing), (status = 404, body = Problem, description = "briefing_not_found")
))]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    BriefingId(id): BriefingId,
) -> Result<Json<Briefing>, Problem> {
    app.storage().briefing(&caller.owner, id).await?.map(Json).ok_or_else(|| Problem::briefing_not_found(id))
}

/// Delete a briefing. Its cards stay in their conversations.
#[utoipa::path(delete, path = "/v1/briefings/{id}", tag = "briefings", params(("id" = Uuid, Path)), responses(
    (status = 204), (status = 404, body = Problem, description = "briefing_not_found")
))]
pub async fn delete(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    BriefingId(id): BriefingId,
) -> Result<StatusCode, Problem> {
    if app.storage().delete_briefing(&caller.owner, id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::briefing_not_found(id))
    }
}

/// Start a conversation about a briefing: the server adds its card, once, to the standing conversation with its agent.
#[utoipa::path(post, path = "/v1/briefings/{id}/actions/start_conversation", tag = "briefings", params(("id" = Uuid, Path)), responses(
    (status = 200, body = StartedConversation),
    (status = 400, body = Problem, description = "agent_not_found: the agent was deleted"),
    (status = 403, body = Problem, description = "quota_exceeded"),
    (status = 404, body = Problem, description = "briefing_not_found")
))]
pub async fn start_conversation(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    BriefingId(id): BriefingId,
) -> Result<Json<StartedConversation>, Problem> {
    let (conversation_id, message_id) = app.add_briefing_card(&caller, id).await?;
    Ok(Json(StartedConversation { conversation_id, message_id }))
}

fn breaks_lines(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

const MAX_PRIORITY_CHARS: usize = 64;

/// Returns the owner of a new briefing. Fails if the caller may not name this owner.
fn owner_of(caller: &Caller, named: Option<&str>) -> Result<String, Problem> {
    match named {
        None => Ok(caller.owner.clone()),
        Some(owner) if owner == caller.owner => Ok(owner.to_owned()),
        Some(_) if !caller.is_operator => Err(Problem::operator_needed_for_another_owner()),
        Some(owner) if is_name(owner) && owner.trim() == owner => Ok(owner.to_owned()),
        Some(_) => Err(Problem::invalid_owner(MAX_NAME_CHARS)),
    }
}

fn checked(app: &App, body: NewBriefingBody) -> Result<NewBriefing, Problem> {
    let NewBriefingBody { agent_id, title, summary, priority, data, created_at, .. } = body;
    let (max_title, max_content) = (app.config().max_title_chars, app.config().max_content_bytes);
    let texts = [Some(&title), Some(&summary), priority.as_ref()];
    if texts.into_iter().flatten().any(|text| text.contains('\0')) || data.as_ref().is_some_and(has_nul) {
        return Err(Problem::invalid_content());
    }
    if !is_visible(&title) || title.chars().count() > max_title {
        return Err(Problem::invalid_briefing(&format!(
            "A title has 1 to {max_title} characters, one of them visible"
        )));
    }
    if summary.trim().is_empty() {
        return Err(Problem::invalid_briefing("A briefing needs a summary"));
    }
    let data_bytes = data.as_ref().map_or(0, |data| data.to_string().len());
    if let Some(bytes) = [summary.len(), data_bytes].into_iter().find(|bytes| *bytes > max_content) {
        return Err(Problem::content_too_long(bytes, max_content));
    }
    if data.as_ref().is_some_and(is_too_deep) {
        return Err(Problem::invalid_briefing("data may be nested at most 64 deep"));
    }
    // A card has one line for each, so a line break could imitate another line of the card.
    if priority.as_ref().is_some_and(|own| own.trim().is_empty() || own.chars().count() > MAX_PRIORITY_CHARS) {
        return Err(Problem::invalid_briefing(&format!(
            "A priority has 1 to {MAX_PRIORITY_CHARS} characters; omit it for none"
        )));
    }
    if [Some(&title), priority.as_ref()].into_iter().flatten().any(|line| line.chars().any(breaks_lines)) {
        return Err(Problem::invalid_briefing("A title and a priority must not have line breaks"));
    }
    if created_at.is_some_and(|at| !(1..=9999).contains(&chrono::Datelike::year(&at))) {
        return Err(Problem::invalid_briefing("created_at must be in the years 1 to 9999"));
    }
    let title = without_hidden(&title).into_owned();
    Ok(NewBriefing { agent_id, title, summary, priority, data, created_at, authored: None })
}
