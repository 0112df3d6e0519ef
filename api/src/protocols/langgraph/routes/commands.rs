//! `/langgraph/threads/{thread_id}/commands`: the commands of the thread-centric protocol. Their results are events of the thread's
//! stream (`thread_events`).

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::HeaderMap,
};
use holdfast_shared::{file::UserContent, idempotency::IdempotencyKey};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::super::problem::detail_in_words;
use super::{
    content::parts_of,
    history::state_of,
    request::{RunRequest, content_of_message, messages_of},
    start::RunStart,
    state::StateView,
    thread_named,
};
use crate::{
    app::App,
    auth::Caller,
    extract::JsonBody,
    problem::Problem,
    thread::{UiPart, find_thread},
};

/// Most interrupts that one command answers.
const MAX_RESPONSES: usize = 256;

/// A command of a client. The route ignores unknown fields.
#[derive(Deserialize, utoipa::ToSchema)]
#[schema(as = LangGraphCommandRequest)]
pub struct CommandRequest {
    /// A number that the response has, too.
    id: u64,
    /// `run.start`, `input.respond`, `input.inject` or `state.get`.
    method: String,
    #[serde(default)]
    params: Map<String, Value>,
}

/// Send a command to a thread: start a run, or answer the interrupts of the one that waits. A refusal is a response too, so that
/// clients read its words.
#[utoipa::path(post, path = "/langgraph/threads/{thread_id}/commands", operation_id = "command", tag = "langgraph",
    params(("thread_id" = String, Path)), request_body = CommandRequest,
    responses(
        (status = 200, body = Object, description = "`{type: \"success\", id, result}`, or `{type: \"error\", id, error, message}`."),
        (status = 400, body = Problem, description = "invalid_body, invalid_json"),
        (status = 429, body = Problem, description = "rate_limited: a client repeats the command")
    )
)]
pub async fn command(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(thread_id): Path<String>,
    JsonBody(command): JsonBody<CommandRequest>,
) -> Result<Json<Value>, Problem> {
    let CommandRequest { id, method, params } = command;
    if i64::try_from(id).is_err() {
        return Err(Problem::invalid_body(format!("id is a whole number from 0 to {}.", i64::MAX)));
    }
    let params = Value::Object(params);
    let result = match method.as_str() {
        "run.start" => start_once(&app, &caller, &thread_id, &params).await,
        "input.respond" => start(&app, &caller, &thread_id, resume_of(&params), None).await,
        "input.inject" => start(&app, &caller, &thread_id, injection_of(&params), None).await,
        "state.get" => state(&app, &caller, &thread_id).await,
        _ => Err(Problem::unknown_command(&method)),
    };
    match result {
        Ok(result) => Ok(Json(json!({"type": "success", "id": id, "result": result}))),
        // Clients repeat a request with such a status.
        Err(problem) if problem.is_temporary() => Err(problem),
        Err(problem) => Ok(Json(json!({
            "type": "error", "id": id, "error": error_code(&problem), "message": detail_in_words(&problem), "code": problem.code,
        }))),
    }
}

/// Starts a run, or returns that of an equal command, also if that command has won against this one.
async fn start_once(app: &Arc<App>, caller: &Caller, thread_id: &str, params: &Value) -> Result<Value, Problem> {
    // Order matters: an equal command that commits before this line is seen by `repeated`, and a later one has the same key.
    let key = key_of(app, caller, thread_id, params).await?;
    if let Some(run_id) = repeated(app, caller, thread_id, params).await? {
        return Ok(json!({"run_id": run_id}));
    }
    match start(app, caller, thread_id, Ok(run_of(params)), key).await {
        Err(problem) if ["message_exists", "message_not_found"].contains(&problem.code) => {
            let run_id = repeated(app, caller, thread_id, params).await?;
            run_id.map(|run_id| json!({"run_id": run_id})).ok_or(problem)
        }
        result => result,
    }
}

/// Returns the key that equal commands share until the thread has a newer run; `None` for a message without an id, which is always
/// another one.
async fn key_of(
    app: &App,
    caller: &Caller,
    thread_id: &str,
    params: &Value,
) -> Result<Option<IdempotencyKey>, Problem> {
    let messages = messages_of(&params["input"]);
    let Some(message) = messages.last().filter(|message| message["id"].is_string()) else { return Ok(None) };
    let newest = match find_thread(app, caller, thread_id).await? {
        Some(thread) => app.storage().newest_run_id(&caller.owner, thread.id).await?,
        None => None,
    };
    let newest = newest.map(|id| id.to_string()).unwrap_or_default();
    Ok(Some(IdempotencyKey::of_request(&["langgraph command", thread_id, &message.to_string(), &newest])))
}

/// Returns the live run of an earlier command with the same message, by its id and its text. Clients repeat a command whose response
/// they have lost.
async fn repeated(app: &App, caller: &Caller, thread_id: &str, params: &Value) -> Result<Option<Uuid>, Problem> {
    let messages = messages_of(&params["input"]);
    let Some((message, id)) = messages.last().and_then(|message| Some((*message, message["id"].as_str()?))) else {
        return Ok(None);
    };
    let Some(thread) = find_thread(app, caller, thread_id).await? else { return Ok(None) };
    let Some(stored) = app.storage().message_called(&caller.owner, thread.id, id).await? else { return Ok(None) };
    let is_equal = text_of(message).is_some_and(|text| text == stored.content.into_stored());
    let Some(run_id) = stored.run_id.filter(|_| is_equal) else { return Ok(None) };
    let run = app.storage().run_without_answer(&caller.owner, run_id).await?;
    Ok(run.filter(|run| !run.status.is_terminal()).map(|run| run.id))
}

/// Returns the text of a message as it is stored. Its content is a text, or a list of blocks.
fn text_of(message: &Value) -> Option<String> {
    let mut stored = UserContent::default();
    for part in parts_of(content_of_message(message)).ok()? {
        if let UiPart::Text { text } = part {
            stored.push_text(&text);
        }
    }
    Some(stored.text)
}

async fn start(
    app: &Arc<App>,
    caller: &Caller,
    thread_id: &str,
    body: Result<Value, Problem>,
    key: Option<IdempotencyKey>,
) -> Result<Value, Problem> {
    let body = serde_json::from_value::<RunRequest>(body?);
    let body =
        body.map_err(|error| Problem::invalid_body(format!("The params of the command are invalid: {error}.")))?;
    let headers = HeaderMap::new();
    let start = RunStart { app, caller, headers: &headers, thread_id: Some(thread_id), body: &body };
    let started = start.post_once(key).await?;
    Ok(json!({"run_id": started.segment.id()}))
}

async fn state(app: &App, caller: &Caller, thread_id: &str) -> Result<Value, Problem> {
    // The command is a POST, which `read_limit::admit` does not count.
    app.anonymous_limits().admit_read(caller).await?;
    let _turn = app.read_limit().begin(caller).await?;
    let _assembled = app.unread_answers().assemble(caller, app.config().max_page_bytes)?;
    let thread = thread_named(app, caller, thread_id).await?;
    let state = state_of(app, caller, &thread).await?;
    let mut state = StateView { thread: &thread, thread_id, state: &state }.newest();
    Ok(json!({"values": state["values"].take(), "checkpoint": {"id": state["checkpoint"]["checkpoint_id"]}}))
}

/// Returns the body of the run that `run.start` asks for.
fn run_of(params: &Value) -> Value {
    let strategy =
        [&params["multitaskStrategy"], &params["multitask_strategy"]].into_iter().find(|value| !value.is_null());
    json!({
        "assistant_id": params["assistant_id"], "input": params["input"], "metadata": params["metadata"],
        "checkpoint_id": params["config"]["configurable"]["checkpoint_id"], "multitask_strategy": strategy,
        "if_not_exists": "create",
    })
}

/// Returns the body of the run that continues with the answers of `input.respond`: to one interrupt, or to several.
fn resume_of(params: &Value) -> Result<Value, Problem> {
    let one = [params.clone()];
    let responses = params["responses"].as_array().map_or(&one[..], Vec::as_slice);
    if responses.is_empty() || responses.len() > MAX_RESPONSES {
        return Err(Problem::invalid_body(format!("responses has 1 to {MAX_RESPONSES} answers to interrupts.")));
    }
    let answers = responses
        .iter()
        .map(|response| Some((response["interrupt_id"].as_str()?.to_owned(), response["response"].clone())));
    let answers: Option<Map<String, Value>> = answers.collect();
    let answers = answers.ok_or_else(|| Problem::invalid_body("interrupt_id is the id of an interrupt that waits."))?;
    Ok(json!({
        "assistant_id": "agent",
        "command": {"responses": answers, "update": params["update"], "goto": params["goto"]},
    }))
}

/// Returns the body of the run with the message of `input.inject`, which the live run reads if there is one.
fn injection_of(params: &Value) -> Result<Value, Problem> {
    if params["message"]["role"] != "user" {
        return Err(Problem::field_not_supported("a message of this role in input.inject", "its role is user."));
    }
    Ok(json!({"assistant_id": "agent", "input": {"messages": [params["message"]]}, "multitask_strategy": "steer"}))
}

/// Returns the code that the protocol has for a problem.
fn error_code(problem: &Problem) -> &'static str {
    match problem.code {
        "unknown_command" => "unknown_command",
        "not_supported" => "not_supported",
        "conversation_not_found" | "run_not_found" => "no_such_run",
        "checkpoint_not_found" => "no_such_checkpoint",
        "run_not_waiting" | "approval_not_found" | "call_not_found" | "already_decided" | "already_completed"
        | "expired" => "no_such_interrupt",
        _ if problem.status.as_u16() == 403 => "permission_denied",
        _ if problem.status.is_server_error() => "unknown_error",
        _ => "invalid_argument",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_one_and_to_several_interrupts_are_read() {
        let one = json!({"namespace": [], "interrupt_id": "a", "response": {"approved": true}});
        let several = json!({"responses": [one, {"namespace": [], "interrupt_id": "b", "response": [1]}]});
        assert_eq!(resume_of(&one).unwrap()["command"]["responses"], json!({"a": {"approved": true}}));
        assert_eq!(resume_of(&several).unwrap()["command"]["responses"], json!({"a": {"approved": true}, "b": [1]}));
        for nothing in [json!({}), json!(null), json!({"responses": []}), json!({"responses": [{}]})] {
            assert!(resume_of(&nothing).is_err(), "{nothing}");
        }
    }
}
