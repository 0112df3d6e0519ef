//! Lists of the workspace in another order, and the conversations of a project.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{Client, Deployment, answer},
};

in_both_modes!(tasks_have_an_order_over_all_pages, a_project_has_the_conversations_whose_context_names_it);

in_either_mode!(a_page_looks_at_200_conversations);

/// The agent that each program has for projects.
const PLANNER: &str = "01910a9e-7000-7000-8000-706c616e6e65";

async fn create(client: &Client, kind: &str, input: Value) -> Value {
    client.post(&format!("/v1/workspace/{kind}"), input).await.unwrap()
}

/// Returns a field of all items, from pages of two.
async fn all(client: &Client, path: &str, field: &str) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("{path}&limit=2{cursor}")).await.unwrap();
        found.extend(page["items"].as_array().unwrap().iter().map(|item| item[field].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

async fn tasks_have_an_order_over_all_pages(mut deployment: Deployment) {
    let client = deployment.client();
    let project = create(&client, "projects", json!({"name": "Harbour"})).await;
    let other = create(&client, "projects", json!({"name": "Other"})).await;
    create(&client, "tasks", json!({"project_id": other["id"], "title": "elsewhere", "priority": 5})).await;
    for (title, priority, due_at, state) in [
        ("older", json!(3), json!("2026-12-05"), "todo"),
        ("newer", json!(3), json!("2026-12-05"), "blocked"),
        ("soon", json!(1), json!("2026-12-01"), "in_progress"),
        ("urgent", json!(5), json!(null), "todo"),
        ("dated", json!(null), json!("2026-12-03"), "todo"),
        ("idle", json!(null), json!(null), "todo"),
        ("over", json!(5), json!("2026-11-01"), "done"),
    ] {
        let task = json!({"project_id": project["id"], "title": title, "priority": priority, "due_at": due_at, "state": state});
        create(&client, "tasks", task).await;
    }
    let project = project["id"].as_str().unwrap();
    let open = format!("/v1/workspace/tasks?project_id={project}&state=todo,in_progress,blocked");
    let by_priority = all(&client, &format!("{open}&order=priority"), "title").await;
    assert_eq!(by_priority, ["urgent", "newer", "older", "soon", "dated", "idle"]);
    let by_due = all(&client, &format!("{open}&order=due"), "title").await;
    assert_eq!(by_due, ["soon", "dated", "newer", "older", "urgent", "idle"]);
    let newest = all(&client, &format!("{open}&order=newest"), "title").await;
    assert_eq!(newest, ["idle", "dated", "urgent", "soon", "newer", "older"]);
    let filtered = all(&client, &format!("{open}&order=due&priority=3&due_before=2026-12-06"), "title").await;
    assert_eq!(filtered, ["newer", "older"]);
    assert_eq!(all(&client, &format!("/v1/workspace/tasks?project_id={project}&order=due"), "title").await[0], "over");

    // The task of a cursor may be deleted meanwhile.
    let first = client.get(&format!("{open}&order=priority&limit=1")).await.unwrap();
    client.delete(&format!("/v1/workspace/tasks/{}", first["next"].as_str().unwrap())).await.unwrap();
    let second = format!("{open}&order=priority&limit=1&cursor={}", first["next"].as_str().unwrap());
    assert_eq!(client.get(&second).await.unwrap()["items"][0]["title"], "newer");
    let stranger = client.user("stranger");
    assert_eq!(stranger.get(&second).await.unwrap()["items"], json!([]));

    for refused in ["tasks?order=name", "goals?order=due", "tasks?state=todo,open", "tasks?state=todo,"] {
        let refused = client.get(&format!("/v1/workspace/{refused}")).await.unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (400, "invalid_query"), "{refused:?}");
    }
}

/// Starts a run with the planner, and returns its conversation after its end.
async fn talk(client: &Client, context: Value, input: &str) -> String {
    let body = json!({"agent_id": PLANNER, "context": context, "input": input});
    let run = client.post("/v1/runs", body).await.unwrap()["run"].clone();
    assert_eq!(client.wait_for_run(run["id"].as_str().unwrap()).await["status"], "completed");
    run["conversation_id"].as_str().unwrap().to_owned()
}

async fn a_project_has_the_conversations_whose_context_names_it(mut deployment: Deployment) {
    let client = deployment.client().user("ann");
    let project = create(&client, "projects", json!({"name": "Harbour"})).await["id"].as_str().unwrap().to_owned();
    let task = create(&client, "tasks", json!({"project_id": project, "title": "Call"})).await;
    let about = json!({"context_type": "project", "entity_id": project});
    let focused = json!({
        "context_type": "project", "entity_id": project, "ontologyEntityType": "task",
        "projectFocus": {
            "focusType": "task", "focusEntityId": task["id"], "focusEntityName": "Call",
            "projectId": project, "projectName": "Harbour"
        }
    });
    let global = json!({"context_type": "global"});
    let first = talk(&client, about.clone(), "[tokens=2] hello").await;
    talk(&client, global.clone(), "[tokens=2] hello").await;
    let second = talk(&client, focused, "[tokens=2] hello").await;
    // A run that reads the project turns the conversation to it.
    let read = format!("[call=get_onto_project_details {}] [tokens=2]", json!({"project_id": project}));
    let third = talk(&client, global.clone(), &read).await;
    let path = format!("/v1/conversations?project_id={project}");
    assert_eq!(all(&client, &path, "id").await, [third.as_str(), second.as_str(), first.as_str()]);

    // A message that is about everything turns the conversation away, before its run begins.
    let messages = format!("/v1/conversations/{second}/messages");
    let posted = client.post(&messages, json!({"content": "[tokens=2] more", "context": global})).await.unwrap();
    assert_eq!(all(&client, &path, "id").await, [third.as_str(), first.as_str()]);
    client.wait_for_run(posted["run"]["id"].as_str().unwrap()).await;
    assert_eq!(all(&client, &path, "id").await, [third.as_str(), first.as_str()]);

    // A message without a context leaves it.
    let messages = format!("/v1/conversations/{first}/messages");
    let posted = client.post(&messages, json!({"content": "[tokens=2] more"})).await.unwrap();
    client.wait_for_run(posted["run"]["id"].as_str().unwrap()).await;
    assert_eq!(all(&client, &path, "id").await, [first.as_str(), third.as_str()]);

    let stranger = client.user("bob");
    assert_eq!(stranger.get(&path).await.unwrap()["items"], json!([]));
    for (refused, code) in [("&q=hello", "invalid_query"), ("&cursor=here", "invalid_cursor")] {
        assert_eq!(client.get(&format!("{path}{refused}")).await.unwrap_err().code, code);
    }
    let unknown = answer(client.request(Method::GET, "/v1/conversations?project_id=harbour")).await.unwrap_err();
    assert_eq!(unknown.status, 400);
}

async fn a_page_looks_at_200_conversations(mut deployment: Deployment) {
    let client = deployment.client();
    let project = create(&client, "projects", json!({"name": "Harbour"})).await["id"].as_str().unwrap().to_owned();
    let about = json!({"context_type": "project", "entity_id": project});
    let conversation = talk(&client, about, "[tokens=2] hello").await;
    for number in 0..199 {
        client.post("/v1/conversations", json!({"title": format!("other {number}")})).await.unwrap();
    }
    let path = format!("/v1/conversations?project_id={project}");
    let found =
        |page: &Value| page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect::<Vec<_>>();
    assert_eq!(found(&client.get(&path).await.unwrap()), [json!(conversation)]);
    client.post("/v1/conversations", json!({"title": "one more"})).await.unwrap();
    let first = client.get(&path).await.unwrap();
    assert_eq!(found(&first), Vec::<Value>::new());
    let second = client.get(&format!("{path}&cursor={}", first["next"].as_str().unwrap())).await.unwrap();
    assert_eq!((found(&second), &second["next"]), (vec![json!(conversation)], &Value::Null));
}
