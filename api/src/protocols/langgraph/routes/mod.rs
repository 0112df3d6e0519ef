//! `/langgraph`: the routes for the clients of LangGraph's server (`@langchain/langgraph-sdk`, `langgraph-sdk`, `useStream`).
//!
//! A thread is a conversation, and an assistant is an agent. `request` reads the body of a run, and `content` its message. `start`
//! starts or continues the run, `later` reads what other nodes of a graph have written, `resume` reads answers, `stream` follows the
//! run, and `join` comes later. `segment` finds a run by the ids that clients know.
//! `history` reads the messages of a thread, `state` renders them, and `update` adds some without a run. `absent` has the routes whose
//! function this server lacks. `commands` and `thread_events` are the thread-centric protocol of the newest clients, with one stream
//! for all runs of a thread (`thread_stream`).

mod absent;
mod assistants;
pub mod commands;
mod content;
mod history;
mod join;
mod later;
mod request;
mod resume;
pub mod run_list;
pub mod runs;
mod search;
mod segment;
mod start;
mod state;
pub mod stateless;
mod states;
mod stream;
mod thread_events;
mod thread_stream;
mod threads;
pub mod update;

pub use search::MAX_OFFSET;

use std::sync::Arc;

use axum::{
    Router,
    routing::{MethodRouter, any, get, post},
};
use holdfast_shared::conversation::Conversation;

use crate::{
    app::App,
    auth::Caller,
    problem::Problem,
    routes::described::{DescribedRoutes, routes},
    thread::{find_thread, truncated_id},
};

/// Returns the routes whose bodies are small.
pub fn routes() -> DescribedRoutes {
    DescribedRoutes::default()
        .routes(routes!(threads::create))
        .routes(routes!(search::search))
        .routes(routes!(search::count))
        .routes(routes!(threads::prune))
        .routes(routes!(threads::read, threads::change, threads::delete))
        .routes(routes!(threads::copy))
        .routes(routes!(states::state, update::change))
        .routes(routes!(states::state_at))
        .routes(routes!(states::state_of_checkpoint))
        .routes(routes!(states::history))
        .routes(routes!(threads::follow))
        .routes(routes!(thread_events::follow))
        .routes(routes!(runs::read, runs::delete))
        .routes(routes!(join::follow))
        .routes(routes!(join::join))
        .routes(routes!(runs::cancel))
        .routes(routes!(stateless::follow))
        .routes(routes!(stateless::cancel))
        .routes(routes!(assistants::search))
        .routes(routes!(assistants::count))
        .routes(routes!(assistants::read))
        .routes(routes!(assistants::versions))
        .routes(routes!(assistants::schemas))
        .routes(routes!(assistants::graph))
        .routes(routes!(absent::ok))
        .routes(routes!(absent::info))
}

/// Returns the routes of the protocol that this server does not have, which say so.
pub fn absent_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/langgraph/assistants", post(absent::write_assistants))
        .route("/langgraph/assistants/{assistant_id}/latest", post(absent::write_assistants))
        .route("/langgraph/assistants/{assistant_id}/subgraphs", get(absent::subgraphs))
        .route("/langgraph/assistants/{assistant_id}/subgraphs/{namespace}", get(absent::subgraphs))
        .route("/langgraph/assistants/{assistant_id}", MethodRouter::new().fallback(absent::change_assistant))
        .route("/langgraph/store/{*rest}", any(absent::store))
        .route("/langgraph/runs/crons", any(absent::crons))
        .route("/langgraph/runs/crons/{*rest}", any(absent::crons))
        .route("/langgraph/threads/{thread_id}/runs/crons", any(absent::crons))
}

/// Returns the caller's thread of this name or id. Fails if there is none.
async fn thread_named(app: &App, caller: &Caller, id: &str) -> Result<Conversation, Problem> {
    let thread = find_thread(app, caller, id).await?;
    thread.ok_or_else(|| Problem::conversation_not_found(truncated_id(id)))
}
