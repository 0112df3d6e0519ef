//! Files that a reader sees without saving them.

use super::Visit;
use crate::support::Deployment;

#[tokio::test]
async fn files_of_a_message_are_tables_and_code() {
    Visit::begin(Deployment::embedded(), "sees_files_of_a_message").await.ends().await;
}

#[tokio::test]
async fn documents_of_a_collection_are_tables_and_code() {
    Visit::begin(Deployment::embedded(), "sees_documents_of_a_collection").await.ends().await;
}
