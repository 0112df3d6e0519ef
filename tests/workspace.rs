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
        assert_eq!(bob.get(&format!("/v1/workspace/{kind}")).await.unwrap()["items"], json!([]));
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
    assert_eq!(client.get("/v1/workspace/tasks?cursor=x").await.unwrap_err().code, "invalid_query");
    assert_eq!(undo(&client, &json!("x"), "").await.unwrap_err().code, "change_set_not_found");
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
