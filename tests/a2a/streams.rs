//! Streams: each may be cut after any frame, and a lost worker leaves no text of its own.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{KeptTask, TALK, decision, frames, message, request, result, results};
use crate::{
    in_both_modes, in_either_mode,
    support::{BlockStream, Client, Deployment, StreamBlock},
};

in_both_modes!(
    a_stream_continues_after_every_frame,
    a_task_and_its_later_updates_are_the_whole_task,
    a_lost_worker_leaves_no_text_of_its_own,
);
in_either_mode!(
    a_stream_has_the_states_the_text_and_the_events_of_a_task,
    each_frame_has_the_id_of_the_clients_own_request,
    a_silent_stream_has_a_comment_every_few_seconds,
    clients_of_the_older_version_get_its_forms,
    a_subscriber_of_a_task_that_asks_gets_the_question_and_later_the_end,
    a_subscription_ends_at_the_next_question,
);

/// Cuts the stream of a request after each of its frames: the rest of the frames comes, with equal ids.
async fn expect_the_rest(request: impl Fn() -> RequestBuilder, all: &[StreamBlock]) {
    let all = results(all);
    for (n, (id, _)) in all.iter().enumerate() {
        let rest = frames(request().header("last-event-id", id)).await;
        assert_eq!(results(&rest), all[n + 1..], "after {id}");
    }
}

/// Returns the frames of a task up to its question, and those after its approval, with the approval.
async fn talk(client: &Client) -> (Vec<StreamBlock>, Value, Vec<StreamBlock>) {
    let first = frames(request(client, "SendStreamingMessage", &message("m-1", TALK))).await;
    let asking = KeptTask::of(&results(&first));
    assert_eq!(asking.state, "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(asking.questions[0]["type"], "approval");
    let approval = decision("m-2", &asking.id, json!({"decision": "approve"}));
    let second = frames(request(client, "SendStreamingMessage", &approval)).await;
    (first, approval, second)
}

async fn a_stream_continues_after_every_frame(mut deployment: Deployment) {
    let client = deployment.client();
    let (first, approval, second) = talk(&client).await;
    let task = KeptTask::of(&results(&second));
    assert_eq!(task.state, "TASK_STATE_COMPLETED");
    let stored = client.run(&task.id).await["output_message"]["content"].clone();
    assert_eq!(stored, task.text, "the artifact is the stored answer");
    expect_the_rest(|| request(&client, "SendStreamingMessage", &message("m-1", TALK)), &first).await;
    expect_the_rest(|| request(&client, "SendStreamingMessage", &approval), &second).await;
    let fails = message("m-3", "[tokens=6] [fail] hello");
    let failed = frames(request(&client, "SendStreamingMessage", &fails)).await;
    assert_eq!(KeptTask::of(&results(&failed)).state, "TASK_STATE_FAILED");
    expect_the_rest(|| request(&client, "SendStreamingMessage", &fails), &failed).await;
    let subscribe = || request(&client, "SubscribeToTask", &json!({"id": KeptTask::of(&results(&failed)).id}));
    expect_the_rest(subscribe, &failed).await;
}

/// Subscribes to a task after each of the first frames of its stream.
async fn a_task_and_its_later_updates_are_the_whole_task(mut deployment: Deployment) {
    let client = deployment.client();
    let text = r#"[think] [call=scripted__echo {"text":"hi"}] [tokens=200] [delay=60] hello"#;
    let mut stream = BlockStream::open(request(&client, "SendStreamingMessage", &message("m-1", text))).await;
    let (params, mut subscribers) = (json!({"id": stream.run_id}), Vec::new());
    let mut all = Vec::new();
    for _ in 0..24 {
        all.extend(stream.take(1).await);
        subscribers.push(BlockStream::open(request(&client, "SubscribeToTask", &params)).await);
    }
    all.extend(stream.rest().await);
    let all = results(&all);
    for subscriber in subscribers {
        let got = results(&subscriber.rest().await);
        let (id, first) = &got[0];
        let event = id.split('.').next().unwrap();
        let before: Vec<_> =
            all.iter().take_while(|(id, _)| number(id) <= number(&format!("{event}.9"))).cloned().collect();
        let kept = KeptTask::of(&before);
        assert_eq!(KeptTask::of(&got[..1]), kept, "the task has all updates up to {id}: {first}");
        assert_eq!(got[1..], all[before.len()..], "only later updates follow {id}");
    }
}

/// Returns an id as numbers, which have its order.
fn number(id: &str) -> Vec<u32> {
    id.split(['-', '.']).map(|part| part.parse().unwrap()).collect()
}

async fn a_lost_worker_leaves_no_text_of_its_own(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let params = message("m-1", "[tokens=200] [delay=20] hello");
    let mut stream = BlockStream::open(request(&client, "SendStreamingMessage", &params)).await;
    stream.until_sent("artifactUpdate").await;
    let before = stream.take(14).await;
    let last = before.last().unwrap().id.clone().unwrap();
    deployment.kill_worker();
    let client = deployment.client();
    let rest = if deployment.is_embedded() {
        frames(request(&client, "SendStreamingMessage", &params).header("last-event-id", &last)).await
    } else {
        stream.rest().await
    };
    let rest = results(&rest);
    let replaces = |(_, result): &(String, Value)| {
        result["artifactUpdate"]["append"] == false && result["artifactUpdate"]["artifact"]["parts"].is_array()
    };
    assert_eq!(rest.iter().filter(|frame| replaces(frame)).count(), 1, "the text is replaced once");
    let task = KeptTask::of(&[results(&before), rest].concat());
    assert_eq!(task.state, "TASK_STATE_COMPLETED");
    assert_eq!(client.run(&task.id).await["output_message"]["content"], task.text);
}

async fn a_stream_has_the_states_the_text_and_the_events_of_a_task(mut deployment: Deployment) {
    let client = deployment.client();
    let (first, _, second) = talk(&client).await;
    let shown = |frames: &[StreamBlock]| -> Vec<String> {
        let name = |(_, result): (String, Value)| match result.get("statusUpdate") {
            Some(update) => match update["metadata"]["event"].as_str() {
                Some(event) => event.to_owned(),
                None => update["status"]["state"].as_str().unwrap().to_owned(),
            },
            None => result.as_object().unwrap().keys().next().unwrap().clone(),
        };
        let mut names: Vec<String> = results(frames).into_iter().map(name).collect();
        names.dedup();
        names
    };
    let names = shown(&first);
    assert_eq!(names[..2], ["task", "TASK_STATE_WORKING"]);
    for event in ["tool_call.delta", "tool_call.started", "tool_call.completed", "approval.requested"] {
        assert!(names.iter().any(|name| name == event), "{event} is missing in {names:?}");
    }
    assert_eq!(names.last().unwrap(), "TASK_STATE_INPUT_REQUIRED");
    let names = shown(&second);
    assert_eq!(names[..2], ["task", "approval.resolved"]);
    assert!(names.iter().any(|name| name == "reasoning.delta"), "{names:?}");
    assert_eq!(names.last().unwrap(), "run.completed");
    let task = results(&second)[0].1["task"].clone();
    assert_eq!(
        task["status"]["state"], "TASK_STATE_WORKING",
        "a client that waits for the end must not stop at the task"
    );
}

async fn each_frame_has_the_id_of_the_clients_own_request(mut deployment: Deployment) {
    let client = deployment.client();
    let params = message("m-1", "[think] [tokens=60] [delay=30] hello");
    let first = BlockStream::open(request(&client, "SendStreamingMessage", &params)).await;
    let ids = [json!("a\"\0b"), json!(7), Value::Null, json!("x".repeat(256))];
    let mut others = Vec::new();
    for id in &ids {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "SubscribeToTask", "params": {"id": first.run_id}});
        others.push(BlockStream::open(client.request(Method::POST, "/a2a").json(&body)).await);
    }
    let all = results(&first.rest().await);
    for (id, other) in ids.iter().zip(others) {
        let frames = other.rest().await;
        assert!(frames.iter().all(|frame| frame.json()["id"] == *id), "each of {frames:?} has {id}");
        let later = |frame: &StreamBlock| (frame.id.clone().unwrap(), frame.json()["result"].clone());
        let later: Vec<_> = frames.iter().skip(1).map(later).collect();
        assert_eq!(later, all[all.len() - later.len()..]);
    }
}

async fn a_silent_stream_has_a_comment_every_few_seconds(mut deployment: Deployment) {
    let client = deployment.client();
    let params = message("m-1", "[tokens=2] [delay=7000] hello");
    let frames = frames(request(&client, "SendStreamingMessage", &params)).await;
    assert!(frames.iter().flat_map(|frame| &frame.comments).count() >= 2, "{frames:?}");
    let waits = message("m-2", "[tokens=2] [delay=7000] hello");
    let response = request(&client, "SendMessage", &waits).send().await.unwrap().text().await.unwrap();
    assert!(response.starts_with("  "), "a client that waits gets blanks: {response:?}");
}

async fn clients_of_the_older_version_get_its_forms(mut deployment: Deployment) {
    let client = deployment.client();
    let params = json!({"message": {
        "kind": "message", "messageId": "m-1", "role": "user", "parts": [{"kind": "text", "text": "[approval] [tokens=3] x"}]
    }});
    let first = results(&frames(request(&client, "message/stream", &params)).await);
    assert_eq!((&first[0].1["kind"], &first[0].1["status"]["state"]), (&json!("task"), &json!("submitted")));
    let (_, last) = first.last().unwrap();
    assert_eq!((&last["kind"], &last["final"]), (&json!("status-update"), &json!(true)));
    assert_eq!(last["status"]["state"], "input-required");
    let part =
        last["status"]["message"]["parts"].as_array().unwrap().iter().find(|part| part["kind"] == "data").unwrap();
    assert_eq!(part["data"]["type"], "approval");
    let task_id = &first[0].1["id"];
    let answer = json!({"message": {
        "kind": "message", "messageId": "m-2", "role": "user", "taskId": task_id,
        "parts": [{"kind": "data", "data": {"decision": "deny", "reason": "no"}}]
    }});
    let task = result(&client, "message/send", answer).await;
    assert_eq!((&task["kind"], &task["status"]["state"]), (&json!("task"), &json!("completed")));
    assert_eq!(task["artifacts"][0]["parts"][0]["kind"], "text");
    assert_eq!(task["history"][0]["kind"], "message");
}

async fn a_subscriber_of_a_task_that_asks_gets_the_question_and_later_the_end(mut deployment: Deployment) {
    let client = deployment.client();
    let first = frames(request(&client, "SendStreamingMessage", &message("m-1", "[approval] [tokens=3] x"))).await;
    let asking = KeptTask::of(&results(&first));
    let last = &results(&first).last().unwrap().0.clone();
    let subscribe = || request(&client, "SubscribeToTask", &json!({"id": asking.id}));
    let mut waiting = BlockStream::open(subscribe()).await;
    let task = results(&waiting.take(1).await);
    assert_eq!(KeptTask::of(&task), asking, "the task has the question");
    assert_eq!(*last, task[0].0, "a client with the question has the task");
    let with_question = BlockStream::open(subscribe().header("last-event-id", last)).await;
    let approval = decision("m-2", &asking.id, json!({"decision": "approve"}));
    let second = results(&frames(request(&client, "SendStreamingMessage", &approval)).await);
    // The stream of the answer begins with the task, which the subscribers have.
    assert_eq!(results(&waiting.rest().await), second[1..]);
    assert_eq!(results(&with_question.rest().await), second[1..]);
    assert_eq!(results(&frames(subscribe().header("last-event-id", last)).await), second[1..]);
}

async fn a_subscription_ends_at_the_next_question(mut deployment: Deployment) {
    let client = deployment.client();
    let text = "[approval=1] [approval=2] [tokens=3] x";
    let first = results(&frames(request(&client, "SendStreamingMessage", &message("m-1", text))).await);
    let asking = KeptTask::of(&first);
    let mut waiting = BlockStream::open(request(&client, "SubscribeToTask", &json!({"id": asking.id}))).await;
    waiting.take(1).await;
    let approval = decision("m-2", &asking.id, json!({"decision": "approve"}));
    let second = results(&frames(request(&client, "SendStreamingMessage", &approval)).await);
    let waited = results(&waiting.rest().await);
    assert_eq!(waited, second[1..]);
    assert_eq!(KeptTask::of(&waited).state, "TASK_STATE_INPUT_REQUIRED");
}
