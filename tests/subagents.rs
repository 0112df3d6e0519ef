//! Subagents: a run that answers a tool call of another run.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes,
    support::{
        Client, Deployment, EventFrame, EventStream, ScaledOut, agent, answer, fold, frames_of, stream_of, until,
    },
};

in_both_modes!(
    a_subagent_answers_a_call_of_its_parent,
    children_of_one_step_run_beside_its_other_calls,
    a_family_needs_one_slot,
    a_failed_child_is_an_error_that_the_model_reads,
    depth_and_number_of_subagents_are_limited,
    a_cancel_ends_all_runs_below_and_keeps_their_texts,
    a_question_of_a_grandchild_is_answered_at_the_top_run,
    a_new_message_ends_the_wait_for_a_grandchild,
    each_agent_decides_who_answers_its_questions,
    subagents_keep_to_the_quota_of_runs,
    a_deleted_conversation_takes_its_children_with_it,
);

/// Creates an agent that delegates to these agents, and perhaps to itself.
async fn lead(client: &Client, subagents: Value) -> String {
    agent(client, json!([]), json!({"name": "lead", "subagents": subagents, "recursive": 5})).await
}

/// Creates an agent that answers tasks.
async fn helper(client: &Client) -> String {
    agent(client, json!([]), json!({"name": "helper", "description": "Helps."})).await
}

fn names(frames: &[EventFrame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).filter(|name| !name.ends_with(".delta")).collect()
}

fn all<'a>(frames: &'a [EventFrame], event: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame.event == event).map(|frame| &frame.data).collect()
}

fn child_of(frames: &[EventFrame]) -> String {
    all(frames, "subagent.started")[0]["child_run_id"].as_str().unwrap().to_owned()
}

async fn a_subagent_answers_a_call_of_its_parent(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let helper_id = helper(&client).await;
    let lead_id = lead(&client, json!([{"agent": "helper"}])).await;
    let frames = frames_of(&client, &lead_id, "[delegate=helper [tokens=3] count] [tokens=2]").await;
    assert_eq!(
        names(&frames),
        [
            "run.queued",
            "attempt.started",
            "context.usage",
            "step.started",
            "tool_call.started",
            "subagent.started",
            "subagent.completed",
            "tool_call.completed",
            "attempt.started",
            "step.completed",
            "step.started",
            "step.completed",
            "message.completed",
            "run.completed"
        ]
    );
    let (started, completed) = (all(&frames, "subagent.started")[0], all(&frames, "subagent.completed")[0]);
    let child = client.run(&child_of(&frames)).await;
    assert_eq!((child["status"].as_str(), child["agent_id"].as_str()), (Some("completed"), Some(helper_id.as_str())));
    assert_eq!((started["agent"].as_str(), started["role"].as_str()), (Some("helper"), Some("subagent")));
    assert_eq!(started["task"], "[tokens=3] count");
    assert_eq!(completed["output"], child["output_message"]["content"]);
    assert_eq!((completed["status"].as_str(), &completed["usage"]), (Some("completed"), &child["usage"]));
    assert_eq!(all(&frames, "tool_call.completed")[0]["output"], completed["output"]);
    let run_id = frames[0].data["run_id"].as_str().unwrap();
    let run = client.run(run_id).await;
    let tokens = |run: &Value, field: &str| run[field]["output_tokens"].as_u64().unwrap();
    assert_eq!(tokens(&run, "total_usage"), tokens(&run, "usage") + tokens(&child, "usage"));
    assert_eq!(child.get("total_usage"), None);
    // The call shows its child, and the child has a log of its own.
    let calls = client.get(&format!("/v1/runs/{run_id}/tool_calls")).await.unwrap();
    assert_eq!(
        (calls["items"][0]["name"].as_str(), &calls["items"][0]["child_run_id"]),
        (Some("delegate_to_helper"), &child["id"])
    );
    let child_frames = client.events(child["id"].as_str().unwrap(), None).await.rest().await;
    assert_eq!(child["output_message"]["content"], fold(&child_frames));
    // Lists show what people have written.
    let conversations = client.get("/v1/conversations").await.unwrap();
    assert_eq!(conversations["items"].as_array().unwrap().len(), 1);
}

async fn children_of_one_step_run_beside_its_other_calls(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    helper(&client).await;
    let lead_id = lead(&client, json!([{"agent": "helper", "description": "Counts."}])).await;
    let input = "[parallel] [delegate=helper [tokens=1] a] [delegate=helper [tokens=1] b] [tokens=1] \
                 [call=scripted__echo {\"text\": \"beside\", \"delay_ms\": 300}]";
    let frames = frames_of(&client, &lead_id, input).await;
    assert_eq!(frames.last().unwrap().event, "run.completed");
    let (started, completed) = (all(&frames, "subagent.started"), all(&frames, "subagent.completed"));
    assert_eq!((started.len(), completed.len()), (2, 2));
    let outcomes = all(&frames, "tool_call.completed");
    assert_eq!(outcomes.len(), 3);
    for child in completed {
        let of_call: Vec<_> = outcomes.iter().filter(|outcome| outcome["call_id"] == child["call_id"]).collect();
        assert_eq!(of_call.len(), 1);
        assert_eq!(of_call[0]["output"], child["output"]);
    }
    fold(&frames);
}

async fn a_family_needs_one_slot(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_WORKER_CONCURRENCY", 1);
    let client = deployment.client();
    let lead_id = lead(&client, json!([{"agent": "lead"}])).await;
    let frames =
        frames_of(&client, &lead_id, "[delegate=lead [delegate=lead [tokens=2] c] [tokens=2] b] [tokens=1]").await;
    assert_eq!(frames.last().unwrap().event, "run.completed");
    assert_eq!(all(&frames, "subagent.completed")[0]["status"], "completed");
}

async fn a_failed_child_is_an_error_that_the_model_reads(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    helper(&client).await;
    let lead_id = lead(&client, json!([{"agent": "helper"}, {"agent": "nobody"}])).await;
    let frames = frames_of(&client, &lead_id, "[delegate=helper [fail] [tokens=4] x] [tokens=1]").await;
    assert_eq!(all(&frames, "warning.raised")[0]["code"], "subagent_unavailable");
    let completed = all(&frames, "subagent.completed")[0];
    assert_eq!(
        (completed["status"].as_str(), completed["error"]["code"].as_str()),
        (Some("failed"), Some("subagent_failed"))
    );
    assert_eq!(all(&frames, "tool_call.completed")[0]["error"], completed["error"]);
    assert_eq!(frames.last().unwrap().event, "run.completed");
}

async fn depth_and_number_of_subagents_are_limited(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_MAX_SUBAGENT_DEPTH", 1).with("HOLDFAST_MAX_SUBAGENTS", 2);
    let client = deployment.client();
    let lead_id = lead(&client, json!([{"agent": "lead"}])).await;
    let input = "[parallel] [delegate=lead [delegate=lead [tokens=1] deeper] [tokens=1] a] [delegate=lead [tokens=1] b] \
                 [delegate=lead [tokens=1] c] [tokens=1]";
    let frames = frames_of(&client, &lead_id, input).await;
    assert_eq!(frames.last().unwrap().event, "run.completed");
    assert_eq!(all(&frames, "subagent.started").len(), 2);
    let refused: Vec<_> =
        all(&frames, "tool_call.completed").into_iter().filter(|outcome| outcome["error"].is_object()).collect();
    assert_eq!((refused.len(), refused[0]["error"]["code"].as_str()), (1, Some("limit_reached")));
    let child_frames = client.events(&child_of(&frames), None).await.rest().await;
    assert_eq!(all(&child_frames, "tool_call.completed")[0]["error"]["code"], "limit_reached");
}

async fn a_cancel_ends_all_runs_below_and_keeps_their_texts(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    helper(&client).await;
    let lead_id = lead(&client, json!([{"agent": "helper"}, {"agent": "lead"}])).await;
    let long = "[tokens=5000] [delay=20]";
    let input =
        format!("[parallel] [delegate=helper {long} a] [delegate=lead [delegate=helper {long} c] b] [tokens=1]");
    let mut stream = stream_of(&client, &lead_id, &input).await;
    let mut frames = stream.up_to_nth("subagent.started", 2).await;
    let children: Vec<String> = all(&frames, "subagent.started")
        .iter()
        .map(|started| started["child_run_id"].as_str().unwrap().to_owned())
        .collect();
    let mut nested = client.events(&children[1], None).await;
    let grandchild = child_of(&nested.up_to("subagent.started").await);
    for run_id in [&children[0], &grandchild] {
        client.events(run_id, None).await.up_to_nth("message.delta", 5).await;
    }
    assert_eq!(client.run(&stream.run_id).await["status"], "running", "waiting for children is work");
    let since = Instant::now();
    client.cancel(&stream.run_id).await;
    frames.extend(stream.rest().await);
    assert_eq!(frames.last().unwrap().event, "run.cancelled");
    for run_id in children.iter().chain([&grandchild]) {
        assert_eq!(client.wait_for_run(run_id).await["status"], "cancelled");
    }
    assert!(since.elapsed() < Duration::from_secs(2), "it took {:?}", since.elapsed());
    for run_id in [&children[0], &grandchild] {
        let run = client.run(run_id).await;
        let child_frames = client.events(run_id, None).await.rest().await;
        assert_eq!(run["output_message"]["content"], fold(&child_frames));
    }
}

/// Starts a run whose grandchild asks a human; returns its stream and the frames up to the question.
async fn asking_grandchild(client: &Client) -> (EventStream, Vec<EventFrame>) {
    helper(client).await;
    agent(client, json!([]), json!({"name": "middle", "subagents": [{"agent": "helper"}]})).await;
    let lead_id = lead(client, json!([{"agent": "middle"}])).await;
    let input = "[delegate=middle [delegate=helper [approval=x] [tokens=1]] [tokens=1]] [tokens=1]";
    let mut stream = stream_of(client, &lead_id, input).await;
    let frames = stream.up_to("agent.state").await;
    (stream, frames)
}

async fn a_question_of_a_grandchild_is_answered_at_the_top_run(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let (stream, mut frames) = asking_grandchild(&client).await;
    let run_id = stream.run_id.clone();
    let question = all(&frames, "approval.requested")[0].clone();
    let grandchild = question["child_run_id"].as_str().unwrap().to_owned();
    assert_ne!(grandchild, child_of(&frames));
    assert_eq!(question["run_id"], run_id.as_str());
    let statuses = [&run_id, &child_of(&frames), &grandchild];
    for (run, status) in statuses.into_iter().zip(["waiting", "running", "waiting"]) {
        assert_eq!(client.run(run).await["status"], status);
    }
    let approvals = format!("/v1/runs/{run_id}/approvals");
    let listed = client.get(&approvals).await.unwrap();
    assert_eq!(
        (&listed["items"][0]["id"], &listed["items"][0]["run_id"]),
        (&question["approval_id"], &json!(grandchild))
    );
    let open = client.get("/v1/approvals").await.unwrap();
    assert_eq!(open["items"][0]["conversation_id"], frames[0].data["conversation_id"]);
    let path = format!("/v1/runs/{run_id}/events?snapshot=true");
    let request = client.request(Method::GET, &path).header("accept", "application/json");
    let snapshot = answer(request).await.unwrap()["snapshot"].clone();
    assert_eq!(
        (&snapshot["status"], &snapshot["approvals"][0]["child_run_id"]),
        (&json!("waiting"), &json!(grandchild))
    );
    // The run between does not have it.
    let of_middle = format!("/v1/runs/{}/approvals", child_of(&frames));
    assert_eq!(client.get(&of_middle).await.unwrap()["items"], json!([]));
    let path = |list: &str| format!("{list}/{}", question["approval_id"].as_str().unwrap());
    assert_eq!(client.post(&path(&of_middle), json!({"decision": "approve"})).await.unwrap_err().status, 404);
    let answered = client.post(&path(&approvals), json!({"decision": "approve"})).await.unwrap();
    assert_eq!(answered["id"], run_id.as_str());
    frames.extend(stream.rest().await);
    assert_eq!(all(&frames, "approval.resolved")[0]["child_run_id"], grandchild.as_str());
    assert_eq!(frames.last().unwrap().event, "run.completed");
    assert_eq!(fold(&client.rest_after(&run_id, "0-0").await), fold(&frames));
}

async fn each_agent_decides_who_answers_its_questions(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let (ann, bob, carl) = (client.user("ann"), client.user("bob"), client.user("carl"));
    agent(&client, json!([]), json!({"name": "helper", "approvers": ["carl"]})).await;
    let more = json!({"name": "lead", "subagents": [{"agent": "helper"}], "approvers": ["bob"]});
    let lead_id = agent(&client, json!([]), more).await;
    let mut stream = stream_of(&ann, &lead_id, "[delegate=helper [approval=x] [tokens=1]] [tokens=1]").await;
    let frames = stream.up_to("agent.state").await;
    let question = all(&frames, "approval.requested")[0].clone();
    let path = |run: &str| format!("/v1/runs/{run}/approvals");
    let (top, child) = (stream.run_id.clone(), question["child_run_id"].as_str().unwrap().to_owned());
    // The approver of the top run's agent sees and decides nothing of the child's.
    assert_eq!(bob.get(&path(&top)).await.unwrap()["items"], json!([]));
    let decide = |run: &str| format!("{}/{}", path(run), question["approval_id"].as_str().unwrap());
    let approve = json!({"decision": "approve"});
    assert_eq!(bob.post(&decide(&top), approve.clone()).await.unwrap_err().status, 404);
    assert_eq!(ann.post(&decide(&top), approve.clone()).await.unwrap_err().code, "approver_needed");
    // The approver of the child's agent sees the child alone.
    assert_eq!(carl.get(&path(&top)).await.unwrap_err().status, 404);
    let open = carl.get("/v1/approvals").await.unwrap();
    assert_eq!((&open["items"][0]["run_id"], &open["items"][0]["conversation_id"]), (&json!(child), &Value::Null));
    assert_eq!(carl.post(&decide(&top), approve).await.unwrap()["id"], child.as_str());
    assert_eq!(stream.rest().await.last().unwrap().event, "run.completed");
}

async fn subagents_keep_to_the_quota_of_runs(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_RUNS_PER_OWNER", 3);
    let client = deployment.client();
    helper(&client).await;
    let lead_id = lead(&client, json!([{"agent": "helper"}])).await;
    let calls = "[delegate=helper [tokens=1] x]".repeat(3);
    let frames = frames_of(&client, &lead_id, &format!("[parallel] {calls} [tokens=1]")).await;
    assert_eq!(all(&frames, "subagent.started").len(), 2, "beside the run itself");
    let outcomes = all(&frames, "tool_call.completed");
    let refused: Vec<_> = outcomes.into_iter().filter(|outcome| outcome["error"]["code"] == "limit_reached").collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(frames.last().unwrap().event, "run.completed");
}

async fn a_new_message_ends_the_wait_for_a_grandchild(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let (stream, frames) = asking_grandchild(&client).await;
    let grandchild = all(&frames, "approval.requested")[0]["child_run_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/conversations/{}/messages", frames[0].data["conversation_id"].as_str().unwrap());
    client.post(&path, json!({"content": "[tokens=1] never mind"})).await.unwrap();
    let rest = stream.rest().await;
    assert_eq!(names(&rest), ["approval.resolved", "message.completed", "run.cancelled"]);
    assert_eq!((&rest[0].data["decision"], &rest[0].data["child_run_id"]), (&json!("superseded"), &json!(grandchild)));
    assert_eq!(client.wait_for_run(&grandchild).await["status"], "cancelled");
}

async fn a_deleted_conversation_takes_its_children_with_it(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    helper(&client).await;
    let lead_id = lead(&client, json!([{"agent": "helper"}])).await;
    let mut stream = stream_of(&client, &lead_id, "[delegate=helper [tokens=5000] [delay=20] a] [tokens=1]").await;
    let frames = stream.up_to("subagent.started").await;
    let child = child_of(&frames);
    let run = client.run(&child).await;
    let conversation = frames[0].data["conversation_id"].as_str().unwrap();
    client.delete(&format!("/v1/conversations/{conversation}")).await.unwrap();
    let path = format!("/v1/conversations/{}", run["conversation_id"].as_str().unwrap());
    until("the child's conversation is gone", || async { client.get(&path).await.err().map(drop) }).await;
    assert_eq!(client.get(&format!("/v1/runs/{child}")).await.unwrap_err().status, 404);
}

#[tokio::test]
async fn a_cancel_ends_eight_subagents_on_three_workers_within_two_seconds() {
    // Each worker has three slots, so that all of them have children.
    let scaled = ScaledOut::new().with("HOLDFAST_WORKER_CONCURRENCY", 3);
    let mut api = scaled.api();
    let (_first, _second, _third) = (scaled.worker(), scaled.worker(), scaled.worker());
    let client = api.client();
    helper(&client).await;
    let lead_id = lead(&client, json!([{"agent": "helper"}])).await;
    let calls = "[delegate=helper [tokens=5000] [delay=20] x]".repeat(8);
    let mut stream = stream_of(&client, &lead_id, &format!("[parallel] {calls} [tokens=1]")).await;
    let frames = stream.up_to_nth("subagent.started", 8).await;
    let children =
        all(&frames, "subagent.started").into_iter().map(|started| started["child_run_id"].as_str().unwrap());
    let children: Vec<String> = children.map(str::to_owned).collect();
    for child in &children {
        client.events(child, None).await.up_to_nth("message.delta", 3).await;
    }
    let cancelled_at = Utc::now();
    client.cancel(&stream.run_id).await;
    for child in &children {
        let run = client.wait_for_run(child).await;
        let log = client.events(child, None).await.rest().await;
        assert_eq!(
            (run["status"].as_str(), &run["output_message"]["content"]),
            (Some("cancelled"), &json!(fold(&log)))
        );
        let finished_at: DateTime<Utc> = run["finished_at"].as_str().unwrap().parse().unwrap();
        let took = finished_at - cancelled_at;
        assert!(took < TimeDelta::seconds(2), "it took {took}");
    }
    assert_eq!(stream.rest().await.last().unwrap().event, "run.cancelled");
}

#[tokio::test]
async fn a_child_starts_once_whichever_worker_dies() {
    let scaled = ScaledOut::new().with("HOLDFAST_LEASE_MS", 1_000).with("HOLDFAST_SWEEP_MS", 100);
    let mut api = scaled.api();
    let client = api.client();
    helper(&client).await;
    let lead_id = lead(&client, json!([{"agent": "helper"}])).await;
    let worker = scaled.worker();
    let input =
        "[delegate=helper [tokens=40] [delay=20] a] [delegate=helper [tokens=40] [delay=20] b] [tokens=40] [delay=20]";
    let mut stream = stream_of(&client, &lead_id, input).await;
    let mut frames = stream.up_to("subagent.started").await;
    client.events(&child_of(&frames), None).await.up_to_nth("message.delta", 10).await;
    worker.kill();
    let worker = scaled.worker();
    frames.extend(stream.up_to("subagent.started").await);
    worker.kill();
    let _worker = scaled.worker();
    frames.extend(stream.rest().await);
    assert_eq!(frames.last().unwrap().event, "run.completed");
    assert_eq!((all(&frames, "subagent.started").len(), all(&frames, "subagent.completed").len()), (2, 2));
    let run = client.run(frames[0].data["run_id"].as_str().unwrap()).await;
    assert_eq!(run["output_message"]["content"], fold(&frames));
}
