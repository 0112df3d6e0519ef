//! Entities and their changes.

use std::time::Duration;

use holdfast_shared::{
    page::PageSize,
    quotas::{FileQuotas, Quotas, WorkspaceLimits},
    storage::Erasure,
};
use holdfast_workspace::{Action, Author, Filter, Kind, NewEntity, Outcome, Patch, Workspace};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    backends::{ANN, LIMITS, TestWorkspace, changed},
    on_both_databases,
};

on_both_databases!(
    an_entity_is_read_as_it_was_written,
    a_change_of_another_version_is_refused,
    an_entity_of_another_owner_does_not_exist,
    an_entity_names_only_entities_of_its_project,
    a_project_is_deleted_and_restored_with_everything_in_it,
    lists_have_pages_and_filters,
    each_change_is_recorded_with_both_states,
    limits_hold_at_their_edge,
    an_owners_workspace_moves_and_is_erased,
);

async fn project(test: &TestWorkspace, name: &str) -> Uuid {
    test.create(Kind::Project, json!({"name": name})).await.id
}

async fn patch(workspace: &Workspace, kind: Kind, id: Uuid, input: Value) -> Outcome<holdfast_workspace::Entity> {
    let patch = Patch::read(kind, input.as_object().unwrap().clone()).unwrap();
    workspace.update(Author::user(ANN), id, patch).await.unwrap()
}

async fn an_entity_is_read_as_it_was_written(test: TestWorkspace) {
    let project = project(&test, "Harbour").await;
    let plan = test.create(Kind::Plan, json!({"name": "Spring", "project_id": project})).await.id;
    let written = json!({
        "title": "Call – 打电话", "project_id": project, "priority": 5, "due_at": "2026-12-01T09:00:00+01:00",
        "plan_id": plan, "props": {"a": [1, {"b": null}]}
    });
    let task = test.create(Kind::Task, written).await;
    let read = test.workspace.get(ANN, Kind::Task, task.id).await.unwrap().unwrap();
    assert_eq!(read, task);
    let state = read.state();
    let field = |name: &str| state[name].clone();
    assert_eq!((field("title"), field("state"), field("priority")), (json!("Call – 打电话"), json!("todo"), json!(5)));
    assert_eq!((field("due_at"), field("plan_id")), (json!("2026-12-01T08:00:00.000Z"), json!(plan)));
    assert_eq!(
        (field("goal_id"), field("props"), field("version")),
        (Value::Null, json!({"a": [1, {"b": null}]}), json!(1))
    );
    let body = "x".repeat(1024 * 1024);
    let document = test.create(Kind::Document, json!({"title": "Log", "project_id": project, "body": body})).await;
    let read = test.workspace.get(ANN, Kind::Document, document.id).await.unwrap().unwrap();
    assert_eq!(read.fields["body"].as_str().unwrap().len(), body.len());
}

async fn a_change_of_another_version_is_refused(test: TestWorkspace) {
    let id = project(&test, "Harbour").await;
    let renamed = changed(patch(&test.workspace, Kind::Project, id, json!({"name": "Port", "version": 1})).await);
    assert_eq!((renamed.version, renamed.title()), (2, "Port"));
    let stale = patch(&test.workspace, Kind::Project, id, json!({"name": "Quay", "version": 1})).await;
    assert_eq!(stale, Outcome::Conflict(2));
    // A change to what it is already is none.
    let same = changed(patch(&test.workspace, Kind::Project, id, json!({"name": "Port"})).await);
    assert_eq!(same.version, 2);
}

async fn an_entity_of_another_owner_does_not_exist(test: TestWorkspace) {
    let id = project(&test, "Harbour").await;
    let workspace = &test.workspace;
    assert_eq!(workspace.get("bob", Kind::Project, id).await.unwrap(), None);
    let rename = Patch::read(Kind::Project, json!({"name": "x"}).as_object().unwrap().clone()).unwrap();
    assert_eq!(workspace.update(Author::user("bob"), id, rename).await.unwrap(), Outcome::NotFound);
    assert_eq!(workspace.delete(Author::user("bob"), Kind::Project, id).await.unwrap(), Outcome::NotFound);
    assert_eq!(workspace.restore(Author::user("bob"), Kind::Project, id).await.unwrap(), Outcome::NotFound);
    let task = json!({"title": "t", "project_id": id});
    let task = NewEntity::read(Kind::Task, task.as_object().unwrap().clone()).unwrap();
    assert!(matches!(workspace.create(Author::user("bob"), task).await.unwrap(), Outcome::Invalid(_)));
    assert!(workspace.changes("bob", Some((Kind::Project, id)), None, PageSize::ALL).await.unwrap().items.is_empty());
    // An id of another kind is none of this kind.
    assert_eq!(workspace.get(ANN, Kind::Task, id).await.unwrap(), None);
}

async fn an_entity_names_only_entities_of_its_project(test: TestWorkspace) {
    let (harbour, port) = (project(&test, "Harbour").await, project(&test, "Port").await);
    let goal = test.create(Kind::Goal, json!({"name": "g", "project_id": port})).await.id;
    let task = |project: Uuid| json!({"title": "t", "project_id": project, "goal_id": goal});
    let new = NewEntity::read(Kind::Task, task(harbour).as_object().unwrap().clone()).unwrap();
    match test.workspace.create(Author::user(ANN), new).await.unwrap() {
        Outcome::Invalid(invalid) => assert_eq!(invalid.to_string(), "goal_id: the project has no such goal"),
        other => panic!("{other:?}"),
    }
    let task = test.create(Kind::Task, task(port)).await;
    changed(test.workspace.delete(Author::user(ANN), Kind::Goal, goal).await.unwrap());
    // A task keeps a goal that is gone.
    changed(patch(&test.workspace, Kind::Task, task.id, json!({"title": "u"})).await);
    assert!(matches!(
        patch(&test.workspace, Kind::Task, task.id, json!({"goal_id": Uuid::now_v7()})).await,
        Outcome::Invalid(_)
    ));
    changed(patch(&test.workspace, Kind::Task, task.id, json!({"goal_id": null})).await);
}

async fn a_project_is_deleted_and_restored_with_everything_in_it(test: TestWorkspace) {
    let id = project(&test, "Harbour").await;
    let kept = test.create(Kind::Task, json!({"title": "kept", "project_id": id})).await.id;
    let gone = test.create(Kind::Task, json!({"title": "gone", "project_id": id})).await.id;
    changed(test.workspace.delete(Author::user(ANN), Kind::Task, gone).await.unwrap());
    let before = test.dump(ANN).await;
    changed(test.workspace.delete(Author::user(ANN), Kind::Project, id).await.unwrap());
    assert!(test.dump(ANN).await.is_empty());
    match test.workspace.restore(Author::user(ANN), Kind::Task, kept).await.unwrap() {
        Outcome::Invalid(invalid) => assert_eq!(invalid.to_string(), "project_id: there is no such project"),
        other => panic!("{other:?}"),
    }
    changed(test.workspace.restore(Author::user(ANN), Kind::Project, id).await.unwrap());
    assert_eq!(test.dump(ANN).await, before, "what was deleted before stays deleted");
    changed(test.workspace.restore(Author::user(ANN), Kind::Task, gone).await.unwrap());
    assert_eq!(test.dump(ANN).await.len(), 3);
}

async fn lists_have_pages_and_filters(test: TestWorkspace) {
    let (harbour, port) = (project(&test, "Harbour").await, project(&test, "Port").await);
    let mut of_harbour = Vec::new();
    for n in 0..5 {
        let state = if n == 4 { "done" } else { "todo" };
        let task = json!({"title": format!("{n}"), "project_id": harbour, "state": state});
        of_harbour.push(test.create(Kind::Task, task).await.id);
        test.create(Kind::Document, json!({"title": "d", "project_id": port, "body": "long"})).await;
    }
    let goal = test.create(Kind::Goal, json!({"name": "g", "project_id": harbour})).await.id;
    let whole = json!({"priority": 5, "due_at": "2026-11-30T00:00:00Z", "goal_id": goal});
    changed(patch(&test.workspace, Kind::Task, of_harbour[0], whole).await);
    of_harbour.reverse();
    let filter = Filter::of_project(Some(harbour));
    let first = test.workspace.list(ANN, Kind::Task, &filter, None, PageSize::from(3)).await.unwrap();
    let cursor = first.next.as_ref().unwrap().parse().unwrap();
    let second = test.workspace.list(ANN, Kind::Task, &filter, Some(cursor), PageSize::from(3)).await.unwrap();
    let ids: Vec<Uuid> = first.items.iter().chain(&second.items).map(|task| task.id).collect();
    assert_eq!((ids, second.next), (of_harbour, None));
    for (given, expected) in [
        (json!({"state": "done"}), 1),
        (json!({"state": "todo", "project_id": harbour}), 4),
        (json!({"priority": 5}), 1),
        (json!({"due_before": "2026-12-01"}), 1),
        (json!({"due_before": "2026-11-30T00:00:00Z"}), 0),
        (json!({"goal_id": goal, "project_id": harbour}), 1),
        (json!({"plan_id": goal}), 0),
    ] {
        let filter = Filter::read(Kind::Task, given.as_object().unwrap().clone()).unwrap();
        let listed = test.workspace.list(ANN, Kind::Task, &filter, None, PageSize::ALL).await.unwrap();
        assert_eq!(listed.items.len(), expected, "{given}");
    }
    let documents = test.workspace.list(ANN, Kind::Document, &Filter::default(), None, PageSize::ALL).await.unwrap();
    assert!(documents.items.iter().all(|document| !document.fields.contains_key("body")), "a list has no bodies");
}

async fn each_change_is_recorded_with_both_states(test: TestWorkspace) {
    let id = project(&test, "Harbour").await;
    changed(patch(&test.workspace, Kind::Project, id, json!({"state": "active"})).await);
    changed(test.workspace.delete(Author::user(ANN), Kind::Project, id).await.unwrap());
    changed(test.workspace.restore(Author::user(ANN), Kind::Project, id).await.unwrap());
    let changes = test.workspace.changes(ANN, Some((Kind::Project, id)), None, PageSize::ALL).await.unwrap().items;
    let actions: Vec<Action> = changes.iter().rev().map(|change| change.action).collect();
    assert_eq!(actions, [Action::Create, Action::Update, Action::Delete, Action::Restore]);
    let update = &changes[2];
    let state = |state: &Option<Value>| state.as_ref().unwrap()["state"].clone();
    assert_eq!((state(&update.before), state(&update.after)), (json!("planning"), json!("active")));
    assert_eq!((update.user_id.as_str(), &changes[3].before), (ANN, &None));
    let small = PageSize { items: 20, bytes: 1 };
    assert_eq!(test.workspace.changes(ANN, None, None, small).await.unwrap().items.len(), 1, "a page has a size");
    // Each state is the one before it.
    assert!(changes.windows(2).all(|pair| pair[0].before == pair[1].after));
    let first = test.workspace.changes(ANN, None, None, PageSize::from(3)).await.unwrap();
    let rest = test.workspace.changes(ANN, None, Some(first.next.unwrap().parse().unwrap()), PageSize::from(3)).await;
    assert_eq!((first.items.len(), rest.unwrap().items.len()), (3, 1));
}

async fn limits_hold_at_their_edge(test: TestWorkspace) {
    let few = test.limited(WorkspaceLimits { max_entities: 2, max_bytes: 1 << 20, ..LIMITS });
    let new = |name: &str| NewEntity::read(Kind::Project, json!({"name": name}).as_object().unwrap().clone()).unwrap();
    let first = changed(few.create(Author::user(ANN), new("a")).await.unwrap());
    changed(few.create(Author::user(ANN), new("b")).await.unwrap());
    assert!(matches!(few.create(Author::user(ANN), new("c")).await.unwrap(), Outcome::Full(_)));
    changed(few.create(Author::user("bob"), new("c")).await.unwrap());
    // Full is no hindrance for other changes, and a deleted entity still counts.
    changed(patch(&few, Kind::Project, first.id, json!({"state": "active"})).await);
    changed(few.delete(Author::user(ANN), Kind::Project, first.id).await.unwrap());
    assert!(matches!(few.create(Author::user(ANN), new("c")).await.unwrap(), Outcome::Full(_)));

    let long = "x".repeat(10_000);
    let small = test.limited(WorkspaceLimits { max_entities: 100, max_bytes: 50_000, ..LIMITS });
    let id = changed(small.create(Author::user("cy"), new("a")).await.unwrap()).id;
    let describe =
        |text: &str| Patch::read(Kind::Project, json!({"description": text}).as_object().unwrap().clone()).unwrap();
    changed(small.update(Author::user("cy"), id, describe(&long)).await.unwrap());
    changed(small.update(Author::user("cy"), id, describe(&long.replace('x', "y"))).await.unwrap());
    match small.update(Author::user("cy"), id, describe(&long)).await.unwrap() {
        Outcome::Full(limit) => assert!(limit.contains("50000 bytes"), "{limit}"),
        other => panic!("{other:?}"),
    }
    // A full workspace can be emptied.
    changed(small.delete(Author::user("cy"), Kind::Project, id).await.unwrap());
    let appends = |text: &str| Patch { appends: true, ..describe(text) };
    let id = changed(few.create(Author::user("dee"), new("a")).await.unwrap()).id;
    changed(few.update(Author::user("dee"), id, appends(&"x".repeat(9_000))).await.unwrap());
    let joined = changed(few.update(Author::user("dee"), id, appends(&"y".repeat(998))).await.unwrap());
    assert_eq!(joined.fields["description"].as_str().unwrap().len(), 10_000);
    assert!(matches!(few.update(Author::user("dee"), id, appends("z")).await.unwrap(), Outcome::Invalid(_)));
}

async fn an_owners_workspace_moves_and_is_erased(test: TestWorkspace) {
    let id = project(&test, "Harbour").await;
    test.create(Kind::Task, json!({"title": "t", "project_id": id})).await;
    let before = test.dump(ANN).await;
    test.storage.move_owner(ANN, "bob", &Quotas::default(), FileQuotas::default().into()).await.unwrap();
    assert_eq!((test.dump("bob").await, test.dump(ANN).await.len()), (before, 0));
    let changes = test.workspace.changes("bob", None, None, PageSize::ALL).await.unwrap().items;
    assert!(changes.len() == 2 && changes.iter().all(|change| change.user_id == "bob"));
    // The sweeper does not erase a user who is there again, or is none that can be absent.
    let absent = Erasure::Forgotten(Duration::ZERO);
    assert!(test.storage.erase_some("bob", absent).await.unwrap().is_done);
    assert_eq!(test.dump("bob").await.len(), 2);
    while !test.storage.erase_some("bob", Erasure::Wanted).await.unwrap().is_done {}
    assert!(test.dump("bob").await.is_empty());
    assert!(test.workspace.changes("bob", None, None, PageSize::ALL).await.unwrap().items.is_empty());
}
