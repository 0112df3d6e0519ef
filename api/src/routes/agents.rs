//! `/v1/agents`: define, check, list, read, change, delete. Agents belong to the deployment. Operators write their secrets,
//! and no route returns them.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
};
use holdfast_shared::{
    agent::{Access, Agent, AgentCheck, AgentDefinition, Approvers, InvalidDefinition},
    given_json,
    page::Page,
    storage::AgentChange,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::merge_patch::merge;
use crate::{
    app::App,
    auth::{Caller, Operator},
    extract::{AgentId, JsonBody, Query},
    page_sizes::ListQuery,
    problem::Problem,
};

/// Define an agent. `docs/agents.md` describes the definition.
#[utoipa::path(post, path = "/v1/agents", tag = "agents", request_body = ref("#/components/schemas/NewAgent"), responses(
    (status = 201, body = Agent),
    (status = 400, body = Problem, description = "invalid_agent, invalid_body"),
    (status = 403, body = Problem, description = "stdio_not_allowed")
))]
pub async fn create(
    State(app): State<Arc<App>>,
    _: Operator,
    JsonBody(definition): JsonBody<Value>,
) -> Result<impl IntoResponse, Problem> {
    expect_profile(&app, &definition).await?;
    let created = app.storage().create_agent(&checked(&app, read_definition(definition)?)?).await?;
    let agent = created.map_err(|cycle| Problem::cyclic_agents(&cycle))?;
    let location = format!("/v1/agents/{}", agent.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(redacted(agent))))
}

/// Check a definition, and store nothing. A worker asks the model once for a few tokens and connects to each MCP server, all within
/// 10 s.
#[utoipa::path(post, path = "/v1/agents/check", tag = "agents", request_body = ref("#/components/schemas/NewAgent"), responses(
    (status = 200, body = AgentCheck),
    (status = 400, body = Problem, description = "invalid_agent, invalid_body"),
    (status = 403, body = Problem, description = "stdio_not_allowed"),
    (status = 429, body = Problem, description = "too_many_checks"),
    (status = 503, body = Problem, description = "no_worker")
))]
pub async fn check(
    State(app): State<Arc<App>>,
    _: Operator,
    JsonBody(definition): JsonBody<Value>,
) -> Result<Json<AgentCheck>, Problem> {
    expect_profile(&app, &definition).await?;
    app.check_agent(checked(&app, read_definition(definition)?)?).await.map(Json)
}

/// List agents, newest first.
#[utoipa::path(get, path = "/v1/agents", tag = "agents", params(ListQuery), responses((status = 200, body = Page<Agent>)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<Agent>>, Problem> {
    let page = app.storage().agents(query.size(&app)?, query.cursor.as_deref()).await?;
    let page = page.ok_or_else(Problem::invalid_cursor)?;
    let admitted = page.items.into_iter().filter(|agent| agent.definition.access.admits(caller.standing()));
    Ok(Json(Page { items: admitted.map(|agent| visible_to(&caller, agent)).collect(), next: page.next }))
}

/// Read an agent.
#[utoipa::path(get, path = "/v1/agents/{id}", tag = "agents", params(("id" = Uuid, Path)), responses(
    (status = 200, body = Agent), (status = 404, body = Problem, description = "agent_not_found")
))]
pub async fn read(State(app): State<Arc<App>>, caller: Caller, AgentId(id): AgentId) -> Result<Json<Agent>, Problem> {
    let agent = app.storage().agent(id).await?.filter(|agent| agent.definition.access.admits(caller.standing()));
    agent.map(|agent| visible_to(&caller, agent)).map(Json).ok_or_else(|| Problem::no_such_agent(id))
}

/// Change an agent with a JSON merge patch (RFC 7396): an absent field stays, null removes a field, a list replaces the
/// old one. A secret that the client sends back as `{"redacted": true}` stays as it is. Earlier runs keep their
/// definition.
#[utoipa::path(patch, path = "/v1/agents/{id}", tag = "agents", params(("id" = Uuid, Path)), request_body = ref("#/components/schemas/AgentChange"), responses(
    (status = 200, body = Agent),
    (status = 400, body = Problem, description = "invalid_agent, invalid_body"),
    (status = 403, body = Problem, description = "stdio_not_allowed"),
    (status = 404, body = Problem, description = "agent_not_found"),
    (status = 409, body = Problem, description = "agent_in_file")
))]
pub async fn change(
    State(app): State<Arc<App>>,
    _: Operator,
    AgentId(id): AgentId,
    JsonBody(patch): JsonBody<Value>,
) -> Result<Json<Agent>, Problem> {
    expect_profile(&app, &patch).await?;
    let change = |stored: &AgentDefinition| {
        let mut changed = json!(stored.redacted());
        merge(&mut changed, patch);
        checked(&app, read_definition(changed)?.with_secrets_of(stored))
    };
    match app.storage().change_agent(id, change).await?? {
        AgentChange::Changed(agent) => Ok(Json(redacted(*agent))),
        AgentChange::InFile => Err(Problem::agent_in_file(id)),
        AgentChange::Builtin => Err(Problem::agent_builtin(id)),
        AgentChange::NotFound => Err(Problem::no_such_agent(id)),
        AgentChange::Cyclic(cycle) => Err(Problem::cyclic_agents(&cycle)),
    }
}

/// Delete an agent. Its conversations continue with it; clients cannot create new ones with it.
#[utoipa::path(delete, path = "/v1/agents/{id}", tag = "agents", params(("id" = Uuid, Path)), responses(
    (status = 204),
    (status = 404, body = Problem, description = "agent_not_found"),
    (status = 409, body = Problem, description = "agent_in_file")
))]
pub async fn delete(State(app): State<Arc<App>>, _: Operator, AgentId(id): AgentId) -> Result<StatusCode, Problem> {
    match app.storage().delete_agent(id).await? {
        AgentChange::Changed(_) => Ok(StatusCode::NO_CONTENT),
        AgentChange::InFile => Err(Problem::agent_in_file(id)),
        AgentChange::Builtin => Err(Problem::agent_builtin(id)),
        AgentChange::NotFound => Err(Problem::no_such_agent(id)),
        AgentChange::Cyclic(cycle) => Err(Problem::cyclic_agents(&cycle)),
    }
}

/// Fails if a definition names a model profile that does not exist.
async fn expect_profile(app: &App, definition: &Value) -> Result<(), Problem> {
    let Some(profile) = definition.pointer("/model/profile").and_then(Value::as_str) else { return Ok(()) };
    app.storage()
        .profiles()
        .await?
        .expect_profile(profile, "model.profile")
        .map_err(|invalid| Problem::invalid_agent(&invalid))
}

/// Fields that answers add to an agent's definition. The server ignores them in a request.
const READ_ONLY_FIELDS: [&str; 5] = ["id", "version", "origin", "created_at", "updated_at"];

fn read_definition(mut definition: Value) -> Result<AgentDefinition, Problem> {
    if let Some(fields) = definition.as_object_mut() {
        READ_ONLY_FIELDS.iter().for_each(|name| drop(fields.remove(*name)));
        expect::<Access>(fields, "access")?;
        expect::<Approvers>(fields, "approvers")?;
    }
    given_json::read(&definition).map_err(|problem| {
        Problem::invalid_body(format!("The agent's definition does not match its schema: {problem}."))
    })
}

/// Fails with the field's name if a field does not have the type `T`.
fn expect<T: DeserializeOwned>(fields: &Map<String, Value>, name: &str) -> Result<(), Problem> {
    match fields.get(name).map(given_json::read::<T>) {
        Some(Err(problem)) => Err(Problem::invalid_agent(&InvalidDefinition { field: name.to_owned(), problem })),
        _ => Ok(()),
    }
}

fn checked(app: &App, definition: AgentDefinition) -> Result<AgentDefinition, Problem> {
    definition.check(app.agent_secrets()).map_err(|invalid| Problem::invalid_agent(&invalid))?;
    if definition.runs_commands() && !app.takes_commands() { Err(Problem::stdio_not_allowed()) } else { Ok(definition) }
}

/// Returns an agent as the caller may see it. Only operators see its instructions and its servers.
fn visible_to(caller: &Caller, agent: Agent) -> Agent {
    if caller.is_operator { redacted(agent) } else { Agent { definition: agent.definition.public_profile(), ..agent } }
}

fn redacted(agent: Agent) -> Agent {
    Agent { definition: agent.definition.redacted(), ..agent }
}
