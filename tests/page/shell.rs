//! The list of conversations, the page's addresses, who one is, and the message field.

use serde_json::{Value, json};

use super::Visit;
use crate::support::{
    Deployment, agent,
    tokens::{SECRET, claims, token},
};

#[tokio::test]
async fn arrows_go_through_the_conversations_and_back_to_the_search() {
    Visit::begin(Deployment::embedded(), "goes_through_the_list").await.ends().await;
}

#[tokio::test]
async fn a_double_click_on_a_conversation_opens_it() {
    Visit::begin(Deployment::embedded(), "opens_by_a_double_click").await.ends().await;
}

#[tokio::test]
async fn conversations_are_renamed_found_and_deleted() {
    let mut visit = Visit::begin(Deployment::embedded(), "keeps_the_list").await;
    let deleted = visit.reaches("deleted").await;
    let client = visit.deployment.client();
    client.get(&format!("/v1/conversations/{}", deleted["id"].as_str().unwrap())).await.unwrap();
    visit.program.tell(json!("there")).await;
    let (end, client, _deployment) = visit.ends().await;
    let left = client.get("/v1/conversations").await.unwrap();
    let left: Vec<_> = left["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
    assert_eq!(left, [end["kept"].clone()]);
}

#[tokio::test]
async fn a_conversation_whose_deletion_waits_takes_no_message() {
    Visit::begin(Deployment::embedded(), "goes_back_after_a_deletion").await.ends().await;
}

#[tokio::test]
async fn a_deleted_conversation_ends_in_all_tabs_and_leaves_their_drafts() {
    Visit::begin(Deployment::embedded(), "deletes_in_another_tab").await.ends().await;
}

#[tokio::test]
async fn every_conversation_has_an_address() {
    Visit::begin(Deployment::embedded(), "goes_by_addresses").await.ends().await;
}

#[tokio::test]
async fn where_only_tokens_count_one_is_asked_for() {
    let deployment = Deployment::embedded().with("HOLDFAST_JWT_KEY", SECRET).with("HOLDFAST_ANONYMOUS", false);
    let given = json!({"token": token(&claims("ann", json!({})))});
    Visit::with(deployment, "signs_in", given).await.ends().await;
}

#[tokio::test]
async fn a_search_leads_to_the_place() {
    Visit::begin(Deployment::embedded(), "finds_the_place").await.ends().await;
}

#[tokio::test]
async fn a_search_leads_to_the_word_in_a_long_message() {
    Visit::begin(Deployment::embedded(), "finds_the_word").await.ends().await;
}

#[tokio::test]
async fn printing_prints_the_conversation() {
    Visit::begin(Deployment::embedded(), "prints").await.ends().await;
}

#[tokio::test]
async fn a_briefing_leads_to_a_conversation() {
    let mut deployment = Deployment::embedded();
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({})).await;
    for (title, summary) in
        [("High water", "At six the **quay** will be flooded."), ("Low water", "At noon it is dry.")]
    {
        let briefing = json!({"agent_id": agent_id, "title": title, "summary": summary});
        client.post("/v1/briefings", briefing).await.unwrap();
    }
    let (_, client, _deployment) = Visit::begin(deployment, "talks_about_a_briefing").await.ends().await;
    let left = client.get("/v1/briefings").await.unwrap();
    let left: Vec<&Value> = left["items"].as_array().unwrap().iter().map(|briefing| &briefing["title"]).collect();
    assert_eq!(left, ["High water"]);
}

/// Anonymous users are allowed, and `ann` may sign in.
async fn with_users(scenario: &str) {
    let deployment = Deployment::embedded().with("HOLDFAST_JWT_KEY", SECRET);
    let given = json!({"token": token(&claims("ann", json!({})))});
    Visit::with(deployment, scenario, given).await.ends().await;
}

#[tokio::test]
async fn signing_in_takes_conversations_along() {
    with_users("takes_conversations_along").await;
}

#[tokio::test]
async fn conversations_left_behind_can_be_taken_along_later() {
    with_users("leaves_conversations_behind").await;
}

#[tokio::test]
async fn a_session_is_listed_by_its_name() {
    let mut deployment = Deployment::embedded();
    let client = deployment.client();
    client.post("/v1/sessions/harbour-bot/messages", json!({"content": "[tokens=5] hello"})).await.unwrap();
    Visit::begin(deployment, "lists_a_session").await.ends().await;
}

#[tokio::test]
async fn enter_sends_and_drafts_stay() {
    Visit::begin(Deployment::embedded(), "types").await.ends().await;
}

#[tokio::test]
async fn a_message_during_an_answer_joins_that_answer() {
    Visit::begin(Deployment::embedded(), "steers").await.ends().await;
}

#[tokio::test]
async fn a_message_that_no_run_has_read_is_taken_back() {
    Visit::begin(Deployment::embedded(), "takes_back").await.ends().await;
}

#[tokio::test]
async fn a_message_during_an_answer_can_be_the_next_question() {
    Visit::begin(Deployment::embedded(), "asks_next").await.ends().await;
}

#[tokio::test]
async fn an_installation_can_lock_the_field_during_an_answer() {
    let locked = Deployment::embedded().with("HOLDFAST_PAGE_COMPOSER", "locked");
    Visit::begin(locked, "finds_the_field_locked").await.ends().await;
}

#[tokio::test]
async fn a_file_is_refused_in_words() {
    Visit::begin(Deployment::embedded(), "brings_a_file").await.ends().await;
}

#[tokio::test]
async fn the_enter_of_an_input_method_sends_nothing() {
    Visit::begin(Deployment::embedded(), "types_with_an_input_method").await.ends().await;
}

#[tokio::test]
async fn dictation_that_fails_says_why() {
    Visit::begin(Deployment::embedded(), "dictates_in_vain").await.ends().await;
}

#[tokio::test]
async fn a_browser_without_dictation_has_no_button_for_it() {
    Visit::begin(Deployment::embedded(), "cannot_dictate").await.ends().await;
}

#[tokio::test]
async fn the_page_needs_no_mouse() {
    Visit::begin(Deployment::embedded(), "uses_the_keyboard_alone").await.ends().await;
}

#[tokio::test]
async fn a_title_that_was_not_saved_stays_for_another_try() {
    Visit::begin(Deployment::embedded(), "renames_without_a_connection").await.ends().await;
}

#[tokio::test]
async fn a_low_window_keeps_its_header() {
    Visit::begin(Deployment::embedded(), "fits_into_a_low_window").await.ends().await;
}
