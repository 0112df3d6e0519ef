//! Snapshots: a page that opens in mid-run shows the message at once, and continues from there.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{Client, Deployment, EventFrame, EventStream, answer, fold},
};

in_both_modes!(
    a_snapshot_and_its_tail_are_the_complete_run,
    a_run_that_has_ended_gives_its_snapshot_and_its_end,
    a_snapshot_shows_calls_and_open_questions,
    a_page_that_learns_of_a_lost_worker_requests_another_snapshot,
    a_cursor_makes_a_snapshot_needless,
);

in_either_mode!(a_snapshot_is_of_the_native_wire);

fn path(run_id: &str, query: &str) -> String {
    format!("/v1/runs/{run_id}/events?snapshot=true{query}")
}

async fn open_snapshot(client: &Client, run_id: &str) -> (EventFrame, EventStream) {
    let mut events = EventStream::new(client.request(Method::GET, &path(run_id, "")).send().await.unwrap());
    let first = events.next().await.unwrap().unwrap();
    assert_eq!((first.event.as_str(), &first.data["type"]), ("run.snapshot", &json!("run.snapshot")));
    assert_eq!((&first.data["id"], &first.data["run_id"]), (&json!(first.id), &json!(run_id)));
    (first, events)
}

async fn as_json(client: &Client, run_id: &str) -> Value {
    answer(client.request(Method::GET, &path(run_id, "")).header("accept", "application/json")).await.unwrap()
}

fn text(snapshot: &Value) -> &str {
    snapshot["text"].as_str().unwrap()
}

/// Returns the text of the deltas.
fn delta_text(tail: &[EventFrame]) -> String {
    let deltas = tail.iter().filter(|frame| frame.event == "message.delta");
    deltas.map(|frame| frame.data["text"].as_str().unwrap()).collect()
}

async fn a_snapshot_and_its_tail_are_the_complete_run(mut deployment: Deployment) {
    let client = deployment.client();
    let mut stream = client.stream("[tokens=60] [delay=20] [think] hi").await;
    let run_id = stream.run_id.clone();
    let mut frames = stream.up_to_nth("message.delta", 20).await;
    let (snapshot, tail) = open_snapshot(&client, &run_id).await;
    let (position, seen_to) = (snapshot.position(), frames.last().unwrap().position());
    assert!(position >= seen_to);
    assert_eq!((&snapshot.data["status"], &snapshot.data["usage"]), (&json!("running"), &Value::Null));
    assert!(snapshot.data["reasoning"].as_str().unwrap().starts_with("Let "));
    let tail = tail.rest().await;
    assert_eq!(tail[0].position(), (position.0, position.1 + 1), "nothing is missing and nothing comes twice");
    frames.extend(stream.rest().await);
    let full_text = fold(&frames);
    assert_eq!(text(&snapshot.data).to_owned() + &delta_text(&tail), full_text);
    assert_eq!(client.run(&run_id).await["output_message"]["content"], full_text);
    assert_eq!(snapshot.data["message_id"], client.run(&run_id).await["output_message"]["id"]);
}

async fn a_run_that_has_ended_gives_its_snapshot_and_its_end(mut deployment: Deployment) {
    let client = deployment.client();
    let all = client.stream("[tokens=4000] [delay=0] [think]").await.rest().await;
    let (end, run_id) = (all.last().unwrap(), all[0].data["run_id"].as_str().unwrap());
    let (snapshot, tail) = open_snapshot(&client, run_id).await;
    assert_eq!(text(&snapshot.data), fold(&all));
    assert_eq!(tail.rest().await, std::slice::from_ref(end));
    let json = as_json(&client, run_id).await;
    assert_eq!(json["last_event_id"], end.id, "plain JSON has the end in it");
    assert_eq!((&json["snapshot"]["status"], &json["snapshot"]["usage"]), (&json!("completed"), &end.data["usage"]));
    assert_eq!(json["snapshot"]["text"], fold(&all));
    let failed_run = client.stream("[tokens=4] [fail]").await.rest().await;
    let json = as_json(&client, failed_run[0].data["run_id"].as_str().unwrap()).await;
    assert_eq!(json["snapshot"]["status"], "failed");
    assert_eq!(json["snapshot"]["error"], failed_run.last().unwrap().data["error"]);
    let without = client.post("/v1/runs", json!({"input": "[tokens=3]", "stream": false})).await.unwrap();
    let run = client.wait_for_run(without["run"]["id"].as_str().unwrap()).await;
    let (snapshot, _) = open_snapshot(&client, run["id"].as_str().unwrap()).await;
    assert_eq!(
        snapshot.data["text"], run["output_message"]["content"],
        "there are no deltas, but there is the message"
    );
}

async fn a_snapshot_shows_calls_and_open_questions(mut deployment: Deployment) {
    let client = deployment.client();
    let input = "[call=scripted__echo {\"text\":\"hi\"}] [approval=send it] [tokens=2]";
    let mut stream = client.stream(input).await;
    let run_id = stream.run_id.clone();
    stream.up_to("agent.state").await;
    let (snapshot, tail) = open_snapshot(&client, &run_id).await;
    let (calls, approvals) = (&snapshot.data["tool_calls"], snapshot.data["approvals"].as_array().unwrap());
    assert_eq!((&snapshot.data["status"], approvals.len()), (&json!("waiting"), 1));
    let call = |index: usize, field: &str| calls[index][field].as_str().unwrap_or_default();
    assert_eq!((call(0, "name"), call(0, "status"), call(0, "output")), ("scripted__echo", "completed", "hi"));
    assert_eq!((call(1, "name"), call(1, "status"), call(1, "output")), ("scripted__approval", "waiting", ""));
    assert_eq!(calls[1]["input"], json!({"action": "send it"}));
    let approval = &client.get(&format!("/v1/runs/{run_id}/approvals")).await.unwrap()["items"][0];
    for field in ["call_id", "kind", "name", "input"] {
        assert_eq!(approvals[0][field], approval[field], "{field}");
    }
    let answer_path = format!("/v1/runs/{run_id}/approvals/{}", approvals[0]["approval_id"].as_str().unwrap());
    client.post(&answer_path, json!({"decision": "approve"})).await.unwrap();
    let tail = tail.rest().await;
    assert_eq!(tail[0].event, "approval.resolved", "the page receives the result");
    let after = as_json(&client, &run_id).await;
    assert_eq!((&after["snapshot"]["approvals"], &after["snapshot"]["status"]), (&json!([]), &json!("completed")));
    let calls = client.get(&format!("/v1/runs/{run_id}/tool_calls")).await.unwrap();
    for (in_snapshot, in_api) in
        after["snapshot"]["tool_calls"].as_array().unwrap().iter().zip(calls["items"].as_array().unwrap())
    {
        for field in ["call_id", "name", "input", "status", "output"] {
            assert_eq!(in_snapshot[field], in_api[field], "{field}");
        }
    }
}

async fn a_page_that_learns_of_a_lost_worker_requests_another_snapshot(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_LEASE_MS", 1500);
    let client = deployment.client();
    let mut stream = client.stream("[tokens=100] [delay=20] hi").await;
    let run_id = stream.run_id.clone();
    stream.up_to_nth("message.delta", 20).await;
    let (first, _) = open_snapshot(&client, &run_id).await;
    assert!(!text(&first.data).is_empty());
    deployment.kill_worker();
    let client = deployment.client();
    let frames_before = client.events(&run_id, Some(&first.id)).await.up_to("attempt.started").await;
    let base = frames_before.last().unwrap().data["base"].as_str().unwrap();
    let number =
        |id: &str| id.split_once('-').map(|(a, n)| (a.parse::<u32>().unwrap(), n.parse::<u32>().unwrap())).unwrap();
    assert!(number(base) < first.position(), "a part of the snapshot is taken back");
    let (second, tail) = open_snapshot(&client, &run_id).await;
    let tail = tail.rest().await;
    let content = client.run(&run_id).await["output_message"]["content"].clone();
    assert_eq!(text(&second.data).to_owned() + &delta_text(&tail), content);
    assert_eq!(as_json(&client, &run_id).await["snapshot"]["text"], content, "lost text is in no snapshot");
}

async fn a_cursor_makes_a_snapshot_needless(mut deployment: Deployment) {
    let client = deployment.client();
    let all = client.stream("[tokens=4]").await.rest().await;
    let run_id = all[0].data["run_id"].as_str().unwrap();
    for (index, frame) in all[..all.len() - 1].iter().enumerate() {
        let by_query = client.request(Method::GET, &path(run_id, &format!("&after={}", frame.id)));
        let by_header = client.request(Method::GET, &path(run_id, "")).header("last-event-id", &frame.id);
        for request in [by_query, by_header] {
            let rest = EventStream::new(request.send().await.unwrap()).rest().await;
            assert_eq!(rest, all[index + 1..], "after {}", frame.id);
        }
    }
    let last = client.request(Method::GET, &path(run_id, "")).header("last-event-id", &all.last().unwrap().id);
    assert_eq!(last.send().await.unwrap().status(), 204);
}

async fn a_snapshot_is_of_the_native_wire(mut deployment: Deployment) {
    let client = deployment.client();
    let all = client.stream("[tokens=1]").await.rest().await;
    let run_id = all[0].data["run_id"].as_str().unwrap();
    for wire in ["chat", "text"] {
        let refused = client.get(&path(run_id, &format!("&wire={wire}"))).await.unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (400, "invalid_query"));
    }
    let unknown = client.get(&path("01890000-0000-7000-8000-000000000000", "")).await.unwrap_err();
    assert_eq!((unknown.status, unknown.code.as_str()), (404, "run_not_found"));
}
