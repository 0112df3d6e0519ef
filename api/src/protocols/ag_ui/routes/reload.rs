//! `GET /ag-ui`: what TanStack AI asks of the address of its connection when its page is loaded again. A name of a run gets the run
//! from its start, and a thread its messages as the parts of that client.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, Method},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AgUiQuery, follow_run, history};
use crate::{
    app::App,
    auth::Caller,
    extract::Query,
    problem::Problem,
    protocols::ag_ui::wire::AgUiMessage,
    thread::{current_run, find_thread},
};

/// The query of the route, which ignores unknown fields.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(rename_all = "camelCase")]
pub struct ReloadQuery {
    /// The client's name for a run, or the run's id.
    run_id: Option<String>,
    /// The client's name for the thread.
    thread_id: Option<String>,
    /// The version of the protocol, as in a request's body.
    protocol_version: Option<String>,
}

/// Load a page of TanStack AI again: with `runId`, all events of a run, as `GET /ag-ui/runs/{id}`; with `threadId`, the messages of
/// a thread before the run that has not ended, and that run.
#[utoipa::path(get, path = "/ag-ui", operation_id = "reload", tag = "ag-ui",
    params(ReloadQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last frame of the run that the client has.")),
    responses(
        (status = 200, description = "With `runId`, the events of the protocol. With `threadId`, `{messages, activeRun}`; a thread that does not exist has none.", content(
            (Object = "application/json"), (String = "text/event-stream")
        )),
        (status = 204, description = "The run has ended and the client has all its events."),
        (status = 400, body = Problem, description = "invalid_query: neither `runId` nor `threadId`; invalid_event_id"),
        (status = 404, body = Problem, description = "run_not_found"),
        (status = 410, body = Problem, description = "events_gone: the events have expired")
    )
)]
pub async fn reload(
    State(app): State<Arc<App>>,
    caller: Caller,
    method: Method,
    headers: HeaderMap,
    Query(query): Query<ReloadQuery>,
) -> Result<Response, Problem> {
    let ReloadQuery { run_id, thread_id, protocol_version } = query;
    if let Some(run_id) = run_id {
        let query = AgUiQuery { after: None, stream_mode: None, thread_id, protocol_version };
        return follow_run(State(app), caller, Path(run_id), method, headers, Query(query)).await;
    }
    let Some(thread_id) = thread_id else {
        return Err(Problem::invalid_query("The query has neither runId nor threadId."));
    };
    let Some(thread) = find_thread(&app, &caller, &thread_id).await? else {
        return Ok(Json(json!({"messages": [], "activeRun": null})).into_response());
    };
    let run = current_run(&app, &caller, &thread).await?.filter(|run| !run.status.is_terminal());
    let _assembled = app.unread_answers().assemble(&caller, app.config().max_page_bytes)?;
    let messages = history::stored(&app, &caller.owner, thread.id, run.as_ref()).await?;
    let active = run.map(|run| json!({"runId": run.id}));
    Ok(Json(json!({"messages": with_parts(&messages), "activeRun": active})).into_response())
}

/// Returns the messages as TanStack AI has them: an answer is one message, with its texts, calls and results in their order.
fn with_parts(messages: &[AgUiMessage]) -> Vec<Value> {
    let mut shown: Vec<Value> = Vec::new();
    for message in messages.iter().map(|message| json!(message)) {
        let parts = parts_of(&message);
        let is_asked = message["role"] == "user" || message["role"] == "system";
        let role = if is_asked { &message["role"] } else { &json!("assistant") };
        match shown.last_mut().filter(|last| !is_asked && last["role"] == *role) {
            Some(Value::Object(last)) => {
                if let Some(Value::Array(earlier)) = last.get_mut("parts") {
                    earlier.extend(parts);
                }
            }
            _ => shown.push(json!({"id": message["id"], "role": role, "parts": parts})),
        }
    }
    shown
}

fn parts_of(message: &Value) -> Vec<Value> {
    let content = &message["content"];
    let text = |kind: &str| {
        content.as_str().filter(|text| !text.is_empty()).map(|text| json!({"type": kind, "content": text}))
    };
    match (message["role"].as_str(), content) {
        (Some("reasoning"), _) => text("thinking").into_iter().collect(),
        (Some("tool"), _) => {
            let call_id = &message["toolCallId"];
            vec![json!({"type": "tool-result", "toolCallId": call_id, "content": content, "state": "complete"})]
        }
        // Files have the same form in both protocols.
        (_, Value::Array(parts)) => parts.iter().map(part_of).collect(),
        _ => {
            let calls = message["toolCalls"].as_array().into_iter().flatten();
            text("text").into_iter().chain(calls.map(call_of)).collect()
        }
    }
}

fn part_of(part: &Value) -> Value {
    if part["type"] == "text" { json!({"type": "text", "content": part["text"]}) } else { part.clone() }
}

fn call_of(call: &Value) -> Value {
    let function = &call["function"];
    json!({
        "type": "tool-call", "id": call["id"], "name": function["name"], "arguments": function["arguments"],
        "state": "input-complete",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_forms_of_the_client() {
        let image = json!({"type": "image", "source": {"type": "url", "value": "/v1/files/x"}});
        let asked = json!({"role": "user", "content": [{"type": "text", "text": "look"}, image]});
        assert_eq!(parts_of(&asked), [json!({"type": "text", "content": "look"}), image]);
        let function = json!({"name": "echo", "arguments": "{}"});
        let called = json!({"role": "assistant", "content": "", "toolCalls": [{"id": "c", "function": function}]});
        let call =
            json!({"type": "tool-call", "id": "c", "name": "echo", "arguments": "{}", "state": "input-complete"});
        assert_eq!(parts_of(&called), [call]);
        let result = json!({"role": "tool", "toolCallId": "c", "content": "hi"});
        let part = json!({"type": "tool-result", "toolCallId": "c", "content": "hi", "state": "complete"});
        assert_eq!(parts_of(&result), [part]);
        assert_eq!(
            parts_of(&json!({"role": "reasoning", "content": "hm"})),
            [json!({"type": "thinking", "content": "hm"})]
        );
    }
}
