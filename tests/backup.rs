//! A backup that is restored: documents, files and citations work as before, and new ones too.

use std::{fs, path::Path, process::Command};

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use test_servers::{Postgres, TestDatabase};

use crate::{
    files::{PIXEL, upload},
    knowledge::{ask, collection, ingest, path_of, search, text_of},
    support::{Client, Deployment, Embedded, ScaledOut},
};

const TIDES: &str = "# Tides\n\nThe flood begins an hour before midnight.\n";

/// The data of a user at the time of the backup.
struct Inventory {
    collection: String,
    document: Value,
    picture: Value,
    answer: Value,
}

async fn contents_of(client: &Client, file: &Value) -> Vec<u8> {
    let request = client.request(Method::GET, &format!("/v1/files/{}", file["id"].as_str().unwrap()));
    request.send().await.unwrap().error_for_status().unwrap().bytes().await.unwrap().to_vec()
}

async fn fill(client: &Client) -> Inventory {
    let collection = collection(client, "Ports").await;
    let document = ingest(client, &collection, "tides.md", TIDES).await;
    let picture = upload(client, "pixel.png", PIXEL).await;
    let answer = ask(client, &collection, "When does the flood begin? [cite] [tokens=1]").await;
    assert_eq!(answer["output_message"]["retrieval_context"]["documents"][0]["id"], document["id"]);
    Inventory { collection, document, picture, answer }
}

async fn check(client: &Client, inventory: &Inventory) {
    let Inventory { collection, document, picture, answer } = inventory;
    assert_eq!(client.get(&path_of(document)).await.unwrap(), *document);
    assert_eq!(text_of(client, document, "").await, TIDES);
    assert_eq!(search(client, collection, "midnight").await.len(), 1);
    assert_eq!(contents_of(client, picture).await, PIXEL);
    let of_document = json!({"id": document["file_id"]});
    assert_eq!(contents_of(client, &of_document).await, TIDES.as_bytes());
    let run = client.run(answer["id"].as_str().unwrap()).await;
    assert_eq!(run["output_message"], answer["output_message"]);
    let again = ask(client, collection, "When does the flood begin? [cite] [tokens=1]").await;
    let cited = |run: &Value| run["output_message"]["retrieval_context"]["documents"].clone();
    assert_eq!(cited(&again), cited(answer));
    let second = ingest(client, collection, "second.md", "The ebb begins at dawn.").await;
    assert_eq!(second["status"], "ready", "{second}");
}

fn copy_folder(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").args([from, to]).status().unwrap();
    assert!(copied.success());
}

/// Copies a database while it is in use, as `.backup` of SQLite's shell does.
const BACK_UP: &str = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).backup(sqlite3.connect(sys.argv[2]))";

#[tokio::test]
async fn a_restored_data_folder_has_its_documents_files_and_citations() {
    let original = Embedded::new();
    let mut deployment = Deployment::on(original.clone());
    let client = deployment.client();
    let inventory = fill(&client).await;
    let restored = Embedded::new();
    fs::create_dir(restored.data_dir()).unwrap();
    let [from, to] = [&original, &restored].map(|embedded| embedded.data_dir().join("holdfast.db"));
    let backed_up = Command::new("python3").args(["-c", BACK_UP]).args([&from, &to]).output().unwrap();
    assert!(backed_up.status.success(), "{}", String::from_utf8_lossy(&backed_up.stderr));
    copy_folder(&original.data_dir().join("files"), &restored.data_dir().join("files"));
    ingest(&client, &inventory.collection, "later.md", "Later than the backup.").await;
    deployment.shut_down();

    let mut deployment = Deployment::on(restored);
    let client = deployment.client();
    check(&client, &inventory).await;
    assert!(search(&client, &inventory.collection, "later backup").await.is_empty());
}

#[tokio::test]
async fn a_restored_dump_has_its_documents_and_citations_and_those_files_whose_folder_is_copied() {
    for is_in_folder in [true, false] {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let with_files = |scaled: ScaledOut, folder: &TempDir| {
            let url = format!("file://{}/files", folder.path().display());
            if is_in_folder { scaled.with("HOLDFAST_FILES_URL", url) } else { scaled }
        };
        let [original, empty] = two_databases().await;
        let url = original.url().to_owned();
        let mut deployment = Deployment::of(with_files(ScaledOut::on(url, None), &folders[0]));
        let inventory = fill(&deployment.client()).await;
        empty.restore(&original.dump(&[]));
        if is_in_folder {
            copy_folder(&folders[0].path().join("files"), &folders[1].path().join("files"));
        }
        deployment.shut_down();

        let url = empty.url().to_owned();
        let restored = with_files(ScaledOut::as_it_is(url, Some(empty)), &folders[1]);
        let mut deployment = Deployment::of(restored);
        check(&deployment.client(), &inventory).await;
    }
}

async fn two_databases() -> [TestDatabase; 2] {
    tokio::task::spawn_blocking(|| [Postgres::database(), Postgres::database()]).await.unwrap()
}
