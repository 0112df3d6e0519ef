//! Work with messages, also with many of them.

use serde_json::json;

use super::Visit;
use crate::support::{Client, Deployment};

async fn count(client: &Client, conversation: &str) -> usize {
    let messages = client.get(&format!("/api/chat/{conversation}/messages")).await.unwrap();
    messages.as_array().unwrap().len()
}

#[tokio::test]
async fn messages_are_edited_made_again_copied_and_gone_on_from() {
    let (end, client, _deployment) = Visit::begin(Deployment::embedded(), "works_with_messages").await.ends().await;
    assert_eq!(count(&client, end["before"].as_str().unwrap()).await, 2);
    assert_eq!(count(&client, end["fork"].as_str().unwrap()).await, 4);
}

#[tokio::test]
async fn an_edited_message_keeps_its_versions_and_can_be_undone() {
    let (end, client, _deployment) = Visit::begin(Deployment::embedded(), "goes_through_versions").await.ends().await;
    let id = end["conversation"].as_str().unwrap();
    let messages = client.get(&format!("/v1/conversations/{id}/messages")).await.unwrap();
    let [question, answer] = &messages["items"].as_array().unwrap()[..] else { panic!("{messages}") };
    assert_eq!((&question["content"], &answer["id"]), (&json!("[tokens=25] second"), &end["answer"]));
    let all = client.get(&format!("/v1/conversations/{id}/messages?superseded=true")).await.unwrap();
    // Three questions and their answers, another answer of the second, and what followed the first.
    assert_eq!(all["items"].as_array().unwrap().len(), 9, "{all}");
}

#[tokio::test]
async fn a_conversation_of_500_messages_is_read() {
    const QUESTIONS: usize = 250;
    let mut deployment = Deployment::embedded().with("HOLDFAST_MAX_QUEUED", QUESTIONS);
    let client = deployment.client();
    let conversation = client.post("/v1/conversations", json!({})).await.unwrap()["id"].clone();
    let id = conversation.as_str().unwrap();
    let mut last = String::new();
    for question in 1..=QUESTIONS {
        let body = json!({"conversation_id": id, "input": format!("[tokens=1] question {question}")});
        let started = client.post("/v1/runs", body).await.unwrap();
        last = started["run"]["id"].as_str().unwrap().to_owned();
    }
    client.wait_for_run(&last).await;
    let given = json!({"conversation": id, "questions": QUESTIONS});
    let (_, client, _deployment) = Visit::with(deployment, "reads_a_long_conversation", given).await.ends().await;
    assert_eq!(count(&client, id).await, QUESTIONS * 2 + 2);
}

#[tokio::test]
async fn a_conversation_of_1500_messages_reaches_its_beginning() {
    const MESSAGES: usize = 1_500;
    let mut deployment = Deployment::embedded();
    let client = deployment.client();
    let item = |number: usize| {
        let (role, kind) = if number % 2 == 1 { ("user", "input_text") } else { ("assistant", "output_text") };
        let word = if number == 11 { "quokka" } else { "koala" };
        json!({"type": "message", "role": role, "content": [{"type": kind, "text": format!("message {number}, **{word}**")}]})
    };
    let conversation = client.post("/openai/v1/conversations", json!({})).await.unwrap();
    let items = format!("/openai/v1/conversations/{}/items", conversation["id"].as_str().unwrap());
    for first in (1..=MESSAGES).step_by(20) {
        client.post(&items, json!({"items": (first..first + 20).map(item).collect::<Vec<_>>()})).await.unwrap();
    }
    let listed = client.get("/v1/conversations").await.unwrap();
    let id = listed["items"][0]["id"].as_str().unwrap().to_owned();
    let given = json!({"conversation": id, "messages": MESSAGES});
    Visit::with(deployment, "reaches_the_beginning", given).await.ends().await;
}

#[tokio::test]
async fn the_end_is_followed_unless_the_reader_has_gone_up() {
    Visit::begin(Deployment::embedded(), "scrolls_while_it_streams").await.ends().await;
}

#[tokio::test]
async fn a_button_below_a_growing_answer_stays_under_the_pointer() {
    Visit::begin(Deployment::embedded(), "points_below_a_growing_answer").await.ends().await;
}

#[tokio::test]
async fn every_message_tells_its_time() {
    Visit::begin(Deployment::embedded(), "tells_the_time").await.ends().await;
}

#[tokio::test]
async fn a_cut_off_answer_is_continued_on_demand() {
    Visit::begin(Deployment::embedded(), "asks_for_the_rest").await.ends().await;
}

#[tokio::test]
async fn an_answer_that_a_limit_has_cut_is_continued_on_demand() {
    let deployment = Deployment::embedded().with("HOLDFAST_MAX_DURATION_MS", 2_000);
    let (end, client, _deployment) = Visit::begin(deployment, "goes_on_after_a_limit").await.ends().await;
    assert_eq!(count(&client, end["conversation"].as_str().unwrap()).await, 4);
}

#[tokio::test]
async fn tool_calls_and_thoughts_are_a_line_with_the_rest_behind() {
    Visit::begin(Deployment::embedded(), "looks_into_a_tool_call").await.ends().await;
}

#[tokio::test]
async fn a_reader_who_has_gone_up_stays_when_other_messages_arrive() {
    Visit::begin(Deployment::embedded(), "stays_where_the_reader_is").await.ends().await;
}

#[tokio::test]
async fn a_selection_survives_the_growth_of_its_text() {
    Visit::begin(Deployment::embedded(), "selects_while_it_streams").await.ends().await;
}

#[tokio::test]
async fn an_answer_without_a_connection_fails_in_the_words_of_the_page() {
    Visit::begin(Deployment::embedded(), "answers_without_a_connection").await.ends().await;
}

#[tokio::test]
async fn the_text_of_an_edit_is_kept() {
    Visit::begin(Deployment::embedded(), "keeps_an_edit").await.ends().await;
}
