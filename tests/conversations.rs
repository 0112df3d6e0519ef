//! Conversations: sessions, the standing conversation with an agent, briefings, edits and rollbacks.

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{
        Client, Deployment, agent, answer,
        tokens::{SECRET, claims, token},
        until,
    },
};

in_both_modes!(
    a_session_needs_nothing_but_its_name,
    a_request_that_names_a_session_talks_in_it,
    fifty_first_messages_of_a_session_land_in_one_conversation,
    fifty_first_calls_give_one_standing_conversation,
    a_briefing_is_talked_about_in_the_standing_conversation,
    an_operator_stores_a_briefing_for_another_owner_once_per_key,
    a_conversation_is_called_by_its_first_words_until_it_is_named,
    an_edit_replaces_a_message_and_what_follows_it,
    an_edit_can_be_undone,
    an_answer_can_be_made_again,
    an_answer_that_is_being_made_can_be_made_again,
    a_rollback_supersedes_the_run_that_it_interrupts,
    listings_are_chronological_for_all_kinds,
    sessions_are_listed_by_name_with_the_newest_first,
);

in_either_mode!(
    the_default_session_is_the_one_that_the_request_names_or_the_users_own,
    bad_briefings_are_refused,
    a_session_that_does_not_exist_checks_the_query_too,
);

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("{value} has no {field}"))
}

async fn messages_of(client: &Client, conversation: &str, query: &str) -> Vec<Value> {
    let page = client.get(&format!("/v1/conversations/{conversation}/messages{query}")).await.unwrap();
    page["items"].as_array().unwrap().clone()
}

fn contents(messages: &[Value]) -> Vec<&Value> {
    messages.iter().map(|message| &message["content"]).collect()
}

/// Sends a message and waits for the answer; returns `{message, run}`.
async fn say(client: &Client, conversation: &str, body: Value) -> Value {
    let mut response = client.post(&format!("/v1/conversations/{conversation}/messages"), body).await.unwrap();
    response["run"] = client.wait_for_run(text(&response["run"], "id")).await;
    response
}

async fn put(client: &Client, agent_id: &str) -> Value {
    answer(client.request(Method::PUT, &format!("/v1/agents/{agent_id}/conversation"))).await.unwrap()
}

async fn a_conversation_is_called_by_its_first_words_until_it_is_named(mut deployment: Deployment) {
    let client = deployment.client();
    let submission = client.post("/v1/runs", json!({"input": "[tokens=1]  When is\nhigh tide?"})).await.unwrap();
    assert_eq!(submission["conversation"]["title"], "[tokens=1] When is high tide?");
    let id = text(&submission["conversation"], "id");
    let path = format!("/v1/conversations/{id}");
    client.wait_for_run(text(&submission["run"], "id")).await;
    let more = json!({"input": "[tokens=1] and low?", "conversation_id": id});
    assert_eq!(
        client.post("/v1/runs", more).await.unwrap()["conversation"]["title"],
        submission["conversation"]["title"]
    );
    let first = messages_of(&client, id, "").await[0].clone();
    say(&client, id, json!({"content": "[tokens=1] Low tide?", "replace_from": first["id"]})).await;
    assert_eq!(client.get(&path).await.unwrap()["title"], "[tokens=1] Low tide?");
    for (title, title_shown) in [(json!("Tides"), "Tides"), (Value::Null, "[tokens=1] Low tide?")] {
        let renamed = answer(client.request(Method::PATCH, &path).json(&json!({"title": title}))).await.unwrap();
        assert_eq!(renamed["title"], title_shown);
        assert_eq!(client.get("/v1/conversations").await.unwrap()["items"][0]["title"], title_shown);
    }
}

async fn a_session_needs_nothing_but_its_name(mut deployment: Deployment) {
    let (ann, bob) = {
        let client = deployment.client();
        (client.user("ann"), client.user("bob"))
    };
    assert_eq!(ann.get("/v1/sessions/plans/messages").await.unwrap(), json!({"items": [], "next": null}));
    assert_eq!(ann.get("/v1/sessions/plans/history").await.unwrap(), json!([]));
    let first = ann.post("/v1/sessions/plans/messages", json!({"content": "[tokens=1] 为什么会这样？"})).await.unwrap();
    ann.wait_for_run(text(&first["run"], "id")).await;
    let second = ann.post("/v1/sessions/plans/messages", json!({"content": "[tokens=2]"})).await.unwrap();
    ann.wait_for_run(text(&second["run"], "id")).await;
    assert_eq!(first["run"]["conversation_id"], second["run"]["conversation_id"]);
    let expected = json!([
        {"role": "User", "content": "[tokens=1] 为什么会这样？"},
        {"role": "Assistant", "content": "This "},
        {"role": "User", "content": "[tokens=2]"},
        {"role": "Assistant", "content": "This is "},
    ]);
    assert_eq!(ann.get("/v1/sessions/plans/history").await.unwrap(), expected);
    assert_eq!(ann.get("/v1/sessions/plans/messages").await.unwrap()["items"].as_array().unwrap().len(), 4);
    assert_eq!(ann.get("/v1/sessions/other/history").await.unwrap(), json!([]));
    assert_eq!(bob.get("/v1/sessions/plans/history").await.unwrap(), json!([]));
    let starts = ann.post("/v1/runs", json!({"input": "[tokens=1]"})).await.unwrap();
    assert_ne!(starts["conversation"]["id"], first["run"]["conversation_id"], "no session, a new conversation");
}

async fn the_default_session_is_the_one_that_the_request_names_or_the_users_own(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let say = async |client: &Client, path: &str, header: Option<&str>| {
        let mut request = client.request(Method::POST, path).json(&json!({"content": "[tokens=1]"}));
        if let Some(name) = header {
            request = request.header("x-session-id", name);
        }
        answer(request).await.map(|response| text(&response["run"], "conversation_id").to_owned())
    };
    let ann = client.user("ann");
    for (client, header, name) in
        [(&client, None, "debug_session"), (&ann, None, "session_ann"), (&ann, Some("plans"), "plans")]
    {
        let default = say(client, "/v1/sessions/-/messages", header).await.unwrap();
        let named = say(client, &format!("/v1/sessions/{name}/messages"), None).await.unwrap();
        assert_eq!(default, named, "{name}");
    }
    let long = "n".repeat(128);
    say(&ann, &format!("/v1/sessions/{long}/messages"), None).await.unwrap();
    for name in [&format!("{long}n"), "a%0Ab"] {
        let failure = say(&ann, &format!("/v1/sessions/{name}/messages"), None).await.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (400, "invalid_session"));
    }
}

async fn a_request_that_names_a_session_talks_in_it(mut deployment: Deployment) {
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({})).await;
    let post = async |path: &str, body: Value, accept: &str| {
        let request = client.request(Method::POST, path).header("x-session-id", "plans").header("accept", accept);
        request.json(&body).send().await.unwrap().text().await.unwrap()
    };
    let body = json!({"input": "[tokens=1] one", "agent_id": agent_id});
    let submission: Value = serde_json::from_str(&post("/v1/runs", body, "application/json").await).unwrap();
    assert_eq!(submission["conversation"]["agent_id"], agent_id.as_str(), "the session starts with this agent");
    client.wait_for_run(text(&submission["run"], "id")).await;
    let streamed = post("/api/chat/stream", json!({"message": "[tokens=1] two"}), "text/event-stream").await;
    assert!(streamed.contains(text(&submission["conversation"], "id")), "{streamed}");
    let history = client.get("/v1/sessions/plans/history").await.unwrap();
    let expected = ["[tokens=1] one", "This ", "[tokens=1] two", "This "];
    assert_eq!(history.as_array().unwrap().iter().map(|line| &line["content"]).collect::<Vec<_>>(), expected);
    let refused = post("/v1/runs", json!({"input": " "}), "application/json").await;
    assert!(refused.contains("empty_content"), "{refused}");
}

async fn fifty_first_messages_of_a_session_land_in_one_conversation(mut deployment: Deployment) {
    let client = deployment.client();
    let say = async |n: usize| {
        let key = format!("first-{n}");
        let request = || client.request(Method::POST, "/v1/sessions/new/messages").header("idempotency-key", &key);
        // All of them wait for one lock, so a slow machine may ask some to come again.
        let accepted = || async {
            let response = request().json(&json!({"content": "[tokens=1]"})).send().await.unwrap();
            (response.status() != StatusCode::SERVICE_UNAVAILABLE).then_some(response)
        };
        let response = until("the message is taken", accepted).await.error_for_status().unwrap();
        response.json::<Value>().await.unwrap()
    };
    let responses = futures::future::join_all((0..50).map(say)).await;
    let conversations: BTreeSet<String> =
        responses.iter().map(|response| text(&response["run"], "conversation_id").to_owned()).collect();
    assert_eq!(conversations.len(), 1);
    let page = client.get("/v1/sessions/new/messages?limit=200").await.unwrap();
    let question_count = page["items"].as_array().unwrap().iter().filter(|message| message["role"] == "user").count();
    assert_eq!(question_count, 50);
}

async fn sessions_are_listed_by_name_with_the_newest_first(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client().user("ann");
    let mut conversations = Vec::new();
    for name in ["harbour: one", "tide", "-"] {
        let path = format!("/v1/sessions/{name}/messages").replace(' ', "%20");
        let response = client.post(&path, json!({"content": "[tokens=1] first words"})).await.unwrap();
        client.wait_for_run(text(&response["run"], "id")).await;
        conversations.push(text(&response["message"], "conversation_id").to_owned());
    }
    client.start("[tokens=1] in no session").await;
    let all = client.get("/v1/sessions").await.unwrap();
    let named: Vec<(&str, &str)> = all["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| (text(session, "session_id"), text(session, "conversation_id")))
        .collect();
    let expected =
        [("session_ann", &conversations[2]), ("tide", &conversations[1]), ("harbour: one", &conversations[0])];
    assert_eq!(named, expected.map(|(name, id)| (name, id.as_str())));
    assert_eq!(all["items"][0]["title"], "[tokens=1] first words");
    let page = client.get("/v1/sessions?limit=2").await.unwrap();
    let rest = client.get(&format!("/v1/sessions?limit=2&cursor={}", text(&page, "next"))).await.unwrap();
    assert_eq!((&rest["items"][0], &rest["next"]), (&all["items"][2], &Value::Null));
    assert_eq!(client.get("/v1/sessions?cursor=x").await.unwrap_err().code, "invalid_cursor");
    assert_eq!(client.user("bob").get("/v1/sessions").await.unwrap()["items"], json!([]));
    client.delete(&format!("/v1/conversations/{}", conversations[1])).await.unwrap();
    assert_eq!(client.get("/v1/sessions").await.unwrap()["items"].as_array().unwrap().len(), 2);
}

async fn a_session_that_does_not_exist_checks_the_query_too(mut deployment: Deployment) {
    let client = deployment.client();
    let path = "/v1/sessions/nothing/messages";
    assert_eq!(client.get(path).await.unwrap(), json!({"items": [], "next": null}));
    for (query, code) in
        [("limit=0", "invalid_query"), ("limit=100000", "invalid_query"), ("cursor=x", "invalid_cursor")]
    {
        let refused = client.get(&format!("{path}?{query}")).await.unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (400, code), "{query}");
    }
}

async fn fifty_first_calls_give_one_standing_conversation(mut deployment: Deployment) {
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({})).await;
    let conversation_ids = futures::future::join_all((0..50).map(|_| put(&client, &agent_id))).await;
    assert!(conversation_ids.iter().all(|conversation| conversation == &conversation_ids[0]), "{conversation_ids:?}");
    let id = text(&conversation_ids[0], "id");
    assert_eq!(
        (text(&conversation_ids[0], "agent_id"), &conversation_ids[0]["last_message_at"]),
        (agent_id.as_str(), &Value::Null)
    );
    assert_eq!(conversation_ids[0]["started_at"], conversation_ids[0]["created_at"]);
    say(&client, id, json!({"content": "[tokens=1]"})).await;
    assert!(put(&client, &agent_id).await["last_message_at"].is_string());
    let free = client.post("/v1/conversations", json!({"agent_id": agent_id})).await.unwrap();
    assert_ne!(text(&free, "id"), id);
    assert_ne!(put(&client.user("bob"), &agent_id).await["id"], conversation_ids[0]["id"]);
    let unknown = "01890000-0000-7000-8000-000000000000";
    let missing = answer(client.request(Method::PUT, &format!("/v1/agents/{unknown}/conversation"))).await.unwrap_err();
    assert_eq!((missing.status, missing.code.as_str()), (404, "agent_not_found"));
    client.delete(&format!("/v1/conversations/{id}")).await.unwrap();
    assert_ne!(put(&client, &agent_id).await["id"], conversation_ids[0]["id"], "a deleted one is not found again");
}

async fn a_briefing_is_talked_about_in_the_standing_conversation(mut deployment: Deployment) {
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({})).await;
    let new = json!({"agent_id": agent_id, "title": "为什么会这样？", "summary": "a\nb", "priority": "P1", "data": {"k": [1]},
        "created_at": "2026-01-07T10:00:00Z"});
    let briefing = client.post("/v1/briefings", new).await.unwrap();
    assert_eq!(client.get(&format!("/v1/briefings/{}", text(&briefing, "id"))).await.unwrap(), briefing);
    assert_eq!(client.get("/v1/briefings").await.unwrap()["items"], json!([briefing]));
    let path = format!("/v1/briefings/{}/actions/start_conversation", text(&briefing, "id"));
    let start = || client.post(&path, json!({}));
    let submissions = futures::future::join_all((0..10).map(|_| start())).await;
    let first = submissions[0].as_ref().unwrap();
    assert!(submissions.iter().all(|other| other.as_ref().unwrap() == first), "{submissions:?}");
    let conversation = text(first, "conversation_id");
    assert_eq!(put(&client, &agent_id).await["id"], conversation);
    let cards = messages_of(&client, conversation, "").await;
    assert_eq!(cards.len(), 1);
    let card = &cards[0];
    assert_eq!((text(card, "role"), text(card, "content_type")), ("system", "briefing_card"));
    let content = json!({"briefing_id": briefing["id"], "title": "为什么会这样？", "summary": "a\nb", "priority": "P1",
        "data": {"k": [1]}, "created_at": "2026-01-07T10:00:00.000Z"});
    assert_eq!((&card["content"], &card["id"]), (&content, &first["message_id"]));
    assert!(text(card, "created_at") > "2026-02", "the message has its own time");
    let bare = client.post("/v1/briefings", json!({"agent_id": agent_id, "title": "t", "summary": "s"})).await.unwrap();
    assert_eq!((&bare["priority"], &bare["data"]), (&Value::Null, &Value::Null));
    assert!(text(&bare, "created_at") > "2026-02");
    let another =
        client.post(&format!("/v1/briefings/{}/actions/start_conversation", text(&bare, "id")), json!({})).await;
    assert_eq!(another.unwrap()["conversation_id"], conversation);
    let bob = client.user("bob");
    for (method, path) in [(Method::GET, format!("/v1/briefings/{}", text(&briefing, "id"))), (Method::POST, path)] {
        let failure = answer(bob.request(method, &path)).await.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (404, "briefing_not_found"));
    }
}

async fn an_operator_stores_a_briefing_for_another_owner_once_per_key(mut deployment: Deployment) {
    deployment = deployment.with("HOLDFAST_JWT_KEY", SECRET);
    let client = deployment.client();
    let service = client.token(&token(&claims("service", json!({"role": "operator"}))));
    let [ann, bob] = ["ann", "bob"].map(|name| client.token(&token(&claims(name, json!({})))));
    let agent = service.post("/v1/agents", json!({"name": "a"})).await.unwrap();
    let briefing_for = |owner: &str| json!({"agent_id": agent["id"], "title": "t", "summary": "s", "owner_id": owner});
    let post = |client: &Client, body: &Value| {
        client.request(Method::POST, "/v1/briefings").header("idempotency-key", "k").json(body)
    };
    let first = answer(post(&service, &briefing_for("ann"))).await.unwrap();
    assert_eq!(answer(post(&service, &briefing_for("ann"))).await.unwrap(), first);
    let reused = answer(post(&service, &briefing_for("bob"))).await.unwrap_err();
    assert_eq!((reused.status, reused.code.as_str()), (422, "idempotency_key_reused"));
    assert_eq!(ann.get("/v1/briefings").await.unwrap()["items"], json!([first]));
    assert_eq!(service.get("/v1/briefings").await.unwrap()["items"], json!([]));
    let refused = bob.post("/v1/briefings", briefing_for("ann")).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (403, "operator_needed"));
    bob.post("/v1/briefings", briefing_for("bob")).await.unwrap();
    assert_eq!(service.post("/v1/briefings", briefing_for(" ")).await.unwrap_err().code, "invalid_user");
    let path = format!("/v1/briefings/{}", text(&first, "id"));
    assert_eq!(bob.delete(&path).await.unwrap_err().code, "briefing_not_found");
    ann.delete(&path).await.unwrap();
    assert_eq!(ann.get(&path).await.unwrap_err().code, "briefing_not_found");
}

async fn bad_briefings_are_refused(mut deployment: Deployment) {
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({})).await;
    let unknown = "01890000-0000-7000-8000-000000000000";
    let refused: [(Value, &str); 11] = [
        (json!({"title": " "}), "invalid_briefing"),
        (json!({"title": "a".repeat(201)}), "invalid_briefing"),
        (json!({"title": "two\nlines"}), "invalid_briefing"),
        (json!({"summary": ""}), "invalid_briefing"),
        (json!({"summary": "a".repeat(65_537)}), "content_too_long"),
        (json!({"summary": "a\u{0}"}), "invalid_content"),
        (json!({"priority": ""}), "invalid_briefing"),
        (json!({"priority": "p".repeat(65)}), "invalid_briefing"),
        (json!({"created_at": "yesterday"}), "invalid_body"),
        (json!({"colour": "red"}), "invalid_body"),
        (json!({"agent_id": unknown}), "agent_not_found"),
    ];
    for (change, code) in refused {
        let mut briefing = json!({"agent_id": agent_id, "title": "t", "summary": "s"});
        briefing.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let failure = client.post("/v1/briefings", briefing).await.unwrap_err();
        assert_eq!((failure.status, failure.code.as_str()), (400, code), "{change}");
    }
    assert_eq!(client.get("/v1/briefings").await.unwrap()["items"], json!([]));
    let edges = json!({"agent_id": agent_id, "title": "a".repeat(200), "summary": "a".repeat(65_536), "priority": "p".repeat(64)});
    client.post("/v1/briefings", edges).await.unwrap();
}

async fn an_edit_replaces_a_message_and_what_follows_it(mut deployment: Deployment) {
    let client = deployment.client();
    let submission = client.start("[tokens=1] one").await;
    client.wait_for_run(text(&submission["run"], "id")).await;
    let conversation = text(&submission["conversation"], "id");
    let second = say(&client, conversation, json!({"content": "[tokens=2] two"})).await;
    let edit = json!({"content": "[tokens=3] zwei", "replace_from": second["message"]["id"]});
    say(&client, conversation, edit.clone()).await;
    let current = messages_of(&client, conversation, "").await;
    assert_eq!(contents(&current), ["[tokens=1] one", "This ", "[tokens=3] zwei", "This is Holdfast's "]);
    assert!(current.iter().all(|message| message["superseded_at"].is_null()));
    let everything = messages_of(&client, conversation, "?superseded=true").await;
    let replaced: Vec<&Value> = everything.iter().filter(|message| message["superseded_at"].is_string()).collect();
    assert_eq!(replaced.iter().map(|message| &message["content"]).collect::<Vec<_>>(), ["[tokens=2] two", "This is "]);
    let path = format!("/v1/conversations/{conversation}/messages");
    let again = client.post(&path, edit).await.unwrap_err();
    assert_eq!((again.status, again.code.as_str()), (404, "message_not_found"), "it was replaced before");
    let nothing = client.post(&path, json!({})).await.unwrap_err();
    assert_eq!((nothing.status, nothing.code.as_str()), (400, "invalid_body"));
    let empty = json!({"content": " ", "replace_from": current[2]["id"]});
    assert_eq!(client.post(&path, empty).await.unwrap_err().code, "empty_content");
    assert_eq!(messages_of(&client, conversation, "").await, current);
}

async fn an_edit_can_be_undone(mut deployment: Deployment) {
    let client = deployment.client();
    let first = client.post("/v1/runs", json!({"input": "[tokens=1] one"})).await.unwrap();
    let id = text(&first["conversation"], "id");
    client.wait_for_run(text(&first["run"], "id")).await;
    let question = messages_of(&client, id, "").await[0].clone();
    assert_eq!(question["version"], Value::Null);
    let edit = json!({"content": "[tokens=2] eins", "replace_from": question["id"]});
    let edited = say(&client, id, edit).await;
    say(&client, id, json!({"replace_from": text(&edited["message"], "id")})).await;
    let messages = messages_of(&client, id, "").await;
    assert_eq!(messages[0]["version"], json!({"number": 2, "count": 2, "previous": question["id"], "next": null}));
    assert_eq!(messages[1]["version"]["number"], 2);
    let history = client.get(&format!("/api/chat/{id}/messages")).await.unwrap();
    for (message, in_history) in messages.iter().zip(history.as_array().unwrap()) {
        assert_eq!(in_history["metadata"]["version"], message["version"]);
    }
    let restore = async |message: &str| {
        answer(client.request(Method::POST, &format!("/v1/conversations/{id}/messages/{message}/restore"))).await
    };
    let restored = restore(text(&question, "id")).await.unwrap();
    assert_eq!((&restored["id"], &restored["superseded_at"]), (&question["id"], &Value::Null));
    assert_eq!(contents(&messages_of(&client, id, "").await), [&json!("[tokens=1] one"), &json!("This ")]);
    // The message that replaced it is gone too.
    let refused = restore(text(&messages[1]["version"], "previous")).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (409, "message_not_restorable"));
    let refused = restore("01890000-0000-7000-8000-000000000000").await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (404, "message_not_found"));
    restore(text(&edited["message"], "id")).await.unwrap();
    assert_eq!(messages_of(&client, id, "").await, messages);
}

async fn an_answer_can_be_made_again(mut deployment: Deployment) {
    let client = deployment.client();
    let submission = client.start("[tokens=1] one").await;
    let first = client.wait_for_run(text(&submission["run"], "id")).await;
    let conversation = text(&submission["conversation"], "id");
    say(&client, conversation, json!({"content": "[tokens=2] two"})).await;
    let again = say(&client, conversation, json!({"replace_from": first["output_message"]["id"]})).await;
    assert_eq!(again["message"], submission["message"], "the question stays");
    assert_eq!(again["run"]["input_message_id"], submission["message"]["id"]);
    let current = messages_of(&client, conversation, "").await;
    assert_eq!(contents(&current), ["[tokens=1] one", "This "]);
    assert_eq!(current[1]["id"], again["run"]["output_message"]["id"]);
    assert_ne!(current[1]["id"], first["output_message"]["id"]);
    let once_more = say(&client, conversation, json!({"replace_from": submission["message"]["id"]})).await;
    let current = messages_of(&client, conversation, "").await;
    assert_eq!((current.len(), &current[1]["id"]), (2, &once_more["run"]["output_message"]["id"]));
}

async fn an_answer_that_is_being_made_can_be_made_again(mut deployment: Deployment) {
    let client = deployment.client();
    let submission = client.start("[gate=closed] one").await;
    let (run, conversation) = (text(&submission["run"], "id"), text(&submission["conversation"], "id"));
    until("the run has output", || async {
        let run = client.run(run).await;
        (run["status"] == "running").then_some(())
    })
    .await;
    let path = format!("/v1/conversations/{conversation}/messages");
    let edit = json!({"content": "[tokens=1] two", "replace_from": submission["message"]["id"]});
    let edited = client.post(&path, edit).await.unwrap();
    client.wait_for_run(text(&edited["run"], "id")).await;
    assert_eq!(client.wait_for_run(run).await["status"], "cancelled");
    assert_eq!(contents(&messages_of(&client, conversation, "").await), ["[tokens=1] two", "This "]);
}

async fn a_rollback_supersedes_the_run_that_it_interrupts(mut deployment: Deployment) {
    let client = deployment.client();
    let submission = client.start("[tokens=1] one").await;
    client.wait_for_run(text(&submission["run"], "id")).await;
    let conversation = text(&submission["conversation"], "id");
    let path = format!("/v1/conversations/{conversation}/messages");
    let long = client.post(&path, json!({"content": "[gate=closed] two"})).await.unwrap();
    let mut events = client.events(text(&long["run"], "id"), None).await;
    events.up_to("message.delta").await;
    let back = client.post(&path, json!({"content": "[tokens=2] three", "mode": "rollback"})).await.unwrap();
    client.wait_for_run(text(&back["run"], "id")).await;
    assert_eq!(client.wait_for_run(text(&long["run"], "id")).await["status"], "cancelled");
    let current = messages_of(&client, conversation, "").await;
    assert_eq!(contents(&current), ["[tokens=1] one", "This ", "[tokens=2] three", "This is "]);
    let everything = messages_of(&client, conversation, "?superseded=true").await;
    assert!(everything.len() > current.len() + 1, "the interrupted question and its partial answer are kept");
    let live = client.post(&path, json!({"content": "[gate=closed] four"})).await.unwrap();
    let again = json!({"replace_from": live["message"]["id"], "mode": "rollback"});
    let again = client.post(&path, again).await.unwrap();
    assert_eq!(again["message"]["id"], live["message"]["id"], "a question stays when its answer is made again");
    client.cancel(text(&again["run"], "id")).await;
    client.wait_for_run(text(&again["run"], "id")).await;
    let messages = messages_of(&client, conversation, "").await;
    let four = messages.iter().find(|message| message["id"] == live["message"]["id"]).unwrap();
    let edit = json!({"content": "[tokens=1] four", "replace_from": four["id"], "mode": "rollback"});
    let quiet = client.post(&path, edit).await.unwrap();
    client.wait_for_run(text(&quiet["run"], "id")).await;
    assert_eq!(
        messages_of(&client, conversation, "").await.len(),
        6,
        "without a live run there is nothing to take back"
    );
}

async fn listings_are_chronological_for_all_kinds(mut deployment: Deployment) {
    let client = deployment.client();
    let agent_id = agent(&client, json!([]), json!({})).await;
    let conversation = text(&put(&client, &agent_id).await, "id").to_owned();
    say(&client, &conversation, json!({"content": "[tokens=1] one"})).await;
    let new = json!({"agent_id": agent_id, "title": "t", "summary": "s", "created_at": "2020-01-01T00:00:00Z"});
    let briefing = client.post("/v1/briefings", new).await.unwrap();
    let path = format!("/v1/briefings/{}/actions/start_conversation", text(&briefing, "id"));
    client.post(&path, json!({})).await.unwrap();
    say(&client, &conversation, json!({"content": "[tokens=1] two"})).await;
    let kinds = |messages: &[Value]| messages.iter().map(|m| text(m, "content_type").to_owned()).collect::<Vec<_>>();
    let all = messages_of(&client, &conversation, "").await;
    assert_eq!(kinds(&all), ["text", "text", "briefing_card", "text", "text"]);
    assert!(all.is_sorted_by_key(|message| text(message, "created_at")));
    let mut paged = Vec::new();
    let mut query = "?limit=1".to_owned();
    loop {
        let page = client.get(&format!("/v1/conversations/{conversation}/messages{query}")).await.unwrap();
        paged.extend(page["items"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => query = format!("?limit=1&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(paged, all);
}
