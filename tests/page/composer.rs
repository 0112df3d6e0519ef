//! Messages on their way from the field to the server.

use serde_json::Value;

use super::Visit;
use crate::support::{Client, Deployment};

/// The texts of the reader's messages in a conversation, in their order.
async fn said(client: &Client, conversation: &Value) -> Vec<String> {
    let path = format!("/v1/conversations/{}/messages", conversation.as_str().unwrap());
    let messages = client.get(&path).await.unwrap();
    let messages = messages["items"].as_array().unwrap().iter();
    let own = messages.filter(|message| message["role"] == "user");
    own.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_double_click_on_send_does_not_stop_the_answer() {
    Visit::begin(Deployment::embedded(), "sends_with_a_double_click").await.ends().await;
}

#[tokio::test]
async fn a_double_click_takes_a_message_back_once() {
    Visit::begin(Deployment::embedded(), "takes_back_with_a_double_click").await.ends().await;
}

#[tokio::test]
async fn stop_ends_the_answer_at_work_only() {
    let visit = Visit::begin(Deployment::embedded(), "stops_one_answer").await;
    let (end, client, _deployment) = visit.ends().await;
    let texts = ["[tokens=5] second", "[tokens=5] third", "[tokens=5] fourth"];
    assert_eq!(said(&client, &end["conversation"]).await[1..], texts);
}

#[tokio::test]
async fn a_late_stop_does_not_reach_the_next_answer() {
    Visit::begin(Deployment::embedded(), "stops_right_after_sending").await.ends().await;
}

#[tokio::test]
async fn a_message_refused_after_its_writer_left_is_a_draft_again() {
    let (end, client, _deployment) = Visit::begin(Deployment::embedded(), "leaves_before_a_refusal").await.ends().await;
    assert_eq!(said(&client, &end["conversation"]).await[1..], ["[tokens=5] accepted"]);
}

#[tokio::test]
async fn a_message_beside_an_answer_arrives_once() {
    let (end, client, _deployment) = Visit::begin(Deployment::embedded(), "posts_once").await.ends().await;
    assert_eq!(said(&client, &end["conversation"]).await[1..], ["[tokens=5] second", "[tokens=5] third"]);
}

#[tokio::test]
async fn each_tab_keeps_the_draft_that_was_written_in_it() {
    Visit::begin(Deployment::embedded(), "writes_in_two_tabs").await.ends().await;
}

#[tokio::test]
async fn the_return_key_of_a_phone_breaks_the_line() {
    Visit::begin(Deployment::embedded(), "writes_lines_on_a_phone").await.ends().await;
}
