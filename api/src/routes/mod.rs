//! The whole HTTP surface on one page. Each noun has a file; each handler extracts, calls a use case of `app`, and
//! responds.

mod agents;
mod answers;
mod approvals;
mod briefings;
mod checkpoints;
mod compression;
mod conversations;
pub mod described;
mod document;
mod document_agents;
mod document_bounds;
mod document_messages;
mod document_shapes;
mod document_workspace;
pub mod files;
mod health;
mod knowledge;
mod memories;
mod merge_patch;
pub mod messages;
mod page;
mod plans;
mod profiles;
mod runs;
mod served_document;
mod server;
mod sessions;
mod trace;
mod users;
mod workspace;

use std::sync::Arc;

use axum::{
    Extension, Json, Router,
    extract::{DefaultBodyLimit, OriginalUri},
    http::{Method, StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use holdfast_shared::telemetry;
use serde::Serialize;
use uuid::Uuid;

use crate::{
    anonymous_activity, anonymous_limits,
    app::App,
    auth, cors,
    guard::guarded,
    metrics::measure,
    problem::Problem,
    protocols::{
        a2a::routes as a2a, ag_ui::routes as ag_ui, agent::routes as agent_stream, ai_sdk::routes as ai_chat,
        chat::routes as chat_stream, durable_streams::routes as durable_stream, langgraph::routes as langgraph,
        mcp::routes as mcp, native::routes as events, openai::routes as openai, problem_form,
        text::routes as text_stream,
    },
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
        .layer(middleware::from_fn(problem_form::of_wire));
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

/// Returns the 202 for a committed run, with its path as `Location`.
pub fn accepted(run_id: Uuid, body: impl Serialize) -> Response {
    (StatusCode::ACCEPTED, [(header::LOCATION, format!("/v1/runs/{run_id}"))], Json(body)).into_response()
}
