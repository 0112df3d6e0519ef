//! Questions of a run to its reader: approvals, and calls of the page's own tools.

use serde_json::{Value, json};

use super::Visit;
use crate::{
    in_both_modes,
    support::{Client, Deployment, agent},
};

in_both_modes!(an_approval_survives_a_reload);

/// The only approval of the only run.
async fn approval(client: &Client) -> Value {
    let runs = client.get("/v1/runs").await.unwrap();
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
    let path = format!("/v1/runs/{}/approvals", runs["items"][0]["id"].as_str().unwrap());
    let approvals = client.get(&path).await.unwrap();
    assert_eq!(approvals["items"].as_array().unwrap().len(), 1);
    approvals["items"][0].clone()
}

async fn an_approval_survives_a_reload(deployment: Deployment) {
    let deployment = deployment.own();
    let mut visit = Visit::begin(deployment, "approves_after_a_reload").await;
    visit.reaches("asked").await;
    let (_, client, _deployment) = visit.ends().await;
    assert_eq!(approval(&client).await["status"], "approved");
}

#[tokio::test]
async fn a_run_that_waits_is_seen_from_everywhere() {
    Visit::begin(Deployment::embedded(), "is_asked_elsewhere").await.ends().await;
}

#[tokio::test]
async fn hidden_characters_are_seen_before_an_approval() {
    let (_, client, _deployment) = Visit::begin(Deployment::embedded(), "sees_hidden_characters").await.ends().await;
    assert_eq!(approval(&client).await["edited_input"], json!({"action": "pay 1"}));
}

#[tokio::test]
async fn a_call_is_denied_with_a_reason() {
    let (_, client, _deployment) = Visit::begin(Deployment::embedded(), "denies_with_a_reason").await.ends().await;
    let approval = approval(&client).await;
    assert_eq!((&approval["status"], &approval["reason"]), (&json!("denied"), &json!("not today")));
}

#[tokio::test]
async fn a_call_is_approved_with_another_input() {
    let visit = Visit::begin(Deployment::embedded(), "approves_with_another_input").await;
    let (_, client, _deployment) = visit.ends().await;
    let approval = approval(&client).await;
    let edited = json!({"action": "send the short report"});
    assert_eq!((&approval["status"], &approval["edited_input"]), (&json!("approved"), &edited));
}

#[tokio::test]
async fn the_second_answer_learns_of_the_first() {
    let (_, client, _deployment) = Visit::begin(Deployment::embedded(), "answers_too_late").await.ends().await;
    assert_eq!(approval(&client).await["status"], "denied");
}

#[tokio::test]
async fn questions_are_answered_in_place() {
    let mut deployment = Deployment::embedded();
    agent(&deployment.client(), json!([]), json!({})).await;
    Visit::begin(deployment, "answers_questions").await.ends().await;
}

#[tokio::test]
async fn a_typed_answer_is_kept() {
    let mut deployment = Deployment::embedded();
    agent(&deployment.client(), json!([]), json!({})).await;
    Visit::begin(deployment, "keeps_a_typed_answer").await.ends().await;
}

#[tokio::test]
async fn an_edited_input_is_kept() {
    let visit = Visit::begin(Deployment::embedded(), "keeps_an_edited_input").await;
    let (_, client, _deployment) = visit.ends().await;
    assert_eq!(approval(&client).await["edited_input"], json!({"action": "send the short report"}));
}
