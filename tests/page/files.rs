//! Files of messages.

use serde_json::{Value, json};

use super::Visit;
use crate::{
    files::asking,
    support::{Client, Deployment, upstream::TestUpstream},
};

/// The names of the files of a conversation's messages, message by message.
async fn names_in(scenario: &str) -> Vec<Vec<String>> {
    names_with(Deployment::embedded(), scenario).await
}

async fn names_with(deployment: Deployment, scenario: &str) -> Vec<Vec<String>> {
    let (end, client, _deployment) = Visit::begin(deployment, scenario).await.ends().await;
    names_at(&end, &client).await
}

/// The names of the files in the conversation that a scenario has ended with.
async fn names_at(end: &Value, client: &Client) -> Vec<Vec<String>> {
    let conversation = end["conversation"].as_str().unwrap();
    let messages = client.get(&format!("/v1/conversations/{conversation}/messages")).await.unwrap();
    let questions = messages["items"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
    let names = questions.map(|message| {
        let files = message["attachments"].as_array().into_iter().flatten();
        files.map(|file| file["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    });
    names.collect()
}

#[tokio::test]
async fn a_pasted_picture_is_sent_described_and_shown() {
    let upstream = TestUpstream::start(&["A ", "teal ", "harbour."]).await;
    let deployment = asking(Deployment::embedded(), &upstream);
    assert_eq!(names_with(deployment, "sends_a_picture").await, [["harbour.png"]]);
    let parts = upstream.requests()[0]["messages"][0]["content"].as_array().unwrap().clone();
    let url = parts.iter().find_map(|part| part["image_url"]["url"].as_str()).unwrap();
    assert!(url.starts_with("data:image/png;base64,iVBORw0KGgo"), "{url}");
    assert!(parts.iter().any(|part| part["text"] == "Which harbour is this?"), "{parts:?}");
}

#[tokio::test]
async fn a_picture_of_a_tool_is_shown_below_its_call() {
    Visit::begin(Deployment::embedded(), "shows_a_picture_of_a_tool").await.ends().await;
}

#[tokio::test]
async fn a_removed_or_refused_file_is_not_sent() {
    assert_eq!(names_in("adds_and_removes_files").await, [["notes.txt"], ["more.txt"]]);
}

#[tokio::test]
async fn a_file_copied_in_a_file_manager_is_pasted() {
    Visit::begin(Deployment::embedded(), "pastes_a_copied_file").await.ends().await;
}

#[tokio::test]
async fn a_folder_is_refused_in_words() {
    Visit::begin(Deployment::embedded(), "refuses_folders").await.ends().await;
}

#[tokio::test]
async fn an_upload_continues_where_its_connection_broke() {
    Visit::begin(Deployment::embedded(), "goes_on_with_an_upload").await.ends().await;
}

#[tokio::test]
async fn an_edit_keeps_the_files_of_its_message() {
    assert_eq!(names_in("edits_a_message_with_files").await, [["one.txt", "two.txt"]]);
}

#[tokio::test]
async fn a_message_that_cannot_be_sent_keeps_its_file() {
    assert_eq!(names_in("keeps_files_that_cannot_be_sent").await, [["buoy.png"]]);
}

#[tokio::test]
async fn a_message_with_a_file_is_taken_back_with_it() {
    Visit::begin(Deployment::embedded(), "steers_with_a_file").await.ends().await;
}

#[tokio::test]
async fn an_upload_that_is_stopped_is_not_sent_and_leaves_nothing() {
    assert_eq!(names_in("stops_an_upload").await, [[] as [&str; 0]]);
}

#[tokio::test]
async fn a_failed_upload_is_tried_again_where_it_stopped() {
    let mut visit = Visit::begin(Deployment::embedded(), "tries_an_upload_again").await;
    visit.reaches("uploading").await;
    visit.deployment.kill_api();
    visit.program.tell(json!("away")).await;
    visit.reaches("failed").await;
    visit.starts_again();
    visit.program.tell(json!("back")).await;
    let (end, client, _deployment) = visit.ends().await;
    assert_eq!(names_at(&end, &client).await, [["chart.pdf"]]);
}
