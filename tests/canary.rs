//! A text that was uploaded, remembered, cited and returned by a tool, and then deleted: no byte of it stays in SQLite's files,
//! in PostgreSQL's, in Redis, in the store of files, or in a log.
//!
//! An operator does for that what `docs/operations/erasure.md` says, and so do these tests.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use reqwest::Method;
use serde_json::{Value, json};
use test_servers::{Bucket, Postgres, TestDatabase};

use crate::{
    files::upload,
    knowledge::{collection, ingest, path_of, search},
    support::{Client, Deployment, Embedded, ScaledOut, agent, answer, frames_of, of_kind, tools::ToolServer, until},
};

/// A word that stands nowhere else. Stemming leaves it as it is.
const CANARY: &str = "qwxkvjhbt";

/// The part of it that is searched for, because an index may store the letters that a word shares with another one only once.
const TRACE: &str = "xkvjhbt";

/// Settings of each deployment here: short passages, so that the collection is large enough for a sample of its words.
fn configured(deployment: Deployment) -> Deployment {
    deployment.with("HOLDFAST_PASSAGE_CHARS", 100).with("HOLDFAST_SWEEP_MS", 250)
}

/// Returns the files below a folder that have the canary, except PostgreSQL's write-ahead log.
fn files_with_canary(folder: &Path) -> Vec<String> {
    let mut grep = Command::new("grep");
    let found = grep.args(["-rlasiF", "--exclude-dir=pg_wal", TRACE]).arg(folder).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn has_canary(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).to_lowercase().contains(TRACE)
}

/// Returns a document of 1,200 paragraphs, each a passage, with the canary in titles and texts.
fn document() -> String {
    let paragraph = |n: usize| {
        let title = if n.is_multiple_of(100) { format!("## The {CANARY} of part {n}\n\n") } else { String::new() };
        format!("{title}The {CANARY} sings in paragraph {n} of a harbour and a keel.\n\n")
    };
    (0..1200).map(paragraph).collect()
}

/// The document of a user, and a collection that stays.
struct Traces {
    kept: String,
    document: Value,
}

/// Brings the canary to each place that files, knowledge, memory and a tool have.
async fn sing(client: &Client) -> Traces {
    let kept = collection(client, "Kept").await;
    ingest(client, &kept, "plain.md", "# Plain\n\nThe harbour master opens the lock at dawn.").await;
    let document = ingest(client, &kept, &format!("{CANARY}.md"), document()).await;
    assert_eq!(document["status"], "ready", "{document}");
    let named = json!({"name": format!("The {CANARY}"), "description": CANARY});
    client.post("/v1/collections", named).await.unwrap();
    assert!(!search(client, &kept, CANARY).await.is_empty());

    let id = kept.rsplit('/').next().unwrap();
    let conversation = client.post("/v1/conversations", json!({"knowledge": [id], "title": CANARY})).await.unwrap();
    let messages = format!("/v1/conversations/{}/messages", conversation["id"].as_str().unwrap());
    let file = upload(client, &format!("{CANARY}.txt"), format!("a file of the {CANARY}")).await;
    let content = json!([
        {"type": "text", "text": format!("Where does the {CANARY} sing? [cite] [tokens=2]")},
        {"type": "file", "file_id": file["id"]}
    ]);
    let request = client.request(Method::POST, &messages).header("idempotency-key", format!("key-{CANARY}"));
    let posted = answer(request.json(&json!({ "content": content }))).await.unwrap();
    let run = client.wait_for_run(posted["run"]["id"].as_str().unwrap()).await;
    assert!(run["output_message"]["content"].as_str().unwrap().contains(CANARY), "{run}");

    let content = json!([
        {"type": "text", "text": format!("The tool has heard the {CANARY}.")},
        {"type": "resource", "resource": {
            "uri": format!("file:///{CANARY}.txt"), "mimeType": "text/plain", "blob": "cXd4a3ZqaGJ0IGFnYWlu"
        }}
    ]);
    let server = ToolServer::returning(content).await;
    let more = json!({
        "name": "alma", "memory": true, "knowledge": [id], "tools": {"kb__count": {"effect": "read_only"}}
    });
    let alma = agent(client, json!([server.describe()]), more).await;
    let remember = json!({"text": format!("Heard the {CANARY}")});
    let input = format!(
        "[call=remember {remember}] [call=recall {{\"query\": \"{CANARY}\"}}] [call=kb__count {{\"note\": \"{CANARY}\"}}] \
         [call=search_knowledge {{\"query\": \"{CANARY}\"}}] [cite=1] [tokens=2]"
    );
    let frames = frames_of(client, &alma, &input).await;
    let calls = of_kind(&frames, "tool_call.completed");
    assert!(calls.len() == 4 && calls.iter().all(|call| call["error"].is_null()), "{calls:#?}");
    Traces { kept, document }
}

/// Deletes each thing by its own route, except the collection that stays.
async fn delete_each(client: &Client, traces: &Traces) {
    client.delete(&path_of(&traces.document)).await.unwrap();
    client.delete("/v1/users/me/memories").await.unwrap();
    for noun in ["conversations", "files", "collections"] {
        let listed = client.get(&format!("/v1/{noun}")).await.unwrap();
        for item in listed["items"].as_array().unwrap() {
            if noun != "collections" || item["name"] != "Kept" {
                client.delete(&format!("/v1/{noun}/{}", item["id"].as_str().unwrap())).await.unwrap();
            }
        }
    }
}

async fn erase(client: &Client) {
    client.delete("/v1/users/me").await.unwrap();
}

/// Checks that what was not deleted still works.
async fn the_rest_stays(client: &Client, traces: &Traces) {
    let found = search(client, &traces.kept, "harbour master").await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0]["text"].as_str().unwrap().contains("at dawn"));
    assert!(search(client, &traces.kept, CANARY).await.is_empty());
}

fn check_log(deployment: &mut Deployment) {
    let log = deployment.log().to_lowercase();
    let line = log.lines().find(|line| line.contains(TRACE));
    assert_eq!(line, None, "a log has the canary");
}

/// An embedded deployment, and its folder.
fn embedded() -> (Deployment, PathBuf) {
    let embedded = Embedded::new();
    let folder = embedded.data_dir();
    (configured(Deployment::on(embedded)), folder)
}

/// Waits until the sweeper has left nothing in the folder. No operator helps.
async fn gone_from(folder: &Path) {
    until("no file of the folder has the canary", || async { files_with_canary(folder).is_empty().then_some(()) })
        .await;
}

#[tokio::test]
async fn a_deleted_text_leaves_the_data_folder_with_the_next_sweeps() {
    let (mut deployment, folder) = embedded();
    let client = deployment.client();
    let traces = sing(&client).await;
    let found = files_with_canary(&folder).join(" ");
    assert!(found.contains("holdfast.db") && found.contains("/files/"), "{found}");
    delete_each(&client, &traces).await;
    gone_from(&folder).await;
    the_rest_stays(&client, &traces).await;
    check_log(&mut deployment);
    deployment.shut_down();
    assert_eq!(files_with_canary(&folder), [""; 0]);
}

#[tokio::test]
async fn an_erased_user_leaves_the_data_folder_with_the_next_sweeps() {
    let (mut deployment, folder) = embedded();
    let client = deployment.client().user("ann");
    sing(&client).await;
    assert!(!files_with_canary(&folder).is_empty());
    erase(&client).await;
    gone_from(&folder).await;
    check_log(&mut deployment);
}

#[tokio::test]
async fn a_deleted_text_leaves_the_bucket_with_the_next_sweeps() {
    let bucket = tokio::task::spawn_blocking(Bucket::start).await.unwrap();
    let (deployment, folder) = embedded();
    let settings = bucket.settings().into_iter();
    let mut deployment = settings.fold(deployment, |deployment, (name, value)| deployment.with(name, value));
    let client = deployment.client();
    let traces = sing(&client).await;
    assert!(bucket.listing().contains("<Key>"));
    delete_each(&client, &traces).await;
    until("the bucket has no object", || async { (!bucket.listing().contains("<Key>")).then_some(()) }).await;
    gone_from(&folder).await;
}

/// A scaled-out deployment on a PostgreSQL of its own.
struct OnPostgres {
    deployment: Deployment,
    server: Postgres,
    database: TestDatabase,
}

/// Has PostgreSQL store all values uncompressed, so that a search in its files finds them.
const UNCOMPRESSED: &str = "do $$ declare c record; begin
    for c in select table_name, column_name from information_schema.columns
        where table_schema = 'kb' and data_type in ('text', 'jsonb', 'bytea', 'tsvector')
    loop
        execute format('alter table kb.%I alter column %I set storage external', c.table_name, c.column_name);
    end loop;
end $$";

/// Removes the planner's samples of values. `analyze` keeps those of a table that has become empty.
const FORGET_STATISTICS: &str = "delete from pg_statistic
    where starelid in (select oid from pg_class where relnamespace = 'kb'::regnamespace)";

impl OnPostgres {
    async fn start() -> Self {
        let start = || {
            let server = Postgres::start();
            let database = server.create_database();
            let scaled = ScaledOut::on(database.url().to_owned(), None);
            database.execute(UNCOMPRESSED);
            Self { deployment: configured(Deployment::of(scaled)), server, database }
        };
        tokio::task::spawn_blocking(start).await.unwrap()
    }

    /// Waits until the sweeper has removed all rows.
    async fn rows_are_gone(&self) {
        until("no row has the canary", || async {
            // A dump has bytes in hexadecimal digits.
            let digits: String = TRACE.bytes().map(|byte| format!("{byte:02x}")).collect();
            let dump = self.database.dump(&["--data-only"]);
            (!has_canary(&dump) && !String::from_utf8_lossy(&dump).contains(&digits)).then_some(())
        })
        .await;
    }

    /// Cleans the files as an operator does, and checks them.
    async fn bytes_are_gone(&mut self) {
        self.rows_are_gone().await;
        for sql in [FORGET_STATISTICS, "vacuum full", "analyze", "checkpoint"] {
            self.database.execute(sql);
        }
        assert_eq!(files_with_canary(&self.server.data_folder()), [""; 0]);
        until("Redis does not have the canary", || async {
            (!has_canary(&self.deployment.redis_snapshot())).then_some(())
        })
        .await;
        check_log(&mut self.deployment);
    }
}

#[tokio::test]
async fn a_deleted_text_leaves_postgresql_with_a_full_vacuum_and_redis_with_the_next_sweeps() {
    let mut scaled = OnPostgres::start().await;
    let client = scaled.deployment.client();
    let traces = sing(&client).await;
    scaled.database.execute("analyze");
    scaled.database.execute("checkpoint");
    assert!(!files_with_canary(&scaled.server.data_folder()).is_empty());
    assert!(has_canary(&scaled.deployment.redis_snapshot()));
    delete_each(&client, &traces).await;
    scaled.rows_are_gone().await;
    for sql in ["vacuum", "checkpoint"] {
        scaled.database.execute(sql);
    }
    let found = files_with_canary(&scaled.server.data_folder());
    assert!(!found.is_empty(), "a vacuum alone suffices now: tell docs/operations/erasure.md");
    scaled.bytes_are_gone().await;
    the_rest_stays(&client, &traces).await;
}

#[tokio::test]
async fn an_erased_user_leaves_postgresql_with_a_full_vacuum_and_redis_at_once() {
    let mut scaled = OnPostgres::start().await;
    let client = scaled.deployment.client().user("ann");
    sing(&client).await;
    erase(&client).await;
    assert!(!has_canary(&scaled.deployment.redis_snapshot()));
    scaled.bytes_are_gone().await;
}
