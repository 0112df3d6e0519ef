//! The whole HTTP surface on one page. Each noun has a file; each handler extracts, calls a use case of `app`, and
//! responds.

mod a2a;
mod ag_ui;
mod agent_stream;
mod agents;
mod ai_chat;
mod answers;
mod approvals;
mod briefings;
mod chat_stream;
mod checkpoints;
mod compression;
mod conversations;
mod described;
mod disconnect;
mod document;
mod document_bounds;
mod document_messages;
mod document_shapes;
mod durable_stream;
mod events;
mod files;
mod health;
mod knowledge;
mod langgraph;
mod mcp;
mod memories;
mod merge_patch;
mod messages;
mod openai;
mod page;
mod plans;
mod profiles;
mod runs;
mod served_document;
mod server;
mod sessions;
mod snapshot;
mod text_stream;
mod thread;
mod trace;
mod users;
mod workspace;

use std::sync::Arc;

use axum::{
    Extension, Json, Router,
    extract::{DefaultBodyLimit, OriginalUri},
    http::{HeaderMap, Method, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use holdfast_shared::{
    agent::StreamMode,
    context::AgentContext,
    conversation::Handle,
    page::PageSize,
    run::SubmitMode,
    storable::{is_too_deep, storable, storable_json},
    storage::{MessageInput, RunOptions, Target},
    telemetry,
    tool::ClientTool,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    anonymous_activity, anonymous_limits,
    app::{App, Posting},
    auth::{self, Caller},
    cors,
    extract::idempotency_key,
    guard::guarded,
    metrics::measure,
    problem::{Problem, form},
    read_limit, reserve, spans, unread_answers,
};

use described::{DescribedRoutes, routes};
use served_document::{MadeDocument, openapi_document};

/// Returns all routes with the middleware that wraps them.
pub fn router(app: Arc<App>) -> Router {
    let router = routes(app.config().max_chat_body_bytes).into_router();
    let max_body_bytes = app.config().max_body_bytes;
    let (auth, cors, limits_app) = (Arc::clone(app.auth()), cors::layer(app.config()), Arc::clone(&app));
    let router = router
        .route("/mcp", post(mcp::streamable).layer(middleware::from_fn(mcp::metadata::challenge)))
        .route("/mcp/rpc", post(mcp::rpc).layer(middleware::from_fn(mcp::metadata::challenge)))
        // Clients append the path of the resource.
        .route("/.well-known/oauth-protected-resource/mcp", get(mcp::metadata::protected_resource))
        .merge(langgraph::absent_routes())
        .merge(openai::absent_routes())
        .route("/openapi.json", get(openapi_document).layer(Extension(MadeDocument::default())))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), read_limit::admit))
        // Order matters: an answer counts as it is kept for its client.
        .layer(middleware::from_fn(compression::compress))
        // The page's files are in the executable, so an unread file costs no memory.
        .layer(middleware::from_fn_with_state(Arc::clone(&app), unread_answers::count))
        .merge(page())
        .fallback(page::not_found)
        .method_not_allowed_fallback(|method: Method, OriginalUri(uri): OriginalUri| async move {
            Problem::method_not_allowed(method.as_str(), uri.path())
        })
        .with_state(Arc::clone(&app))
        .layer(middleware::from_fn_with_state(app, anonymous_activity::note))
        .layer(DefaultBodyLimit::max(max_body_bytes))
        .layer(middleware::from_fn_with_state(limits_app, anonymous_limits::count_refused))
        .layer(middleware::from_fn(reserve::keep))
        .layer(middleware::from_fn_with_state(auth, auth::authenticate))
        .layer(middleware::from_fn(form::of_wire));
    let router = match cors {
        Some(cors) => router.layer(cors),
        None => router,
    };
    let router = router.layer(middleware::from_fn(guarded)).layer(middleware::from_fn(measure));
    if telemetry::is_on() { router.layer(middleware::from_fn(spans::traced)) } else { router }
}

/// Returns the API's routes.
fn routes(max_chat_body: usize) -> DescribedRoutes {
    // A chat's body has the whole conversation and its files.
    let chat = DescribedRoutes::default()
        .routes(routes!(ai_chat::post))
        .routes(routes!(ag_ui::post, ag_ui::reload::reload))
        .routes(routes!(ag_ui::post_to_agent))
        .routes(routes!(openai::responses::create))
        .routes(routes!(openai::completions::create))
        .routes(routes!(a2a::post))
        .routes(routes!(a2a::post_to_agent))
        // Some clients append a slash to the address of a card.
        .route("/a2a/", post(a2a::post))
        .route("/a2a/agents/{name}/", post(a2a::post_to_agent))
        .routes(routes!(langgraph::runs::stream))
        .routes(routes!(langgraph::runs::wait))
        .routes(routes!(langgraph::commands::command))
        .routes(routes!(langgraph::runs::create, langgraph::run_list::list))
        .routes(routes!(langgraph::update::add_messages))
        .routes(routes!(langgraph::stateless::stream))
        .routes(routes!(langgraph::stateless::wait))
        .routes(routes!(langgraph::stateless::create))
        .routes(routes!(langgraph::stateless::batch))
        .with_largest_body(max_chat_body);
    chat.merge(langgraph::routes())
        .routes(routes!(conversations::create, conversations::list))
        .routes(routes!(conversations::read, conversations::change, conversations::delete))
        .routes(routes!(messages::list, messages::post))
        .routes(routes!(messages::restore))
        .routes(routes!(sessions::names))
        .routes(routes!(sessions::list, sessions::post))
        .routes(routes!(sessions::history))
        .routes(routes!(briefings::create, briefings::list))
        .routes(routes!(briefings::read, briefings::delete))
        .routes(routes!(briefings::start_conversation))
        .routes(routes!(files::create, files::list))
        .routes(routes!(files::read, files::resume, files::delete))
        .routes(routes!(knowledge::collections::create, knowledge::collections::list))
        .routes(routes!(knowledge::collections::read, knowledge::collections::delete))
        .routes(routes!(knowledge::collections::search))
        .routes(routes!(knowledge::documents::create, knowledge::documents::list))
        .routes(routes!(knowledge::documents::read, knowledge::documents::delete))
        .routes(routes!(knowledge::documents::text))
        .routes(routes!(knowledge::documents::retry))
        .routes(routes!(runs::create, runs::list))
        .routes(routes!(runs::read))
        .routes(routes!(runs::wait))
        .routes(routes!(runs::cancel))
        .routes(routes!(runs::take_back))
        .routes(routes!(events::follow))
        .routes(routes!(trace::messages))
        .routes(routes!(trace::tool_calls))
        .routes(routes!(plans::read, plans::edit))
        .routes(routes!(plans::of_run))
        .routes(routes!(plans::of_conversation))
        .routes(routes!(workspace::list, workspace::create))
        .routes(routes!(workspace::changes))
        .routes(routes!(workspace::search::search))
        .routes(routes!(workspace::templates::requested))
        .routes(routes!(workspace::templates::publish))
        .routes(routes!(workspace::templates::withdraw))
        .routes(routes!(workspace::undo))
        .routes(routes!(workspace::undo_run, workspace::read_undo_of_run))
        .routes(routes!(workspace::read, workspace::change, workspace::delete))
        .routes(routes!(workspace::restore))
        .routes(routes!(workspace::changes_of))
        .routes(routes!(durable_stream::read, durable_stream::metadata))
        .routes(routes!(approvals::list))
        .routes(routes!(answers::approvals))
        .routes(routes!(answers::decide))
        .routes(routes!(answers::complete))
        .routes(routes!(agents::create, agents::list))
        .routes(routes!(agents::check))
        .routes(routes!(agents::read, agents::change, agents::delete))
        .routes(routes!(profiles::read, profiles::replace))
        .routes(routes!(conversations::standing))
        .routes(routes!(checkpoints::list))
        .routes(routes!(checkpoints::read))
        .routes(routes!(checkpoints::fork))
        .routes(routes!(text_stream::post))
        .routes(routes!(chat_stream::post))
        .routes(routes!(agent_stream::post))
        .routes(routes!(a2a::default_card))
        .routes(routes!(a2a::well_known_card))
        .routes(routes!(a2a::agent_card))
        .routes(routes!(mcp::metadata::protected_resource))
        .routes(routes!(ag_ui::follow_run))
        .routes(routes!(ag_ui::follow_thread))
        .merge(openai::routes())
        .routes(routes!(ai_chat::stream))
        .routes(routes!(ai_chat::stop::stop))
        .routes(routes!(ai_chat::messages))
        .routes(routes!(users::me, users::erase))
        .routes(routes!(users::read_profile, users::replace_profile))
        .routes(routes!(memories::list, memories::delete_all))
        .routes(routes!(memories::export))
        .routes(routes!(memories::read, memories::change, memories::delete))
        .routes(routes!(users::claim))
        .routes(routes!(users::create_anonymous))
        .routes(routes!(server::show))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
}

/// Returns the routes of the chat page.
fn page() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(page::page))
        .route("/c/{id}", get(page::page))
        .route("/memories", get(page::page))
        .route("/w", get(page::page))
        .route("/w/{*rest}", get(page::page))
        .route("/k", get(page::page))
        .route("/k/{*rest}", get(page::page))
        .route("/assets/{name}", get(page::asset))
        .route("/favicon.svg", get(page::icon))
}

/// The page of a list that the client requests.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Most items of the page; 50 by default.
    limit: Option<usize>,
    /// `next` of the previous page.
    cursor: Option<String>,
}

impl ListQuery {
    fn size(&self, app: &App) -> Result<PageSize, Problem> {
        page_size(app, self.limit)
    }
}

const DEFAULT_PAGE: usize = 50;

fn page_size(app: &App, limit: Option<usize>) -> Result<PageSize, Problem> {
    let max = app.config().max_page;
    match limit.unwrap_or(DEFAULT_PAGE.min(max)) {
        items if (1..=max).contains(&items) => Ok(PageSize { items, bytes: app.config().max_page_bytes }),
        _ => Err(Problem::invalid_query(format!("limit is a number from 1 to {max}."))),
    }
}

/// Returns the size of a page for a client that takes fewer items than it asks for: at most the limit.
fn page_up_to(app: &App, wanted: Option<usize>) -> Result<PageSize, Problem> {
    page_size(app, wanted.map(|wanted| wanted.min(app.config().max_page)))
}

/// Returns the size of a history, which has only one page.
fn history_size(app: &App) -> PageSize {
    PageSize { items: app.config().max_history, bytes: app.config().max_page_bytes }
}

/// Returns the options of a run beside its input; the metadata has the context, too. Fails if the client tools or the metadata
/// are invalid.
fn checked_options(
    app: &App,
    stream: Option<bool>,
    client_tools: Vec<ClientTool>,
    metadata: Option<Value>,
    context: Option<AgentContext>,
) -> Result<RunOptions, Problem> {
    // Order matters: `app` compiles the schemas only after it has admitted the caller.
    app.check_client_tools(&client_tools)?;
    let max = app.config().max_metadata_bytes;
    let is_refused =
        |metadata: &Value| !metadata.is_object() || is_too_deep(metadata) || metadata.to_string().len() > max;
    let is_object = metadata.as_ref().is_none_or(Value::is_object);
    let metadata = match context.filter(|_| is_object) {
        Some(context) => Some(context.within(metadata)),
        None => metadata,
    };
    if metadata.as_ref().is_some_and(is_refused) {
        return Err(Problem::invalid_metadata(max));
    }
    let client_tools = client_tools
        .into_iter()
        .map(|tool| ClientTool {
            description: storable(tool.description),
            input_schema: storable_json(tool.input_schema),
            ..tool
        })
        .collect();
    Ok(RunOptions {
        stream: stream.unwrap_or(true),
        client_tools,
        metadata: metadata.map(storable_json),
        ..RunOptions::default()
    })
}

/// The query of the compatible wires, which ignore unknown fields.
#[derive(Deserialize, utoipa::IntoParams)]
struct WireQuery {
    /// `events` or `messages`; the agent's mode by default.
    stream_mode: Option<StreamMode>,
}

/// Returns a message with default options, as the compatible wires post it. A repeated request has an equal `fingerprint`.
fn plain_posting(
    headers: &HeaderMap,
    fingerprint: &[&str],
    target: Target,
    content: String,
    mode: SubmitMode,
) -> Result<Posting, Problem> {
    let posting = Posting { mode, ..Posting::new(target, MessageInput::New(content.into())) };
    Ok(Posting { key: idempotency_key(headers, fingerprint, &posting.options)?, ..posting })
}

/// Returns the target of a request that names no conversation: the session that it names, else a new conversation.
fn default_target(caller: &Caller, agent_id: Option<Uuid>) -> Target {
    match caller.named_session() {
        Some(name) => Target::Named { handle: Handle::Session(name.to_owned()), agent_id },
        None => Target::New { agent_id },
    }
}

/// Returns the 202 for a committed run, with its path as `Location`.
fn accepted(run_id: Uuid, body: impl Serialize) -> Response {
    (StatusCode::ACCEPTED, [(header::LOCATION, format!("/v1/runs/{run_id}"))], Json(body)).into_response()
}
