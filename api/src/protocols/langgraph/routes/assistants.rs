//! `/langgraph/assistants`: the agents of the deployment, as the protocol has them.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
};
use holdfast_shared::{
    agent::{Agent, StreamMode},
    page::PageSize,
    timestamp,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::{Uuid, uuid};

use crate::{
    app::App,
    auth::{Caller, is_name},
    extract::JsonBody,
    page_sizes::page_up_to,
    problem::Problem,
    thread::truncated_id,
};

/// The name of the one graph, and of the deployment's plain assistant.
pub const GRAPH: &str = "agent";

/// The id that LangGraph derives for the assistant of a graph of this name.
const DEFAULT_ASSISTANT: Uuid = uuid!("fe096781-5601-53d2-b2f6-0d3403f7e9ca");

/// Returns the id of an agent as the protocol has it; a plain conversation has the default one.
pub fn id_of_agent(agent_id: Option<Uuid>) -> Uuid {
    agent_id.unwrap_or(DEFAULT_ASSISTANT)
}

/// Returns the agent of a name or an id; `None` for the default assistant. Fails with 404 if there is none for the caller.
pub async fn find_assistant(app: &App, caller: &Caller, id: &str) -> Result<Option<Uuid>, Problem> {
    let unknown = || Problem::no_such_agent(truncated_id(id));
    if !is_name(id) {
        return Err(unknown());
    }
    match app.agent_named(caller, id).await? {
        Some(agent_id) => Ok(Some(agent_id)),
        None if id == GRAPH || id == DEFAULT_ASSISTANT.to_string() => Ok(None),
        None => Err(unknown()),
    }
}

/// The filter of a search. The route ignores unknown fields.
#[derive(Default, Deserialize, utoipa::ToSchema)]
#[schema(as = LangGraphAssistantSearch)]
pub struct AssistantSearch {
    graph_id: Option<String>,
    name: Option<String>,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    limit: Option<usize>,
    #[serde(default)]
    offset: usize,
}

/// Search the assistants: the default one, and the agents that admit the caller.
#[utoipa::path(post, path = "/langgraph/assistants/search", operation_id = "search_assistants", tag = "langgraph", request_body = AssistantSearch,
    responses((status = 200, body = Vec<Object>, description = "A list of assistants.")))]
pub async fn search(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(search): JsonBody<AssistantSearch>,
) -> Result<Json<Value>, Problem> {
    let size = page_up_to(&app, search.limit)?;
    let matching = matching(&app, &caller, &search).await?;
    Ok(Json(matching.into_iter().skip(search.offset).take(size.items).collect()))
}

/// Count the assistants that match.
#[utoipa::path(post, path = "/langgraph/assistants/count", operation_id = "count_assistants", tag = "langgraph", request_body = AssistantSearch,
    responses((status = 200, body = u64, content_type = "application/json", description = "A number.")))]
pub async fn count(
    State(app): State<Arc<App>>,
    caller: Caller,
    JsonBody(search): JsonBody<AssistantSearch>,
) -> Result<Json<usize>, Problem> {
    page_up_to(&app, search.limit)?;
    Ok(Json(matching(&app, &caller, &search).await?.len()))
}

/// Read an assistant by its id or its name.
#[utoipa::path(get, path = "/langgraph/assistants/{assistant_id}", operation_id = "read_assistant", tag = "langgraph",
    params(("assistant_id" = String, Path)),
    responses((status = 200, body = Object, description = "The assistant."), (status = 404, body = Problem, description = "agent_not_found")))]
pub async fn read(State(app): State<Arc<App>>, caller: Caller, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    assistant(&app, &caller, &id).await.map(Json)
}

/// List the versions of an assistant: the newest one.
#[utoipa::path(post, path = "/langgraph/assistants/{assistant_id}/versions", operation_id = "assistant_versions", tag = "langgraph",
    params(("assistant_id" = String, Path)),
    responses((status = 200, body = Vec<Object>, description = "A list with the newest version."), (status = 404, body = Problem, description = "agent_not_found")))]
pub async fn versions(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(json!([assistant(&app, &caller, &id).await?])))
}

/// Read the schemas of an assistant's state, which are those of messages.
#[utoipa::path(get, path = "/langgraph/assistants/{assistant_id}/schemas", operation_id = "assistant_schemas", tag = "langgraph",
    params(("assistant_id" = String, Path)),
    responses((status = 200, body = Object, description = "The schemas."), (status = 404, body = Problem, description = "agent_not_found")))]
pub async fn schemas(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    find_assistant(&app, &caller, &id).await?;
    let messages = json!({
        "type": "object", "required": ["messages"],
        "properties": {"messages": {"type": "array", "items": {"type": "object"}}}
    });
    Ok(Json(json!({
        "graph_id": GRAPH, "input_schema": messages, "output_schema": messages, "state_schema": messages,
        "config_schema": {"type": "object"}, "context_schema": {"type": "object"},
    })))
}

/// Read the graph of an assistant: the steps of a run.
#[utoipa::path(get, path = "/langgraph/assistants/{assistant_id}/graph", operation_id = "assistant_graph", tag = "langgraph",
    params(("assistant_id" = String, Path)),
    responses((status = 200, body = Object, description = "Nodes and edges."), (status = 404, body = Problem, description = "agent_not_found")))]
pub async fn graph(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    find_assistant(&app, &caller, &id).await?;
    let node = |id: &str| json!({"id": id, "type": "runnable", "data": {"id": ["holdfast", id], "name": id}});
    let edge = |from: &str, to: &str, choice: bool| json!({"source": from, "target": to, "conditional": choice});
    Ok(Json(json!({
        "nodes": [
            {"id": "__start__", "type": "schema", "data": "__start__"}, node("agent"), node("tools"),
            {"id": "__end__", "type": "schema", "data": "__end__"},
        ],
        "edges": [
            edge("__start__", "agent", false), edge("agent", "tools", true), edge("agent", "__end__", true),
            edge("tools", "agent", false),
        ],
    })))
}

async fn assistant(app: &App, caller: &Caller, id: &str) -> Result<Value, Problem> {
    match find_assistant(app, caller, id).await? {
        None => Ok(default_assistant()),
        Some(agent_id) => {
            let agent = app.storage().agent(agent_id).await?;
            agent.map(|agent| of_agent(&agent)).ok_or_else(|| Problem::no_such_agent(truncated_id(id)))
        }
    }
}

/// Returns the assistants of a search, the default one first.
async fn matching(app: &App, caller: &Caller, search: &AssistantSearch) -> Result<Vec<Value>, Problem> {
    if search.graph_id.as_deref().is_some_and(|graph| graph != GRAPH) {
        return Ok(Vec::new());
    }
    let size = PageSize { items: app.config().max_page, bytes: app.config().max_page_bytes };
    let agents = app.storage().agents(size, None).await?.ok_or_else(Problem::invalid_cursor)?;
    let admitted = agents.items.iter().filter(|agent| agent.definition.access.admits(caller.standing()));
    let all = std::iter::once(default_assistant()).chain(admitted.map(of_agent));
    let wanted = search.metadata.as_ref();
    let is_match = |assistant: &Value| {
        let has = |(name, value): (&String, &Value)| assistant["metadata"].get(name) == Some(value);
        let named = search.name.as_deref().is_none_or(|name| {
            assistant["name"].as_str().is_some_and(|own| own.to_lowercase().contains(&name.to_lowercase()))
        });
        named && wanted.is_none_or(|wanted| wanted.iter().all(has))
    };
    Ok(all.filter(is_match).collect())
}

fn default_assistant() -> Value {
    json!({
        "assistant_id": DEFAULT_ASSISTANT, "graph_id": GRAPH, "name": GRAPH, "description": null, "config": {}, "context": {},
        "metadata": {"created_by": "system"}, "version": 1, "created_at": EPOCH, "updated_at": EPOCH,
    })
}

/// The default assistant is a part of the program.
const EPOCH: &str = "1970-01-01T00:00:00.000Z";

fn of_agent(agent: &Agent) -> Value {
    let whole_messages = agent.definition.stream_mode == StreamMode::Messages;
    json!({
        "assistant_id": agent.id, "graph_id": GRAPH, "name": agent.definition.name,
        "description": agent.definition.description, "config": {}, "context": {},
        "metadata": {"whole_messages": whole_messages}, "version": agent.version,
        "created_at": timestamp::text(agent.created_at), "updated_at": timestamp::text(agent.updated_at),
    })
}
