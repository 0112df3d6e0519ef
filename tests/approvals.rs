//! Runs that wait for an approval, or for the result of a client tool.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{Client, Deployment, ErrorResponse, EventFrame, EventStream, agent, fold, tools::ToolServer, until},
};

in_both_modes!(
    an_approved_call_is_made_and_the_run_continues,
    a_denied_call_is_not_made_and_the_model_receives_the_reason,
    the_first_decision_wins,
    a_waiting_run_outlives_every_process,
    after_a_cancel_nothing_can_be_approved,
    a_cancel_right_after_an_answer_keeps_the_text,
    an_approval_that_expires_is_denied,
    a_new_message_ends_the_wait,
    an_interrupting_message_ends_the_wait,
    a_rejecting_message_finds_the_conversation_busy,
    only_the_approved_call_of_a_step_is_made,
    a_client_executes_its_own_tools,
    a_client_result_after_its_deadline_is_an_error,
);

in_either_mode!(
    an_edited_input_is_what_is_called_and_is_checked_before,
    policies_say_what_needs_approval,
    a_client_tool_that_fails_is_an_outcome,
    a_long_result_of_a_client_is_truncated,
    a_client_tool_may_answer_with_nothing,
);

const ASK: &str = "[tokens=2] [approval]";

/// Starts a run; returns its stream, the frames up to the question, and the question.
async fn up_to_question(client: &Client, input: &str) -> (EventStream, Vec<EventFrame>, EventFrame) {
    let mut stream = client.stream(input).await;
    let frames = stream.up_to("agent.state").await;
    assert_eq!(frames.last().unwrap().data["state"], "waiting_on_user");
    let question = frames.iter().find(|frame| frame.event == "approval.requested").unwrap().clone();
    (stream, frames, question)
}

async fn decide(client: &Client, question: &EventFrame, decision: Value) -> Result<Value, ErrorResponse> {
    let (run, approval) = (&question.data["run_id"], &question.data["approval_id"]);
    let path = format!("/v1/runs/{}/approvals/{}", run.as_str().unwrap(), approval.as_str().unwrap());
    client.post(&path, decision).await
}

fn failure_of(result: Result<Value, ErrorResponse>) -> (u16, String) {
    let failure = result.expect_err("it was accepted");
    (failure.status, failure.code)
}

fn kinds(frames: &[EventFrame]) -> Vec<&str> {
    let kinds_shown = frames.iter().map(|frame| frame.event.as_str());
    kinds_shown.filter(|kind| !kind.ends_with(".delta") && !kind.starts_with("step.")).collect()
}

fn completed_call(frames: &[EventFrame]) -> &Value {
    &frames.iter().find(|frame| frame.event == "tool_call.completed").unwrap().data
}

async fn an_approved_call_is_made_and_the_run_continues(mut deployment: Deployment) {
    let client = deployment.client();
    let (stream, mut frames, question) = up_to_question(&client, ASK).await;
    let run = client.run(&stream.run_id).await;
    assert_eq!((run["status"].as_str(), run["finished_at"].as_str()), (Some("waiting"), None));
    let path = format!("/v1/runs/{}/approvals", stream.run_id);
    let approvals = client.get(&path).await.unwrap()["items"].clone();
    assert_eq!((&approvals[0]["id"], &approvals[0]["input"]), (&question.data["approval_id"], &question.data["input"]));
    let decided = decide(&client, &question, json!({"decision": "approve"})).await.unwrap();
    assert_eq!(decided["id"], stream.run_id.as_str());
    let rest = stream.rest().await;
    assert_eq!(
        kinds(&rest),
        [
            "approval.resolved",
            "attempt.started",
            "tool_call.started",
            "tool_call.completed",
            "message.completed",
            "run.completed"
        ]
    );
    assert_eq!(
        (rest[0].data["decision"].as_str(), rest[1].data["reason"].as_str()),
        (Some("approved"), Some("resumed"))
    );
    frames.extend(rest);
    let run = client.run(question.data["run_id"].as_str().unwrap()).await;
    assert_eq!(run["output_message"]["content"], fold(&frames));
    assert_eq!(client.get(&path).await.unwrap()["items"][0]["decided_by"], client.name());
}

async fn a_denied_call_is_not_made_and_the_model_receives_the_reason(mut deployment: Deployment) {
    let client = deployment.client();
    let (stream, _, question) = up_to_question(&client, ASK).await;
    decide(&client, &question, json!({"decision": "deny", "reason": "not on a Sunday"})).await.unwrap();
    let frames = stream.rest().await;
    assert!(!kinds(&frames).contains(&"tool_call.started"));
    assert_eq!(completed_call(&frames)["error"]["code"], "denied");
    let trace = client.get(&format!("/v1/runs/{}/messages", question.data["run_id"].as_str().unwrap())).await.unwrap();
    let tool_message = trace["items"].as_array().unwrap().iter().find(|message| message["role"] == "tool").unwrap();
    assert!(tool_message["content"].as_str().unwrap().contains("not on a Sunday"), "{tool_message}");
    assert_eq!(tool_message["is_error"], true);
}

async fn the_first_decision_wins(mut deployment: Deployment) {
    let client = deployment.client();
    let (stream, _, question) = up_to_question(&client, ASK).await;
    let (one, other) = tokio::join!(
        decide(&client, &question, json!({"decision": "approve"})),
        decide(&client, &question, json!({"decision": "deny"})),
    );
    let (first, second) = if one.is_ok() { ("approved", other) } else { ("denied", one) };
    let failure = second.expect_err("both were accepted");
    assert_eq!((failure.status, failure.code.as_str()), (409, "already_decided"));
    assert_eq!(failure.body["approval"]["status"], first);
    let frames = stream.rest().await;
    assert_eq!(kinds(&frames).iter().filter(|kind| **kind == "approval.resolved").count(), 1);
    assert_eq!(frames[0].data["decision"], first);
    assert_eq!(
        failure_of(decide(&client, &question, json!({"decision": "approve"})).await),
        (409, "already_decided".into())
    );
}

async fn an_edited_input_is_what_is_called_and_is_checked_before(mut deployment: Deployment) {
    let client = deployment.client();
    let (stream, _, question) = up_to_question(&client, ASK).await;
    let edit = |input: Value| json!({"decision": "approve", "edited_input": input});
    assert_eq!(failure_of(decide(&client, &question, edit(json!({"action": 5}))).await), (400, "invalid_input".into()));
    let denied = json!({"decision": "deny", "edited_input": {"action": "a"}});
    assert_eq!(failure_of(decide(&client, &question, denied).await), (400, "invalid_body".into()));
    assert_eq!(
        failure_of(decide(&client, &question, edit(json!({"action": "\0"}))).await),
        (400, "invalid_content".into())
    );
    assert_eq!(
        failure_of(decide(&client, &question, json!(["approve", null, null])).await),
        (400, "invalid_body".into())
    );
    decide(&client, &question, edit(json!({"action": "wave"}))).await.unwrap();
    let frames = stream.rest().await;
    assert_eq!(frames[0].data["edited_input"], json!({"action": "wave"}));
    let start_event = frames.iter().find(|frame| frame.event == "tool_call.started").unwrap();
    assert_eq!(start_event.data["input"], json!({"action": "wave"}));
    assert_eq!(completed_call(&frames)["output"], "done: wave");
    let trace = client.get(&format!("/v1/runs/{}/messages", question.data["run_id"].as_str().unwrap())).await.unwrap();
    let tool_message = trace["items"].as_array().unwrap().iter().find(|message| message["role"] == "tool").unwrap();
    assert_eq!(tool_message["content"], "[a human has changed the arguments to {\"action\":\"wave\"}]\ndone: wave");
}

async fn a_waiting_run_outlives_every_process(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let (stream, mut frames, question) = up_to_question(&client, ASK).await;
    let run_id = stream.run_id.clone();
    drop(stream);
    deployment.shut_down();
    let client = deployment.client();
    decide(&client, &question, json!({"decision": "approve"})).await.unwrap();
    frames.extend(client.rest_after(&run_id, &frames.last().unwrap().id.clone()).await);
    assert_eq!(client.run(&run_id).await["output_message"]["content"], fold(&frames));
    assert_eq!(completed_call(&frames)["output"].as_str().map(|output| output.starts_with("done")), Some(true));
}

async fn after_a_cancel_nothing_can_be_approved(mut deployment: Deployment) {
    let client = deployment.client();
    let (stream, frames, question) = up_to_question(&client, ASK).await;
    assert_eq!(client.cancel(&stream.run_id).await["status"], "cancelled");
    let rest = stream.rest().await;
    assert_eq!(kinds(&rest), ["approval.resolved", "message.completed", "run.cancelled"]);
    assert_eq!(
        (rest[0].data["decision"].as_str(), rest[0].data["base"].as_str()),
        (Some("cancelled"), Some(frames.last().unwrap().id.as_str()))
    );
    assert_eq!(rest[1].data["message"]["content"], fold(&frames), "the text is kept");
    let failure = decide(&client, &question, json!({"decision": "approve"})).await.unwrap_err();
    assert_eq!((failure.status, failure.body["approval"]["status"].as_str()), (409, Some("cancelled")));
}

async fn a_cancel_right_after_an_answer_keeps_the_text(mut deployment: Deployment) {
    let client = deployment.client();
    for _ in 0..20 {
        let (stream, mut frames, question) = up_to_question(&client, ASK).await;
        decide(&client, &question, json!({"decision": "approve"})).await.unwrap();
        client.cancel(&stream.run_id).await;
        let run_id = stream.run_id.clone();
        frames.extend(stream.rest().await);
        let run = client.run(&run_id).await;
        assert_eq!(run["output_message"]["content"], fold(&frames), "{run}");
        assert!(run["usage"]["output_tokens"].as_u64() > Some(0), "{run}");
        let calls = client.get(&format!("/v1/runs/{run_id}/tool_calls")).await.unwrap();
        let status = calls["items"][0]["status"].as_str().unwrap();
        assert!(["completed", "abandoned"].contains(&status), "{status}");
    }
}

async fn an_approval_that_expires_is_denied(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_APPROVAL_TTL_MS", 300);
    let client = deployment.client();
    let (stream, _, question) = up_to_question(&client, ASK).await;
    let frames = stream.rest().await;
    assert_eq!(frames[0].data["decision"], "expired");
    assert_eq!(completed_call(&frames)["error"]["code"], "approval_expired");
    assert_eq!(frames.last().unwrap().event, "run.completed");
    let failure = decide(&client, &question, json!({"decision": "approve"})).await.unwrap_err();
    assert_eq!((failure.status, failure.body["approval"]["status"].as_str()), (409, Some("expired")));
}

/// Sends a message to the conversation of a waiting run.
async fn post(client: &Client, question: &EventFrame, mode: &str) -> Result<Value, ErrorResponse> {
    let run = client.run(question.data["run_id"].as_str().unwrap()).await;
    let path = format!("/v1/conversations/{}/messages", run["conversation_id"].as_str().unwrap());
    client.post(&path, json!({"content": "[tokens=3] never mind", "mode": mode})).await
}

async fn is_superseded(client: &Client, mode: &str) {
    let (stream, frames, question) = up_to_question(client, ASK).await;
    let next = post(client, &question, mode).await.unwrap();
    let rest = stream.rest().await;
    assert_eq!(kinds(&rest), ["approval.resolved", "message.completed", "run.cancelled"]);
    assert_eq!(rest[0].data["decision"], "superseded");
    assert_eq!(rest[1].data["message"]["content"], fold(&frames), "the text is kept");
    assert_eq!(client.wait_for_run(next["run"]["id"].as_str().unwrap()).await["status"], "completed");
    assert_eq!(
        failure_of(decide(client, &question, json!({"decision": "approve"})).await),
        (409, "already_decided".into())
    );
}

async fn a_new_message_ends_the_wait(mut deployment: Deployment) {
    is_superseded(&deployment.client(), "enqueue").await;
}

async fn an_interrupting_message_ends_the_wait(mut deployment: Deployment) {
    is_superseded(&deployment.client(), "interrupt").await;
}

async fn a_rejecting_message_finds_the_conversation_busy(mut deployment: Deployment) {
    let client = deployment.client();
    let (stream, _, question) = up_to_question(&client, ASK).await;
    assert_eq!(failure_of(post(&client, &question, "reject").await), (409, "conversation_busy".into()));
    decide(&client, &question, json!({"decision": "approve"})).await.unwrap();
    assert_eq!(stream.rest().await.last().unwrap().event, "run.completed");
}

async fn only_the_approved_call_of_a_step_is_made(mut deployment: Deployment) {
    let client = deployment.client();
    let (mut stream, mut frames, first) = up_to_question(
        &client,
        "[tokens=1] [parallel] [approval=one] [approval=two] [call=scripted__echo {\"text\":\"three\"}]",
    )
    .await;
    // Calls that need no approval are made before the approval is requested.
    assert_eq!(completed_call(&frames)["output"], "three");
    let second = frames.iter().rfind(|frame| frame.event == "approval.requested").unwrap().clone();
    decide(&client, &second, json!({"decision": "deny"})).await.unwrap();
    frames.extend(stream.up_to("approval.resolved").await);
    assert_eq!(client.run(&stream.run_id).await["status"], "waiting", "the other question is still open");
    decide(&client, &first, json!({"decision": "approve"})).await.unwrap();
    let rest = stream.rest().await;
    let call_ids: Vec<&Value> =
        rest.iter().filter(|frame| frame.event == "tool_call.started").map(|frame| &frame.data["call_id"]).collect();
    assert_eq!(call_ids, [&first.data["call_id"]]);
    // The model receives results in the order of its calls.
    let trace = client.get(&format!("/v1/runs/{}/messages", first.data["run_id"].as_str().unwrap())).await.unwrap();
    let results: Vec<&str> = trace["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!((results[0], &results[1][..12], results[2]), ("done: one", "error denied", "three"));
}

async fn policies_say_what_needs_approval(mut deployment: Deployment) {
    let server = ToolServer::answering_at_once().await;
    let client = deployment.client();
    let waits = async |policy: Value, of_the_agent: Value| {
        let more = json!({"approval": of_the_agent, "tools": {"kb__count": policy}});
        let agent_id = agent(&client, json!([server.describe()]), more).await;
        let submission =
            client.post("/v1/runs", json!({"agent_id": agent_id, "input": "[tokens=1] [call=kb__count]"})).await;
        let run_id = submission.unwrap()["run"]["id"].as_str().unwrap().to_owned();
        until("the run has stopped", || async {
            let status = client.run(&run_id).await["status"].as_str().unwrap().to_owned();
            (status == "waiting" || status == "completed").then_some(status == "waiting")
        })
        .await
    };
    assert!(!waits(json!({}), json!(null)).await, "never is the default");
    assert!(waits(json!({}), json!("effects")).await, "an undeclared tool counts as one with effects");
    assert!(!waits(json!({"effect": "read_only"}), json!("effects")).await);
    assert!(waits(json!({"effect": "read_only"}), json!("always")).await);
    assert!(!waits(json!({"approval": "never"}), json!("always")).await, "the tool's policy wins");
}

fn with_client_tool(input: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    json!({"input": input, "client_tools": [{"name": "locate", "description": "Where is it?", "input_schema": schema}]})
}

async fn client_call(client: &Client, body: Value) -> (EventStream, EventFrame) {
    let request = client.request(Method::POST, "/v1/runs").header("accept", "text/event-stream");
    let mut stream = EventStream::new(request.json(&body).send().await.unwrap());
    let call = stream.up_to("tool_call.started").await.pop().unwrap();
    assert_eq!(call.data["by"], "client");
    (stream, call)
}

fn results_path(call: &EventFrame) -> String {
    let (run, call) = (call.data["run_id"].as_str().unwrap(), call.data["call_id"].as_str().unwrap());
    format!("/v1/runs/{run}/tool_results/{call}")
}

async fn a_client_executes_its_own_tools(mut deployment: Deployment) {
    let client = deployment.client();
    let (stream, call) = client_call(&client, with_client_tool("[tokens=1] [call=locate {\"city\":\"Ulm\"}]")).await;
    assert_eq!(call.data["input"], json!({"city": "Ulm"}));
    let path = results_path(&call);
    assert_eq!(failure_of(client.post(&path, json!({})).await), (400, "invalid_body".into()));
    assert_eq!(
        failure_of(client.post(&format!("{path}x"), json!({"output": 1})).await),
        (404, "call_not_found".into())
    );
    assert_eq!(failure_of(client.user("eve").post(&path, json!({"output": 1})).await), (404, "run_not_found".into()));
    client.post(&path, json!({"output": {"at": [48, 10]}})).await.unwrap();
    let frames = stream.rest().await;
    assert_eq!(completed_call(&frames)["output"], "{\"at\":[48,10]}");
    assert!(frames.iter().any(|frame| frame.data["text"] == "locate: {\"at\":[48,10]}\n"), "the model has seen it");
    assert_eq!(failure_of(client.post(&path, json!({"output": 1})).await), (409, "already_completed".into()));
}

async fn a_client_tool_may_answer_with_nothing(mut deployment: Deployment) {
    let client = deployment.client();
    let (stream, call) = client_call(&client, json!({"input": "[tokens=1] [clienttool]"})).await;
    client.post(&results_path(&call), json!({"output": null})).await.unwrap();
    assert_eq!(completed_call(&stream.rest().await)["output"], "null");
}

async fn a_long_result_of_a_client_is_truncated(mut deployment: Deployment) {
    let client = deployment.client();
    let (stream, call) = client_call(&client, json!({"input": "[tokens=1] [clienttool]"})).await;
    client.post(&results_path(&call), json!({"output": "x".repeat(600_000)})).await.unwrap();
    let frames = stream.rest().await;
    let length = completed_call(&frames)["output"].as_str().unwrap().len();
    assert!((262_144..262_244).contains(&length), "256 KiB and a mark, not {length}");
}

async fn a_client_tool_that_fails_is_an_outcome(mut deployment: Deployment) {
    let client = deployment.client();
    let (stream, call) = client_call(&client, json!({"input": "[tokens=1] [clienttool]"})).await;
    assert_eq!(call.data["name"], "scripted__clienttool");
    client.post(&results_path(&call), json!({"error": "no signal"})).await.unwrap();
    let frames = stream.rest().await;
    assert_eq!(completed_call(&frames)["error"], json!({"code": "tool_failed", "message": "no signal"}));
    assert_eq!(frames.last().unwrap().event, "run.completed");
}

async fn a_client_result_after_its_deadline_is_an_error(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_APPROVAL_TTL_MS", 300);
    let client = deployment.client();
    let (stream, call) = client_call(&client, json!({"input": "[tokens=1] [clienttool]"})).await;
    assert_eq!(completed_call(&stream.rest().await)["error"]["code"], "expired");
    assert_eq!(
        failure_of(client.post(&results_path(&call), json!({"output": 1})).await),
        (409, "already_completed".into())
    );
}
