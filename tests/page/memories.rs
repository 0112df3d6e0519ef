//! The page of memories.

use serde_json::json;

use super::Visit;
use crate::support::Deployment;

#[tokio::test]
async fn memories_are_found_changed_exported_and_deleted_on_the_page() {
    let (left, ..) = Visit::begin(Deployment::embedded(), "keeps_memories").await.ends().await;
    assert_eq!(left, json!([]));
}

#[tokio::test]
async fn memories_fit_on_a_phone() {
    Visit::begin(Deployment::embedded(), "reads_memories_on_a_phone").await.ends().await;
}

#[tokio::test]
async fn a_change_of_a_memory_is_kept() {
    Visit::begin(Deployment::embedded(), "keeps_a_change_of_a_memory").await.ends().await;
}
