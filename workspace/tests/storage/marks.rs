//! Deletions, restorations and their undo: changes that keep what differs between the states, and no more.

use holdfast_shared::{database::Database, page::PageSize, quotas::WorkspaceLimits};
use holdfast_workspace::{Author, Change, Kind, NewEntity, Outcome, Patch, Undo, Undone};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection, SqliteConnection};
use uuid::Uuid;

use crate::{
    backends::{ANN, LIMITS, TestWorkspace, changed},
    on_both_databases,
};

on_both_databases!(
    a_deletion_stores_no_text_again,
    a_change_of_a_mark_has_whole_states_after_later_changes,
    a_deletion_at_the_bounds_is_made_and_one_beyond_them_is_refused,
    a_restoration_and_an_undo_keep_to_the_bounds,
    a_deletion_counts_what_it_stores,
    an_undo_of_many_texts_is_made_in_pieces,
    an_entity_is_forgotten_after_its_changes,
);

/// Makes a project of documents with bodies of so many bytes.
async fn project(test: &TestWorkspace, documents: usize, bytes: usize) -> (Uuid, Vec<Uuid>) {
    let project = test.create(Kind::Project, json!({"name": "Harbour"})).await.id;
    let mut ids = Vec::new();
    for n in 0..documents {
        let body = char::from(b'a' + n as u8).to_string().repeat(bytes);
        let document = json!({"title": format!("d{n}"), "project_id": project, "body": body, "props": {"n": n}});
        ids.push(test.create(Kind::Document, document).await.id);
    }
    (project, ids)
}

async fn delete(test: &TestWorkspace, kind: Kind, id: Uuid) -> Uuid {
    changed(test.workspace.delete(Author::user(ANN), kind, id).await.unwrap());
    newest(test).await.change_set_id
}

async fn newest(test: &TestWorkspace) -> Change {
    test.workspace.changes(ANN, None, None, PageSize::from(1)).await.unwrap().items.remove(0)
}

async fn history(test: &TestWorkspace, kind: Kind, id: Uuid) -> Vec<Change> {
    test.workspace.changes(ANN, Some((kind, id)), None, PageSize::ALL).await.unwrap().items
}

async fn rewrite(test: &TestWorkspace, id: Uuid, body: &str) {
    let patch = Patch::read(Kind::Document, json!({"body": body}).as_object().unwrap().clone()).unwrap();
    changed(test.workspace.update(Author::user(ANN), id, patch).await.unwrap());
}

fn done(undo: Undo) -> Uuid {
    match undo {
        Undo::Done { change_set_id, left_out, .. } if left_out.is_empty() => change_set_id,
        other => panic!("it was not undone: {other:?}"),
    }
}

async fn undo(test: &TestWorkspace, set: Uuid) -> Undo {
    test.workspace.undo(Author::user(ANN), Undone::Set(set), false).await.unwrap()
}

/// Returns a number that a statement of a test reads.
async fn number(test: &TestWorkspace, sql: &'static str) -> i64 {
    match test.urls() {
        (Some(url), _) => {
            let mut connection = PgConnection::connect(&url).await.unwrap();
            sqlx::query("set search_path to kb").execute(&mut connection).await.unwrap();
            sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
        }
        (None, file) => {
            let mut connection = SqliteConnection::connect(&file).await.unwrap();
            sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap()
        }
    }
}

/// Executes a statement of a test, and returns the number of rows that it touched.
async fn execute(test: &TestWorkspace, sql: &'static str) -> u64 {
    match test.urls() {
        (Some(url), _) => {
            let mut connection = PgConnection::connect(&url).await.unwrap();
            sqlx::query("set search_path to kb").execute(&mut connection).await.unwrap();
            sqlx::query(sql).execute(&mut connection).await.unwrap().rows_affected()
        }
        (None, file) => {
            let mut connection = SqliteConnection::connect(&file).await.unwrap();
            sqlx::query(sql).execute(&mut connection).await.unwrap().rows_affected()
        }
    }
}

/// The bytes of the states that changes keep.
const STORED: &str = "
    select cast(
            coalesce(
                sum(
                    octet_length(coalesce(cast(before as text), ''))
                        + octet_length(coalesce(cast(after as text), ''))
                ),
                0
            )
            as bigint
        )
    from onto_changes
    where action <> 'create'
";

async fn a_deletion_stores_no_text_again(test: TestWorkspace) {
    let (id, documents) = project(&test, 5, 100_000).await;
    let task = test.create(Kind::Task, json!({"title": "t", "project_id": id})).await.id;
    let edge = json!({
        "project_id": id, "from_kind": "task", "from_id": task, "relation": "relates_to", "to_kind": "document",
        "to_id": documents[0]
    });
    test.create(Kind::Edge, edge).await;
    let whole = test.dump(ANN).await;
    let deletion = delete(&test, Kind::Project, id).await;
    assert!(test.dump(ANN).await.is_empty());
    let restoration = done(undo(&test, deletion).await);
    assert_eq!(test.dump(ANN).await, whole);
    done(undo(&test, restoration).await);
    changed(test.workspace.restore(Author::user(ANN), Kind::Project, id).await.unwrap());
    assert_eq!(test.dump(ANN).await, whole);
    let stored = number(&test, STORED).await;
    assert!(stored < 4 * 8 * 250, "four changes of eight entities keep {stored} bytes");
    // Each reader still gets whole states, as of any other change.
    let changes = history(&test, Kind::Document, documents[1]).await;
    let actions: Vec<&str> = changes.iter().map(|change| change.action.as_str()).collect();
    assert_eq!(actions, ["restore", "delete", "restore", "delete", "create"]);
    assert!(changes.windows(2).all(|pair| pair[0].before == pair[1].after), "each state is the one before it");
    let now = test.workspace.get(ANN, Kind::Document, documents[1]).await.unwrap().unwrap();
    assert_eq!(changes[0].after, Some(now.state()));
    let deleted = changes[3].after.as_ref().unwrap();
    assert_eq!(deleted["deleted_at"], deleted["updated_at"]);
    assert_eq!((&deleted["version"], &deleted["props"]), (&json!(2), &json!({"n": 1})));
    assert_eq!(deleted["body"].as_str().unwrap().len(), 100_000);
    let edges = test.workspace.changes(ANN, None, None, PageSize::ALL).await.unwrap().items;
    let edge = edges.iter().find(|change| change.kind == Kind::Edge).unwrap().after.as_ref().unwrap();
    assert_eq!((&edge["from_id"], &edge["to_id"]), (&json!(task), &json!(documents[0])));
    // A page ends after the bytes of whole states.
    let small = PageSize { items: 20, bytes: 300_000 };
    assert_eq!(
        test.workspace.changes(ANN, Some((Kind::Document, documents[1])), None, small).await.unwrap().items.len(),
        2
    );
}

async fn a_change_of_a_mark_has_whole_states_after_later_changes(test: TestWorkspace) {
    let (_, documents) = project(&test, 1, 10).await;
    let id = documents[0];
    let first = delete(&test, Kind::Document, id).await;
    changed(test.workspace.restore(Author::user(ANN), Kind::Document, id).await.unwrap());
    let expected = history(&test, Kind::Document, id).await;
    rewrite(&test, id, "second").await;
    assert_eq!(history(&test, Kind::Document, id).await[1..], expected, "a later text is not in earlier states");
    let second = delete(&test, Kind::Document, id).await;
    let changes = history(&test, Kind::Document, id).await;
    assert_eq!(changes[2..], expected);
    assert_eq!(changes[0].before.as_ref().unwrap()["body"], "second");
    // The text has changed since the first deletion, although the entity is deleted again.
    assert_eq!(undo(&test, first).await, Undo::Conflicts(vec![(Kind::Document, id)]));
    done(undo(&test, second).await);
    // Back to the first text, the state is the one that a deletion would have left.
    rewrite(&test, id, "aaaaaaaaaa").await;
    delete(&test, Kind::Document, id).await;
    let conflict = undo(&test, first).await;
    assert_eq!(conflict, Undo::Conflicts(vec![(Kind::Document, id)]), "it was deleted at another time");
}

async fn a_deletion_at_the_bounds_is_made_and_one_beyond_them_is_refused(test: TestWorkspace) {
    let (id, _) = project(&test, 4, 10_000).await;
    let before = test.dump(ANN).await;
    let limited = |entities: usize, bytes: usize| {
        test.limited(WorkspaceLimits { max_change_entities: entities, max_change_bytes: bytes, ..LIMITS })
    };
    for (entities, bytes) in [(4, 1 << 20), (5, 40_800)] {
        match limited(entities, bytes).delete(Author::user(ANN), Kind::Project, id).await.unwrap() {
            Outcome::TooLarge(limit) => {
                assert!(limit.contains(&format!("{entities} entities and {bytes} bytes")), "{limit}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(test.dump(ANN).await, before, "nothing is half done");
    // Four documents have their bodies and titles, 200 bytes each, and their properties.
    let bytes = 4 * (10_000 + 2 + 200 + 10);
    changed(limited(5, bytes).delete(Author::user(ANN), Kind::Project, id).await.unwrap());
    assert!(test.dump(ANN).await.is_empty());
    // An entity without others is deleted, however small the bounds are.
    let (_, documents) = project(&test, 1, 10_000).await;
    changed(limited(1, 1).delete(Author::user(ANN), Kind::Document, documents[0]).await.unwrap());
}

async fn a_restoration_and_an_undo_keep_to_the_bounds(test: TestWorkspace) {
    let (id, _) = project(&test, 4, 1000).await;
    let deletion = delete(&test, Kind::Project, id).await;
    for limits in
        [WorkspaceLimits { max_change_entities: 4, ..LIMITS }, WorkspaceLimits { max_change_bytes: 4000, ..LIMITS }]
    {
        let small = test.limited(limits);
        let restored = small.restore(Author::user(ANN), Kind::Project, id).await.unwrap();
        assert!(matches!(restored, Outcome::TooLarge(_)), "{restored:?}");
        let undone = small.undo(Author::user(ANN), Undone::Set(deletion), false).await.unwrap();
        assert!(matches!(undone, Undo::TooLarge(_)), "{undone:?}");
    }
    let exact = test.limited(WorkspaceLimits { max_change_entities: 5, max_change_bytes: 10_000, ..LIMITS });
    done(exact.undo(Author::user(ANN), Undone::Set(deletion), false).await.unwrap());
}

async fn a_deletion_counts_what_it_stores(test: TestWorkspace) {
    const BYTES: &str = "select bytes from onto_owners where owner_id = 'ann'";
    let (id, _) = project(&test, 3, 50_000).await;
    let before = number(&test, BYTES).await;
    delete(&test, Kind::Project, id).await;
    let deleted = number(&test, BYTES).await;
    assert_eq!(deleted - before, 4 * (400 + 22), "four changes, and the times of four deletions");
    changed(test.workspace.restore(Author::user(ANN), Kind::Project, id).await.unwrap());
    assert_eq!(number(&test, BYTES).await - before, 8 * 400, "the times are gone");
    assert_eq!(number(&test, "select entities from onto_owners where owner_id = 'ann'").await, 4);
}

async fn an_undo_of_many_texts_is_made_in_pieces(test: TestWorkspace) {
    let new = |kind: Kind, input: Value| NewEntity::read_within(kind, input.as_object().unwrap().clone()).unwrap();
    // More bytes than the process has in memory at a time.
    let document = |n: usize| json!({"title": format!("d{n}"), "body": n.to_string().repeat(900_000)});
    let project = new(Kind::Project, json!({"name": "Harbour"}));
    let entities = [project].into_iter().chain((0..6).map(|n| new(Kind::Document, document(n)))).collect();
    let created = changed(test.workspace.create_all(Author::user(ANN), entities).await.unwrap());
    let creation = newest(&test).await.change_set_id;
    let whole = test.dump(ANN).await;
    let deletion = delete(&test, Kind::Project, created[0].id).await;
    assert!(matches!(undo(&test, creation).await, Undo::Conflicts(entities) if entities.len() == 7));
    done(undo(&test, deletion).await);
    let removal = done(undo(&test, creation).await);
    assert!(test.dump(ANN).await.is_empty());
    let changes = history(&test, Kind::Document, created[6].id).await;
    assert_eq!(changes[1].after.as_ref().unwrap()["body"].as_str().unwrap().len(), 900_000, "the row is gone");
    done(undo(&test, removal).await);
    assert_eq!(test.dump(ANN).await, whole);
}

/// Moves all changes and entities to a time that is more than 30 days ago.
async fn age(test: &TestWorkspace) {
    let is_postgres = matches!(test.storage.database(), Database::Postgres(_));
    let statements: [&'static str; 2] = if is_postgres {
        [
            "update onto_changes set created_at = created_at - interval '40 days'",
            "update onto_documents set deleted_at = deleted_at - interval '40 days'",
        ]
    } else {
        [
            "update onto_changes set created_at = '2020' || substr(created_at, 5)",
            "update onto_documents set deleted_at = '2020' || substr(deleted_at, 5)",
        ]
    };
    for sql in statements {
        execute(test, sql).await;
    }
}

async fn an_entity_is_forgotten_after_its_changes(test: TestWorkspace) {
    let (id, documents) = project(&test, 6, 1 << 20).await;
    let other = test.create(Kind::Project, json!({"name": "Port"})).await.id;
    delete(&test, Kind::Project, id).await;
    age(&test).await;
    // Each change forgets records of some four MiB: changes first, the oldest first.
    let mut left = Vec::new();
    for name in ["a", "b", "c"] {
        let rename = Patch::read(Kind::Project, json!({"name": name}).as_object().unwrap().clone()).unwrap();
        changed(test.workspace.update(Author::user(ANN), other, rename).await.unwrap());
        left.push(number(&test, "select count(*) from onto_documents").await);
        // A change is whole as long as it is kept.
        for change in history(&test, Kind::Document, documents[5]).await {
            assert_eq!(change.after.unwrap()["body"].as_str().unwrap().len(), 1 << 20);
        }
    }
    assert_eq!(left, [6, 2, 0]);
    assert_eq!(number(&test, "select count(*) from onto_changes").await, 3);
}
