//! The models of this wire: the default one, the agents, and the profiles of models.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
};
use holdfast_shared::{page::PageSize, run::Run};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{app::App, auth::Caller, problem::Problem};

/// The name of the deployment's own model.
pub const DEFAULT: &str = "default";

/// Most agents in the list.
const MAX_AGENTS: usize = 500;

/// The agent or the profile that the name of a model stands for.
#[derive(Default)]
pub struct ModelTarget {
    pub agent_id: Option<Uuid>,
    pub profile: Option<String>,
}

/// List the models: `default`, the agents by their names, and the profiles.
#[utoipa::path(get, path = "/openai/v1/models", operation_id = "list_models", tag = "openai", responses(
    (status = 200, body = Object, description = "The list, as OpenAI has it.")
))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Json<Value>, Problem> {
    let size = PageSize { items: MAX_AGENTS, bytes: app.config().max_page_bytes };
    let agents = app.storage().agents(size, None).await?.map(|page| page.items).unwrap_or_default();
    let profiles = app.storage().profiles().await?;
    let admitted = agents.into_iter().filter(|agent| agent.definition.access.admits(caller.standing()));
    let agents = admitted.map(|agent| model(&agent.definition.name, agent.created_at.timestamp()));
    let profiles = profiles.profiles.keys().filter(|_| may_choose_profiles(&caller)).map(|name| model(name, 0));
    let data: Vec<Value> = std::iter::once(model(DEFAULT, 0)).chain(agents).chain(profiles).collect();
    Ok(Json(json!({"object": "list", "data": data})))
}

/// Read a model.
#[utoipa::path(get, path = "/openai/v1/models/{name}", operation_id = "read_model", tag = "openai",
    params(("name" = String, Path, description = "`default`, or the name of an agent or of a profile.")),
    responses(
        (status = 200, body = Object, description = "The model, as OpenAI has it."),
        (status = 404, body = Object, description = "model_not_found")
    )
)]
pub async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    model_named(&app, &caller, Some(&name)).await?;
    Ok(Json(model(&name, 0)))
}

/// Returns the agent or the profile of this name. The name of the deployment's own model stands for that. Fails for an unknown name.
pub async fn model_named(app: &App, caller: &Caller, name: Option<&str>) -> Result<ModelTarget, Problem> {
    let Some(name) = name.filter(|name| *name != DEFAULT) else { return Ok(ModelTarget::default()) };
    let unknown = || Problem::model_not_found(name.chars().take(64).collect());
    if name.contains('\0') || name.len() > 256 {
        return Err(unknown());
    }
    if let Some(agent_id) = app.agent_named(caller, name).await? {
        return Ok(ModelTarget { agent_id: Some(agent_id), profile: None });
    }
    if may_choose_profiles(caller) && app.storage().profiles().await?.profiles.contains_key(name) {
        return Ok(ModelTarget { agent_id: None, profile: Some(name.to_owned()) });
    }
    match app.own_model_name().await? {
        Some(own) if own == name || own.split_once('/').is_some_and(|(_, model)| model == name) => {
            Ok(ModelTarget::default())
        }
        _ => Err(unknown()),
    }
}

/// Returns the name of an agent that still exists.
pub async fn agent_name(app: &App, agent_id: Option<Uuid>) -> Result<Option<String>, Problem> {
    let Some(agent_id) = agent_id else { return Ok(None) };
    Ok(app.storage().agent(agent_id).await?.map(|agent| agent.definition.name.clone()))
}

/// Returns the model that has answered in a run: its agent, else the one that the request has named.
pub async fn answering_model(app: &App, run: &Run, named: Option<String>) -> Result<String, Problem> {
    let agent = agent_name(app, run.agent_id).await?;
    Ok(agent.or(named).unwrap_or_else(|| DEFAULT.to_owned()))
}

/// Anonymous users have the models that the operator has chosen for them.
fn may_choose_profiles(caller: &Caller) -> bool {
    !caller.standing().is_anonymous
}

fn model(name: &str, created: i64) -> Value {
    json!({"id": name, "object": "model", "created": created, "owned_by": "holdfast"})
}
