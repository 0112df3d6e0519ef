//! Lists of messages whose ids say where a new message stands: a client that shortens its list and adds a message has edited.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    files::asking,
    in_either_mode,
    support::{BlockStream, Client, ClientProgram, Deployment, upstream::TestUpstream},
};

in_either_mode!(
    a_shortened_list_of_the_ai_sdk_replaces_what_follows,
    a_shortened_list_of_ag_ui_replaces_what_follows,
    a_complete_list_adds_a_message,
    a_list_without_known_ids_adds_a_message,
    a_message_that_is_sent_again_has_one_run,
    a_message_after_an_older_version_goes_back_to_it,
);

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
}

/// Sends a list of the AI SDK, and returns the id of its answer.
async fn send(client: &Client, messages: &[Value]) -> Value {
    let body = json!({"id": "c", "messages": messages, "trigger": "submit-message"});
    let blocks = BlockStream::open(client.request(Method::POST, "/api/chat").json(&body)).await.rest().await;
    let id = blocks[0].json()["messageId"].clone();
    json!({"id": id, "role": "assistant", "parts": [{"type": "text", "text": "changed by the client"}]})
}

/// Returns the ids of the messages of the chat.
async fn ids(client: &Client) -> Vec<Value> {
    let messages = client.get("/api/chat/c/messages").await.unwrap();
    messages.as_array().unwrap().iter().map(|message| message["id"].clone()).collect()
}

/// Returns the texts that the model has read last.
fn read(upstream: &TestUpstream) -> Vec<String> {
    let request = upstream.requests().pop().unwrap();
    let messages = request["messages"].as_array().unwrap().clone();
    let told = messages.iter().filter(|message| message["role"] != "system");
    told.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

async fn a_shortened_list_of_the_ai_sdk_replaces_what_follows(deployment: Deployment) {
    let upstream = TestUpstream::start(&["Aye."]).await;
    let mut deployment = asking(deployment, &upstream);
    let client = deployment.client();
    let (one, two) = (user("m1", "one"), user("m2", "two"));
    let first = send(&client, std::slice::from_ref(&one)).await;
    let second = send(&client, &[one.clone(), first.clone(), two.clone()]).await;
    // assistant-ui edits so: it keeps the messages before, and sends a new one.
    let edited = user("m3", "three");
    let third = send(&client, &[one, first.clone(), edited]).await;
    assert_eq!(
        read(&upstream),
        ["one", "Aye.", "three"],
        "the model reads what the user kept, and not the client's texts"
    );
    let now = [json!("m1"), first["id"].clone(), json!("m3"), third["id"].clone()];
    assert_eq!(ids(&client).await, now);
    // The older version stays reachable.
    let all = client.get("/api/chat/c/messages").await.unwrap();
    let version = &all[2]["metadata"]["version"];
    assert_eq!((&version["number"], &version["count"]), (&json!(2), &json!(2)), "{}", all[2]);
    let conversation = client.run(&run_of(&client, &second).await).await["conversation_id"].clone();
    let path = format!(
        "/v1/conversations/{}/messages/{}/restore",
        conversation.as_str().unwrap(),
        version["previous"].as_str().unwrap()
    );
    client.post(&path, json!({})).await.unwrap();
    assert_eq!(ids(&client).await, [json!("m1"), first["id"].clone(), json!("m2"), second["id"].clone()]);
}

/// Returns the run of an answer.
async fn run_of(client: &Client, answer: &Value) -> String {
    let runs = client.get("/v1/runs").await.unwrap()["items"].clone();
    let run = runs.as_array().unwrap().iter().find(|run| run["output_message_id"] == answer["id"]).cloned();
    run.expect("the answer has a run")["id"].as_str().unwrap().to_owned()
}

async fn a_shortened_list_of_ag_ui_replaces_what_follows(deployment: Deployment) {
    let deployment = deployment.own();
    let upstream = TestUpstream::start(&["Aye."]).await;
    let mut deployment = asking(deployment, &upstream);
    let client = deployment.client();
    let steps = json!([{"say": "one"}, {"say": "two"}, {"keep": 2, "say": "three"}, {"connect": true}]);
    let program =
        ClientProgram::start("ag-ui", client.base(), json!({"thread": "t", "resumable": true, "steps": steps}));
    let (reports, messages) = program.await.rest().await;
    assert_eq!(read(&upstream), ["one", "Aye.", "three"]);
    let texts: Vec<&Value> = messages.as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!(texts, ["one", "Aye.", "three", "Aye."]);
    let edited = reports.iter().find(|report| report["step"] == 2).unwrap();
    assert_eq!(edited["messages"], messages, "a new client has what the old one has");
}

async fn a_complete_list_adds_a_message(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let call = r#"[call=scripted__echo {"text":"hi"}] [tokens=2] one"#;
    let steps = json!([{"say": call}, {"say": "[tokens=1] two"}, {"say": "[tokens=1] three"}]);
    let program = ClientProgram::start("ag-ui", client.base(), json!({"thread": "t", "steps": steps}));
    let (_, messages) = program.await.rest().await;
    let asked = messages.as_array().unwrap().iter().filter(|message| message["role"] == "user").count();
    let conversation = client.get("/v1/conversations").await.unwrap()["items"][0]["id"].clone();
    let path = format!("/v1/conversations/{}/messages?superseded=true", conversation.as_str().unwrap());
    let stored = client.get(&path).await.unwrap()["items"].as_array().unwrap().clone();
    assert_eq!((asked, stored.len()), (3, 6));
    assert!(stored.iter().all(|message| message["superseded_at"].is_null()), "{stored:?}");
}

async fn a_list_without_known_ids_adds_a_message(mut deployment: Deployment) {
    let client = deployment.client();
    send(&client, &[user("m1", "[tokens=1] one")]).await;
    let stranger = json!({"id": "elsewhere", "role": "assistant", "parts": []});
    send(&client, &[stranger, user("m2", "[tokens=1] two")]).await;
    send(&client, &[user("m3", "[tokens=1] three")]).await;
    assert_eq!(ids(&client).await.len(), 6);
    // A queued message waits behind an answer that is under way, and replaces nothing.
    let slow = json!({"id": "c", "messages": [user("m4", "[gate=closed] four")]});
    let mut stream = BlockStream::open(client.request(Method::POST, "/api/chat").json(&slow)).await;
    let start = stream.take(1).await.remove(0).json();
    let partial = json!({"id": start["messageId"], "role": "assistant", "parts": []});
    let posted = json!({"id": "c", "messages": [user("m4", "four"), partial, user("m5", "[tokens=1] five")]});
    let queued = client.request(Method::POST, "/api/chat").json(&posted).send().await.unwrap();
    client.cancel(&stream.run_id).await;
    BlockStream::of(queued).rest().await;
    assert_eq!(ids(&client).await.len(), 10);
}

async fn a_message_that_is_sent_again_has_one_run(mut deployment: Deployment) {
    let client = deployment.client();
    let first = send(&client, &[user("m1", "[tokens=1] one")]).await;
    send(&client, &[user("m1", "x"), first.clone(), user("m2", "[tokens=1] two")]).await;
    let edited = [user("m1", "x"), first, user("m3", "[tokens=1] three")];
    let answers = [send(&client, &edited).await, send(&client, &edited).await];
    assert_eq!(answers[0]["id"], answers[1]["id"]);
    assert_eq!(client.get("/v1/runs").await.unwrap()["items"].as_array().unwrap().len(), 3);
}

async fn a_message_after_an_older_version_goes_back_to_it(deployment: Deployment) {
    let upstream = TestUpstream::start(&["Aye."]).await;
    let mut deployment = asking(deployment, &upstream);
    let client = deployment.client();
    let (one, two) = (user("m1", "one"), user("m2", "two"));
    let first = send(&client, std::slice::from_ref(&one)).await;
    let second = send(&client, &[one.clone(), first.clone(), two.clone()]).await;
    send(&client, &[one.clone(), first.clone(), user("m3", "three")]).await;
    // The user goes back to the first version on the page, and says something there.
    let fourth = send(&client, &[one, first.clone(), two, second.clone(), user("m4", "four")]).await;
    assert_eq!(read(&upstream), ["one", "Aye.", "two", "Aye.", "four"]);
    let shown =
        [json!("m1"), first["id"].clone(), json!("m2"), second["id"].clone(), json!("m4"), fourth["id"].clone()];
    assert_eq!(ids(&client).await, shown);
}
