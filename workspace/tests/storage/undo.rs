//! The undo of changes, and of undoes.

use holdfast_shared::page::PageSize;
use holdfast_workspace::{Author, Kind, NewEntity, Patch, Undo, Undone};
use proptest::{
    prelude::{Just, Strategy, prop_oneof},
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    backends::{ANN, TestWorkspace, changed},
    on_both_databases,
};

on_both_databases!(
    an_undo_and_its_undo_restore_what_was,
    an_entity_that_was_changed_again_is_a_conflict,
    a_forced_undo_leaves_nothing_without_its_project,
    what_has_a_relation_is_undone_with_it_or_not_at_all,
    the_creation_of_a_project_stays_if_others_put_something_into_it,
    random_changes_are_undone_to_the_first_state,
);

/// Returns the newest set of changes.
async fn newest_set(test: &TestWorkspace) -> Uuid {
    test.workspace.changes(ANN, None, None, PageSize::from(1)).await.unwrap().items[0].change_set_id
}

async fn undo(test: &TestWorkspace, set: Uuid, force: bool) -> Undo {
    test.workspace.undo(Author::user(ANN), Undone::Set(set), force).await.unwrap()
}

async fn update(test: &TestWorkspace, kind: Kind, id: Uuid, input: Value) {
    let patch = Patch::read(kind, input.as_object().unwrap().clone()).unwrap();
    changed(test.workspace.update(Author::user(ANN), id, patch).await.unwrap());
}

fn done(undo: Undo) -> Uuid {
    match undo {
        Undo::Done { change_set_id, left_out, .. } if left_out.is_empty() => change_set_id,
        other => panic!("it was not undone: {other:?}"),
    }
}

async fn an_undo_and_its_undo_restore_what_was(test: TestWorkspace) {
    let id = test.create(Kind::Project, json!({"name": "Harbour"})).await.id;
    test.create(Kind::Task, json!({"title": "t", "project_id": id})).await;
    let whole = test.dump(ANN).await;
    changed(test.workspace.delete(Author::user(ANN), Kind::Project, id).await.unwrap());
    let deletion = newest_set(&test).await;
    let first = done(undo(&test, deletion, false).await);
    assert_eq!(test.dump(ANN).await, whole);
    assert_eq!(undo(&test, deletion, false).await, Undo::AlreadyUndone);
    done(undo(&test, first, false).await);
    assert!(test.dump(ANN).await.is_empty());
    // It may be undone again.
    done(undo(&test, deletion, false).await);
    assert_eq!(test.dump(ANN).await, whole);
    assert_eq!(undo(&test, Uuid::now_v7(), false).await, Undo::NotFound);
    assert_eq!(test.workspace.undo(Author::user("bob"), Undone::Set(deletion), false).await.unwrap(), Undo::NotFound);
}

async fn an_entity_that_was_changed_again_is_a_conflict(test: TestWorkspace) {
    let id = test.create(Kind::Project, json!({"name": "Harbour"})).await.id;
    let task = test.create(Kind::Task, json!({"title": "t", "project_id": id})).await.id;
    changed(test.workspace.delete(Author::user(ANN), Kind::Project, id).await.unwrap());
    let deletion = newest_set(&test).await;
    done(undo(&test, deletion, false).await);
    changed(test.workspace.delete(Author::user(ANN), Kind::Project, id).await.unwrap());
    let deletion = newest_set(&test).await;
    changed(test.workspace.restore(Author::user(ANN), Kind::Project, id).await.unwrap());
    let before = test.dump(ANN).await;
    let conflicts = undo(&test, deletion, false).await;
    assert!(matches!(&conflicts, Undo::Conflicts(entities) if entities.len() == 2), "{conflicts:?}");
    assert_eq!(test.dump(ANN).await, before, "nothing is half done");

    update(&test, Kind::Project, id, json!({"name": "Port"})).await;
    let renaming = newest_set(&test).await;
    update(&test, Kind::Project, id, json!({"name": "Quay"})).await;
    assert_eq!(undo(&test, renaming, false).await, Undo::Conflicts(vec![(Kind::Project, id)]));
    assert_eq!(
        undo(&test, renaming, true).await,
        Undo::Conflicts(vec![(Kind::Project, id)]),
        "nothing is left to undo"
    );
    changed(test.workspace.delete(Author::user(ANN), Kind::Project, id).await.unwrap());
    let deletion = newest_set(&test).await;
    changed(test.workspace.restore(Author::user(ANN), Kind::Project, id).await.unwrap());
    changed(test.workspace.delete(Author::user(ANN), Kind::Task, task).await.unwrap());
    assert!(matches!(undo(&test, deletion, false).await, Undo::Conflicts(_)));
}

async fn the_creation_of_a_project_stays_if_others_put_something_into_it(test: TestWorkspace) {
    let id = test.create(Kind::Project, json!({"name": "Harbour"})).await.id;
    let creation = newest_set(&test).await;
    let task = test.create(Kind::Task, json!({"title": "t", "project_id": id})).await.id;
    let later = newest_set(&test).await;
    assert_eq!(undo(&test, creation, false).await, Undo::Conflicts(vec![(Kind::Project, id)]));
    done(undo(&test, later, false).await);
    assert_eq!(test.workspace.get(ANN, Kind::Task, task).await.unwrap(), None);
    let removal = done(undo(&test, creation, false).await);
    assert!(test.dump(ANN).await.is_empty());
    // The task cannot come back without its project.
    let task_removal = {
        let changes = test.workspace.changes(ANN, Some((Kind::Task, task)), None, PageSize::ALL).await.unwrap().items;
        changes[0].change_set_id
    };
    assert_eq!(undo(&test, task_removal, false).await, Undo::Conflicts(vec![(Kind::Task, task)]));
    done(undo(&test, removal, false).await);
    done(undo(&test, task_removal, false).await);
    assert_eq!(test.dump(ANN).await.len(), 2);
}

async fn a_forced_undo_leaves_nothing_without_its_project(test: TestWorkspace) {
    let new = |kind: Kind, input: Value| NewEntity::read_within(kind, input.as_object().unwrap().clone()).unwrap();
    let project = new(Kind::Project, json!({"name": "Harbour"}));
    let tasks = ["a", "b"].map(|title| new(Kind::Task, json!({"title": title})));
    let created = changed(
        test.workspace.create_all(Author::user(ANN), [project].into_iter().chain(tasks).collect()).await.unwrap(),
    );
    let creation = newest_set(&test).await;
    let (project, edited, other) = (created[0].id, created[1].id, created[2].id);
    update(&test, Kind::Task, edited, json!({"state": "done"})).await;
    // The edited task stays, and so does its project.
    match undo(&test, creation, true).await {
        Undo::Done { change_set_id, undone, left_out } => {
            assert_eq!(undone, [(Kind::Task, other)]);
            assert_eq!(left_out, [(Kind::Project, project), (Kind::Task, edited)]);
            done(undo(&test, change_set_id, false).await);
        }
        refused => panic!("{refused:?}"),
    }
    assert_eq!(test.dump(ANN).await.len(), 3);
    // A deleted task does not come back without the project that somebody has changed.
    changed(test.workspace.delete(Author::user(ANN), Kind::Project, project).await.unwrap());
    let deletion = newest_set(&test).await;
    changed(test.workspace.restore(Author::user(ANN), Kind::Project, project).await.unwrap());
    changed(test.workspace.delete(Author::user(ANN), Kind::Project, project).await.unwrap());
    let conflicts = undo(&test, deletion, true).await;
    assert!(matches!(&conflicts, Undo::Conflicts(entities) if entities.len() == 3), "{conflicts:?}");
}

async fn what_has_a_relation_is_undone_with_it_or_not_at_all(test: TestWorkspace) {
    let project = test.create(Kind::Project, json!({"name": "Harbour"})).await.id;
    let first = test.create(Kind::Task, json!({"title": "a", "project_id": project})).await.id;
    let second = test.create(Kind::Task, json!({"title": "b", "project_id": project})).await.id;
    let creation = newest_set(&test).await;
    let edge = json!({
        "project_id": project, "from_kind": "task", "from_id": first, "relation": "blocks", "to_kind": "task", "to_id": second
    });
    test.create(Kind::Edge, edge).await;
    let whole = test.dump(ANN).await;
    assert_eq!(undo(&test, creation, false).await, Undo::Conflicts(vec![(Kind::Task, second)]));
    // A deletion takes the relation along, and its undo brings it back.
    changed(test.workspace.delete(Author::user(ANN), Kind::Task, second).await.unwrap());
    let deletion = newest_set(&test).await;
    assert_eq!(test.dump(ANN).await.len(), 2);
    done(undo(&test, deletion, false).await);
    assert_eq!(test.dump(ANN).await, whole);
    // A relation does not come back without its ends.
    changed(test.workspace.delete(Author::user(ANN), Kind::Task, second).await.unwrap());
    changed(test.workspace.delete(Author::user(ANN), Kind::Task, first).await.unwrap());
    changed(test.workspace.restore(Author::user(ANN), Kind::Task, second).await.unwrap());
    assert!(test.dump(ANN).await.iter().all(|(kind, ..)| *kind != Kind::Edge));
}

/// A random change. A number chooses among the entities that exist.
#[derive(Debug, Clone)]
enum Mutation {
    Create(Kind, usize),
    Update(usize, u8),
    Delete(usize),
    Restore(usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let kinds: Vec<Just<Kind>> = Kind::ALL.iter().copied().map(Just).collect();
    let kind = proptest::strategy::Union::new(kinds);
    prop_oneof![
        3 => (kind, 0..100usize).prop_map(|(kind, place)| Mutation::Create(kind, place)),
        3 => (0..100usize, 0..5u8).prop_map(|(place, value)| Mutation::Update(place, value)),
        2 => (0..100usize).prop_map(Mutation::Delete),
        2 => (0..100usize).prop_map(Mutation::Restore),
    ]
}

/// Runs of random changes, each undone set by set, newest first, and then done again by undoing the undoes.
async fn random_changes_are_undone_to_the_first_state(test: TestWorkspace) {
    let mut runner = TestRunner::new(Config::default());
    for _ in 0..12 {
        let mutations = proptest::collection::vec(mutation(), 1..30).new_tree(&mut runner).unwrap().current();
        test.create(Kind::Project, json!({"name": "base"})).await;
        let before = test.dump(ANN).await;
        let since = newest_set(&test).await;
        for mutation in &mutations {
            apply(&test, mutation).await;
        }
        let after = test.dump(ANN).await;
        let sets = sets_after(&test, since).await;
        let mut undoes = Vec::new();
        for set in &sets {
            undoes.push(done(undo(&test, *set, false).await));
        }
        assert_eq!(test.dump(ANN).await, before, "{mutations:#?}");
        for set in undoes.iter().rev() {
            done(undo(&test, *set, false).await);
        }
        assert_eq!(test.dump(ANN).await, after, "{mutations:#?}");
    }
}

async fn apply(test: &TestWorkspace, mutation: &Mutation) {
    let all: Vec<(Kind, Uuid)> = known(test).await;
    let live = test.dump(ANN).await;
    let projects: Vec<Uuid> = live.iter().filter(|(kind, ..)| *kind == Kind::Project).map(|entity| entity.1).collect();
    let workspace = &test.workspace;
    match mutation {
        Mutation::Create(Kind::Project, place) => {
            test.create(Kind::Project, json!({"name": format!("p{place}")})).await;
        }
        Mutation::Create(Kind::Template, place) => {
            test.create(Kind::Template, json!({"name": format!("t{place}")})).await;
        }
        Mutation::Create(Kind::Edge, place) if !projects.is_empty() => {
            let project = projects[place % projects.len()];
            let of_project = |(kind, id, state): &&(Kind, Uuid, Value)| {
                *kind != Kind::Edge && (*id == project || state["project_id"] == json!(project))
            };
            let ends: Vec<&(Kind, Uuid, Value)> = live.iter().filter(of_project).collect();
            let (from, to) = (ends[place % ends.len()], ends[(place + 1) % ends.len()]);
            if from.1 != to.1 {
                let edge = json!({
                    "project_id": project, "from_kind": from.0, "from_id": from.1, "relation": "relates_to",
                    "to_kind": to.0, "to_id": to.1
                });
                test.create(Kind::Edge, edge).await;
            }
        }
        Mutation::Create(kind, place) if !projects.is_empty() => {
            let project = projects[place % projects.len()];
            test.create(*kind, json!({kind.title_field(): format!("e{place}"), "project_id": project})).await;
        }
        Mutation::Update(place, value) if !live.is_empty() => {
            let (kind, id, _) = live[place % live.len()];
            let input = match kind {
                Kind::Edge => json!({"props": {"value": value}}),
                _ => json!({kind.title_field(): format!("v{value}"), "props": {"value": value}}),
            };
            let patch = Patch::read(kind, input.as_object().unwrap().clone()).unwrap();
            changed(workspace.update(Author::user(ANN), id, patch).await.unwrap());
        }
        Mutation::Delete(place) if !live.is_empty() => {
            let (kind, id, _) = live[place % live.len()];
            changed(workspace.delete(Author::user(ANN), kind, id).await.unwrap());
        }
        Mutation::Restore(place) if !all.is_empty() => {
            let (kind, id) = all[place % all.len()];
            // Its project may be deleted.
            workspace.restore(Author::user(ANN), kind, id).await.unwrap();
        }
        _ => {}
    }
}

/// Returns all entities that have ever had a change.
async fn known(test: &TestWorkspace) -> Vec<(Kind, Uuid)> {
    let mut known = Vec::new();
    let mut cursor = None;
    loop {
        let page = test.workspace.changes(ANN, None, cursor, PageSize::ALL).await.unwrap();
        known.extend(page.items.iter().map(|change| (change.kind, change.entity_id)));
        match page.next {
            Some(next) => cursor = Some(next.parse().unwrap()),
            None => break,
        }
    }
    known.sort_unstable();
    known.dedup();
    known
}

/// Returns the sets of changes after this one, newest first.
async fn sets_after(test: &TestWorkspace, since: Uuid) -> Vec<Uuid> {
    let (mut sets, mut cursor) = (Vec::new(), None);
    loop {
        let page = test.workspace.changes(ANN, None, cursor, PageSize::ALL).await.unwrap();
        for change in page.items {
            if change.change_set_id == since {
                return sets;
            }
            if sets.last() != Some(&change.change_set_id) {
                sets.push(change.change_set_id);
            }
        }
        cursor = Some(page.next.unwrap().parse().unwrap());
    }
}
