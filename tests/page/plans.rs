//! Plans and subagents on the page.

use serde_json::json;

use super::Visit;
use crate::support::Deployment;

#[tokio::test]
async fn a_plan_fills_in_and_shows_the_work_of_its_subagents() {
    Visit::begin(Deployment::embedded(), "watches_a_plan").await.ends().await;
}

#[tokio::test]
async fn a_subagent_can_be_stopped() {
    Visit::begin(Deployment::embedded(), "stops_a_subagent").await.ends().await;
}

#[tokio::test]
async fn questions_that_end_a_run_are_answered_with_the_next_message() {
    let (_, client, _deployment) =
        Visit::begin(Deployment::embedded(), "answers_the_questions_of_a_run").await.ends().await;
    let runs = client.get("/v1/runs").await.unwrap();
    let statuses: Vec<&str> =
        runs["items"].as_array().unwrap().iter().map(|run| run["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["completed"; 4], "two questions and two replies");
}

#[tokio::test]
async fn a_draft_is_changed_and_approved_in_its_place() {
    let (_, client, _deployment) = Visit::begin(Deployment::embedded(), "changes_a_draft").await.ends().await;
    let runs = client.get("/v1/runs").await.unwrap();
    let plans = client.get(&format!("/v1/runs/{}/plans", runs["items"][0]["id"].as_str().unwrap())).await.unwrap();
    let steps = plans["items"][0]["steps"].as_array().unwrap();
    assert_eq!((steps.len(), &steps[0]["description"]), (1, &json!("[tokens=3] better")));
}
