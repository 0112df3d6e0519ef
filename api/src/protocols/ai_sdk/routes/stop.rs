//! `POST /api/chat/{id}/stop` ends the chat's answer at work. Messages that wait keep their turns.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
};
use holdfast_shared::conversation::Conversation;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    app::App,
    auth::Caller,
    extract::Query,
    problem::Problem,
    thread::{find_thread, truncated_id},
};

/// The route ignores unknown fields.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(rename_all = "camelCase")]
pub struct StopQuery {
    /// End only this run. A repeated request cannot end the next answer then.
    run_id: Option<Uuid>,
    /// End only the run of this message of the user, by the client's id or the server's.
    message_id: Option<String>,
}

/// The result of a stop.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Stopped)]
pub struct StopResult {
    success: bool,
}

/// End the answer at work: the chat's first unfinished run. The runs of later messages continue. The server ignores the
/// body.
#[utoipa::path(post, path = "/api/chat/{id}/stop", tag = "ai-sdk", params(("id" = String, Path), StopQuery), responses(
    (status = 200, body = StopResult, description = "The run ends, or no such run was unfinished."),
    (status = 404, body = Problem, description = "conversation_not_found; run_not_found: the chat has no such run")
))]
pub async fn stop(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<StopQuery>,
) -> Result<Json<StopResult>, Problem> {
    let found = find_thread(&app, &caller, &id).await?;
    let conversation = found.ok_or_else(|| Problem::conversation_not_found(truncated_id(&id)))?;
    if let Some(run_id) = run_to_stop(&app, &caller, &conversation, query).await? {
        app.cancel(&caller.owner, run_id).await?;
    }
    Ok(Json(StopResult { success: true }))
}

async fn run_to_stop(
    app: &App,
    caller: &Caller,
    conversation: &Conversation,
    query: StopQuery,
) -> Result<Option<Uuid>, Problem> {
    if let Some(run_id) = query.run_id {
        let run = app.storage().run_without_answer(&caller.owner, run_id).await?;
        return match run {
            Some(run) if run.conversation_id == conversation.id => Ok(Some(run_id)),
            _ => Err(Problem::run_not_found(run_id)),
        };
    }
    if let Some(name) = query.message_id {
        let message = app.storage().message_called(&caller.owner, conversation.id, &name).await?;
        return Ok(message.and_then(|message| message.run_id));
    }
    Ok(conversation.live_run_id)
}
