//! The routes of the protocol whose function this server does not have, and those about the server.

use axum::Json;
use serde_json::{Value, json};

use crate::problem::Problem;

/// Check that the server answers.
#[utoipa::path(get, path = "/langgraph/ok", operation_id = "ok", tag = "langgraph", responses((status = 200, body = Object)))]
pub async fn ok() -> Json<Value> {
    Json(json!({"ok": true}))
}

/// Read the version of the server, and what it has of the protocol.
#[utoipa::path(get, path = "/langgraph/info", operation_id = "info", tag = "langgraph", responses((status = 200, body = Object)))]
pub async fn info() -> Json<Value> {
    let flags = json!({"assistants": true, "crons": false, "langsmith": false, "store": false});
    Json(json!({"version": env!("CARGO_PKG_VERSION"), "server": "holdfast", "flags": flags}))
}

/// For `/langgraph/store`.
pub async fn store() -> Problem {
    Problem::not_implemented(
        "This server has no store of the protocol; the tools remember and recall keep facts about a user.",
    )
}

/// For `/langgraph/runs/crons` and the crons of a thread.
pub async fn crons() -> Problem {
    Problem::not_implemented("This server starts no runs by the clock; let a scheduler send the requests.")
}

const ASSISTANTS: &str = "Assistants are the agents of this server; POST /v1/agents and its file define them.";

/// For writes of assistants.
pub async fn write_assistants() -> Problem {
    Problem::not_implemented(ASSISTANTS)
}

/// For changes of an assistant, which clients can read.
pub async fn change_assistant() -> Problem {
    Problem::only_readable(ASSISTANTS)
}

/// For the subgraphs of an assistant, which has none.
pub async fn subgraphs() -> Json<Value> {
    Json(json!({}))
}
