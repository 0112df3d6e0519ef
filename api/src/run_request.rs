//! The parts of a request for a run that all protocols share: its options, its target, and its key.

use axum::http::HeaderMap;
use holdfast_shared::{
    agent::StreamMode,
    context::AgentContext,
    conversation::Handle,
    run::SubmitMode,
    storable::{is_too_deep, storable, storable_json},
    storage::{MessageInput, RunOptions, Target},
    tool::ClientTool,
};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    app::{App, Posting},
    auth::Caller,
    extract::idempotency_key,
    problem::Problem,
};

/// Returns the options of a run beside its input; the metadata has the context, too. Fails if the client tools or the metadata
/// are invalid.
pub fn checked_options(
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
pub struct WireQuery {
    /// `events` or `messages`; the agent's mode by default.
    pub stream_mode: Option<StreamMode>,
}

/// Returns a message with default options, as the compatible wires post it. A repeated request has an equal `fingerprint`.
pub fn plain_posting(
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
pub fn default_target(caller: &Caller, agent_id: Option<Uuid>) -> Target {
    match caller.named_session() {
        Some(name) => Target::Named { handle: Handle::Session(name.to_owned()), agent_id },
        None => Target::New { agent_id },
    }
}
