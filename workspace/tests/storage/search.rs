//! The search by names.

use holdfast_workspace::{Kind, Search};
use serde_json::json;

use crate::{
    backends::{ANN, TestWorkspace},
    on_both_databases,
};

on_both_databases!(names_are_found_with_errors_and_in_parts, a_search_is_about_its_kinds_project_and_state);

async fn found(test: &TestWorkspace, owner: &str, search: Search<'_>) -> Vec<String> {
    test.workspace.search(owner, search).await.unwrap().into_iter().map(|found| found.name).collect()
}

const fn all(query: &str) -> Search<'_> {
    Search { query, kinds: &Kind::SEARCHED, project_id: None, state: None, limit: 20 }
}

async fn names_are_found_with_errors_and_in_parts(test: TestWorkspace) {
    let project = test.create(Kind::Project, json!({"name": "Harbour of Łódź"})).await.id;
    for title in ["Call the harbour master", "Measure the tide", "健身应用", "ÉTÉ"] {
        test.create(Kind::Task, json!({"title": title, "project_id": project})).await;
    }
    test.create(Kind::Document, json!({"title": "Tide tables", "project_id": project})).await;
    assert_eq!(found(&test, ANN, all("harbour")).await, ["Harbour of Łódź", "Call the harbour master"]);
    assert_eq!(found(&test, ANN, all("harbuor")).await, ["Harbour of Łódź", "Call the harbour master"]);
    assert_eq!(found(&test, ANN, all("łódź")).await, ["Harbour of Łódź"]);
    assert_eq!(found(&test, ANN, all("tide tables")).await, ["Tide tables", "Measure the tide"]);
    assert_eq!(found(&test, ANN, all("健身")).await, ["健身应用"]);
    assert_eq!(found(&test, ANN, all("été")).await, ["ÉTÉ"]);
    for (typed, name) in [("taks", "Task"), ("paln", "Plan"), ("gaol", "Goal")] {
        test.create(Kind::Task, json!({"title": name, "project_id": project})).await;
        assert_eq!(found(&test, ANN, all(typed)).await, [name]);
    }
    for nothing in ["submarine", "", "%", "'"] {
        assert!(found(&test, ANN, all(nothing)).await.is_empty(), "{nothing}");
    }
    assert!(found(&test, "bob", all("harbour")).await.is_empty());
}

async fn a_search_is_about_its_kinds_project_and_state(test: TestWorkspace) {
    let (port, quay) = (
        test.create(Kind::Project, json!({"name": "Port"})).await.id,
        test.create(Kind::Project, json!({"name": "Quay"})).await.id,
    );
    for (project, state) in [(port, "todo"), (port, "done"), (quay, "todo")] {
        test.create(Kind::Task, json!({"title": format!("Port {state}"), "project_id": project, "state": state})).await;
    }
    let tasks = Search { kinds: &[Kind::Task], ..all("port") };
    assert_eq!(found(&test, ANN, all("port")).await.len(), 4);
    assert_eq!(found(&test, ANN, tasks).await.len(), 3);
    assert_eq!(found(&test, ANN, Search { project_id: Some(port), ..tasks }).await.len(), 2);
    assert_eq!(found(&test, ANN, Search { state: Some("done"), ..tasks }).await, ["Port done"]);
    assert_eq!(found(&test, ANN, Search { limit: 1, ..all("port") }).await, ["Port"]);
}
