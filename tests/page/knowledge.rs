//! Collections of documents on the page.

use serde_json::json;

use super::Visit;
use crate::support::{Deployment, upstream::TestUpstream};

#[tokio::test]
async fn a_document_is_added_found_and_read_at_its_place() {
    Visit::begin(Deployment::embedded(), "keeps_a_document").await.ends().await;
}

#[tokio::test]
async fn a_broken_document_says_why_and_can_be_tried_again() {
    Visit::begin(Deployment::embedded(), "says_why_a_document_fails").await.ends().await;
}

#[tokio::test]
async fn documents_wait_for_a_server_that_takes_no_more() {
    Visit::begin(Deployment::embedded(), "waits_for_the_server").await.ends().await;
}

#[tokio::test]
async fn a_long_text_is_read_in_parts() {
    Visit::begin(Deployment::embedded(), "reads_a_long_text").await.ends().await;
}

#[tokio::test]
async fn a_new_chat_has_the_chosen_collections_from_its_first_message_on() {
    let (end, client, _deployment) = Visit::begin(Deployment::embedded(), "chooses_knowledge").await.ends().await;
    let conversation = end["conversation"].as_str().unwrap();
    let collections = client.get("/v1/collections").await.unwrap();
    let ids = collections["items"].as_array().unwrap().iter().map(|collection| collection["id"].clone());
    let conversation = client.get(&format!("/v1/conversations/{conversation}")).await.unwrap();
    let mut known = conversation["knowledge"].as_array().unwrap().clone();
    known.sort_by_key(|id| std::cmp::Reverse(id.to_string()));
    assert_eq!(json!(known), json!(ids.collect::<Vec<_>>()), "the newest collection comes first");
}

#[tokio::test]
async fn a_citation_opens_its_document_at_the_place() {
    Visit::begin(Deployment::embedded(), "cites").await.ends().await;
}

#[tokio::test]
async fn a_document_says_which_of_its_passages_have_vectors() {
    let upstream = TestUpstream::refusing("unspeakable", &["fine"]).await;
    let deployment = Deployment::embedded()
        .with("HOLDFAST_EMBEDDING_PROVIDER", "openai")
        .with("HOLDFAST_EMBEDDING_MODEL", "meanings")
        .with("HOLDFAST_EMBEDDING_BASE_URL", &upstream.base_url)
        .with("HOLDFAST_EMBEDDING_PAUSE_MS", 600_000)
        .with("HOLDFAST_MODEL_RETRIES", 0)
        .with("HOLDFAST_PASSAGE_CHARS", 60);
    Visit::begin(deployment, "shows_vectors").await.ends().await;
}
