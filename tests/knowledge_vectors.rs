//! The vectors of documents: what they find, what a provider refuses, an outage, and a change of the model.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use test_servers::Postgres;

use crate::{
    in_both_modes, in_either_mode,
    knowledge::{HARBOUR, add, ask, code_of, collection, ingest, path_of, search, text_of},
    support::{Client, Deployment, ScaledOut, of_kind, until, upstream::TestUpstream},
};

in_both_modes!(
    a_change_of_the_model_reaches_all_documents_while_searches_find_them,
    vectors_are_paid_once_and_find_what_words_do_not,
);
in_either_mode!(
    a_refused_passage_costs_its_own_vector_alone,
    a_provider_that_refuses_everything_refuses_no_passage,
    vectors_missing_after_an_outage_come_by_themselves,
);

/// A question whose words are not in `HARBOUR`, but their meaning is.
const BY_MEANING: &str = "mooring price";

fn embedding(deployment: Deployment, upstream: &TestUpstream) -> Deployment {
    deployment
        .with("HOLDFAST_EMBEDDING_PROVIDER", "openai")
        .with("HOLDFAST_EMBEDDING_MODEL", "meanings")
        .with("HOLDFAST_EMBEDDING_BASE_URL", &upstream.base_url)
        .with("HOLDFAST_EMBEDDING_PAUSE_MS", 100)
        .with("HOLDFAST_MODEL_RETRIES", 0)
        .with("HOLDFAST_PASSAGE_CHARS", 60)
}

/// Returns how often the provider has given a vector of a passage by a model.
fn paid(upstream: &TestUpstream, model: &str) -> BTreeMap<String, usize> {
    let mut paid = BTreeMap::new();
    for request in upstream.requests().iter().filter(|request| request["model"] == model) {
        let texts = request["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
        for text in texts.filter(|text| !text.contains(BY_MEANING)) {
            *paid.entry(text.to_owned()).or_default() += 1;
        }
    }
    paid
}

/// Asserts that a question finds the document by the meaning of its words alone. While there are vectors of two models, the
/// nearest passage of each comes first.
async fn expect_found(client: &Client, collection: &str, document: &Value) {
    assert!(search(client, collection, BY_MEANING).await.is_empty());
    let told = told(client, collection).await;
    let passages = told[0]["passages"].as_array().unwrap();
    assert!(passages.iter().take(2).any(|passage| passage["document"] == document["id"]), "{told:?}");
}

/// Returns the events with the passages for a question by meaning.
async fn told(client: &Client, collection: &str) -> Vec<Value> {
    let run = ask(client, collection, &format!("{BY_MEANING} [tokens=1]")).await;
    let frames = client.events(run["id"].as_str().unwrap(), None).await.rest().await;
    of_kind(&frames, "context.retrieved").into_iter().cloned().collect()
}

async fn documents(client: &Client, collection: &str) -> Vec<Value> {
    let listed = client.get(&format!("{collection}/documents")).await.unwrap();
    listed["items"].as_array().unwrap().clone()
}

/// Waits until all documents have all vectors of a model.
async fn wait_for_vectors(client: &Client, collection: &str, model: &str) {
    until("all documents have the vectors of the model", || async {
        let has = |document: &Value| document["vectors"] == "complete" && document["vectors_model"] == model;
        documents(client, collection).await.iter().all(has).then_some(())
    })
    .await;
}

async fn a_change_of_the_model_reaches_all_documents_while_searches_find_them(deployment: Deployment) {
    let upstream = TestUpstream::start(&["fine"]).await;
    let mut deployment = embedding(deployment, &upstream);
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let harbour = ingest(&client, &collection, "harbour.md", HARBOUR).await;
    assert_eq!((&harbour["vectors"], &harbour["vectors_error"]), (&json!("complete"), &Value::Null), "{harbour}");
    for wood in ["ash", "beech", "elm", "oak"] {
        ingest(&client, &collection, &format!("{wood}.md"), format!("The keel of {wood} holds.")).await;
    }
    expect_found(&client, &collection, &harbour).await;
    let passages = paid(&upstream, "meanings");
    upstream.set_away(Some("newer"));
    let mut deployment = deployment.with("HOLDFAST_EMBEDDING_MODEL", "newer");
    deployment.kill_worker();
    let client = deployment.client();
    until("a run in the background has failed", || async {
        let failed = |document: &Value| document["vectors_error"]["code"] == "model_unavailable";
        documents(&client, &collection).await.iter().any(failed).then_some(())
    })
    .await;
    let harbour = client.get(&path_of(&harbour)).await.unwrap();
    let state = (&harbour["status"], &harbour["vectors"], &harbour["vectors_model"]);
    assert_eq!(state, (&json!("ready"), &json!("complete"), &json!("openai/meanings")), "the earlier vectors serve");
    expect_found(&client, &collection, &harbour).await;
    until("no run in the background is unfinished", || async {
        client.post(&format!("{}/retry", path_of(&harbour)), json!({})).await.ok()
    })
    .await;
    upstream.set_away(None);
    expect_found(&client, &collection, &harbour).await;
    wait_for_vectors(&client, &collection, "openai/newer").await;
    expect_found(&client, &collection, &harbour).await;
    assert_eq!(paid(&upstream, "newer"), passages, "each passage is paid once");
    assert_eq!(paid(&upstream, "meanings"), passages);
    let refused = client.post(&format!("{}/retry", path_of(&harbour)), json!({})).await;
    assert_eq!(code_of(refused), (409, "nothing_to_retry".into()));
    // The run of a document removes the earlier vectors last.
    for document in documents(&client, &collection).await {
        client.wait_for_run(document["run_id"].as_str().unwrap()).await;
    }
    deployment.kill_worker();
    let mut deployment = deployment.with("HOLDFAST_EMBEDDING_MODEL", "meanings");
    let client = deployment.client();
    wait_for_vectors(&client, &collection, "openai/meanings").await;
    let twice: BTreeMap<String, usize> = passages.into_iter().map(|(text, times)| (text, times * 2)).collect();
    assert_eq!(paid(&upstream, "meanings"), twice, "the vectors of the model before were removed");
}

async fn a_refused_passage_costs_its_own_vector_alone(deployment: Deployment) {
    let upstream = TestUpstream::refusing("unspeakable", &["fine"]).await;
    let mut deployment = embedding(deployment, &upstream);
    let client = deployment.client();
    let collection = collection(&client, "Words").await;
    let paragraph = |n: usize| format!("Paragraph p{n} says that a keel holds the ship.\n\n");
    let text: String = (0..9).map(paragraph).chain(["The unspeakable word.\n\n".into()]).collect();
    let document = ingest(&client, &collection, "words.md", text).await;
    assert_eq!((&document["status"], &document["vectors"]), (&json!("ready"), &json!("partial")), "{document}");
    assert_eq!(document["vectors_error"]["code"], "passages_refused");
    assert_eq!(search(&client, &collection, "unspeakable").await.len(), 1);
    let paid = paid(&upstream, "meanings");
    assert_eq!(paid.values().copied().collect::<Vec<_>>(), [1; 9], "{paid:?}");
    let refused = client.post(&format!("{}/retry", path_of(&document)), json!({})).await;
    assert_eq!(code_of(refused), (409, "nothing_to_retry".into()), "the provider's refusal is final");
}

async fn a_provider_that_refuses_everything_refuses_no_passage(deployment: Deployment) {
    let upstream = TestUpstream::refusing("", &["fine"]).await;
    let mut deployment = embedding(deployment, &upstream).with("HOLDFAST_EMBEDDING_PAUSE_MS", 600_000);
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let added = add(&client, &collection, "harbour.md", HARBOUR).await;
    let run = client.wait_for_run(added["run"]["id"].as_str().unwrap()).await;
    assert_eq!(run["status"], "completed");
    let said = run["output_message"]["content"].as_str().unwrap();
    assert!(said.contains("is ready") && said.contains("refused the request"), "{said}");
    let frames = client.events(run["id"].as_str().unwrap(), None).await.rest().await;
    assert_eq!(of_kind(&frames, "warning.raised")[0]["code"], "vectors_missing");
    let document = client.get(&path_of(&added["document"])).await.unwrap();
    assert_eq!((&document["status"], &document["vectors"]), (&json!("ready"), &json!("none")));
    assert_eq!(document["vectors_error"]["code"], "model_refused");
    assert!(!search(&client, &collection, "berth").await.is_empty());
}

async fn vectors_missing_after_an_outage_come_by_themselves(deployment: Deployment) {
    let upstream = TestUpstream::start(&["fine"]).await;
    let mut deployment = embedding(deployment, &upstream);
    let client = deployment.client();
    let collection = collection(&client, "Ports").await;
    upstream.set_away(Some("meanings"));
    let document = ingest(&client, &collection, "harbour.md", HARBOUR).await;
    assert_eq!((&document["status"], &document["vectors"]), (&json!("ready"), &json!("none")), "{document}");
    assert!(!search(&client, &collection, "berth").await.is_empty());
    upstream.set_away(None);
    wait_for_vectors(&client, &collection, "openai/meanings").await;
    expect_found(&client, &collection, &document).await;
    assert!(paid(&upstream, "meanings").values().all(|times| *times == 1));
}

async fn vectors_are_paid_once_and_find_what_words_do_not(deployment: Deployment) {
    let upstream = TestUpstream::start(&["fine"]).await;
    let mut deployment = deployment
        .with("HOLDFAST_EMBEDDING_PROVIDER", "openai")
        .with("HOLDFAST_EMBEDDING_MODEL", "meanings")
        .with("HOLDFAST_EMBEDDING_BASE_URL", &upstream.base_url)
        .with("HOLDFAST_EMBEDDING_BATCH", 1)
        .with("HOLDFAST_PASSAGE_CHARS", 60);
    let mut client = deployment.client();
    let collection = collection(&client, "Ports").await;
    let paragraph = |n: usize| format!("Paragraph p{n} says that a keel holds the ship.\n\n");
    let long: String = (0..150).map(paragraph).chain(["A berth costs twelve crowns.\n\n".into()]).collect();
    let added = add(&client, &collection, "long.md", long).await;
    for asked in [20, 60, 100] {
        until("the provider was asked", || async { (upstream.requests().len() >= asked).then_some(()) }).await;
        deployment.kill_worker();
        client = deployment.client();
    }
    let run = client.wait_for_run(added["run"]["id"].as_str().unwrap()).await;
    assert_eq!(run["status"], "completed", "{run}");
    let mut paid: BTreeMap<String, usize> = BTreeMap::new();
    for request in upstream.requests() {
        *paid.entry(request["input"][0].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let passages = client.get(&path_of(&added["document"])).await.unwrap()["passages"].as_u64().unwrap();
    let again = paid.values().filter(|times| **times > 1).count();
    assert_eq!(paid.len() as u64, passages);
    assert!(again <= 3 && paid.values().all(|times| *times <= 2), "only calls in flight may be repeated: {again}");
    assert!(search(&client, &collection, "mooring price").await.is_empty());
    let run = ask(&client, &collection, "mooring price [cite=1] [tokens=1]").await;
    let cited = &run["output_message"]["retrieval_context"]["documents"][0];
    let place = format!("?from={}&to={}", cited["start"], cited["end"]);
    assert!(text_of(&client, &added["document"], &place).await.contains("A berth costs"), "{run}");
}

#[tokio::test]
async fn pgvector_finds_by_meaning_what_has_no_room_in_memory() {
    let upstream = TestUpstream::start(&["fine"]).await;
    let database = Postgres::database_for_pgvector();
    let deployment = || {
        let deployment = Deployment::of(ScaledOut::on(database.url().to_owned(), None));
        embedding(deployment, &upstream).with("HOLDFAST_VECTOR_BYTES", 1)
    };
    let mut without = deployment();
    let client = without.client();
    let collection = collection(&client, "Ports").await;
    let before = ingest(&client, &collection, "harbour.md", HARBOUR).await;
    assert_eq!(before["vectors"], "complete");
    assert!(told(&client, &collection).await.is_empty(), "words alone find passages");
    drop(without);
    database.execute("create extension vector");
    let mut with = deployment();
    let client = with.client();
    until("the sweep has copied the vectors from before the extension", || async {
        (!told(&client, &collection).await.is_empty()).then_some(())
    })
    .await;
    expect_found(&client, &collection, &before).await;
    client.delete(&path_of(&before)).await.unwrap();
    assert!(told(&client, &collection).await.is_empty());
    let after = ingest(&client, &collection, "harbour.md", HARBOUR).await;
    expect_found(&client, &collection, &after).await;
}
