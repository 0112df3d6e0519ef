//! Plans: a planner's steps, taken by subagents and by itself.

use serde_json::{Value, json};

use crate::{
    in_both_modes,
    support::{Client, Deployment, EventFrame, agent, fold, frames_of},
};

in_both_modes!(a_plan_is_executed_step_by_step, a_plan_that_cannot_be_executed_is_an_error_that_the_model_reads,);

/// Creates a planner.
async fn planner(client: &Client) -> String {
    agent(client, json!([]), json!({"name": "plans", "kind": "planner"})).await
}

/// Returns the message that makes this plan.
fn message(plan: &Value) -> String {
    format!("[plan={plan}] [tokens=2]")
}

fn all<'a>(frames: &'a [EventFrame], event: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame.event == event).map(|frame| &frame.data).collect()
}

/// Returns the plans of a run, as the API shows them.
async fn plans_of(client: &Client, run_id: &str) -> Vec<Value> {
    client.get(&format!("/v1/runs/{run_id}/plans")).await.unwrap()["items"].as_array().unwrap().clone()
}

/// Returns the number of each step that an event of this kind names, in order.
fn steps(frames: &[EventFrame], event: &str) -> Vec<u64> {
    all(frames, event).iter().map(|data| data["step"]["step_number"].as_u64().unwrap()).collect()
}

async fn a_plan_is_executed_step_by_step(mut deployment: Deployment) {
    let client = deployment.client();
    let planner_id = planner(&client).await;
    let plan = json!({"goal": "count", "steps": [
        {"step_number": 1, "description": "[tokens=3] first", "executor_required": true},
        {"step_number": 2, "description": "[call=scripted__echo {\"text\": \"mine\"}] [tokens=1]",
            "tools": ["scripted__echo"], "dependsOn": [1]},
        {"step_number": 3, "description": "[fail] [tokens=4]", "executorRequired": true, "dependsOn": [1]},
        {"step_number": 4, "description": "[tokens=1] last", "dependsOn": [3]},
    ]});
    let frames = frames_of(&client, &planner_id, &message(&plan)).await;
    assert_eq!(frames.last().unwrap().event, "run.completed");
    assert_eq!(steps(&frames, "plan_step.started"), [1, 3, 2]);
    let mut ended = steps(&frames, "plan_step.completed");
    assert_eq!(ended.remove(0), 1);
    ended.sort_unstable();
    assert_eq!(ended, [2, 3]);
    let run_id = frames[0].data["run_id"].as_str().unwrap();
    let plans = plans_of(&client, run_id).await;
    let [plan] = plans.as_slice() else { panic!("{plans:?}") };
    let states: Vec<&str> =
        plan["steps"].as_array().unwrap().iter().map(|step| step["status"].as_str().unwrap()).collect();
    assert_eq!(
        (plan["status"].as_str(), states),
        (Some("failed"), vec!["completed", "completed", "failed", "pending"])
    );
    assert_eq!(plan["steps"][3]["error"], "needs step 3, which failed");
    assert!(plan["steps"][1]["result"].as_str().unwrap().contains("scripted__echo: mine"));
    assert_eq!(all(&frames, "plan.updated").last().unwrap()["plan"], *plan);
    assert_eq!(client.run(run_id).await["output_message"]["content"], fold(&frames));
    assert_eq!(client.get(&format!("/v1/plans/{}", plan["id"].as_str().unwrap())).await.unwrap(), *plan);
}

async fn a_plan_that_cannot_be_executed_is_an_error_that_the_model_reads(mut deployment: Deployment) {
    let client = deployment.client();
    let planner_id = planner(&client).await;
    let plan = json!({"goal": "g", "steps": [{"step_number": 1, "description": "x", "tools": ["kb__none"]}]});
    let frames = frames_of(&client, &planner_id, &message(&plan)).await;
    let completed = all(&frames, "tool_call.completed");
    assert_eq!(
        completed[0]["error"],
        json!({"code": "invalid_plan", "message": "step 1: there is no tool \"kb__none\""})
    );
    assert_eq!(frames.last().unwrap().event, "run.completed");
    assert!(all(&frames, "plan.created").is_empty());
}
