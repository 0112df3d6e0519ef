//! Search finds conversations by their titles and by their messages.

use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{Client, Deployment, ErrorResponse},
};

in_both_modes!(
    a_conversation_is_found_by_its_title_and_by_its_messages,
    words_match_in_any_order_and_the_newest_match_is_returned,
    search_terms_are_literal,
    replaced_deleted_and_foreign_messages_are_not_found,
    a_search_is_listed_in_pages,
);

in_either_mode!(a_search_needs_a_text);

async fn with_title(client: &Client, title: &str) -> String {
    client.post("/v1/conversations", json!({"title": title})).await.unwrap()["id"].as_str().unwrap().to_owned()
}

/// Sends a message in a new conversation, and waits for the answer, which is `This `.
async fn with_message(client: &Client, content: &str) -> String {
    let submission = client.start(&format!("{content} [tokens=1]")).await;
    client.wait_for_run(submission["run"]["id"].as_str().unwrap()).await;
    submission["conversation"]["id"].as_str().unwrap().to_owned()
}

async fn page(client: &Client, query: &[(&str, &str)]) -> Result<Value, ErrorResponse> {
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    client.get(&format!("/v1/conversations?{}", query.join("&"))).await
}

async fn search_titles(client: &Client, text: &str) -> Vec<String> {
    let page = page(client, &[("q", text)]).await.unwrap();
    let ids = page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned());
    ids.collect()
}

async fn a_conversation_is_found_by_its_title_and_by_its_messages(mut deployment: Deployment) {
    let client = deployment.client();
    let harbour = with_title(&client, "The Harbour of Äpfel").await;
    let chinese = with_message(&client, "为什么会这样？").await;
    let english = with_message(&client, "Where is the HARBOUR?").await;
    let check = async |text: &str, expected: &[&String]| {
        assert_eq!(search_titles(&client, text).await.iter().collect::<Vec<_>>(), expected, "{text:?}");
    };
    check("harbour", &[&english, &harbour]).await;
    check("  hARBOUR ", &[&english, &harbour]).await;
    check("harbour of", &[&harbour]).await;
    check("Äpfel", &[&harbour]).await;
    check("会这", &[&chinese]).await;
    check("this ", &[&english, &chinese]).await;
    check("nothing of the kind", &[]).await;
}

async fn words_match_in_any_order_and_the_newest_match_is_returned(mut deployment: Deployment) {
    let client = deployment.client();
    let conversation = with_message(&client, "the lighthouse at the harbour").await;
    client.patch(&format!("/v1/conversations/{conversation}"), json!({"title": "Ships at sea"})).await.unwrap();
    let messages = client.get(&format!("/v1/conversations/{conversation}/messages")).await.unwrap();
    let question = &messages["items"][0];
    let one = async |text: &str| {
        let page = page(&client, &[("q", text)]).await.unwrap();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 1, "{page}");
        items.first().map(|item| item["found"].clone())
    };
    let found_match = one("HARBOUR lighthouse").await.unwrap();
    assert_eq!(found_match["message_id"], question["id"]);
    assert_eq!(found_match["excerpt"], "the lighthouse at the harbour [tokens=1]");
    // The title counts as a part of each message, so a match in the title names no message.
    assert_eq!(one("sea lighthouse ships").await.unwrap()["message_id"], question["id"]);
    assert_eq!(one("sea ships").await, Some(Value::Null));
    assert_eq!(one("lighthouse windmill").await, None);
    // With more than eight words, the eighth and all further words are one literal text.
    assert!(one("at the harbour lighthouse at the harbour the lighthouse").await.is_some());
    assert!(one("at the harbour lighthouse at the harbour harbour lighthouse").await.is_none());
}

async fn search_terms_are_literal(mut deployment: Deployment) {
    let client = deployment.client();
    let titles = ["100% sure", "100 sure", r"a\b", "ab", "snake_case", "snakescase", "it's"];
    let mut ids = Vec::new();
    for title in titles {
        ids.push(with_title(&client, title).await);
    }
    for (text, index) in [("0%", 0), ("%", 0), (r"a\b", 2), (r"\", 2), ("e_c", 4), ("_", 4), ("'", 6)] {
        assert_eq!(search_titles(&client, text).await, [ids[index].clone()], "{text:?}");
    }
}

async fn replaced_deleted_and_foreign_messages_are_not_found(mut deployment: Deployment) {
    let client = deployment.client();
    let (ann, bob) = (client.user("ann"), client.user("bob"));
    let conversation = with_message(&ann, "lighthouse").await;
    assert_eq!(search_titles(&bob, "lighthouse").await, [""; 0]);
    let messages = ann.get(&format!("/v1/conversations/{conversation}/messages")).await.unwrap();
    let edit = json!({"content": "windmill [tokens=1]", "replace_from": messages["items"][0]["id"]});
    let edited = ann.post(&format!("/v1/conversations/{conversation}/messages"), edit).await.unwrap();
    ann.wait_for_run(edited["run"]["id"].as_str().unwrap()).await;
    assert_eq!(search_titles(&ann, "lighthouse").await, [""; 0]);
    assert_eq!(search_titles(&ann, "windmill").await, std::slice::from_ref(&conversation));
    ann.delete(&format!("/v1/conversations/{conversation}")).await.unwrap();
    assert_eq!(search_titles(&ann, "windmill").await, [""; 0]);
}

async fn a_search_is_listed_in_pages(mut deployment: Deployment) {
    let client = deployment.client();
    let mut expected = Vec::new();
    for n in 0..5 {
        expected.push(with_title(&client, &format!("pier {n}")).await);
        with_title(&client, &format!("quay {n}")).await;
    }
    expected.reverse();
    let (mut found_titles, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut query = vec![("q", "pier"), ("limit", "2")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page = page(&client, &query).await.unwrap();
        found_titles
            .extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(found_titles, expected);
}

async fn a_search_needs_a_text(mut deployment: Deployment) {
    let client = deployment.client();
    let long = "界".repeat(200);
    assert_eq!(search_titles(&client, &long).await, [""; 0]);
    for text in ["", "  ", &format!("{long}界"), "a\0b"] {
        let refused = page(&client, &[("q", text)]).await.unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (400, "invalid_query"), "{text:?}");
    }
}
