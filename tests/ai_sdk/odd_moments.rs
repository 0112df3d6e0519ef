//! The AI SDK's wire with requests at unusual moments, repeated requests, and requests after a failure.

use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};

use super::{ChatAnswer, body, history, request, resume, runs, text, user, with_answer, without_time};
use crate::{
    in_both_modes, in_either_mode,
    support::{BlockStream, Client, Deployment, Embedded, StreamBlock, agent, answer, until},
};

in_both_modes!(
    a_failed_answer_can_be_made_again_and_again,
    a_restored_answer_is_the_one_that_a_chat_resumes,
    a_late_answer_receives_the_events_in_between,
    a_question_that_never_arrived_is_asked_when_it_is_answered_again,
    questions_put_at_the_same_moment_lose_nothing,
    each_answer_follows_its_question_and_a_stop_ends_one,
    counted_chunks_are_replayed_as_long_as_the_complete_answer,
    a_count_that_a_lost_worker_began_is_refused,
    a_cursor_in_the_middle_of_a_text_resumes_there,
);

in_either_mode!(
    without_pieces_a_question_is_answered_and_the_text_comes_at_once,
    a_run_that_fails_before_its_first_output_ends_with_the_sentence,
    a_failed_answer_without_text_is_in_the_history,
    a_question_of_a_stopped_run_is_not_answered,
    a_message_with_the_id_of_another_replaces_it,
    a_client_that_hangs_up_ends_its_run_where_the_deployment_says_so,
);

fn states(message: &Value) -> Vec<Value> {
    let parts = message["parts"].as_array().unwrap();
    parts.iter().filter(|part| part["toolCallId"].is_string()).map(|part| part["state"].clone()).collect()
}

/// Returns the assistant's message with a decision of its approval.
fn with_decision(stream_answer: &ChatAnswer, approved: bool) -> Value {
    let question = stream_answer.first("tool-approval-request");
    let part = json!({"type": "dynamic-tool", "toolName": "x", "toolCallId": question["toolCallId"],
        "state": "approval-responded", "approval": {"id": question["approvalId"], "approved": approved}});
    body("c", with_answer(stream_answer, part))
}

async fn stop(client: &Client) {
    answer(client.request(Method::POST, "/api/chat/c/stop")).await.unwrap();
}

/// Returns a request that regenerates the answer to the client's newest message.
fn regeneration(question: Value) -> Value {
    json!({"id": "c", "messages": [question], "trigger": "regenerate-message"})
}

async fn again(client: &Client, question: Value) -> ChatAnswer {
    ChatAnswer::send(client, &regeneration(question)).await
}

/// Sends a message whose run fails before its first output; returns the failure.
async fn silent_failure(client: &Client, body: &Value) -> String {
    let stream = ChatAnswer::send(client, body).await;
    let types = stream.types();
    assert_eq!(types.iter().filter(|kind| kind.ends_with("-delta")).count(), 0, "the run gave output: {types:?}");
    assert_eq!((types[0].as_str(), types.last().unwrap().as_str()), ("start", "finish"));
    assert_eq!(stream.first("error")["errorText"], client.run(&stream.run_id).await["error"]["message"]);
    stream.run_id
}

async fn a_run_that_fails_before_its_first_output_ends_with_the_sentence(mut deployment: Deployment) {
    let client = deployment.client();
    let question = user("m1", "[tokens=0] [fail]");
    let failed_answer = silent_failure(&client, &body("c", question.clone())).await;
    assert_eq!(
        silent_failure(&client, &body("c", question.clone())).await,
        failed_answer,
        "the same message is the same run"
    );
    // The user's message stays, and the user can edit it.
    assert_eq!(without_time(&history(&client, "c").await[0]), question);
    let edited = ChatAnswer::send(&client, &body("c", user("m1", "[tokens=1]"))).await;
    assert_eq!(edited.chunks().last().unwrap()["finishReason"], "stop");
    assert_eq!((history(&client, "c").await.as_array().unwrap().len(), runs(&client).await), (2, 2));
}

async fn without_pieces_a_question_is_answered_and_the_text_comes_at_once(mut deployment: Deployment) {
    let client = deployment.client();
    let quiet = client.post("/v1/agents", json!({"name": "quiet", "stream_mode": "messages"})).await.unwrap();
    let mut chat_body = body("c", user("m1", "[think] [approval] [tokens=3]"));
    chat_body["agentId"] = quiet["id"].clone();
    let stream_answer = ChatAnswer::send(&client, &chat_body).await;
    assert!(!stream_answer.types().iter().any(|kind| kind.ends_with("-delta")), "{:?}", stream_answer.types());
    let rest = ChatAnswer::send(&client, &with_decision(&stream_answer, true)).await;
    let text_of_it = client.wait_for_run(&stream_answer.run_id).await["output_message"]["content"].clone();
    assert_eq!(rest.answer_text(), text_of_it);
    let kinds = rest.types();
    let texts: Vec<&str> = kinds.iter().map(String::as_str).filter(|kind| kind.starts_with("text-")).collect();
    assert_eq!(texts, ["text-start", "text-delta", "text-end"]);
    let answer = history(&client, "c").await[1].clone();
    assert_eq!(answer["parts"].as_array().unwrap().last().unwrap()["text"], text_of_it);
    assert_eq!(states(&answer), ["output-available"]);
}

async fn a_failed_answer_can_be_made_again_and_again(mut deployment: Deployment) {
    let client = deployment.client();
    let question = user("m1", "[tokens=0] [fail]");
    let mut run_ids = vec![silent_failure(&client, &body("c", question.clone())).await];
    for _ in 0..3 {
        run_ids.push(silent_failure(&client, &regeneration(question.clone())).await);
    }
    run_ids.dedup();
    assert_eq!((run_ids.len(), runs(&client).await), (4, 4));
    // While the first request streams, the second receives the same chunks.
    let slow = user("m2", "[think] [delay=100] [tokens=0] [fail]");
    ChatAnswer::send(&client, &body("c", slow.clone())).await;
    let (one, other) = tokio::join!(again(&client, slow.clone()), again(&client, slow));
    assert_eq!((one.run_id, runs(&client).await), (other.run_id, 6));
}

async fn a_restored_answer_is_the_one_that_a_chat_resumes(mut deployment: Deployment) {
    let client = deployment.client();
    let question = user("m1", "[tokens=3]");
    let first = ChatAnswer::send(&client, &body("c", question.clone())).await;
    let second = again(&client, question.clone()).await;
    assert_eq!(resume(&client, "c/stream").await.unwrap().run_id, second.run_id);
    let conversation = text(&client.run(&first.run_id).await, "conversation_id");
    let replaced = text(&history(&client, "c").await[1]["metadata"]["version"], "previous");
    let path = format!("/v1/conversations/{conversation}/messages/{replaced}/restore");
    answer(client.request(Method::POST, &path)).await.unwrap();
    assert_eq!(resume(&client, "c/stream").await.unwrap().run_id, first.run_id);
    let third = again(&client, question).await;
    assert!(![&first.run_id, &second.run_id].contains(&&third.run_id), "an earlier run answered again");
    assert_eq!((history(&client, "c").await.as_array().unwrap().len(), runs(&client).await), (2, 3));
}

async fn a_failed_answer_without_text_is_in_the_history(mut deployment: Deployment) {
    let client = deployment.client();
    let failed_run = silent_failure(&client, &body("c", user("m1", "[tokens=0] [fail]"))).await;
    let failed_run = client.run(&failed_run).await;
    ChatAnswer::send(&client, &body("c", user("m2", "[tokens=1]"))).await;
    let messages = history(&client, "c").await;
    let ids: Vec<Value> = messages.as_array().unwrap().iter().map(|message| message["id"].clone()).collect();
    assert_eq!((ids.len(), &ids[1]), (4, &failed_run["output_message_id"]));
    let metadata = &messages[1]["metadata"];
    assert_eq!((&metadata["status"], &metadata["error"]["code"]), (&json!("failed"), &json!("scripted_failure")));
    assert_eq!(messages[3]["metadata"]["status"], "completed");
}

async fn a_question_of_a_stopped_run_is_not_answered(mut deployment: Deployment) {
    let client = deployment.client();
    let stream_answer = ChatAnswer::send(&client, &body("c", user("m1", "[tokens=1] [approval]"))).await;
    let question = stream_answer.first("data-question");
    assert_eq!(question["data"]["kind"], "policy");
    assert_eq!(question["id"], stream_answer.first("tool-approval-request")["approvalId"]);
    stop(&client).await;
    client.wait_for_run(&stream_answer.run_id).await;
    let refused = answer(request(&client, &with_decision(&stream_answer, true))).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (409, "run_not_waiting"));
    let answer = history(&client, "c").await[1].clone();
    assert_eq!((states(&answer), &answer["metadata"]["status"]), (vec![json!("output-denied")], &json!("cancelled")));
}

async fn a_late_answer_receives_the_events_in_between(mut deployment: Deployment) {
    let client = deployment.client();
    let stream_answer =
        ChatAnswer::send(&client, &body("c", user("m1", "[approval=one] [approval=two] [tokens=2]"))).await;
    let other_client = ChatAnswer::send(&client, &with_decision(&stream_answer, true)).await;
    assert_eq!(other_client.types().last().unwrap(), "finish");
    let late = ChatAnswer::send(&client, &with_decision(&stream_answer, true)).await;
    assert_eq!((&late.segment, late.chunks()), (&other_client.segment, other_client.chunks()));
    let bogus = json!({"type": "dynamic-tool", "toolName": "x", "toolCallId": "x", "state": "approval-responded",
        "approval": {"id": "01890000-0000-7000-8000-000000000000", "approved": true}});
    let refused = answer(request(&client, &body("c", with_answer(&stream_answer, bogus)))).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (409, "run_not_waiting"));
    let rest = ChatAnswer::send(&client, &with_decision(&other_client, true)).await;
    assert_eq!(rest.chunks().last().unwrap()["finishReason"], "stop");
}

async fn a_question_that_never_arrived_is_asked_when_it_is_answered_again(mut deployment: Deployment) {
    let client = deployment.client();
    let first = ChatAnswer::send(&client, &body("c", user("m1", "[tokens=1] first"))).await;
    again(&client, user("m2", "[tokens=2] lost")).await;
    let messages = history(&client, "c").await;
    assert_eq!(
        (messages[1]["id"].clone(), without_time(&messages[2])),
        (first.first("start")["messageId"].clone(), user("m2", "[tokens=2] lost"))
    );
    assert_eq!(messages.as_array().unwrap().len(), 4);
}

async fn a_message_with_the_id_of_another_replaces_it(mut deployment: Deployment) {
    let client = deployment.client();
    let first = ChatAnswer::send(&client, &body("c", user("m1", "[tokens=1] first"))).await;
    let mut instead = body("c", user("m2", "[tokens=1] second"));
    instead["messageId"] = json!("m1");
    ChatAnswer::send(&client, &instead).await;
    let messages = history(&client, "c").await;
    assert_eq!((messages.as_array().unwrap().len(), without_time(&messages[0])), (2, user("m2", "[tokens=1] second")));
    let stolen = body("c", user(messages[1]["id"].as_str().unwrap(), "[tokens=1] third"));
    assert_eq!(answer(request(&client, &stolen)).await.unwrap_err().code, "invalid_body");
    assert_ne!(messages[1]["id"], first.first("start")["messageId"]);
}

async fn questions_put_at_the_same_moment_lose_nothing(mut deployment: Deployment) {
    let client = deployment.client();
    ChatAnswer::send(&client, &body("c", user("m0", "[tokens=1]"))).await;
    let ask_nth = |nth: usize| request(&client, &body("c", user("m1", &format!("[tokens=1] {nth}")))).send();
    let answers = futures::future::join_all((0..6).map(ask_nth)).await;
    for answer in answers {
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 200);
        BlockStream::of(answer).rest().await;
    }
    let messages = history(&client, "c").await;
    assert_eq!((messages.as_array().unwrap().len(), &messages[2]["id"]), (4, &json!("m1")));
}

async fn each_answer_follows_its_question_and_a_stop_ends_one(mut deployment: Deployment) {
    let client = deployment.client();
    let mut first = BlockStream::open(request(&client, &body("c", user("m1", "[tokens=40] [delay=10]")))).await;
    first.take(5).await;
    let second = ChatAnswer::send(&client, &body("c", user("m2", "[tokens=1]"))).await;
    let roles =
        |messages: &Value| messages.as_array().unwrap().iter().map(|message| text(message, "role")).collect::<Vec<_>>();
    let messages = history(&client, "c").await;
    assert_eq!(roles(&messages), ["user", "assistant", "user", "assistant"]);
    assert_eq!(messages[3]["id"], second.first("start")["messageId"]);
    let endless = "[tokens=5000] [delay=20]";
    let mut third = BlockStream::open(request(&client, &body("c", user("m3", endless)))).await;
    let fourth = BlockStream::open(request(&client, &body("c", user("m4", endless)))).await;
    third.take(5).await;
    for run_id in [&third.run_id, &fourth.run_id] {
        let at_work = client.request(Method::GET, "/api/chat/c/stream").send().await.unwrap();
        assert_eq!(at_work.headers()["x-run-id"], run_id.as_str(), "a reader sees the answer that a stop ends");
        stop(&client).await;
        assert_eq!(client.wait_for_run(run_id).await["status"], "cancelled");
    }
}

async fn counted_chunks_are_replayed_as_long_as_the_complete_answer(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_CHAT_GRACE_MS", 1);
    let client = deployment.client();
    let stream_answer = ChatAnswer::send(&client, &body("c", user("m1", "[tokens=2]"))).await;
    client.wait_for_run(&stream_answer.run_id).await;
    let path = format!("{}/stream?startIndex=1", stream_answer.segment);
    until("the grace is over", || async { resume(&client, &path).await.is_none().then_some(()) }).await;
}

async fn a_count_that_a_lost_worker_began_is_refused(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let mut stream = BlockStream::open(request(&client, &body("c", user("m1", "[tokens=200] [delay=15]")))).await;
    let index = stream.take(40).await.iter().filter(|block| block.data != "[DONE]").count();
    deployment.kill_worker();
    let client = deployment.client();
    client.wait_for_run(&stream.run_id).await;
    let path = |index: usize| format!("/api/chat/{}/stream?startIndex={index}", stream.run_id);
    let refused = answer(client.request(Method::GET, &path(index + 100))).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (409, "chunks_superseded"));
    // The text of the lost worker has the same position.
    let from_before = BlockStream::open(client.request(Method::GET, &path(1))).await.rest().await;
    assert!(from_before.iter().any(|block| block.data.contains("data-attempt")));
}

async fn a_cursor_in_the_middle_of_a_text_resumes_there(mut deployment: Deployment) {
    let client = deployment.client();
    let agent = agent(&client, json!([]), json!({})).await;
    let mut chat_body = body("c", user("m1", "[think] [tokens=4] [delay=5]"));
    chat_body["agentId"] = json!(agent);
    let stream_answer = ChatAnswer::send(&client, &chat_body).await;
    client.wait_for_run(&stream_answer.run_id).await;
    let all: Vec<String> = stream_answer.blocks.iter().map(|block| block.data.clone()).collect();
    for (at, block) in stream_answer.blocks.iter().enumerate() {
        let Some(id) = &block.id else { continue };
        let path = format!("/v1/runs/{}/events?wire=ai-sdk&after={id}", stream_answer.run_id);
        let request = client.request(Method::GET, &path);
        if all[at] == "[DONE]" || at + 2 >= all.len() {
            break;
        }
        let rest: Vec<StreamBlock> = BlockStream::open(request).await.rest().await;
        let rest: Vec<String> = rest.into_iter().map(|block| block.data).collect();
        assert_eq!(rest, all[at + 1..], "after {id}");
    }
}

#[tokio::test]
async fn a_history_outlives_the_events() {
    let mut deployment = Deployment::embedded().with("HOLDFAST_ARCHIVE_RETENTION_MS", 1).with("HOLDFAST_SWEEP_MS", 50);
    let client = deployment.client();
    let question = "[think] [call=scripted__echo {\"text\":\"hi\"}] [call=no__such] [tokens=3]";
    let stream_answer = ChatAnswer::send(&client, &body("c", user("m1", question))).await;
    let path = format!("/v1/runs/{}/events", stream_answer.run_id);
    client.wait_for_run(&stream_answer.run_id).await;
    let before = history(&client, "c").await;
    assert!(before[1]["parts"].as_array().unwrap().iter().any(|part| part["type"] == "reasoning"), "{before}");
    assert_eq!(states(&before[1]), ["output-available", "output-error"]);
    // The process may still have the events in memory; after a restart only the database has them.
    deployment.kill_worker();
    let client = deployment.client();
    until("the events are gone", || async {
        let request = client.request(Method::GET, &path).header("accept", "application/json");
        (request.send().await.unwrap().status() == 410).then_some(())
    })
    .await;
    assert_eq!(history(&client, "c").await, before);
}

/// Removes the parts of all answers, as if an older version had written them.
fn remove_parts(embedded: &Embedded) {
    let script = "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as database:\n    \
                  print(database.execute('update agent_runs set parts = null').rowcount)";
    let file = embedded.data_dir().join("holdfast.db");
    let output = Command::new("python3").args(["-c", script]).arg(file).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "3", "{output:?}");
}

#[tokio::test]
async fn a_history_of_an_older_version_is_made_of_its_events() {
    let embedded = Embedded::new();
    let mut deployment = Deployment::on(embedded.clone());
    let client = deployment.client();
    let called = "[think] [call=scripted__echo {\"text\":\"hi\"}] [call=no__such] [tokens=3]";
    ChatAnswer::send(&client, &body("c", user("m1", called))).await;
    ChatAnswer::send(&client, &body("c", user("m2", "[think] [tokens=2] [fail]"))).await;
    let question = body("c", user("m3", "[approval] [tokens=3]"));
    let asked = ChatAnswer::send(&client, &question).await;
    ChatAnswer::send(&client, &with_decision(&asked, false)).await;
    let before = history(&client, "c").await;
    deployment.kill_worker();
    remove_parts(&embedded);
    assert_eq!(history(&deployment.client(), "c").await, before);
}

#[tokio::test]
async fn a_history_of_an_older_version_without_events_has_text_and_calls() {
    let embedded = Embedded::new().with("HOLDFAST_ARCHIVE_RETENTION_MS", 1).with("HOLDFAST_SWEEP_MS", 50);
    let mut deployment = Deployment::on(embedded.clone());
    let client = deployment.client();
    let question = "[think] [call=scripted__echo {\"text\":\"hi\"}] [call=no__such] [tokens=3]";
    let mut run_id = String::new();
    for name in ["m1", "m2", "m3"] {
        run_id = ChatAnswer::send(&client, &body("c", user(name, question))).await.run_id;
    }
    let run = client.wait_for_run(&run_id).await;
    let path = format!("/v1/runs/{run_id}/events");
    deployment.kill_worker();
    remove_parts(&embedded);
    let client = deployment.client();
    until("the events are gone", || async {
        let request = client.request(Method::GET, &path).header("accept", "application/json");
        (request.send().await.unwrap().status() == 410).then_some(())
    })
    .await;
    let recalled = history(&client, "c").await[5].clone();
    assert_eq!((&recalled["id"], &recalled["metadata"]["status"]), (&run["output_message_id"], &json!("completed")));
    assert_eq!(states(&recalled), ["output-available", "output-error"]);
    let parts = recalled["parts"].as_array().unwrap();
    let recalled_text: String =
        parts.iter().filter(|part| part["type"] == "text").map(|part| text(part, "text")).collect();
    assert_eq!(recalled_text, text(&run["output_message"], "content"));
}

async fn a_client_that_hangs_up_ends_its_run_where_the_deployment_says_so(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_AI_SDK_ON_DISCONNECT", "cancel");
    let client = deployment.client();
    let long = |chat: &str| request(&client, &json!({"id": chat, "message": user("m1", "[tokens=2000] [delay=20]")}));
    let mut left = BlockStream::open(long("left")).await;
    let mut reloaded = BlockStream::open(long("reloaded")).await;
    left.until_sent("text-delta").await;
    reloaded.until_sent("text-delta").await;
    let (left_run, reloaded_run) = (left.run_id.clone(), reloaded.run_id.clone());
    drop((left, reloaded));
    let again = BlockStream::open(client.request(Method::GET, "/api/chat/reloaded/stream")).await;
    // A client that waits for the run would follow it.
    until("the run is cancelled", || async { (client.run(&left_run).await["status"] == "cancelled").then_some(()) })
        .await;
    assert_eq!(client.run(&reloaded_run).await["status"], "running", "its client has come back");
    client.cancel(&reloaded_run).await;
    again.rest().await;
}
