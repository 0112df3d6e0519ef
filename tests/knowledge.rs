//! Knowledge: documents become ready on any worker, searches find their passages, and limits hold. `knowledge_answers` has the
//! answers from them.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_servers::Bucket;

use crate::{
    files::upload,
    in_both_modes, in_either_mode,
    support::{Client, Deployment, ErrorResponse, Gate, GateMode, of_kind, until},
};

in_both_modes!(a_document_becomes_ready_and_a_search_finds_it, a_deleted_document_is_nowhere,);
in_either_mode!(
    a_failed_document_says_why_and_can_be_tried_again,
    a_collection_is_its_owners_alone_unless_everyone_may_read_it,
    each_limit_of_knowledge_holds_at_its_edge,
    a_repeated_request_is_one_document,
    a_document_that_waits_can_be_cancelled_and_tried_again,
    a_document_under_way_can_be_cancelled,
    documents_are_listed_page_by_page,
    a_silent_store_of_files_holds_up_no_removal_of_documents,
);

pub const HARBOUR: &str = "# Harbour\n\nThe harbour master opens the lock at dawn.\n\n## Fees\n\nA berth costs twelve crowns a night, and the lock is free.\n\n## 中文\n\n港口在日出时开放。\n";

/// Creates a collection, and returns its path.
pub async fn collection(client: &Client, name: &str) -> String {
    let created = client.post("/v1/collections", json!({ "name": name })).await.unwrap();
    format!("/v1/collections/{}", created["id"].as_str().unwrap())
}

/// Adds a file to a collection, and returns the document with its run.
pub async fn add(client: &Client, collection: &str, name: &str, bytes: impl Into<Vec<u8>>) -> Value {
    let file = upload(client, name, bytes).await;
    client.post(&format!("{collection}/documents"), json!({"file_id": file["id"]})).await.unwrap()
}

/// Adds a file, and returns the document when its run has ended.
pub async fn ingest(client: &Client, collection: &str, name: &str, bytes: impl Into<Vec<u8>>) -> Value {
    let added = add(client, collection, name, bytes).await;
    client.wait_for_run(added["run"]["id"].as_str().unwrap()).await;
    client.get(&path_of(&added["document"])).await.unwrap()
}

pub fn path_of(document: &Value) -> String {
    format!("/v1/documents/{}", document["id"].as_str().unwrap())
}

pub async fn text_of(client: &Client, document: &Value, range: &str) -> String {
    let request = client.request(Method::GET, &format!("{}/text{range}", path_of(document)));
    request.send().await.unwrap().error_for_status().unwrap().text().await.unwrap()
}

pub async fn search(client: &Client, collection: &str, query: &str) -> Vec<Value> {
    let url = reqwest::Url::parse_with_params("http://h", [("query", query)]).unwrap();
    let request = client.request(Method::GET, &format!("{collection}/search?{}", url.query().unwrap()));
    let found: Value = request.send().await.unwrap().error_for_status().unwrap().json().await.unwrap();
    found["items"].as_array().unwrap().clone()
}

pub fn code_of<T: std::fmt::Debug>(answer: Result<T, ErrorResponse>) -> (u16, String) {
    let error = answer.unwrap_err();
    (error.status, error.code)
}

/// Asks a question in a conversation with the collection, and returns the ended run.
pub async fn ask(client: &Client, collection: &str, question: &str) -> Value {
    let id = collection.rsplit('/').next().unwrap();
    let conversation = client.post("/v1/conversations", json!({"knowledge": [id]})).await.unwrap();
    assert_eq!(conversation["knowledge"], json!([id]));
    let path = format!("/v1/conversations/{}/messages", conversation["id"].as_str().unwrap());
    let posted = client.post(&path, json!({ "content": question })).await.unwrap();
    client.wait_for_run(posted["run"]["id"].as_str().unwrap()).await
}

async fn a_document_becomes_ready_and_a_search_finds_it(mut deployment: Deployment) {
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let added = add(&client, &collection, "harbour.md", HARBOUR).await;
    let (document, run) = (&added["document"], added["run"]["id"].as_str().unwrap());
    assert_eq!(document["run_id"], added["run"]["id"]);
    let frames = client.events(run, None).await.rest().await;
    let stages: Vec<&str> =
        of_kind(&frames, "document.progress").iter().map(|data| data["stage"].as_str().unwrap()).collect();
    assert_eq!((stages.first(), stages.last()), (Some(&"extract"), Some(&"index")));
    let ready = client.get(&path_of(document)).await.unwrap();
    assert_eq!((&ready["status"], &ready["chars"]), (&json!("ready"), &json!(HARBOUR.chars().count())));
    assert_eq!(text_of(&client, document, "").await, HARBOUR);
    assert_eq!(text_of(&client, document, "?from=2&to=9").await, "Harbour");
    for (query, expected) in [
        ("How much does a berth cost?", "twelve crowns"),
        ("opening locks", "opens the lock"),
        ("日出开放", "港口在日出时开放"),
    ] {
        let found = search(&client, &collection, query).await;
        let first = &found[0];
        assert!(first["text"].as_str().unwrap().contains(expected), "{query}: {found:?}");
        let (start, end) = (first["start"].as_u64().unwrap(), first["end"].as_u64().unwrap());
        assert_eq!(first["text"], text_of(&client, document, &format!("?from={start}&to={end}")).await);
    }
    assert!(search(&client, &collection, "zeppelin").await.is_empty());
    assert!(search(&client, &collection, "?!").await.is_empty());
    let listed = client.get(&format!("{collection}/documents")).await.unwrap();
    assert_eq!(listed["items"], json!([ready]));
    let conversations = client.get("/v1/conversations").await.unwrap();
    assert_eq!(conversations["items"], json!([]), "the conversation of a document is hidden");
}

async fn a_deleted_document_is_nowhere(mut deployment: Deployment) {
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let document = ingest(&client, &collection, "harbour.md", HARBOUR).await;
    client.delete(&path_of(&document)).await.unwrap();
    assert!(search(&client, &collection, "lock").await.is_empty());
    assert_eq!(code_of(client.get(&path_of(&document)).await), (404, "document_not_found".into()));
    let run = ask(&client, &collection, "What does the harbour master open? [cite=1] [tokens=1]").await;
    let message = &run["output_message"];
    assert_eq!(message["content"], "It is so. This ");
    assert_eq!(message["retrieval_context"]["dropped"], json!([{"number": 1, "reason": "not_told"}]));
    client.delete(&collection).await.unwrap();
    assert_eq!(code_of(client.get(&collection).await), (404, "collection_not_found".into()));
    assert_eq!(client.get("/v1/collections").await.unwrap()["items"], json!([]));
}

async fn a_failed_document_says_why_and_can_be_tried_again(mut deployment: Deployment) {
    let client = deployment.client();
    let collection = collection(&client, "Broken").await;
    let broken = ingest(&client, &collection, "broken.pdf", &b"%PDF-1.4 broken"[..]).await;
    assert_eq!((&broken["status"], &broken["error"]["code"]), (&json!("failed"), &json!("malformed_document")));
    assert!(broken["error"]["message"].as_str().unwrap().contains("damaged"));
    let again = client.post(&format!("{}/retry", path_of(&broken)), json!({})).await.unwrap();
    assert_ne!(again["run"]["id"], broken["run_id"]);
    client.wait_for_run(again["run"]["id"].as_str().unwrap()).await;
    let still = client.get(&path_of(&broken)).await.unwrap();
    assert_eq!((&still["status"], &still["run_id"]), (&json!("failed"), &again["run"]["id"]));
    let ready = ingest(&client, &collection, "a.txt", "a text").await;
    let refused = client.post(&format!("{}/retry", path_of(&ready)), json!({})).await;
    assert_eq!(code_of(refused), (409, "nothing_to_retry".into()));
    let empty = ingest(&client, &collection, "b.txt", " \n ").await;
    assert_eq!(empty["error"]["code"], "no_text");
}

async fn a_document_that_waits_can_be_cancelled_and_tried_again(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_WORKER_CONCURRENCY", 1);
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let mut busy = client.stream("[tokens=100000] [delay=50]").await;
    busy.up_to("message.delta").await;
    let added = add(&client, &collection, "harbour.md", HARBOUR).await;
    cancel(&client, added["run"]["id"].as_str().unwrap()).await;
    let path = path_of(&added["document"]);
    let document = client.get(&path).await.unwrap();
    assert_eq!((&document["status"], &document["error"]), (&json!("cancelled"), &Value::Null));
    cancel(&client, &busy.run_id).await;
    let again = client.post(&format!("{path}/retry"), json!({})).await.unwrap();
    client.wait_for_run(again["run"]["id"].as_str().unwrap()).await;
    assert_eq!(client.get(&path).await.unwrap()["status"], "ready");
}

async fn a_document_under_way_can_be_cancelled(deployment: Deployment) {
    let mut bucket = Bucket::start();
    let mut deployment =
        bucket.settings().into_iter().fold(deployment, |deployment, (name, value)| deployment.with(name, value));
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let file = upload(&client, "harbour.md", HARBOUR).await;
    bucket.stop();
    let added = client.post(&format!("{collection}/documents"), json!({"file_id": file["id"]})).await.unwrap();
    let run_id = added["run"]["id"].as_str().unwrap();
    client.events(run_id, None).await.up_to("document.progress").await;
    cancel(&client, run_id).await;
    assert_eq!(client.get(&path_of(&added["document"])).await.unwrap()["status"], "cancelled");
}

async fn cancel(client: &Client, run_id: &str) {
    client.post(&format!("/v1/runs/{run_id}/cancel"), json!({})).await.unwrap();
    assert_eq!(client.wait_for_run(run_id).await["status"], "cancelled");
}

async fn documents_are_listed_page_by_page(mut deployment: Deployment) {
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let mut added = Vec::new();
    for name in ["a.md", "b.md", "c.md"] {
        added.push(ingest(&client, &collection, name, name).await);
    }
    added.reverse();
    let path = format!("{collection}/documents?limit=2");
    let page = client.get(&path).await.unwrap();
    assert_eq!(page["items"], json!(added[..2]), "the newest comes first");
    let rest = client.get(&format!("{path}&cursor={}", page["next"].as_str().unwrap())).await.unwrap();
    assert_eq!((&rest["items"], &rest["next"]), (&json!(added[2..]), &Value::Null));
    assert_eq!(code_of(client.get(&format!("{path}&cursor=x")).await), (400, "invalid_cursor".into()));
}

async fn a_collection_is_its_owners_alone_unless_everyone_may_read_it(mut deployment: Deployment) {
    let base = deployment.client();
    let (ann, bob) = (base.user("ann"), base.user("bob"));
    let own = collection(&ann, "Ann's").await;
    let document = ingest(&ann, &own, "harbour.md", HARBOUR).await;
    let retry = format!("{}/retry", path_of(&document));
    for answer in [
        bob.get(&own).await,
        bob.get(&path_of(&document)).await,
        bob.get(&format!("{own}/documents")).await,
        bob.get(&format!("{own}/search?query=lock")).await,
        bob.get(&format!("{}/text", path_of(&document))).await,
        bob.post(&retry, json!({})).await,
        bob.delete(&own).await,
        bob.delete(&path_of(&document)).await,
        bob.post("/v1/conversations", json!({"knowledge": [own.rsplit('/').next().unwrap()]})).await,
    ] {
        assert_eq!(answer.unwrap_err().status, 404);
    }
    let file = upload(&bob, "b.txt", "bob's").await;
    let into = bob.post(&format!("{own}/documents"), json!({"file_id": file["id"]})).await;
    assert_eq!(code_of(into), (404, "collection_not_found".into()));
    let foreign = ann.post(&format!("{own}/documents"), json!({"file_id": file["id"]})).await;
    assert_eq!(code_of(foreign), (404, "file_not_found".into()));
    let shared = ann.post("/v1/collections", json!({"name": "All's", "readable_by": "everyone"})).await.unwrap();
    let shared = format!("/v1/collections/{}", shared["id"].as_str().unwrap());
    let document = ingest(&ann, &shared, "harbour.md", HARBOUR).await;
    let seen = bob.get(&path_of(&document)).await.unwrap();
    assert_eq!((&seen["status"], &seen["file_id"], &seen["run_id"]), (&json!("ready"), &Value::Null, &Value::Null));
    let run = ask(&bob, &shared, "What does the harbour master open? [cite=1] [tokens=1]").await;
    assert_eq!(run["output_message"]["retrieval_context"]["documents"][0]["id"], document["id"]);
    assert_eq!(code_of(bob.delete(&path_of(&document)).await).0, 404);
    assert_eq!(bob.get("/v1/collections").await.unwrap()["items"], json!([]));
}

async fn each_limit_of_knowledge_holds_at_its_edge(deployment: Deployment) {
    let mut deployment = deployment
        .with("HOLDFAST_OWNER_COLLECTIONS", 2)
        .with("HOLDFAST_OWNER_DOCUMENTS", 3)
        .with("HOLDFAST_OWNER_TEXT_BYTES", 990)
        .with("HOLDFAST_MAX_DOCUMENT_BYTES", 1000)
        .with("HOLDFAST_PASSAGE_CHARS", 100)
        .with("HOLDFAST_KNOWLEDGE_TOKENS", 60)
        .with("HOLDFAST_EXTRACTIONS", 1);
    let client = deployment.client();
    let collection = collection(&client, "a").await;
    client.post("/v1/collections", json!({"name": "b"})).await.unwrap();
    let third = client.post("/v1/collections", json!({"name": "c"})).await;
    assert_eq!(code_of(third), (403, "too_many_collections".into()));
    for name in ["", " ", &"x".repeat(201)] {
        let refused = client.post("/v1/collections", json!({ "name": name })).await;
        assert_eq!(code_of(refused), (400, "invalid_collection".into()));
    }
    let words = "The keel holds fast. ".repeat(47);
    let full = ingest(&client, &collection, "full.txt", words.trim_end()).await;
    assert_eq!((&full["status"], full["chars"].as_u64().unwrap() < 1000), (&json!("ready"), true));
    let longest = search(&client, &collection, "keel").await;
    assert!(longest.iter().all(|found| found["text"].as_str().unwrap().chars().count() <= 100));
    let long = ingest(&client, &collection, "long.txt", "x".repeat(1001)).await;
    assert_eq!(long["error"]["code"], "document_too_large");
    let picture = upload(&client, "a.png", &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..]).await;
    let refused = client.post(&format!("{collection}/documents"), json!({"file_id": picture["id"]})).await;
    assert_eq!(code_of(refused), (415, "document_type_refused".into()));
    // The first text has 986 bytes.
    let third = ingest(&client, &collection, "third.txt", "third").await;
    assert_eq!((&third["status"], &third["error"]["code"]), (&json!("failed"), &json!("too_much_text")));
    assert!(third["error"]["message"].as_str().unwrap().contains("990 bytes"), "{third}");
    let file = upload(&client, "fourth.txt", "fourth").await;
    let fourth = client.post(&format!("{collection}/documents"), json!({"file_id": file["id"]})).await;
    assert_eq!(code_of(fourth), (403, "too_many_documents".into()));
    let run = ask(&client, &collection, "Does the keel hold fast, friends?").await;
    let frames = client.events(run["id"].as_str().unwrap(), None).await.rest().await;
    let told = of_kind(&frames, "context.retrieved")[0]["passages"].as_array().unwrap().len();
    assert_eq!(told, 2, "two passages of 100 characters have at most 60 tokens");
    client.delete(&path_of(&full)).await.unwrap();
    until("the sweeper has made room", || async {
        let again = client.post(&format!("{}/retry", path_of(&third)), json!({})).await.unwrap();
        let run = client.wait_for_run(again["run"]["id"].as_str().unwrap()).await;
        (run["status"] == "completed").then_some(())
    })
    .await;
}

async fn a_repeated_request_is_one_document(mut deployment: Deployment) {
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let file = upload(&client, "a.txt", "a text").await;
    let add = |title: &'static str| {
        let body = json!({"file_id": file["id"], "title": title});
        let request = client.request(Method::POST, &format!("{collection}/documents"));
        request.header("idempotency-key", "k").json(&body).send()
    };
    let first: Value = add("A").await.unwrap().json().await.unwrap();
    let second = add("A").await.unwrap();
    assert_eq!(second.status(), StatusCode::ACCEPTED);
    let second: Value = second.json().await.unwrap();
    assert_eq!((&second["document"]["id"], &second["run"]["id"]), (&first["document"]["id"], &first["run"]["id"]));
    assert_eq!(add("B").await.unwrap().status(), StatusCode::UNPROCESSABLE_ENTITY);
    let listed = client.get(&format!("{collection}/documents")).await.unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

async fn a_silent_store_of_files_holds_up_no_removal_of_documents(deployment: Deployment) {
    let bucket = tokio::task::spawn_blocking(Bucket::start).await.unwrap();
    let mut deployment = deployment.with("HOLDFAST_OWNER_DOCUMENTS", 1);
    let mut gate = None;
    for (variable, value) in bucket.settings() {
        let value = match value.strip_prefix("http://") {
            // The gate knows servers by the URLs of databases.
            Some(address) => {
                let gate = gate.insert(Gate::before(&format!("s3@{address}/"), GateMode::Open));
                gate.url().replacen("s3@", "http://", 1)
            }
            None => value,
        };
        deployment = deployment.with(variable, value);
    }
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let document = ingest(&client, &collection, "harbour.md", HARBOUR).await;
    let (unused, next) = (upload(&client, "a.txt", "a").await, upload(&client, "b.txt", "b").await);
    gate.unwrap().set_mode(GateMode::Silent);
    client.delete(&format!("/v1/files/{}", unused["id"].as_str().unwrap())).await.unwrap();
    client.delete(&path_of(&document)).await.unwrap();
    until("the sweeper has removed the document", || async {
        client.post(&format!("{collection}/documents"), json!({"file_id": next["id"]})).await.ok()
    })
    .await;
}
