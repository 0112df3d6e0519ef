//! Plans: a planner's steps, taken by subagents and by itself.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    in_both_modes,
    support::{
        Client, Deployment, EventFrame, agent, fold, frames_of, of_kind, stream_of, tools::ToolServer, until,
        without_superseded,
    },
};

in_both_modes!(
    a_plan_is_executed_step_by_step,
    a_plan_that_cannot_be_executed_is_an_error_that_the_model_reads,
    executors_work_at_the_same_time,
    a_human_approves_a_draft_and_changes_its_steps,
    a_denied_draft_is_a_request_for_changes,
    a_reviewer_approves_a_plan,
    after_two_reviews_a_human_decides,
    questions_end_the_run,
    questions_come_after_the_other_calls_of_their_step,
    random_plans_survive_the_deaths_of_their_workers,
);

/// Creates a planner.
async fn planner(client: &Client) -> String {
    agent(client, json!([]), json!({"name": "plans", "kind": "planner"})).await
}

/// Returns the message that makes this plan.
fn message(plan: &Value) -> String {
    format!("[plan={plan}] [tokens=2]")
}

/// Returns the plans of a run, as the API shows them.
async fn plans_of(client: &Client, run_id: &str) -> Vec<Value> {
    client.get(&format!("/v1/runs/{run_id}/plans")).await.unwrap()["items"].as_array().unwrap().clone()
}

/// Returns the number of each step that an event of this kind names, in order.
fn steps(frames: &[EventFrame], event: &str) -> Vec<u64> {
    of_kind(frames, event).iter().map(|data| data["step"]["step_number"].as_u64().unwrap()).collect()
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
    assert_eq!(of_kind(&frames, "plan.updated").last().unwrap()["plan"], *plan);
    assert_eq!(client.run(run_id).await["output_message"]["content"], fold(&frames));
    assert_eq!(client.get(&format!("/v1/plans/{}", plan["id"].as_str().unwrap())).await.unwrap(), *plan);
}

async fn a_plan_that_cannot_be_executed_is_an_error_that_the_model_reads(mut deployment: Deployment) {
    let client = deployment.client();
    let planner_id = planner(&client).await;
    let plan = json!({"goal": "g", "steps": [{"step_number": 1, "description": "x", "tools": ["kb__none"]}]});
    let frames = frames_of(&client, &planner_id, &message(&plan)).await;
    let completed = of_kind(&frames, "tool_call.completed");
    assert_eq!(
        completed[0]["error"],
        json!({"code": "invalid_plan", "message": "step 1: there is no tool \"kb__none\""})
    );
    assert_eq!(frames.last().unwrap().event, "run.completed");
    assert!(of_kind(&frames, "plan.created").is_empty());
}

async fn executors_work_at_the_same_time(mut deployment: Deployment) {
    let client = deployment.client();
    let planner_id = planner(&client).await;
    let step = |number: u32| json!({"step_number": number, "description": "[tokens=20] [delay=20]", "executor_required": true});
    let plan = json!({"goal": "g", "steps": [step(1), step(2), step(3)]});
    let frames = frames_of(&client, &planner_id, &format!("[plan={plan}] [tokens=1]")).await;
    let mut children = Vec::new();
    for started in of_kind(&frames, "subagent.started") {
        children.push(client.run(started["child_run_id"].as_str().unwrap()).await);
    }
    let times =
        |field: &str| children.iter().map(|child| child[field].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert!(times("started_at").iter().max() < times("finished_at").iter().min(), "{children:?}");
    assert_eq!(of_kind(&frames, "plan.updated").last().unwrap()["plan"]["status"], "completed");
}

/// Waits until the run asks, and returns its question.
async fn question(client: &Client, run_id: &str) -> Value {
    until("the run asks", || async {
        let listed = client.get(&format!("/v1/runs/{run_id}/approvals")).await.unwrap();
        listed["items"].as_array().unwrap().iter().find(|approval| approval["status"] == "pending").cloned()
    })
    .await
}

async fn decide(client: &Client, run_id: &str, approval: &Value, decision: Value) {
    let path = format!("/v1/runs/{run_id}/approvals/{}", approval["id"].as_str().unwrap());
    client.post(&path, decision).await.unwrap();
}

async fn a_human_approves_a_draft_and_changes_its_steps(mut deployment: Deployment) {
    let client = deployment.client();
    let planner_id = planner(&client).await;
    let plan = json!({"goal": "g", "execution_mode": "draft_only", "steps": [{"step_number": 1, "description": "[tokens=1] a"}]});
    let stream = stream_of(&client, &planner_id, &message(&plan)).await;
    let run_id = stream.run_id.clone();
    let asked = question(&client, &run_id).await;
    assert_eq!((asked["kind"].as_str(), asked["name"].as_str()), (Some("plan"), Some("agent_create_plan")));
    assert_eq!(asked["input"]["steps"][0]["description"], "[tokens=1] a");
    assert_eq!(plans_of(&client, &run_id).await[0]["status"], "draft");
    let circle = json!({"steps": [{"step_number": 1, "description": "x", "depends_on": [1]}]});
    let path = format!("/v1/runs/{run_id}/approvals/{}", asked["id"].as_str().unwrap());
    let refused = client.post(&path, json!({"decision": "approve", "edited_input": circle})).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (400, "invalid_input"));
    let edited = json!({"steps": [
        {"stepNumber": 1, "description": "[tokens=2] b"},
        {"stepNumber": 2, "description": "[tokens=2] c", "dependsOn": [1], "executorRequired": true},
    ]});
    decide(&client, &run_id, &asked, json!({"decision": "approve", "edited_input": edited})).await;
    let frames = stream.rest().await;
    assert_eq!(frames.last().unwrap().event, "run.completed");
    assert_eq!(steps(&frames, "plan_step.completed"), [1, 2]);
    let reviewed = of_kind(&frames, "plan.reviewed")[0];
    assert_eq!(
        (&reviewed["verdict"], &reviewed["by"], &reviewed["round"]),
        (&json!("approved"), &json!("user"), &json!(1))
    );
    let plan = &plans_of(&client, &run_id).await[0];
    assert_eq!((&plan["status"], &plan["steps"][0]["description"]), (&json!("completed"), &json!("[tokens=2] b")));
}

async fn a_denied_draft_is_a_request_for_changes(mut deployment: Deployment) {
    let client = deployment.client();
    let planner_id = planner(&client).await;
    let plan = json!({"goal": "g", "executionMode": "draft_only", "steps": [{"step_number": 1, "description": "a"}]});
    let stream = stream_of(&client, &planner_id, &message(&plan)).await;
    let run_id = stream.run_id.clone();
    let asked = question(&client, &run_id).await;
    decide(&client, &run_id, &asked, json!({"decision": "deny", "reason": "shorter"})).await;
    let frames = stream.rest().await;
    let error = &of_kind(&frames, "tool_call.completed")[0]["error"];
    assert_eq!(
        *error,
        json!({"code": "changes_requested", "message": "the user asks for changes of the plan: shorter"})
    );
    assert_eq!(of_kind(&frames, "plan.reviewed")[0]["notes"], "shorter");
    assert!(of_kind(&frames, "plan_step.started").is_empty());
    assert_eq!(
        (frames.last().unwrap().event.as_str(), &plans_of(&client, &run_id).await[0]["status"]),
        ("run.completed", &json!("failed"))
    );
}

/// Returns a plan that a reviewer judges, with this verdict in its goal. The directives of its step are not the reviewer's.
fn reviewed_plan(verdict: &str) -> Value {
    json!({"goal": format!("g [review={verdict}]"), "execution_mode": "agent_review",
        "steps": [{"step_number": 1, "description": "[fail] [tokens=2]", "executor_required": true}]})
}

async fn a_reviewer_approves_a_plan(mut deployment: Deployment) {
    let client = deployment.client();
    let planner_id = planner(&client).await;
    let frames = frames_of(&client, &planner_id, &message(&reviewed_plan("approve"))).await;
    let reviewed = of_kind(&frames, "plan.reviewed");
    assert_eq!(
        (reviewed.len(), &reviewed[0]["verdict"], &reviewed[0]["by"]),
        (1, &json!("approved"), &json!("reviewer"))
    );
    let roles: Vec<&Value> = of_kind(&frames, "subagent.started").iter().map(|started| &started["role"]).collect();
    assert_eq!(roles, ["reviewer", "executor"]);
    assert_eq!(of_kind(&frames, "plan_step.completed")[0]["step"]["status"], "failed");
    assert_eq!(frames.last().unwrap().event, "run.completed");
}

async fn after_two_reviews_a_human_decides(mut deployment: Deployment) {
    let client = deployment.client();
    let planner_id = planner(&client).await;
    let stream = stream_of(&client, &planner_id, &message(&reviewed_plan("changes"))).await;
    let run_id = stream.run_id.clone();
    let asked = question(&client, &run_id).await;
    assert_eq!(asked["input"]["notes"], "scripted");
    decide(&client, &run_id, &asked, json!({"decision": "approve"})).await;
    let frames = stream.rest().await;
    let reviewed: Vec<(&Value, &Value)> =
        of_kind(&frames, "plan.reviewed").iter().map(|review| (&review["round"], &review["by"])).collect();
    assert_eq!(
        reviewed,
        [(&json!(1), &json!("reviewer")), (&json!(2), &json!("reviewer")), (&json!(3), &json!("user"))]
    );
    assert_eq!(frames.last().unwrap().event, "run.completed");
}

async fn questions_end_the_run(mut deployment: Deployment) {
    let client = deployment.client();
    let planner_id = planner(&client).await;
    let frames = frames_of(&client, &planner_id, "[questions=Which colour?|How large?]").await;
    let asked = of_kind(&frames, "question.asked");
    assert_eq!((&asked[0]["questions"], &asked[0]["round"]), (&json!(["Which colour?", "How large?"]), &json!(1)));
    let run = client.run(frames[0].data["run_id"].as_str().unwrap()).await;
    assert!(run["output_message"]["content"].as_str().unwrap().ends_with("\n\n1. Which colour?\n2. How large?"));
    assert_eq!((run["status"].as_str(), &run["output_message"]["content"]), (Some("completed"), &json!(fold(&frames))));
}

async fn questions_come_after_the_other_calls_of_their_step(mut deployment: Deployment) {
    let client = deployment.client();
    let planner_id = planner(&client).await;
    let stream = stream_of(&client, &planner_id, "[parallel] [approval=pay] [questions=Which colour?]").await;
    let run_id = stream.run_id.clone();
    let asked = question(&client, &run_id).await;
    decide(&client, &run_id, &asked, json!({"decision": "approve"})).await;
    let frames = stream.rest().await;
    assert_eq!(of_kind(&frames, "question.asked")[0]["questions"], json!(["Which colour?"]));
    assert!(fold(&frames).ends_with("Which colour?"));
    // A run that executes a plan asks nothing.
    let plan = json!({"goal": "g", "steps": [{"step_number": 1, "description": "[tokens=1]"}]});
    let frames = frames_of(&client, &planner_id, &format!("[parallel] [plan={plan}] [questions=Which colour?]")).await;
    let refused =
        of_kind(&frames, "tool_call.completed").into_iter().find(|call| call["name"] == "ask_clarifying_questions");
    assert_eq!(refused.unwrap()["error"]["code"], "plan_under_way");
    assert!(of_kind(&frames, "question.asked").is_empty());
}

/// Plans of the test with kills, and the kills. About half of the steps need one that fails.
const PLANS: usize = 20;
const KILLS: usize = 8;

/// Numbers that look random and are the same in each run of the test.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Returns a plan of 2 to 12 steps, each of which calls the tool with a note of its own; some of them fail afterwards.
fn random_plan(nth: usize) -> Value {
    let mut random = Random(nth as u64 + 1);
    let count = 2 + random.below(11);
    let steps: Vec<Value> = (1..=count)
        .map(|number| {
            let depends_on: Vec<u64> = (1..number).filter(|_| random.below(4) == 0).collect();
            let fails = if random.below(6) == 0 { "[fail=2]" } else { "" };
            let note = json!({"note": format!("{nth}/{number}")});
            json!({
                "step_number": number,
                "description": format!("[call=kb__count {note}] [tokens=4] [delay=3] {fails}"),
                "tools": ["kb__count"],
                "executor_required": random.below(3) > 0,
                "depends_on": depends_on,
            })
        })
        .collect();
    json!({"goal": format!("plan {nth}"), "steps": steps})
}

/// The keys of the calls that have reached the server, by their notes.
type Calls = Arc<Mutex<HashMap<String, HashSet<String>>>>;

/// Starts a server that answers each call and notes its key.
async fn noting_server() -> (ToolServer, Calls) {
    let calls = Calls::default();
    let noted = Arc::clone(&calls);
    let server = ToolServer::answering(move |arrival| {
        let note = arrival.arguments["note"].as_str().unwrap().to_owned();
        noted.lock().unwrap().entry(note).or_default().insert(arrival.key.clone());
    });
    (server.await, calls)
}

/// Starts the plan's run, and returns its id.
async fn start_plan(clients: watch::Receiver<Client>, agent_id: String, nth: usize) -> String {
    let body = json!({"agent_id": agent_id, "input": format!("[plan={}] [tokens=2]", random_plan(nth))});
    let accepted = until("a server takes the message", || async {
        let request = clients.borrow().request(reqwest::Method::POST, "/v1/runs");
        let response = request.header("idempotency-key", format!("plan-{nth}")).json(&body).send().await.ok()?;
        if response.status() == 202 { response.json::<Value>().await.ok() } else { None }
    })
    .await;
    accepted["run"]["id"].as_str().unwrap().to_owned()
}

/// Checks the log of an ended plan against what is stored, and the order of its steps.
async fn check_plan(client: &Client, run_id: &str, calls: &HashMap<String, HashSet<String>>, nth: usize) {
    let run = client.wait_for_run(run_id).await;
    assert_eq!(run["status"], "completed", "plan {nth}: {run}");
    let frames = client.rest_after(run_id, "0-0").await;
    assert_eq!(run["output_message"]["content"], fold(&frames), "plan {nth}");
    let plan = plans_of(client, run_id).await.remove(0);
    assert_eq!(of_kind(&frames, "plan.updated").last().unwrap()["plan"], plan, "plan {nth}");
    let mut at_work = HashSet::new();
    let mut ended = BTreeMap::new();
    for frame in without_superseded(&frames) {
        let step = &frame.data["step"];
        let number = step["step_number"].as_u64();
        match frame.event.as_str() {
            "plan_step.started" => {
                at_work.insert(number.unwrap());
                assert!(at_work.len() <= 3, "plan {nth}: {at_work:?} are at work");
                for needed in step["depends_on"].as_array().unwrap() {
                    assert_eq!(
                        ended.get(&needed.as_u64().unwrap()),
                        Some(&"completed".to_owned()),
                        "plan {nth}: {step}"
                    );
                }
            }
            "plan_step.completed" => {
                let status = step["status"].as_str().unwrap().to_owned();
                assert!(at_work.remove(&number.unwrap()), "plan {nth}: {step} has ended twice");
                assert_eq!(ended.insert(number.unwrap(), status), None, "plan {nth}: {step}");
            }
            _ => {}
        }
    }
    for step in plan["steps"].as_array().unwrap() {
        let number = step["step_number"].as_u64().unwrap();
        let count = calls.get(&format!("{nth}/{number}")).map_or(0, HashSet::len);
        let expected = usize::from(step["status"] != "pending");
        assert_eq!(count, expected, "plan {nth}: {step}");
        assert_ne!(step["status"], "executing", "plan {nth}");
    }
}

async fn random_plans_survive_the_deaths_of_their_workers(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_MAX_CRASHES", 100).with("HOLDFAST_RUNS_PER_OWNER", 10_000);
    let (server, calls) = noting_server().await;
    let client = deployment.client();
    let more = json!({"name": "plans", "kind": "planner", "tools": {"kb__count": {"effect": "idempotent", "approval": "never"}},
        "limits": {"max_duration_ms": 600_000}});
    let agent_id = agent(&client, json!([server.describe()]), more).await;
    let (changes, clients) = watch::channel(client);
    let mut starts = tokio::task::JoinSet::new();
    for nth in 0..PLANS {
        let (clients, agent_id) = (clients.clone(), agent_id.clone());
        starts.spawn(async move { (nth, start_plan(clients, agent_id, nth).await) });
    }
    let mut runs = Vec::new();
    while let Some(started) = starts.join_next().await {
        runs.push(started.unwrap());
    }
    let steps: usize = (0..PLANS).map(|nth| random_plan(nth)["steps"].as_array().unwrap().len()).sum();
    for kill in 1..=KILLS {
        until("further steps call their tools", || async {
            (calls.lock().unwrap().len() * (KILLS + 1) * 2 > steps * kill).then_some(())
        })
        .await;
        match kill % 3 {
            0 if !deployment.is_embedded() => deployment.flush_redis(),
            1 => deployment.kill_api(),
            _ => deployment.kill_worker(),
        }
        changes.send_replace(deployment.client());
    }
    let client = deployment.client();
    for (nth, run_id) in &runs {
        client.wait_for_run(run_id).await;
        let calls = calls.lock().unwrap().clone();
        check_plan(&client, run_id, &calls, *nth).await;
    }
}
