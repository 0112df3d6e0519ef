//! Changes by the calls of runs.

use std::time::Duration;

use holdfast_shared::{
    ending::Ending,
    page::PageSize,
    quotas::Quotas,
    storage::{Answer, Claim, ClaimTerms, Holder, MessageInput, NewRun, Target},
};
use holdfast_workspace::{Author, AuthorCall, Entity, Kind, NewEntity, Outcome, Patch, Undo, Undone};
use serde_json::json;
use uuid::Uuid;

use crate::{
    backends::{ANN, TestWorkspace, changed},
    on_both_databases,
};

on_both_databases!(
    a_repeated_call_finds_its_changes,
    a_stale_attempt_changes_nothing,
    a_run_is_undone_from_its_first_change_to_its_last,
);

/// Submits a run of ann and claims it.
async fn claim(test: &TestWorkspace) -> Claim {
    let new = NewRun {
        run_id: Uuid::now_v7(),
        target: Target::New { agent_id: None },
        input: MessageInput::New("hi".into()),
        given: Vec::new(),
        client_message_id: None,
        mode: Default::default(),
        key: None,
        options: Default::default(),
        max_metadata: 100,
        max_unfinished: 100,
        caller_group: None,
        traceparent: None,
    };
    test.storage.submit(ANN, &Quotas::default(), &new).await.unwrap();
    let (holder, lease) = (Holder::new(), Duration::from_secs(60));
    let terms = ClaimTerms { holder, lease, max_crashes: 3, ingestions: 1, reserved: 0 };
    test.storage.claim_queued(&terms, 1).await.unwrap().remove(0)
}

fn of_call<'a>(claim: &Claim, attempt: u32, call_id: &'a str) -> Author<'a> {
    Author { call: Some(AuthorCall { run_id: claim.run_id, attempt, call_id }), ..Author::user(ANN) }
}

fn project(name: &str) -> NewEntity {
    NewEntity::read(Kind::Project, json!({"name": name}).as_object().unwrap().clone()).unwrap()
}

fn renaming(name: &str) -> Patch {
    Patch::read(Kind::Project, json!({"name": name}).as_object().unwrap().clone()).unwrap()
}

async fn a_repeated_call_finds_its_changes(test: TestWorkspace) {
    let claim = claim(&test).await;
    let author = |call_id| of_call(&claim, 1, call_id);
    let created = changed(test.workspace.create(author("call_1"), project("Harbour")).await.unwrap());
    let again = changed(test.workspace.create(author("call_1"), project("Harbour")).await.unwrap());
    assert_eq!(again, created);
    let renamed = changed(test.workspace.update(author("call_2"), created.id, renaming("Port")).await.unwrap());
    changed(test.workspace.update(Author::user(ANN), created.id, renaming("Quay")).await.unwrap());
    // The call answers as at first, and does not take back what the user has done since.
    let again = changed(test.workspace.update(author("call_2"), created.id, renaming("Port")).await.unwrap());
    assert_eq!(again, renamed);
    let stored = test.workspace.get(ANN, Kind::Project, created.id).await.unwrap();
    assert_eq!(stored.as_ref().map(Entity::title), Some("Quay"));
    for _ in 0..2 {
        changed(test.workspace.delete(author("call_3"), Kind::Project, created.id).await.unwrap());
    }
    assert_eq!(test.workspace.changes(ANN, None, None, PageSize::ALL).await.unwrap().items.len(), 4);
}

async fn a_stale_attempt_changes_nothing(test: TestWorkspace) {
    let claim = claim(&test).await;
    for attempt in [0, 2] {
        let author = of_call(&claim, attempt, "call_1");
        assert_eq!(test.workspace.create(author, project("Harbour")).await.unwrap(), Outcome::Fenced);
    }
    changed(test.workspace.create(of_call(&claim, 1, "call_1"), project("Harbour")).await.unwrap());
    assert_eq!(test.dump(ANN).await.len(), 1);
}

async fn a_run_is_undone_from_its_first_change_to_its_last(test: TestWorkspace) {
    let before = changed(test.workspace.create(Author::user(ANN), project("Old")).await.unwrap());
    let first_dump = test.dump(ANN).await;
    let claim = claim(&test).await;
    let author = |call_id| of_call(&claim, 1, call_id);
    let created = changed(test.workspace.create(author("call_1"), project("New")).await.unwrap());
    changed(test.workspace.update(author("call_2"), before.id, renaming("Newer")).await.unwrap());
    changed(test.workspace.update(author("call_3"), before.id, renaming("Newest")).await.unwrap());
    changed(test.workspace.update(Author::user(ANN), created.id, renaming("Mine")).await.unwrap());
    assert_eq!(
        test.workspace.undo(Author::user(ANN), Undone::Run(claim.run_id), true).await.unwrap(),
        Undo::Live,
        "the run has not ended"
    );
    let answer = Answer::default();
    test.storage.finish(&claim, None, claim.started.id, &answer, &Ending::Completed).await.unwrap();
    let undo = |force| test.workspace.undo(Author::user(ANN), Undone::Run(claim.run_id), force);
    assert_eq!(undo(false).await.unwrap(), Undo::Conflicts(vec![(Kind::Project, created.id)]));
    match undo(true).await.unwrap() {
        Undo::Done { undone, left_out, .. } => {
            assert_eq!((undone, left_out), (vec![(Kind::Project, before.id)], vec![(Kind::Project, created.id)]));
        }
        other => panic!("{other:?}"),
    }
    let dump = test.dump(ANN).await;
    assert_eq!(
        dump.iter().filter(|entity| entity.1 == before.id).collect::<Vec<_>>(),
        first_dump.iter().collect::<Vec<_>>()
    );
    let nothing = test.workspace.undo(Author::user(ANN), Undone::Run(Uuid::now_v7()), false).await.unwrap();
    assert_eq!(nothing, Undo::NotFound);
}
