//! Answers that are streamed to their end, whatever breaks meanwhile, and what the page says where there is no answer.

use serde_json::{Value, json};

use super::{Visit, shows_the_only_run};
use crate::{
    in_both_modes,
    support::{Deployment, Embedded, agent},
};

in_both_modes!(an_answer_is_shown_to_its_end, a_server_that_comes_back_continues_without_a_click);

/// Long enough for everything that happens meanwhile.
fn long() -> Value {
    json!({"text": "[tokens=400] [delay=20] hello"})
}

async fn an_answer_is_shown_to_its_end(deployment: Deployment) {
    let deployment = deployment.own();
    let visit = Visit::with(deployment, "streams", json!({"text": "[think] [tokens=120] [delay=10] hello"})).await;
    let (end, client, _deployment) = visit.ends().await;
    let run = shows_the_only_run(&client, &end).await;
    assert_eq!((&run["status"], &run["conversation_id"]), (&json!("completed"), &end["conversation"]));
}

/// An embedded worker dies with its server, and the page reports the lost worker.
#[tokio::test]
async fn a_lost_worker_is_shown_and_its_text_is_replaced() {
    let mut visit = Visit::with(Deployment::scaled_out(), "retries", long()).await;
    visit.reaches("answering").await;
    visit.deployment.kill_worker();
    visit.starts_again();
    let (end, client, _deployment) = visit.ends().await;
    assert!(shows_the_only_run(&client, &end).await["attempt"].as_u64() > Some(1));
}

async fn a_server_that_comes_back_continues_without_a_click(deployment: Deployment) {
    let deployment = deployment.own();
    let mut visit = Visit::with(deployment, "reconnects", long()).await;
    visit.reaches("answering").await;
    visit.deployment.kill_api();
    visit.reaches("reconnecting").await;
    visit.starts_again();
    let (end, client, _deployment) = visit.ends().await;
    shows_the_only_run(&client, &end).await;
}

#[tokio::test]
async fn what_cannot_be_sent_is_kept_and_sent_once() {
    let mut visit = Visit::begin(Deployment::embedded(), "keeps_what_cannot_be_sent").await;
    visit.reaches("open").await;
    visit.deployment.kill_api();
    visit.program.tell(json!("away")).await;
    visit.reaches("unsent").await;
    visit.starts_again();
    let (end, client, _deployment) = visit.ends().await;
    shows_the_only_run(&client, &end).await;
}

#[tokio::test]
async fn an_empty_redis_is_not_noticed() {
    let mut visit = Visit::with(Deployment::scaled_out(), "streams", long()).await;
    visit.reaches("answering").await;
    visit.deployment.flush_redis();
    let (end, client, _deployment) = visit.ends().await;
    assert_eq!(shows_the_only_run(&client, &end).await["attempt"], 1);
}

#[tokio::test]
async fn connections_that_are_reset_lose_nothing() {
    let mut visit = Visit::with(Deployment::embedded(), "streams", long()).await;
    visit.reaches("answering").await;
    visit.proxy.reset_and_again_after_text("{\"type\":\"text-delta\"");
    visit.proxy.until_breaks(1).await;
    let (end, client, _deployment) = visit.ends().await;
    shows_the_only_run(&client, &end).await;
}

#[tokio::test]
async fn a_connection_that_has_fallen_silent_is_given_up() {
    let mut visit = Visit::with(Deployment::embedded(), "waits_for_a_silent_server", long()).await;
    visit.reaches("answering").await;
    visit.proxy.silence_after("{\"type\":\"text-delta\"");
    visit.proxy.until_breaks(1).await;
    visit.program.tell(json!("silent")).await;
    let (end, client, _deployment) = visit.ends().await;
    shows_the_only_run(&client, &end).await;
}

#[tokio::test]
async fn a_failed_answer_stays_and_can_be_made_again() {
    let mut visit = Visit::begin(Deployment::embedded(), "is_told_of_a_failure").await;
    visit.reaches("failed").await;
    let (_, client, _deployment) = visit.ends().await;
    let runs = client.get("/v1/runs").await.unwrap();
    let statuses: Vec<&Value> = runs["items"].as_array().unwrap().iter().map(|run| &run["status"]).collect();
    assert_eq!(statuses, ["failed", "failed"]);
}

#[tokio::test]
async fn a_reader_at_the_rate_limit_sees_when_to_try_again() {
    let deployment = Deployment::embedded().with("CHAT_RATE_LIMIT", "1/minute");
    let mut visit = Visit::begin(deployment, "is_told_when_to_try_again").await;
    visit.reaches("limited").await;
    // A new process has empty buckets, so the test need not wait for a minute.
    visit.deployment.shut_down();
    visit.starts_again();
    visit.program.tell(json!("forgotten")).await;
    let (_, client, _deployment) = visit.ends().await;
    assert_eq!(client.get("/v1/runs").await.unwrap()["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_message_that_is_too_long_names_the_limit() {
    let deployment = Deployment::embedded().with("HOLDFAST_MAX_CONTENT_BYTES", 1_024);
    Visit::begin(deployment, "is_told_the_limit").await.ends().await;
}

#[tokio::test]
async fn without_pieces_there_is_only_a_sign_of_work_and_then_the_whole() {
    let mut deployment = Deployment::embedded();
    agent(&deployment.client(), json!([]), json!({"stream_mode": "messages"})).await;
    let visit = Visit::begin(deployment, "waits_for_the_whole").await;
    let (end, client, _deployment) = visit.ends().await;
    shows_the_only_run(&client, &end).await;
}

#[tokio::test]
async fn what_is_kept_in_memory_is_said_to_be() {
    let embedded = Embedded::new().with("CHAT_MEMORY_FALLBACK", "true");
    std::fs::write(embedded.data_dir(), "a file where the folder should be").unwrap();
    Visit::begin(Deployment::on(embedded), "is_warned_of_what_may_be_lost").await.ends().await;
}
