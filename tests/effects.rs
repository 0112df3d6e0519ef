//! A worker dies around a tool call: no effect that must happen once happens twice.

use serde_json::{Value, json};

use crate::{
    in_both_modes,
    support::{Client, Deployment, EventFrame, EventStream, agent, tools::ToolServer, until},
};

in_both_modes!(
    a_call_that_was_about_to_be_made_is_made_once,
    a_call_that_may_have_been_made_is_not_made_again_without_approval,
    a_call_that_a_human_denies_to_repeat_stays_unknown,
    a_call_whose_outcome_was_on_its_way_is_not_made_again,
    a_known_outcome_outlives_the_worker,
    an_idempotent_call_is_repeated_under_its_key,
    a_read_only_call_is_repeated,
    a_call_that_takes_workers_down_fails_its_run,
);

/// Starts a run that calls `kb__count` once. The agent has this policy for the tool.
async fn start_counting_run(client: &Client, server: &ToolServer, policy: Value) -> EventStream {
    let agent_id = agent(client, json!([server.describe()]), json!({"tools": {"kb__count": policy}})).await;
    let body = json!({"agent_id": agent_id, "input": "[tokens=2] [call=kb__count {\"note\": \"one\"}]"});
    let request = client.request(reqwest::Method::POST, "/v1/runs").header("accept", "text/event-stream");
    EventStream::new(request.json(&body).send().await.unwrap())
}

/// Starts the worker again; returns the run's stream after the last frame.
async fn resume_after_death(deployment: &mut Deployment, run_id: &str, frames: &[EventFrame]) -> (Client, EventStream) {
    let client = deployment.client();
    let stream = client.events(run_id, Some(&frames.last().unwrap().id)).await;
    (client, stream)
}

async fn decide(client: &Client, run_id: &str, question: &EventFrame, decision: Value) {
    let approval = question.data["approval_id"].as_str().unwrap();
    client.post(&format!("/v1/runs/{run_id}/approvals/{approval}"), decision).await.unwrap();
}

fn outcome(frames: &[EventFrame]) -> &Value {
    &frames.iter().rfind(|frame| frame.event == "tool_call.completed").unwrap().data
}

async fn a_call_that_was_about_to_be_made_is_made_once(deployment: Deployment) {
    let mut deployment = deployment.own();
    let mut server = ToolServer::start().await;
    let mut stream = start_counting_run(&deployment.client(), &server, json!({"effect": "once"})).await;
    let run_id = stream.run_id.clone();
    let frames = stream.up_to("tool_call.started").await;
    // The call has reached the server without an effect, but the worker cannot know that.
    drop(server.arrival().await);
    deployment.kill_worker();
    let (client, mut stream) = resume_after_death(&mut deployment, &run_id, &frames).await;
    let question = stream.up_to("approval.requested").await;
    let question = question.last().unwrap();
    assert_eq!(
        (question.data["kind"].as_str(), question.data["name"].as_str()),
        (Some("unknown_outcome"), Some("kb__count"))
    );
    assert!(!server.has_arrivals(), "it was called again without a human's word");
    let approval = question.data["approval_id"].as_str().unwrap();
    let edited = json!({"decision": "approve", "edited_input": {"note": "two"}});
    let refused = client.post(&format!("/v1/runs/{run_id}/approvals/{approval}"), edited).await.unwrap_err();
    assert_eq!(refused.code, "invalid_input", "the key stands for the call as it was");
    decide(&client, &run_id, question, json!({"decision": "approve"})).await;
    let again = server.arrival().await;
    again.take_effect();
    again.answer("counted");
    let frames = stream.rest().await;
    assert_eq!(outcome(&frames)["output"], "counted");
    assert_eq!(frames.last().unwrap().event, "run.completed");
    assert_eq!(server.effects(), 1);
}

async fn a_call_that_may_have_been_made_is_not_made_again_without_approval(deployment: Deployment) {
    let mut deployment = deployment.own();
    let mut server = ToolServer::start().await;
    let mut stream = start_counting_run(&deployment.client(), &server, json!({})).await;
    let run_id = stream.run_id.clone();
    let frames = stream.up_to("tool_call.started").await;
    let arrival = server.arrival().await;
    arrival.take_effect();
    deployment.kill_worker();
    drop(arrival);
    let (client, mut stream) = resume_after_death(&mut deployment, &run_id, &frames).await;
    stream.up_to("approval.requested").await;
    assert_eq!(client.run(&run_id).await["status"], "waiting");
    assert_eq!((server.effects(), server.has_arrivals()), (1, false));
}

async fn a_call_that_a_human_denies_to_repeat_stays_unknown(deployment: Deployment) {
    let mut deployment = deployment.own();
    let mut server = ToolServer::start().await;
    let mut stream = start_counting_run(&deployment.client(), &server, json!({})).await;
    let run_id = stream.run_id.clone();
    let frames = stream.up_to("tool_call.started").await;
    let arrival = server.arrival().await;
    arrival.take_effect();
    deployment.kill_worker();
    drop(arrival);
    let (client, mut stream) = resume_after_death(&mut deployment, &run_id, &frames).await;
    let question = stream.up_to("approval.requested").await;
    decide(&client, &run_id, question.last().unwrap(), json!({"decision": "deny", "reason": "it is in the books"}))
        .await;
    let frames = stream.rest().await;
    let error = &outcome(&frames)["error"];
    assert_eq!(error["code"], "outcome_unknown");
    assert!(error["message"].as_str().unwrap().ends_with("it is in the books"), "{error}");
    assert_eq!(client.run(&run_id).await["status"], "completed");
    assert_eq!((server.effects(), server.has_arrivals()), (1, false));
}

async fn a_call_whose_outcome_was_on_its_way_is_not_made_again(deployment: Deployment) {
    let mut deployment = deployment.own();
    let mut server = ToolServer::start().await;
    let mut stream = start_counting_run(&deployment.client(), &server, json!({})).await;
    let run_id = stream.run_id.clone();
    let frames = stream.up_to("tool_call.started").await;
    let arrival = server.arrival().await;
    arrival.take_effect();
    arrival.answer("counted");
    // The worker may or may not have stored the outcome; in both cases it does not repeat the call.
    deployment.kill_worker();
    let (client, mut stream) = resume_after_death(&mut deployment, &run_id, &frames).await;
    let run = until("the run has stopped", || async {
        let run = client.run(&run_id).await;
        (run["status"] == "waiting" || run["status"] == "completed").then_some(run)
    })
    .await;
    if run["status"] == "waiting" {
        let question = stream.up_to("approval.requested").await;
        decide(&client, &run_id, question.last().unwrap(), json!({"decision": "deny"})).await;
    }
    assert_eq!(client.wait_for_run(&run_id).await["status"], "completed");
    assert_eq!((server.effects(), server.has_arrivals()), (1, false));
}

async fn a_known_outcome_outlives_the_worker(deployment: Deployment) {
    let mut deployment = deployment.own();
    let mut server = ToolServer::start().await;
    let client = deployment.client();
    let agent_id = agent(&client, json!([server.describe()]), json!({})).await;
    let input = "[tokens=300] [delay=20] [call=kb__count]";
    let submission = client.post("/v1/runs", json!({"agent_id": agent_id, "input": input})).await.unwrap();
    let run_id = submission["run"]["id"].as_str().unwrap().to_owned();
    let arrival = server.arrival().await;
    arrival.take_effect();
    arrival.answer("counted");
    let mut frames = client.events(&run_id, None).await.up_to("step.completed").await;
    // The next step has started, so the outcome is in the database.
    until("the outcome is durable", || async {
        let calls = client.get(&format!("/v1/runs/{run_id}/tool_calls")).await.unwrap();
        (calls["items"][0]["status"] == "completed").then_some(())
    })
    .await;
    deployment.kill_worker();
    let (client, stream) = resume_after_death(&mut deployment, &run_id, &frames).await;
    frames.extend(stream.rest().await);
    assert_eq!(frames.iter().filter(|frame| frame.event == "tool_call.started").count(), 1);
    let run = client.run(&run_id).await;
    assert_eq!(
        (run["status"].as_str(), run["output_message"]["content"].as_str()),
        (Some("completed"), Some(crate::support::fold(&frames).as_str()))
    );
    assert_eq!((server.effects(), server.has_arrivals()), (1, false));
}

async fn an_idempotent_call_is_repeated_under_its_key(deployment: Deployment) {
    let mut deployment = deployment.own();
    let mut server = ToolServer::start().await;
    let mut stream = start_counting_run(&deployment.client(), &server, json!({"effect": "idempotent"})).await;
    let run_id = stream.run_id.clone();
    let frames = stream.up_to("tool_call.started").await;
    let first = server.arrival().await;
    deployment.kill_worker();
    let (_, stream) = resume_after_death(&mut deployment, &run_id, &frames).await;
    let again = server.arrival().await;
    assert_eq!((&again.key, &again.tool, &again.arguments), (&first.key, &first.tool, &first.arguments));
    assert_eq!(again.key, frames.last().unwrap().data["call_id"].as_str().unwrap());
    again.answer("counted");
    assert_eq!(outcome(&stream.rest().await)["output"], "counted");
}

async fn a_read_only_call_is_repeated(deployment: Deployment) {
    let mut deployment = deployment.own();
    let mut server = ToolServer::start().await;
    let mut stream = start_counting_run(&deployment.client(), &server, json!({"effect": "read_only"})).await;
    let run_id = stream.run_id.clone();
    let frames = stream.up_to("tool_call.started").await;
    drop(server.arrival().await);
    deployment.kill_worker();
    let (_, stream) = resume_after_death(&mut deployment, &run_id, &frames).await;
    server.arrival().await.answer("looked");
    assert_eq!(outcome(&stream.rest().await)["output"], "looked");
}

async fn a_call_that_takes_workers_down_fails_its_run(deployment: Deployment) {
    let mut deployment = deployment.own();
    let mut server = ToolServer::start().await;
    let mut stream = start_counting_run(&deployment.client(), &server, json!({"effect": "idempotent"})).await;
    let run_id = stream.run_id.clone();
    let frames = stream.up_to("tool_call.started").await;
    for _ in 0..3 {
        drop(server.arrival().await);
        deployment.kill_worker();
        deployment.client();
    }
    let (client, stream) = resume_after_death(&mut deployment, &run_id, &frames).await;
    let last = stream.rest().await.pop().unwrap();
    assert_eq!((last.event.as_str(), last.data["error"]["code"].as_str()), ("run.failed", Some("max_attempts")));
    assert!(!server.has_arrivals());
    let calls = client.get(&format!("/v1/runs/{run_id}/tool_calls")).await.unwrap();
    assert_eq!(calls["items"][0]["status"], "abandoned");
    let innocent = client.start("[tokens=1]").await;
    assert_eq!(client.wait_for_run(innocent["run"]["id"].as_str().unwrap()).await["status"], "completed");
}
