//! Pages that are left and come back, and several of them at once.

use serde_json::json;

use super::{Visit, shows_the_only_run, words};
use crate::{in_both_modes, support::Deployment};

in_both_modes!(a_reload_shows_the_answer_so_far_and_continues);

async fn a_reload_shows_the_answer_so_far_and_continues(deployment: Deployment) {
    let deployment = deployment.own();
    let (end, client, _deployment) = Visit::begin(deployment, "reloads").await.ends().await;
    shows_the_only_run(&client, &end).await;
}

#[tokio::test]
async fn a_reload_shows_what_waits_behind_the_answer_at_work() {
    let (end, client, _deployment) =
        Visit::begin(Deployment::embedded(), "reloads_with_waiting_messages").await.ends().await;
    let runs = client.get("/v1/runs").await.unwrap()["items"].clone();
    let states: Vec<&str> = runs.as_array().unwrap().iter().map(|run| run["status"].as_str().unwrap()).collect();
    assert_eq!(states, ["cancelled", "completed", "cancelled"], "taken back, waited, stopped; {end}");
}

#[tokio::test]
async fn all_tabs_show_what_one_of_them_has_begun() {
    let (end, client, _deployment) = Visit::begin(Deployment::embedded(), "reads_in_two_tabs").await.ends().await;
    let runs = client.get("/v1/runs").await.unwrap();
    let runs = runs["items"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for (run, shown) in runs.iter().rev().zip(end["shown"].as_array().unwrap()) {
        let run = client.wait_for_run(run["id"].as_str().unwrap()).await;
        assert_eq!(words(&run["output_message"]["content"]), words(shown));
    }
}

#[tokio::test]
async fn a_stop_ends_the_run_and_what_was_said_stays() {
    let (end, client, _deployment) = Visit::begin(Deployment::embedded(), "stops").await.ends().await;
    assert_eq!(shows_the_only_run(&client, &end).await["status"], json!("cancelled"));
}
