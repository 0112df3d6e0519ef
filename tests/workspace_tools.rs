//! Agents that change the workspace: their tools by context, changes once, and the undo of a run.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{Client, Deployment, EventFrame, EventStream, answer, of_kind, until},
};

in_both_modes!(
    a_planner_changes_a_project_and_its_run_is_undone,
    each_call_changes_the_workspace_once_whatever_dies,
    a_run_with_three_subagents_is_undone_at_once,
);
in_either_mode!(
    a_project_is_created_with_its_contents,
    the_scripted_model_creates_the_project_that_the_user_describes,
    a_review_changes_nothing,
    an_executor_has_the_tools_of_its_step_and_the_project_of_the_turn,
    wrong_arguments_are_answered_with_the_field,
);

/// Returns the id of the program's own planner, behind the newer agents of other stories.
async fn planner_of(client: &Client) -> String {
    let mut cursor = String::new();
    loop {
        let page = client.get(&format!("/v1/agents?limit=200{cursor}")).await.unwrap();
        if let Some(planner) = page["items"].as_array().unwrap().iter().find(|agent| agent["origin"] == "builtin") {
            return planner["id"].as_str().unwrap().to_owned();
        }
        cursor = format!("&cursor={}", page["next"].as_str().expect("the program has a planner"));
    }
}

/// Starts a run of the planner in a context.
async fn run_in(client: &Client, context: Value, input: &str) -> EventStream {
    let body = json!({"agent_id": planner_of(client).await, "input": input, "context": context});
    let request = client.request(Method::POST, "/v1/runs").header("accept", "text/event-stream");
    EventStream::new(request.json(&body).send().await.unwrap())
}

fn in_project(project: &Value) -> Value {
    json!({"context_type": "project", "entity_id": project["id"]})
}

async fn project(client: &Client) -> Value {
    client.post("/v1/workspace/projects", json!({"name": "Harbour"})).await.unwrap()
}

async fn tasks(client: &Client) -> Vec<Value> {
    let (mut tasks, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/v1/workspace/tasks?limit=200{cursor}")).await.unwrap();
        tasks.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return tasks,
        }
    }
}

fn outputs(frames: &[EventFrame]) -> Vec<String> {
    let completed = of_kind(frames, "tool_call.completed");
    completed.iter().map(|call| call["output"].as_str().unwrap_or_default().to_owned()).collect()
}

fn errors(frames: &[EventFrame]) -> Vec<String> {
    let completed = of_kind(frames, "tool_call.completed");
    completed.iter().filter_map(|call| call["error"]["message"].as_str().map(str::to_owned)).collect()
}

async fn a_planner_changes_a_project_and_its_run_is_undone(mut deployment: Deployment) {
    let client = deployment.client();
    let project = project(&client).await;
    let before =
        client.post("/v1/workspace/tasks", json!({"project_id": project["id"], "title": "Old"})).await.unwrap();
    let input = format!(
        "[call=create_onto_task {{\"title\": \"Call the harbour master\", \"priority\": 5}}] \
         [call=update_onto_task {}] [call=list_onto_tasks {{}}] [call=get_onto_project_details {{}}] [tokens=2]",
        json!({"task_id": before["id"], "state": "done"})
    );
    let stream = run_in(&client, in_project(&project), &input).await;
    let run_id = stream.run_id.clone();
    let frames = stream.rest().await;
    assert_eq!((frames.last().unwrap().event.as_str(), errors(&frames)), ("run.completed", vec![]));
    let outputs = outputs(&frames);
    assert!(
        outputs[0].starts_with("Created:\n- task ")
            && outputs[0].contains("Call the harbour master (todo, priority 5)")
    );
    assert!(
        outputs[2].lines().count() == 2
            && outputs[3].contains(
                "open tasks, the most important first (1 of 1, of 2 in all; list_onto_tasks has the others):\n- task "
            ),
        "{outputs:#?}"
    );
    let states: Vec<Value> = tasks(&client).await.iter().map(|task| task["state"].clone()).collect();
    assert_eq!(states, ["todo", "done"]);
    let changes = client.get("/v1/workspace/changes").await.unwrap();
    assert!(changes["items"].as_array().unwrap()[..2].iter().all(|change| change["run_id"] == run_id));

    let undo = format!("/v1/runs/{run_id}/undo");
    let undone = answer(client.request(Method::POST, &undo)).await.unwrap();
    assert_eq!(undone["undone"].as_array().unwrap().len(), 2);
    let left = tasks(&client).await;
    assert_eq!((left.len(), &left[0]["state"]), (1, &json!("todo")));
    assert_eq!(client.get(&undo).await.unwrap()["change_set_id"], undone["change_set_id"]);
    assert_eq!(client.user("eve").get(&undo).await.unwrap_err().code, "run_not_found");
    assert_eq!(answer(client.request(Method::POST, &undo)).await.unwrap_err().code, "already_undone");
    let set = undone["change_set_id"].as_str().unwrap();
    let path = format!("/v1/workspace/change_sets/{set}/undo");
    answer(client.request(Method::POST, &path)).await.unwrap();
    assert_eq!(tasks(&client).await.len(), 2);
    assert_eq!(client.get(&undo).await.unwrap()["change_set_id"], Value::Null, "the undo was taken back");
}

async fn a_project_is_created_with_its_contents(mut deployment: Deployment) {
    let client = deployment.client();
    let project = json!({
        "name": "Fitness app", "goals": [{"name": "Ship it"}], "tasks": [{"title": "Draw screens"}, {"title": "Find testers"}],
        "documents": [{"title": "Idea", "body": "An app."}]
    });
    let input = format!("It's a mobile app that I want to build [call=create_onto_project {project}] [tokens=1]");
    let frames = run_in(&client, json!({"context_type": "project_create"}), &input).await.rest().await;
    assert_eq!(errors(&frames), Vec::<String>::new());
    assert!(outputs(&frames)[0].lines().count() == 6, "{:?}", outputs(&frames));
    let titles: Vec<Value> = tasks(&client).await.iter().map(|task| task["title"].clone()).collect();
    assert_eq!(titles, ["Find testers", "Draw screens"]);
    let sets = client.get("/v1/workspace/changes").await.unwrap();
    let sets: std::collections::BTreeSet<String> =
        sets["items"].as_array().unwrap().iter().map(|change| change["change_set_id"].to_string()).collect();
    assert_eq!(sets.len(), 1, "one transaction");
    let broken = json!({"name": "x", "tasks": [{"title": "ok"}, {"title": "t", "priority": 9}]});
    let input = format!("I want to build an app [call=create_onto_project {broken}]");
    let frames = run_in(&client, json!({"context_type": "project_create"}), &input).await.rest().await;
    assert!(errors(&frames)[0].contains("priority"), "{:?}", errors(&frames));
    assert_eq!(tasks(&client).await.len(), 2, "nothing is half done");
}

async fn the_scripted_model_creates_the_project_that_the_user_describes(mut deployment: Deployment) {
    let client = deployment.client();
    let context = json!({"context_type": "project_create"});
    let frames = run_in(&client, context, "It's a mobile app for fitness tracking").await.rest().await;
    assert_eq!((frames.last().unwrap().event.as_str(), errors(&frames)), ("run.completed", vec![]));
    let projects = client.get("/v1/workspace/projects").await.unwrap()["items"].clone();
    assert_eq!(
        (projects.as_array().unwrap().len(), &projects[0]["name"]),
        (1, &json!("Mobile app for fitness tracking"))
    );
}

async fn a_review_changes_nothing(mut deployment: Deployment) {
    let client = deployment.client();
    let project = project(&client).await;
    for context_type in ["project_audit", "project_forecast"] {
        let context = json!({"context_type": context_type, "entity_id": project["id"]});
        let frames =
            run_in(&client, context, "[call=create_onto_task {\"title\": \"x\"}] [tokens=1]").await.rest().await;
        assert!(errors(&frames)[0].contains("no tool"), "{:?}", errors(&frames));
    }
    assert!(tasks(&client).await.is_empty());
}

async fn an_executor_has_the_tools_of_its_step_and_the_project_of_the_turn(mut deployment: Deployment) {
    let client = deployment.client();
    let project = project(&client).await;
    let task = json!({"title": "From a step"});
    let plan = json!({"goal": "g", "steps": [{
        "step_number": 1, "description": format!("[call=create_onto_task {task}] [tokens=1]"),
        "executor_required": true, "tools": ["create_onto_task"]
    }]});
    let stream = run_in(&client, in_project(&project), &format!("[plan={plan}] [tokens=1]")).await;
    let run_id = stream.run_id.clone();
    assert_eq!(stream.rest().await.last().unwrap().event, "run.completed");
    assert_eq!(tasks(&client).await[0]["title"], "From a step");
    // The run of the planner is undone with the runs below it.
    answer(client.request(Method::POST, &format!("/v1/runs/{run_id}/undo"))).await.unwrap();
    assert!(tasks(&client).await.is_empty());
}

async fn a_run_with_three_subagents_is_undone_at_once(mut deployment: Deployment) {
    let client = deployment.client();
    let project = project(&client).await;
    let own: Vec<String> =
        (0..10).map(|n| format!("[call=create_onto_task {}]", json!({"title": format!("own {n}")}))).collect();
    let steps: Vec<Value> = (1..=3)
        .map(|step| {
            let calls: Vec<String> = (0..10)
                .map(|n| {
                    let task = json!({"title": format!("{step}.{n}"), "project_id": project["id"]});
                    format!("[call=create_onto_task {task}]")
                })
                .collect();
            json!({
                "step_number": step, "description": format!("{} [tokens=1]", calls.join(" ")),
                "executor_required": true, "tools": ["create_onto_task"]
            })
        })
        .collect();
    let input = format!("{} [plan={}] [tokens=1]", own.join(" "), json!({"goal": "g", "steps": steps}));
    let stream = run_in(&client, in_project(&project), &input).await;
    let run_id = stream.run_id.clone();
    let frames = stream.rest().await;
    assert_eq!(of_kind(&frames, "subagent.completed").len(), 3);
    let created = tasks(&client).await;
    assert_eq!(created.len(), 40);

    // One of them is changed again: nothing is undone until the caller leaves it out.
    let path = format!("/v1/workspace/tasks/{}", created[0]["id"].as_str().unwrap());
    client.patch(&path, json!({"state": "done"})).await.unwrap();
    let undo = format!("/v1/runs/{run_id}/undo");
    let conflict = answer(client.request(Method::POST, &undo)).await.unwrap_err();
    assert_eq!((conflict.code.as_str(), tasks(&client).await.len()), ("changed_since", 40));
    assert!(conflict.body["detail"].as_str().unwrap().contains(created[0]["id"].as_str().unwrap()));
    client.patch(&path, json!({"state": "todo"})).await.unwrap();

    let undone = answer(client.request(Method::POST, &undo)).await.unwrap();
    assert_eq!((undone["undone"].as_array().unwrap().len(), tasks(&client).await.len()), (40, 0));
    let set = undone["change_set_id"].as_str().unwrap();
    answer(client.request(Method::POST, &format!("/v1/workspace/change_sets/{set}/undo"))).await.unwrap();
    assert_eq!(tasks(&client).await.len(), 40);
}

async fn wrong_arguments_are_answered_with_the_field(mut deployment: Deployment) {
    let client = deployment.client();
    let project = project(&client).await;
    let input = "[call=create_onto_task {\"title\": \"x\", \"due_at\": \"soon\"}] \
                 [call=update_onto_task {\"task_id\": \"x\"}] \
                 [call=get_onto_task_details {\"task_id\": \"01a20131-6243-7797-8616-20e98be7ff86\"}]";
    let frames = run_in(&client, in_project(&project), input).await.rest().await;
    let errors = errors(&frames);
    assert!(errors[0].contains("due_at: a time or a day, such as \"2026-12-01T09:00:00Z\""), "{errors:?}");
    assert!(errors[1].contains("task_id: an id, such as"), "{errors:?}");
    assert!(errors[2].contains("there is no task 01a20131"), "{errors:?}");
}

/// Calls of one run.
const CALLS: usize = 5;

/// Returns a number of the environment, for a longer test: RUNS=200 KILLS=40 makes 1,000 calls.
fn number(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

async fn each_call_changes_the_workspace_once_whatever_dies(deployment: Deployment) {
    // A run waits for many deaths of its worker, so it takes longer than a turn may.
    let mut deployment =
        deployment.with("HOLDFAST_MAX_CRASHES", 100).with("HOLDFAST_PLANNER_MAX_DURATION_MS", 3_600_000);
    let client = deployment.client();
    let project = project(&client).await;
    let mut runs = Vec::new();
    let (number_of_runs, kills) = (number("RUNS", 20), number("KILLS", 5));
    for run in 0..number_of_runs {
        let calls: Vec<String> = (0..CALLS)
            .map(|call| format!("[call=create_onto_task {}]", json!({"title": format!("{run}/{call}")})))
            .collect();
        let body = json!({
            "agent_id": planner_of(&client).await, "context": in_project(&project),
            "input": format!("{} [tokens=2]", calls.join(" "))
        });
        let submission = client.post("/v1/runs", body).await.unwrap();
        runs.push(submission["run"]["id"].as_str().unwrap().to_owned());
    }
    let mut client = client;
    for kill in 1..=kills {
        until("further tasks are created", || async {
            (tasks(&client).await.len() * (kills + 1) > number_of_runs * CALLS * kill).then_some(())
        })
        .await;
        deployment.kill_worker();
        client = deployment.client();
    }
    for run_id in &runs {
        let run = client.wait_for_run(run_id).await;
        assert_eq!(run["status"], "completed", "{run}");
        let asked = client.get(&format!("/v1/runs/{run_id}/approvals")).await.unwrap();
        assert_eq!(asked["items"], json!([]), "a human was asked");
        let calls = client.get(&format!("/v1/runs/{run_id}/tool_calls")).await.unwrap();
        let calls = calls["items"].as_array().unwrap();
        assert!(calls.len() == CALLS && calls.iter().all(|call| call["error"].is_null()), "{calls:#?}");
    }
    let mut titles: Vec<String> =
        tasks(&client).await.iter().map(|task| task["title"].as_str().unwrap().to_owned()).collect();
    titles.sort_unstable();
    let mut expected: Vec<String> =
        (0..number_of_runs).flat_map(|run| (0..CALLS).map(move |call| format!("{run}/{call}"))).collect();
    expected.sort_unstable();
    assert_eq!(titles, expected);
}
