//! Templates of all owners.

use holdfast_shared::page::PageSize;
use holdfast_workspace::{Author, Kind, NewEntity, Outcome, Patch, Undo, Undone};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    backends::{ANN, TestWorkspace, changed},
    on_both_databases,
};

on_both_databases!(
    an_operator_publishes_what_a_user_has_requested,
    operators_see_no_template_that_its_owner_has_not_requested,
    only_an_operator_changes_what_is_published,
);

async fn names(test: &TestWorkspace, owner: &str) -> Vec<String> {
    let page = test.workspace.templates(owner, None, None, None, PageSize::ALL).await.unwrap();
    page.items.iter().map(|template| template.title().to_owned()).collect()
}

fn patch(input: Value) -> Patch {
    Patch::read(Kind::Template, input.as_object().unwrap().clone()).unwrap()
}

async fn publish(test: &TestWorkspace, id: Uuid) {
    let owner = test.workspace.owner_of_template(id).await.unwrap().unwrap();
    let body = json!({"tasks": [{"title": "Sow"}]});
    let publication = patch(json!({"state": "published", "key": "garden", "body": body}));
    changed(test.workspace.update(Author::operator(&owner, "otto"), id, publication).await.unwrap());
}

async fn an_operator_publishes_what_a_user_has_requested(test: TestWorkspace) {
    assert_eq!(names(&test, "bob").await.len(), 6);
    let id = test.create(Kind::Template, json!({"name": "Garden", "state": "requested"})).await.id;
    assert_eq!((names(&test, ANN).await.len(), names(&test, "bob").await.len()), (7, 6));
    let requested = test.workspace.requested_templates(None, PageSize::ALL).await.unwrap().items;
    assert_eq!((requested.len(), requested[0].id), (1, id));
    assert_eq!(test.workspace.get("bob", Kind::Template, id).await.unwrap(), None);
    publish(&test, id).await;
    assert_eq!(names(&test, "bob").await[0], "Garden");
    let of_key = test.workspace.template_of_key("bob", "garden").await.unwrap().unwrap();
    assert_eq!((of_key.id, &of_key.fields["body"]["tasks"][0]["title"]), (id, &json!("Sow")));
    assert!(test.workspace.get("bob", Kind::Template, id).await.unwrap().is_some());
    // Pages end with the templates that are always there.
    let first = test.workspace.templates("bob", None, None, None, PageSize::from(5)).await.unwrap();
    let cursor = first.next.unwrap().parse().unwrap();
    let second = test.workspace.templates("bob", None, None, Some(cursor), PageSize::from(5)).await.unwrap();
    assert_eq!((first.items.len(), second.items.len(), second.next), (5, 2, None));
}

async fn operators_see_no_template_that_its_owner_has_not_requested(test: TestWorkspace) {
    let template = test.create(Kind::Template, json!({"name": "Mine"})).await;
    assert_eq!(template.fields["state"], "draft");
    assert!(test.workspace.requested_templates(None, PageSize::ALL).await.unwrap().items.is_empty());
    assert_eq!(test.workspace.owner_of_template(template.id).await.unwrap(), None, "an operator cannot publish it");
    changed(test.workspace.update(Author::user(ANN), template.id, patch(json!({"state": "requested"}))).await.unwrap());
    assert_eq!(test.workspace.requested_templates(None, PageSize::ALL).await.unwrap().items.len(), 1);
}

async fn only_an_operator_changes_what_is_published(test: TestWorkspace) {
    let refused =
        |outcome: Outcome<_>| matches!(outcome, Outcome::Invalid(invalid) if invalid.to_string().contains("operator"));
    let published = json!({"name": "x", "state": "published"});
    let new = NewEntity::read(Kind::Template, published.as_object().unwrap().clone()).unwrap();
    assert!(refused(test.workspace.create(Author::user(ANN), new).await.unwrap()));
    let id = test.create(Kind::Template, json!({"name": "Garden", "state": "requested"})).await.id;
    let author = Author::user(ANN);
    assert!(refused(test.workspace.update(author, id, patch(json!({"state": "published"}))).await.unwrap()));
    publish(&test, id).await;
    assert!(refused(test.workspace.update(author, id, patch(json!({"name": "Mine"}))).await.unwrap()));
    let deleted = test.workspace.delete(author, Kind::Template, id).await.unwrap();
    assert!(matches!(deleted, Outcome::Invalid(_)));
    let changes = test.workspace.changes(ANN, Some((Kind::Template, id)), None, 20.into()).await.unwrap().items;
    let publication = Undone::Set(changes[0].change_set_id);
    let undone = test.workspace.undo(author, publication, true).await.unwrap();
    assert_eq!(undone, Undo::Conflicts(vec![(Kind::Template, id)]));
    let operator = Author::operator(ANN, "otto");
    changed(test.workspace.delete(operator, Kind::Template, id).await.unwrap());
    assert!(
        refused(test.workspace.restore(author, Kind::Template, id).await.unwrap()),
        "the owner publishes nothing again"
    );
    changed(test.workspace.restore(operator, Kind::Template, id).await.unwrap());
    let deletions = test.workspace.changes(ANN, Some((Kind::Template, id)), None, 20.into()).await.unwrap().items;
    assert_eq!(deletions.len(), 4);
    assert!(matches!(test.workspace.undo(operator, publication, false).await.unwrap(), Undo::Done { .. }));
    let invalid =
        Patch::read(Kind::Template, json!({"body": {"tasks": [{"priority": 1}]}}).as_object().unwrap().clone());
    assert_eq!(
        invalid.unwrap_err().to_string(),
        "body.tasks[0].title: a value is needed, such as \"Call the harbour master\""
    );
}
