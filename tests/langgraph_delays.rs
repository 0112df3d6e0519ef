//! LangGraph's wire: runs that begin at a later time, and threads that leave with their run.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    langgraph::{body, get, json_of, post, run_program, steps},
    support::Deployment,
};

in_both_modes!(the_sdk_starts_a_run_later);
in_either_mode!(a_delay_has_a_longest, an_answer_is_not_delayed, a_run_without_a_thread_takes_its_thread_along,);

fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

async fn the_sdk_starts_a_run_later(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_SWEEP_MS", 100);
    let client = deployment.client();
    let script = json!([
        {"do": "start", "say": "[tokens=1] x", "afterSeconds": 1, "ifNotExists": "create"}, {"do": "run"},
        {"do": "join"}, {"do": "run"}
    ]);
    let reports = run_program(&client, "langgraph-node", json!({"thread": "t", "steps": script})).await;
    let all = steps(&reports);
    assert_eq!((&all[0]["result"]["status"], &all[1]["result"]["status"]), (&json!("pending"), &json!("pending")));
    assert_eq!(all[2]["result"]["messages"][1]["type"], "ai");
    assert_eq!(all[3]["result"]["status"], "success");
    let run = client.get(&format!("/v1/runs/{}", all[0]["result"]["run_id"].as_str().unwrap())).await.unwrap();
    let waited = time(&run["started_at"]) - time(&run["created_at"]);
    assert!(waited >= chrono::Duration::seconds(1), "{run}");
}

async fn a_delay_has_a_longest(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_MAX_DELAY_MS", 60_000);
    let client = deployment.client();
    let start = async |thread: &str, seconds: f64| {
        let mut delayed = body("[tokens=1] x");
        delayed["after_seconds"] = json!(seconds);
        let response = post(&client, &format!("/threads/{thread}/runs"), &delayed).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let (status, run) = start("t", 60.0).await;
    assert_eq!((status, &run["status"]), (200, &json!("pending")));
    for seconds in [60.001, -0.001, 1e300] {
        let (status, problem) = start("u", seconds).await;
        assert_eq!((status, problem["detail"].as_str()), (400, Some("after_seconds is from 0 to 60.")), "{seconds}");
    }
    // A cancelled run does not begin.
    let cancel =
        post(&client, &format!("/threads/t/runs/{}/cancel?wait=1", run["run_id"].as_str().unwrap()), &json!({}));
    assert!(cancel.send().await.unwrap().status().is_success());
    let ended = json_of(get(&client, &format!("/threads/t/runs/{}", run["run_id"].as_str().unwrap()))).await;
    assert_eq!(ended["status"], "interrupted");
    assert_eq!(start("t", 0.0).await.0, 200);
}

async fn an_answer_is_not_delayed(mut deployment: Deployment) {
    let client = deployment.client();
    let asked = json_of(post(&client, "/threads/t/runs/wait", &body("[approval] [tokens=1] x"))).await;
    assert!(asked["__interrupt__"].is_array(), "{asked}");
    let answer = async |field: &str, value: Value| {
        let resume = json!({"assistant_id": "agent", "command": {"resume": {"approved": true}}, field: value});
        post(&client, "/threads/t/runs/wait", &resume).send().await.unwrap().status().as_u16()
    };
    assert_eq!(answer("after_seconds", json!(5)).await, 422);
    assert_eq!(answer("after_seconds", json!(-5)).await, 400);
    assert_eq!(answer("on_completion", json!("delete")).await, 422);
    assert_eq!(answer("after_seconds", json!(0)).await, 200);
}

async fn a_run_without_a_thread_takes_its_thread_along(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_ARCHIVE_RETENTION_MS", 1).with("HOLDFAST_SWEEP_MS", 100);
    let client = deployment.client();
    let wait = async |on_completion: &str| {
        let mut kept = body("[tokens=1] x");
        kept["on_completion"] = json!(on_completion);
        json_of(post(&client, "/runs/wait", &kept)).await
    };
    let kept = wait("keep").await;
    assert_eq!(kept["messages"].as_array().unwrap().len(), 2);
    wait("delete").await;
    let threads = json_of(post(&client, "/threads/search", &json!({}))).await;
    assert_eq!(threads.as_array().unwrap().len(), 1, "{threads}");
    let removed = async || {
        let run = client.get("/v1/runs").await.unwrap();
        run["items"].as_array().unwrap().len() == 1
    };
    let gone = async {
        while !removed().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the thread stays");
}
