//! Messages that steer: they join a live run before its next model call.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    in_both_modes, in_either_mode,
    support::{
        Client, Deployment, EventFrame, EventStream, ScriptGate, agent, fold, of_kind, stream_of, tools::ToolServer,
        until,
    },
};

in_both_modes!(
    a_message_joins_the_run_after_the_calls_under_way,
    messages_join_in_the_order_of_their_posting,
    a_message_to_the_last_step_is_the_next_runs_input,
    a_message_joins_once_though_the_worker_dies,
    a_run_that_waits_for_its_children_takes_messages_after_them,
    each_of_many_messages_lands_once_and_in_order_though_workers_die,
);

in_either_mode!(
    a_message_can_be_taken_back_until_it_has_joined,
    a_message_beyond_the_bytes_of_a_run_waits_for_its_turn,
    every_wire_can_steer,
);

/// The text of a run that has called the tool, and has then answered `[tokens=2]`.
const ANSWER: &str = "Calling kb__count. \n\nThis is ";

/// A run whose call has reached the tool server, with the conversation's path.
struct Calling {
    server: ToolServer,
    stream: EventStream,
    messages: String,
}

impl Calling {
    async fn start(client: &Client, input: &str) -> Self {
        let server = ToolServer::start().await;
        let agent_id = agent(client, json!([server.describe()]), json!({})).await;
        let mut stream = stream_of(client, &agent_id, input).await;
        stream.up_to("tool_call.started").await;
        let run = client.run(&stream.run_id).await;
        let messages = format!("/v1/conversations/{}/messages", run["conversation_id"].as_str().unwrap());
        Self { server, stream, messages }
    }

    async fn steer(&self, client: &Client, text: &str) -> String {
        posted(&client.post(&self.messages, json!({"content": text, "mode": "steer"})).await.unwrap())
    }

    /// Answers the call.
    async fn answer(&mut self) {
        let call = self.server.arrival().await;
        call.take_effect();
        call.answer("counted");
    }
}

fn posted(accepted: &Value) -> String {
    accepted["run"]["id"].as_str().unwrap().to_owned()
}

fn names(frames: &[EventFrame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).filter(|name| !name.ends_with(".delta")).collect()
}

/// Returns the run and the text of each message in the conversation.
async fn messages(client: &Client, path: &str) -> Vec<(String, String)> {
    let listed = client.get(path).await.unwrap();
    let text = |message: &Value, field: &str| message[field].as_str().unwrap().to_owned();
    listed["items"].as_array().unwrap().iter().map(|item| (text(item, "run_id"), text(item, "content"))).collect()
}

async fn a_message_joins_the_run_after_the_calls_under_way(mut deployment: Deployment) {
    let client = deployment.client();
    let mut calling = Calling::start(&client, "[tokens=9] [call=kb__count]").await;
    let own = calling.steer(&client, "[tokens=2] instead").await;
    assert_eq!(client.run(&own).await["status"], "queued");
    calling.answer().await;
    let (run_id, path) = (calling.stream.run_id.clone(), calling.messages.clone());
    let rest = calling.stream.rest().await;
    assert_eq!(
        names(&rest),
        [
            "tool_call.completed",
            "step.completed",
            "message.steered",
            "step.started",
            "step.completed",
            "message.completed",
            "run.completed"
        ]
    );
    assert_eq!(fold(&client.rest_after(&run_id, "0-0").await), ANSWER);
    let listed = messages(&client, &path).await;
    let expected = [("[tokens=9] [call=kb__count]", &run_id), ("[tokens=2] instead", &run_id), (ANSWER, &run_id)];
    assert_eq!(listed, expected.map(|(text, run)| (run.clone(), text.to_owned())));
    // The message's own run has ended, and its log names the other.
    let own_log = client.rest_after(&own, "0-0").await;
    assert_eq!(names(&own_log), ["run.queued", "message.steered", "run.cancelled"]);
    assert_eq!(own_log[1].data["joined_run_id"], run_id.as_str());
    assert_eq!(own_log[1].data["message_id"], of_kind(&rest, "message.steered")[0]["message_id"]);
    assert_eq!(client.run(&own).await["status"], "cancelled");
}

async fn messages_join_in_the_order_of_their_posting(mut deployment: Deployment) {
    let client = deployment.client();
    let mut calling = Calling::start(&client, "[tokens=1] [call=kb__count]").await;
    let mut own = Vec::new();
    for n in 0..40 {
        own.push(calling.steer(&client, &format!("[tokens=1] {n}")).await);
    }
    calling.answer().await;
    let path = calling.messages.clone();
    let frames = calling.stream.rest().await;
    // At most 32 messages join at one border of a step; the others are the inputs of the next runs.
    assert_eq!(of_kind(&frames, "message.steered").len(), 32);
    for run in &own {
        client.wait_for_run(run).await;
    }
    let listed = messages(&client, &path).await;
    let posted: Vec<&str> = listed.iter().filter_map(|(_, text)| text.strip_prefix("[tokens=1] ")).collect();
    let expected: Vec<String> =
        std::iter::once("[call=kb__count]".to_owned()).chain((0..40).map(|n| n.to_string())).collect();
    assert_eq!(posted, expected);
}

async fn a_message_to_the_last_step_is_the_next_runs_input(mut deployment: Deployment) {
    let client = deployment.client();
    let gate = ScriptGate::closed();
    let mut stream = client.stream(&format!("[tokens=20] {}", gate.directive())).await;
    stream.up_to("message.delta").await;
    let conversation = client.run(&stream.run_id).await["conversation_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/conversations/{conversation}/messages");
    let own = posted(&client.post(&path, json!({"content": "[tokens=2]", "mode": "steer"})).await.unwrap());
    gate.open();
    assert!(of_kind(&stream.rest().await, "message.steered").is_empty());
    let run = client.wait_for_run(&own).await;
    assert_eq!(
        (run["status"].as_str(), run["output_message"]["content"].as_str()),
        (Some("completed"), Some("This is "))
    );
}

async fn a_message_joins_once_though_the_worker_dies(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let mut calling = Calling::start(&client, "[tokens=1] [call=kb__count]").await;
    calling.steer(&client, "[tokens=60] [delay=20]").await;
    calling.answer().await;
    let Calling { mut stream, messages: path, .. } = calling;
    let mut frames = stream.up_to("message.steered").await;
    frames.extend(stream.up_to_nth("message.delta", 3).await);
    let run_id = stream.run_id.clone();
    drop(stream);
    deployment.kill_worker();
    let client = deployment.client();
    frames.extend(client.rest_after(&run_id, &frames.last().unwrap().id.clone()).await);
    assert_eq!(of_kind(&frames, "message.steered").len(), 1);
    let replayed = client.rest_after(&run_id, "0-0").await;
    assert_eq!(of_kind(&replayed, "message.steered").len(), 1);
    let text = fold(&replayed);
    assert_eq!(text.split("\n\n").last().unwrap().split_whitespace().count(), 60);
    assert_eq!(messages(&client, &path).await.len(), 3);
    let trace = client.get(&format!("/v1/runs/{run_id}/messages")).await.unwrap();
    let read = trace["items"].as_array().unwrap().iter().filter(|item| item["content"] == "[tokens=60] [delay=20]");
    assert_eq!(read.count(), 1);
}

async fn a_run_that_waits_for_its_children_takes_messages_after_them(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    agent(&client, json!([]), json!({"name": "helper"})).await;
    let lead = agent(&client, json!([]), json!({"name": "lead", "subagents": [{"agent": "helper"}]})).await;
    let mut stream = stream_of(&client, &lead, "[delegate=helper [tokens=20] [delay=20]] [tokens=9]").await;
    stream.up_to("subagent.started").await;
    let run = client.run(&stream.run_id).await;
    let path = format!("/v1/conversations/{}/messages", run["conversation_id"].as_str().unwrap());
    client.post(&path, json!({"content": "[tokens=2]", "mode": "steer"})).await.unwrap();
    assert_eq!(of_kind(&stream.rest().await, "message.steered").len(), 1);
    assert!(messages(&client, &path).await[2].1.ends_with("\n\nThis is "));
}

async fn a_message_can_be_taken_back_until_it_has_joined(mut deployment: Deployment) {
    let client = deployment.client();
    let mut calling = Calling::start(&client, "[tokens=9] [call=kb__count]").await;
    let own = calling.steer(&client, "[tokens=2] never mind").await;
    let late = calling.steer(&client, "[tokens=2] instead").await;
    let take_back = |run: &str| format!("/v1/runs/{run}/take_back");
    assert_eq!(client.post(&take_back(&own), json!({})).await.unwrap()["status"], "cancelled");
    let path = calling.messages.clone();
    assert_eq!(messages(&client, &path).await.len(), 2);
    calling.answer().await;
    let rest = calling.stream.rest().await;
    assert_eq!(of_kind(&rest, "message.steered").len(), 1);
    for run in [&own, &late] {
        let refused = client.post(&take_back(run), json!({})).await.unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (409, "run_begun"));
    }
    assert_eq!(
        client.post(&take_back("01a20274-a648-7138-bbe2-c7f0814e8159"), json!({})).await.unwrap_err().status,
        404
    );
    let conversation = path.split('/').nth(3).unwrap();
    let history = client.get(&format!("/api/chat/{conversation}/messages")).await.unwrap();
    let roles: Vec<_> = history.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "user", "assistant"]);
}

async fn a_message_beyond_the_bytes_of_a_run_waits_for_its_turn(deployment: Deployment) {
    let fitting = "[tokens=1] 123456789";
    let mut deployment = deployment.with("HOLDFAST_MAX_STEERING_BYTES", fitting.len());
    let client = deployment.client();
    let mut calling = Calling::start(&client, "[tokens=9] [call=kb__count]").await;
    let first = calling.steer(&client, fitting).await;
    let second = calling.steer(&client, "x").await;
    calling.answer().await;
    assert_eq!(of_kind(&calling.stream.rest().await, "message.steered").len(), 1);
    assert_eq!(client.run(&first).await["status"], "cancelled");
    assert_eq!(client.wait_for_run(&second).await["status"], "completed");
}

async fn every_wire_can_steer(mut deployment: Deployment) {
    let client = deployment.client();
    let mut calling = Calling::start(&client, "[tokens=9] [call=kb__count]").await;
    let conversation = calling.messages.split('/').nth(3).unwrap().to_owned();
    let agent_stream = json!({"message": "one", "session_id": conversation, "context_type": "global", "mode": "steer"});
    let chat_stream = json!({"message": "two", "conversationId": conversation, "mode": "steer"});
    let ai_sdk = json!({
        "id": conversation,
        "messages": [{"id": "m3", "role": "user", "parts": [{"type": "text", "text": "three"}]}],
        "mode": "steer"
    });
    let text_path = format!("/api/conversations/{conversation}/messages");
    let runs = json!({"input": "five", "conversation_id": conversation, "mode": "steer"});
    let posts = [
        ("/api/agent/stream", agent_stream),
        ("/api/chat/stream", chat_stream),
        ("/api/chat", ai_sdk),
        (text_path.as_str(), json!({"content": "four", "mode": "steer"})),
        ("/v1/runs", runs),
    ];
    let mut streams = Vec::new();
    for (count, (path, body)) in posts.iter().enumerate() {
        let request = client.request(Method::POST, path).header("accept", "text/event-stream").json(body);
        streams.push(tokio::spawn(async move { request.send().await.unwrap().text().await }));
        until("the message is posted", || async {
            (messages(&client, &calling.messages).await.len() == count + 2).then_some(())
        })
        .await;
    }
    calling.answer().await;
    let rest = calling.stream.rest().await;
    assert_eq!(of_kind(&rest, "message.steered").len(), posts.len());
    for (stream, (path, _)) in streams.into_iter().zip(&posts) {
        let text = stream.await.unwrap().unwrap();
        assert_eq!(text.contains("\"type\":\"data-steered\""), *path == "/api/chat", "{path}: {text}");
    }
}

/// Conversations of the test with kills, and messages that steer each.
const CONVERSATIONS: usize = 30;
const STEERS: usize = 10;

/// Posts the messages of one conversation at irregular moments; each is sent until a server has taken it. Returns the
/// conversation's id.
async fn converse(clients: watch::Receiver<Client>, agent_id: String, nth: usize) -> String {
    let mut conversation = None;
    for n in 0..=STEERS {
        // Without a call, the step that reads the message is the run's last one.
        let call = if n % 3 == 2 { "" } else { "[call=kb__count]" };
        let content = format!("{call} [tokens=4] [delay=3] {n}");
        let body = match &conversation {
            None => json!({"input": content, "agent_id": agent_id}),
            Some(id) => json!({"input": content, "conversation_id": id, "mode": "steer"}),
        };
        let accepted = until("a server takes the message", || async {
            let request = clients.borrow().request(Method::POST, "/v1/runs");
            let response = request.header("idempotency-key", format!("{nth}-{n}")).json(&body).send().await.ok()?;
            if response.status() != 202 { None } else { response.json::<Value>().await.ok() }
        })
        .await;
        conversation.get_or_insert_with(|| accepted["conversation"]["id"].as_str().unwrap().to_owned());
        tokio::time::sleep(Duration::from_millis((nth * 7919 + n * 104_729) as u64 % 90)).await;
    }
    conversation.expect("a message was posted")
}

/// A message that a run has read.
struct ReadMessage {
    text: String,
    has_joined: bool,
}

/// Returns the messages that the conversation's runs have read, in the order of the runs.
async fn read_by_runs(client: &Client, conversation: &str) -> Vec<ReadMessage> {
    let listed = client.get(&format!("/v1/runs?conversation_id={conversation}&limit=100")).await.unwrap();
    let mut read = Vec::new();
    for run in listed["items"].as_array().unwrap().iter().rev() {
        let ended = client.wait_for_run(run["id"].as_str().unwrap()).await;
        if ended["status"] != "completed" {
            assert_eq!((ended["status"].as_str(), &ended["started_at"]), (Some("cancelled"), &Value::Null), "{ended}");
            continue;
        }
        let trace =
            client.get(&format!("/v1/runs/{}/messages?limit=200", ended["id"].as_str().unwrap())).await.unwrap();
        let users = trace["items"].as_array().unwrap().iter().filter(|item| item["role"] == "user");
        read.extend(users.map(|item| ReadMessage {
            text: item["content"].as_str().unwrap().rsplit(' ').next().unwrap().to_owned(),
            has_joined: item["step"] != 0,
        }));
    }
    read
}

async fn each_of_many_messages_lands_once_and_in_order_though_workers_die(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_MAX_CRASHES", 100);
    let server = ToolServer::answering_at_once().await;
    let client = deployment.client();
    let more =
        json!({"tools": {"kb__count": {"effect": "read_only"}}, "limits": {"max_tool_calls": 100, "max_steps": 100}});
    let agent_id = agent(&client, json!([server.describe()]), more).await;
    let (changes, clients) = watch::channel(client);
    let mut talks = tokio::task::JoinSet::new();
    for nth in 0..CONVERSATIONS {
        talks.spawn(converse(clients.clone(), agent_id.clone(), nth));
    }
    let mut conversations = Vec::new();
    while let Some(conversation) = talks.join_next().await {
        conversations.push(conversation.unwrap());
        if conversations.len() % (CONVERSATIONS / 3) == 1 {
            deployment.kill_worker();
            changes.send_replace(deployment.client());
        }
    }
    let client = deployment.client();
    let expected: Vec<String> = (0..=STEERS).map(|n| n.to_string()).collect();
    let mut joined = 0;
    for conversation in &conversations {
        let read = read_by_runs(&client, conversation).await;
        assert!(read.iter().map(|message| &message.text).eq(&expected), "{conversation}");
        joined += read.iter().filter(|message| message.has_joined).count();
    }
    let posted = CONVERSATIONS * STEERS;
    assert!((posted / 10..posted).contains(&joined), "{joined} of {posted} messages have joined a live run");
}
