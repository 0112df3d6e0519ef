//! The workspace over HTTP.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{Client, Deployment, Embedded, answer},
};

in_both_modes!(a_project_lives_from_its_creation_to_its_undo);
in_either_mode!(
    an_entity_of_another_user_does_not_exist,
    bad_input_is_refused_with_its_field,
    an_erased_user_has_no_workspace,
    entities_are_found_by_name,
    an_operator_publishes_a_template,
    a_change_of_more_than_one_change_may_be_about_is_refused,
);

async fn create(client: &Client, kind: &str, input: Value) -> Value {
    client.post(&format!("/v1/workspace/{kind}"), input).await.unwrap()
}

fn id(entity: &Value) -> String {
    entity["id"].as_str().unwrap().to_owned()
}

async fn undo(client: &Client, set: &Value, query: &str) -> Result<Value, crate::support::ErrorResponse> {
    let path = format!("/v1/workspace/change_sets/{}/undo{query}", set.as_str().unwrap());
    answer(client.request(Method::POST, &path)).await
}

async fn a_project_lives_from_its_creation_to_its_undo(mut deployment: Deployment) {
    let client = deployment.client();
    let project = create(&client, "projects", json!({"name": "Harbour"})).await;
    assert_eq!((&project["state"], &project["version"]), (&json!("planning"), &json!(1)));
    let task = create(&client, "tasks", json!({"project_id": project["id"], "title": "Call"})).await;
    let path = format!("/v1/workspace/tasks/{}", id(&task));
    let done = client.patch(&path, json!({"state": "done", "version": 1})).await.unwrap();
    assert_eq!(client.get(&path).await.unwrap(), done);
    let stale = client.patch(&path, json!({"state": "todo", "version": 1})).await.unwrap_err();
    assert_eq!((stale.status, stale.code.as_str()), (409, "version_conflict"));

    let project_path = format!("/v1/workspace/projects/{}", id(&project));
    client.delete(&project_path).await.unwrap();
    assert_eq!(client.get(&path).await.unwrap_err().code, "entity_not_found");
    let changes = client.get(&format!("{path}/changes")).await.unwrap();
    let actions: Vec<&Value> = changes["items"].as_array().unwrap().iter().map(|change| &change["action"]).collect();
    assert_eq!(actions, ["delete", "update", "create"]);
    let deletion = &changes["items"][0]["change_set_id"];
    let undone = undo(&client, deletion, "").await.unwrap();
    assert_eq!((undone["undone"].as_array().unwrap().len(), &undone["left_out"]), (2, &json!([])));
    assert_eq!(client.get(&path).await.unwrap()["state"], "done");
    assert_eq!(undo(&client, deletion, "").await.unwrap_err().code, "already_undone");

    client.patch(&path, json!({"priority": 3})).await.unwrap();
    let completion = &changes["items"][1]["change_set_id"];
    let conflict = undo(&client, completion, "").await.unwrap_err();
    assert_eq!((conflict.status, conflict.code.as_str()), (409, "changed_since"));
    assert!(conflict.body["detail"].as_str().unwrap().contains(&format!("task {}", id(&task))), "{conflict:?}");
    let listed = client.get(&format!("/v1/workspace/tasks?project_id={}&state=done", id(&project))).await.unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    client.delete(&path).await.unwrap();
    let restored = answer(client.request(Method::POST, &format!("{path}/restore"))).await.unwrap();
    assert_eq!(restored["deleted_at"], Value::Null);
}

/// Each route, for an entity of another user.
async fn an_entity_of_another_user_does_not_exist(mut deployment: Deployment) {
    let ann = deployment.client().user("ann");
    let bob = ann.user("bob");
    let project = create(&ann, "projects", json!({"name": "Harbour"})).await;
    let of = |kind: &str| json!({"project_id": project["id"], if matches!(kind, "tasks" | "documents") { "title" } else { "name" }: "x"});
    let mut entities = vec![("projects", project.clone())];
    for kind in ["tasks", "plans", "goals", "documents", "outputs"] {
        entities.push((kind, create(&ann, kind, of(kind)).await));
        assert_eq!(bob.post(&format!("/v1/workspace/{kind}"), of(kind)).await.unwrap_err().code, "invalid_entity");
    }
    let edge = json!({
        "project_id": project["id"], "from_kind": "task", "from_id": entities[1].1["id"], "relation": "supports",
        "to_kind": "goal", "to_id": entities[3].1["id"]
    });
    assert_eq!(bob.post("/v1/workspace/edges", edge.clone()).await.unwrap_err().code, "invalid_entity");
    entities.push(("edges", create(&ann, "edges", edge).await));
    entities.push(("templates", create(&ann, "templates", json!({"name": "Garden"})).await));
    assert_eq!(bob.get("/v1/workspace/search?q=harbour").await.unwrap()["items"], json!([]));
    let edges = format!("/v1/workspace/edges?entity_id={}", id(&entities[1].1));
    assert_eq!(ann.get(&edges).await.unwrap()["items"].as_array().unwrap().len(), 1);
    assert_eq!(bob.get(&edges).await.unwrap()["items"], json!([]));
    for (kind, entity) in &entities {
        let path = format!("/v1/workspace/{kind}/{}", id(entity));
        for (method, path) in [
            (Method::GET, path.clone()),
            (Method::PATCH, path.clone()),
            (Method::DELETE, path.clone()),
            (Method::POST, format!("{path}/restore")),
            (Method::GET, format!("{path}/changes")),
        ] {
            let request = bob.request(method.clone(), &path);
            let request = if method == Method::PATCH { request.json(&json!({"props": {}})) } else { request };
            let refused = answer(request).await.unwrap_err();
            assert_eq!((refused.status, refused.code.as_str()), (404, "entity_not_found"), "{method} {path}");
        }
        let listed = bob.get(&format!("/v1/workspace/{kind}")).await.unwrap()["items"].clone();
        // All users have six templates.
        let expected = if *kind == "templates" { 6 } else { 0 };
        assert_eq!(listed.as_array().unwrap().len(), expected);
        assert!(ann.get(&path).await.is_ok());
    }
    let set = &ann.get("/v1/workspace/changes").await.unwrap()["items"][0]["change_set_id"];
    assert_eq!(undo(&bob, set, "").await.unwrap_err().code, "change_set_not_found");
    assert_eq!(bob.get("/v1/workspace/changes").await.unwrap()["items"], json!([]));
}

async fn bad_input_is_refused_with_its_field(mut deployment: Deployment) {
    let client = deployment.client();
    let refused = client.post("/v1/workspace/tasks", json!({"title": "t"})).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (400, "invalid_entity"));
    assert!(refused.body["detail"].as_str().unwrap().starts_with("project_id: "), "{refused:?}");
    let refused = client.post("/v1/workspace/projects", json!({"name": "a\0b"})).await.unwrap();
    assert_eq!(refused["name"], "a\u{fffd}b");
    for (path, code) in [
        ("/v1/workspace/ships", "kind_not_found"),
        ("/v1/workspace/tasks/x", "entity_not_found"),
        ("/v1/workspace/ships/x", "kind_not_found"),
    ] {
        assert_eq!(client.get(path).await.unwrap_err().code, code, "{path}");
    }
    for (query, problem) in [
        ("tasks?priority=9", "priority: a whole number from 1 to 5"),
        ("goals?priority=1", "priority: goals are not filtered by it"),
        ("templates?order=due", "Only tasks have an order"),
        ("search?q=", "q has 1 to 200 characters"),
        ("search?q=x&types=ship", "types has some of project, goal,"),
        ("search?q=x&limit=51", "limit is from 1 to 50"),
    ] {
        let refused = client.get(&format!("/v1/workspace/{query}")).await.unwrap_err();
        assert!(refused.body["detail"].as_str().unwrap().contains(problem), "{refused:?}");
        assert_eq!(refused.code, "invalid_query");
    }
    let template = json!({"name": "x", "body": {"tasks": [{"title": "t", "priority": 9}]}});
    let refused = client.post("/v1/workspace/templates", template).await.unwrap_err();
    assert!(refused.body["detail"].as_str().unwrap().starts_with("body.tasks[0].priority: "), "{refused:?}");
    assert_eq!(client.get("/v1/workspace/tasks?cursor=x").await.unwrap_err().code, "invalid_query");
    assert_eq!(undo(&client, &json!("x"), "").await.unwrap_err().code, "change_set_not_found");
}

async fn entities_are_found_by_name(mut deployment: Deployment) {
    let client = deployment.client();
    let project = create(&client, "projects", json!({"name": "Harbour"})).await;
    for (title, due) in [("Call the harbour master", "2026-12-01"), ("Measure the tide", "2026-12-09")] {
        let task = json!({"project_id": project["id"], "title": title, "due_at": due, "priority": 2});
        create(&client, "tasks", task).await;
    }
    let found = client.get("/v1/workspace/search?q=harbuor&types=task,project").await.unwrap();
    let kinds: Vec<&Value> = found["items"].as_array().unwrap().iter().map(|found| &found["kind"]).collect();
    assert_eq!(kinds, ["project", "task"]);
    assert_eq!(found["items"][1]["project_id"], project["id"]);
    let due = client.get("/v1/workspace/tasks?due_before=2026-12-02&priority=2").await.unwrap();
    assert_eq!(due["items"].as_array().unwrap().len(), 1);
}

async fn an_operator_publishes_a_template(mut deployment: Deployment) {
    let ann = deployment.client().user("ann");
    let template = create(&ann, "templates", json!({"name": "Garden", "kind": "garden", "description": "mine"})).await;
    let path = format!("/v1/workspace/templates/{}", id(&template));
    // In development mode, every caller is an operator.
    let otto = ann.user("otto");
    assert_eq!(
        otto.get("/v1/workspace/template_requests").await.unwrap()["items"],
        json!([]),
        "ann has asked for nothing"
    );
    ann.patch(&path, json!({"state": "requested"})).await.unwrap();
    let requests = otto.get("/v1/workspace/template_requests").await.unwrap();
    assert_eq!(requests["items"][0]["id"], template["id"]);
    let publish = format!("/v1/workspace/template_requests/{}/publish", id(&template));
    let body = json!({"key": "garden", "body": {"tasks": [{"title": "Sow"}]}});
    assert_eq!(otto.post(&publish, body).await.unwrap()["state"], "published");
    assert_eq!(otto.get("/v1/workspace/templates").await.unwrap()["items"][0]["name"], "Garden");
    assert_eq!(otto.get("/v1/workspace/template_requests").await.unwrap()["items"], json!([]));
    assert_eq!(otto.get(&path).await.unwrap()["description"], Value::Null, "the words of the request stay with ann");
    otto.delete(&format!("/v1/workspace/template_requests/{}", id(&template))).await.unwrap();
    assert_eq!(ann.get(&path).await.unwrap()["state"], "draft");
    assert_eq!(otto.get(&path).await.unwrap_err().code, "entity_not_found");
    let missing = format!("/v1/workspace/template_requests/{}/publish", id(&json!({"id": uuid::Uuid::now_v7()})));
    assert_eq!(otto.post(&missing, json!({})).await.unwrap_err().code, "entity_not_found");
}

async fn a_change_of_more_than_one_change_may_be_about_is_refused(_: Deployment) {
    let mut deployment = Deployment::on(Embedded::new().with("HOLDFAST_CHANGE_ENTITIES", 3));
    let client = deployment.client();
    let project = create(&client, "projects", json!({"name": "Harbour"})).await;
    let mut tasks = Vec::new();
    for title in ["a", "b", "c"] {
        tasks.push(create(&client, "tasks", json!({"project_id": project["id"], "title": title})).await);
    }
    let path = format!("/v1/workspace/projects/{}", id(&project));
    let refused = client.delete(&path).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (403, "change_too_large"));
    assert!(refused.body["detail"].as_str().unwrap().contains("at most 3 entities"), "{refused:?}");
    client.delete(&format!("/v1/workspace/tasks/{}", id(&tasks[0]))).await.unwrap();
    client.delete(&path).await.unwrap();
    let changes = client.get("/v1/workspace/changes").await.unwrap();
    let undone = undo(&client, &changes["items"][0]["change_set_id"], "").await.unwrap();
    assert_eq!(undone["undone"].as_array().unwrap().len(), 3);
}

async fn an_erased_user_has_no_workspace(_: Deployment) {
    let embedded = Embedded::new().with("HOLDFAST_WORKSPACE_ENTITIES", 1);
    let mut deployment = Deployment::on(embedded);
    let client = deployment.client();
    create(&client, "projects", json!({"name": "Harbour"})).await;
    let full = client.post("/v1/workspace/projects", json!({"name": "Port"})).await.unwrap_err();
    assert_eq!((full.status, full.code.as_str()), (403, "workspace_full"));
    client.delete("/v1/users/me").await.unwrap();
    assert_eq!(client.get("/v1/workspace/projects").await.unwrap()["items"], json!([]));
    create(&client, "projects", json!({"name": "Port"})).await;
}
