//! `/v1/conversations`: create, list and search, read, rename, delete.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
};
use chrono::{DateTime, Utc};
use holdfast_shared::{
    context::{AgentContext, PROJECT_CLARIFICATION},
    conversation::{Conversation, Handle},
    hidden::{is_visible, without_hidden},
    page::Page,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    anonymous_limits::AdmittedWriter,
    app::App,
    auth::Caller,
    extract::{AgentId, ConversationId, JsonBody, Query},
    page_sizes::page_size,
    problem::Problem,
};

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConversation {
    agent_id: Option<Uuid>,
    title: Option<String>,
    /// Collections that its runs answer from, beside those of its agent; at most 16.
    #[serde(default)]
    knowledge: Vec<Uuid>,
}

/// Create an empty conversation.
#[utoipa::path(post, path = "/v1/conversations", tag = "conversations", request_body = NewConversation, responses(
    (status = 201, body = Conversation), (status = 400, body = Problem, description = "invalid_title, agent_not_found, invalid_knowledge"),
    (status = 404, body = Problem, description = "collection_not_found"),
    (status = 403, body = Problem, description = "quota_exceeded")
))]
pub async fn create(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    JsonBody(new): JsonBody<NewConversation>,
) -> Result<impl IntoResponse, Problem> {
    let title = checked_title(&app, new.title)?;
    if let Some(agent_id) = new.agent_id {
        app.expect_access(&caller, agent_id).await?;
    }
    app.check_knowledge(&caller, &new.knowledge).await?;
    let account = app.account(&caller.owner);
    let created = app.storage().create_conversation(account, Uuid::now_v7(), title, new.agent_id).await?;
    let mut conversation = created.ok_or_else(|| Problem::agent_not_found(new.agent_id.unwrap_or_default()))?;
    if !new.knowledge.is_empty() {
        let set = app.storage().set_knowledge(&caller.owner, conversation.id, &new.knowledge).await?;
        conversation = set.ok_or_else(|| Problem::conversation_not_found(conversation.id))?;
    }
    let location = format!("/v1/conversations/{}", conversation.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(conversation)))
}

/// The one conversation with an agent that exists as long as the agent.
#[derive(Serialize, utoipa::ToSchema)]
pub struct StandingConversation {
    #[serde(flatten)]
    conversation: Conversation,
    #[serde(serialize_with = "holdfast_shared::timestamp::milliseconds")]
    started_at: DateTime<Utc>,
}

/// Get the caller's standing conversation with an agent; the first request creates it.
#[utoipa::path(put, path = "/v1/agents/{id}/conversation", tag = "conversations", params(("id" = Uuid, Path)), responses(
    (status = 200, body = StandingConversation), (status = 404, body = Problem, description = "agent_not_found")
))]
pub async fn standing(
    State(app): State<Arc<App>>,
    caller: Caller,
    AgentId(id): AgentId,
) -> Result<Json<StandingConversation>, Problem> {
    app.expect_access(&caller, id).await.map_err(|refused| match refused.code {
        "agent_not_found" => Problem::no_such_agent(id),
        _ => refused,
    })?;
    let conversation = match app.storage().find_conversation(&caller.owner, &Handle::Agent(id)).await? {
        Some(conversation) => conversation,
        None => {
            app.admit_write(&caller).await?;
            app.anonymous_limits().admit_bytes(&caller, 0).await?;
            app.standing_conversation(&caller.owner, id).await?.ok_or_else(|| Problem::no_such_agent(id))?
        }
    };
    Ok(Json(StandingConversation { started_at: conversation.created_at, conversation }))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
pub struct SearchQuery {
    /// Words that the title or the messages of a conversation must all contain, in any order: 1 to 200 characters.
    q: Option<String>,
    /// Those whose context names this project of the workspace; not together with `q`. A page looks at 200 conversations, so
    /// it may have fewer items than `limit`, and a `next`.
    project_id: Option<Uuid>,
    /// Most items of the page; 50 by default.
    limit: Option<usize>,
    /// `next` of the previous page of the same list.
    cursor: Option<String>,
}

/// List or search conversations, newest activity first.
#[utoipa::path(get, path = "/v1/conversations", tag = "conversations", params(SearchQuery), responses(
    (status = 200, body = Page<Conversation>), (status = 400, body = Problem, description = "invalid_query, invalid_cursor"),
    (status = 503, body = Problem, description = "search_busy")
))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<SearchQuery>,
) -> Result<Json<Page<Conversation>>, Problem> {
    let size = page_size(&app, query.limit)?;
    let text = query.q.as_deref().map(checked_search).transpose()?;
    let page = match (query.project_id, text) {
        (Some(_), Some(_)) => return Err(Problem::invalid_query("q and project_id exclude each other.")),
        (Some(project), None) => app.conversations_of_project(&caller, project, size.items, query.cursor).await?,
        (None, text) => app.conversations(&caller, size.items, query.cursor, text).await?,
    };
    page.map(Json).ok_or_else(Problem::invalid_cursor)
}

/// A conversation with what its agent knows.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ConversationState {
    #[serde(flatten)]
    conversation: Conversation,
    /// Where in its application the user was at the newest message that told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<AgentContext>,
    /// State that the agent keeps between runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_metadata: Option<AgentMetadata>,
}

/// State that an agent keeps between the runs of a conversation.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentMetadata {
    /// The questions about a project that is to be created, and their answers: `roundNumber`, `accumulatedContext`,
    /// `previousQuestions`, `previousResponses`.
    #[schema(value_type = Object)]
    project_clarification: Value,
}

/// Read a conversation.
#[utoipa::path(get, path = "/v1/conversations/{id}", tag = "conversations", params(("id" = Uuid, Path)), responses(
    (status = 200, body = ConversationState), (status = 404, body = Problem, description = "conversation_not_found")
))]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    ConversationId(id): ConversationId,
) -> Result<Json<ConversationState>, Problem> {
    let conversation = app.storage().conversation(&caller.owner, id).await?;
    let conversation = conversation.ok_or_else(|| Problem::conversation_not_found(id))?;
    let metadata = app.storage().conversation_metadata(id).await?;
    let clarification = metadata.get(PROJECT_CLARIFICATION).cloned();
    Ok(Json(ConversationState {
        conversation,
        context: AgentContext::of(&metadata),
        agent_metadata: clarification.map(|project_clarification| AgentMetadata { project_clarification }),
    }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationChange {
    /// The new title; null removes it.
    #[serde(default, deserialize_with = "present")]
    title: Option<Option<String>>,
    /// The collections that later runs answer from, beside those of the agent; at most 16.
    knowledge: Option<Vec<Uuid>>,
}

/// Change the title or the collections of a conversation.
#[utoipa::path(patch, path = "/v1/conversations/{id}", tag = "conversations", params(("id" = Uuid, Path)), request_body = ConversationChange, responses(
    (status = 200, body = Conversation), (status = 400, body = Problem, description = "invalid_title, invalid_knowledge"),
    (status = 404, body = Problem, description = "conversation_not_found, collection_not_found")
))]
pub async fn change(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    ConversationId(id): ConversationId,
    JsonBody(change): JsonBody<ConversationChange>,
) -> Result<Json<Conversation>, Problem> {
    let (storage, owner) = (app.storage(), caller.owner.as_str());
    let title = change.title.map(|title| checked_title(&app, title)).transpose()?;
    let mut conversation = storage.conversation(owner, id).await?;
    if let Some(knowledge) = &change.knowledge {
        app.check_knowledge(&caller, knowledge).await?;
        conversation = storage.set_knowledge(owner, id, knowledge).await?;
    }
    if let Some(title) = title {
        conversation = storage.rename_conversation(owner, id, title).await?;
    }
    conversation.map(Json).ok_or_else(|| Problem::conversation_not_found(id))
}

/// Deserializes a field that is there, also as null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Delete a conversation with its messages and runs. The server cancels a live run.
#[utoipa::path(delete, path = "/v1/conversations/{id}", tag = "conversations", params(("id" = Uuid, Path)), responses(
    (status = 204), (status = 404, body = Problem, description = "conversation_not_found")
))]
pub async fn delete(
    State(app): State<Arc<App>>,
    AdmittedWriter(caller): AdmittedWriter,
    ConversationId(id): ConversationId,
) -> Result<StatusCode, Problem> {
    app.delete_conversation(&caller.owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Longest text of a search, in characters.
const MAX_SEARCH_CHARS: usize = 200;

/// Returns the words of a search without blanks around them. Fails with `invalid_query` if there are none or too many.
pub fn checked_search(text: &str) -> Result<&str, Problem> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > MAX_SEARCH_CHARS || text.contains('\0') {
        Err(Problem::invalid_query(format!("q has 1 to {MAX_SEARCH_CHARS} characters.")))
    } else {
        Ok(text)
    }
}

fn checked_title(app: &App, title: Option<String>) -> Result<Option<String>, Problem> {
    let max = app.config().max_title_chars;
    match title {
        Some(title) if title.contains('\0') => Err(Problem::invalid_content()),
        Some(title) if !is_visible(&title) || title.chars().count() > max => Err(Problem::invalid_title(max)),
        title => Ok(title.map(|title| without_hidden(&title).into_owned())),
    }
}
