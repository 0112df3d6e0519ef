//! The agent stream: its frames, its sessions, and the failures that a client receives.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{BlockStream, Client, Deployment, StreamBlock, agent, answer, of_kind, tools::ToolServer},
};

in_both_modes!(
    the_frames_are_as_documented,
    a_run_resumes_after_every_frame,
    a_run_of_another_route_can_be_rejoined,
    messages_streams_carry_the_complete_message_and_the_end,
    a_later_failure_is_a_frame_without_done,
    a_takeover_is_marked,
    a_cancelled_run_is_done,
    a_waiting_run_continues_in_the_same_stream,
    a_session_continues,
    the_context_is_kept_with_the_run,
    the_same_key_is_the_same_run,
);

in_either_mode!(
    a_run_that_fails_before_its_first_output_has_the_sentence_in_a_frame,
    a_failing_tool_is_a_result_without_success,
    a_denied_call_is_a_call_and_a_result,
    an_unnamed_session_continues_under_its_assigned_id,
    a_dash_names_the_default_session,
    invalid_names_are_refused_and_store_nothing,
    the_servers_history_is_the_truth,
);

fn request(client: &Client, body: Value) -> RequestBuilder {
    client.request(Method::POST, "/api/agent/stream").json(&body)
}

/// Returns the body of a message from a board.
fn message_body(message: &str) -> Value {
    json!({"message": message, "context_type": "project"})
}

/// Returns the body of a message in a session.
fn session_body(session: &str, message: &str) -> Value {
    json!({"message": message, "context_type": "project", "session_id": session})
}

async fn stream(client: &Client, body: Value) -> BlockStream {
    BlockStream::open(request(client, body)).await
}

async fn rejoin_frames(client: &Client, run_id: &str, query: &str, after: Option<&str>) -> Vec<StreamBlock> {
    match BlockStream::rejoin(client, run_id, &format!("wire=agent{query}"), after).await {
        Some(blocks) => blocks.rest().await,
        None => Vec::new(),
    }
}

/// Returns the frames of a complete stream, without its `[DONE]`.
fn frames(blocks: &[StreamBlock]) -> Vec<Value> {
    let (last, blocks) = blocks.split_last().expect("the stream is empty");
    assert_eq!(last.data, "[DONE]");
    blocks.iter().map(StreamBlock::json).collect()
}

/// Returns the types of frames, without states of the agent and usage of the context.
fn types(frames: &[Value]) -> Vec<&str> {
    let kinds = frames.iter().map(|frame| frame["type"].as_str().unwrap());
    kinds.filter(|kind| !["agent_state", "context_usage"].contains(kind)).collect()
}

fn states(frames: &[Value]) -> Vec<&str> {
    of_type(frames, "agent_state").into_iter().map(|frame| frame["state"].as_str().unwrap()).collect()
}

/// Returns the answer's text in the frames.
fn text(frames: &[Value]) -> String {
    frames.iter().filter_map(|frame| frame["content"].as_str()).collect()
}

fn of_type<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame["type"] == kind).collect()
}

fn raw(blocks: &[StreamBlock]) -> Vec<&str> {
    blocks.iter().map(|block| block.raw.as_str()).collect()
}

/// Returns the session in the first frame of a stream, and drops the stream.
async fn session(client: &Client, body: Value) -> Value {
    stream(client, body).await.take(1).await[0].json()["session"].clone()
}

async fn stored_answer(client: &Client, run_id: &str) -> String {
    client.wait_for_run(run_id).await["output_message"]["content"].as_str().unwrap_or_default().to_owned()
}

async fn conversation_with(client: &Client, agent_id: &str) -> String {
    let made = client.post("/v1/conversations", json!({"agent_id": agent_id})).await.unwrap();
    made["id"].as_str().unwrap().to_owned()
}

async fn the_frames_are_as_documented(mut deployment: Deployment) {
    let client = deployment.client();
    let server = ToolServer::answering_at_once().await;
    let agent = agent(&client, json!([server.describe()]), json!({})).await;
    let conversation = conversation_with(&client, &agent).await;
    let message = "[call=kb__count {\"note\":\"x\"}] [tokens=2] [delay=1]";
    let response = request(&client, session_body(&conversation, message)).send().await.unwrap();
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(
        (header("content-type").as_str(), header("cache-control").as_str(), header("x-accel-buffering").as_str()),
        ("text/event-stream", "no-cache", "no")
    );
    let run_id = header("x-run-id");
    let body = response.text().await.unwrap();
    let events = client.events(&run_id, None).await.rest().await;
    let call_id = of_kind(&events, "tool_call.started")[0]["call_id"].as_str().unwrap().to_owned();
    let redacted = body.replace(&run_id, "<run>").replace(&conversation, "<conversation>").replace(&call_id, "<call>");
    insta::assert_snapshot!("agent", redacted);
    assert_eq!(text(&frames(&rejoin_frames(&client, &run_id, "", None).await)), stored_answer(&client, &run_id).await);
}

async fn a_run_resumes_after_every_frame(mut deployment: Deployment) {
    let client = deployment.client();
    let message = "[call=scripted__echo {\"text\":\"hi\"}] [tokens=12] [delay=10] [think]";
    let mut stream = stream(&client, session_body("tide", message)).await;
    let run_id = stream.run_id.clone();
    let (mut all_blocks, mut rests) = (Vec::new(), Vec::new());
    // A frame without an id is not the last one of its event, so a client cannot resume after it.
    while let Some(block) = stream.next().await.unwrap() {
        if let Some(id) = block.id.clone() {
            let (client, run_id) = (client.clone(), run_id.clone());
            let rest = tokio::spawn(async move { rejoin_frames(&client, &run_id, "", Some(&id)).await });
            rests.push((all_blocks.len() + 1, rest));
        }
        all_blocks.push(block);
    }
    for (count, rest) in rests {
        assert_eq!(raw(&rest.await.unwrap()), raw(&all_blocks[count..]), "live, after {count}");
    }
    assert_eq!(raw(&rejoin_frames(&client, &run_id, "", None).await), raw(&all_blocks), "from the start");
    for (index, block) in all_blocks.iter().enumerate().filter(|(_, block)| block.id.is_some()) {
        let rest = rejoin_frames(&client, &run_id, "", block.id.as_deref()).await;
        assert_eq!(raw(&rest), raw(&all_blocks[index + 1..]), "after {:?}", block.id);
    }
    assert_eq!(text(&frames(&all_blocks)), stored_answer(&client, &run_id).await);
}

async fn a_run_of_another_route_can_be_rejoined(mut deployment: Deployment) {
    let client = deployment.client();
    let submission = client.start("[tokens=2] [delay=1] [clienttool]").await;
    let (run, conversation) = (&submission["run"]["id"], &submission["conversation"]["id"]);
    let run_id = run.as_str().unwrap();
    let mut events = client.events(run_id, None).await;
    let call = events.up_to("tool_call.started").await.pop().unwrap().data;
    let call_id = call["call_id"].as_str().unwrap();
    client.post(&format!("/v1/runs/{run_id}/tool_results/{call_id}"), json!({"output": "[1, 2]"})).await.unwrap();
    client.wait_for_run(run_id).await;
    let frames = frames(&rejoin_frames(&client, run_id, "", None).await);
    let session = json!({
        "id": conversation, "conversation_id": conversation, "run_id": run, "context": null, "focus": null
    });
    assert_eq!(frames[0]["session"], session);
    assert_eq!(states(&frames), ["thinking", "waiting_on_user", "thinking"]);
    assert_eq!(
        of_type(&frames, "agent_state")[0],
        &json!({"type": "agent_state", "state": "thinking", "contextType": null})
    );
    let call_frame = of_type(&frames, "tool_call")[0];
    assert_eq!((&call_frame["tool_call"]["id"], &call_frame["tool_call"]), (&json!(call_id), &call_frame["toolCall"]));
    let arguments: Value =
        serde_json::from_str(call_frame["toolCall"]["function"]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, call["input"]);
    let result = json!({"success": true, "data": [1, 2], "toolName": call["name"], "toolCallId": call_id});
    assert_eq!(of_type(&frames, "tool_result")[0]["result"], result);
    assert_eq!(types(&frames).last().unwrap(), &"done");
}

async fn messages_streams_carry_the_complete_message_and_the_end(mut deployment: Deployment) {
    let client = deployment.client();
    let path = "/api/agent/stream?stream_mode=messages&unknown=1";
    let live = BlockStream::open(client.request(Method::POST, path).json(&message_body("[tokens=5] [delay=1]"))).await;
    let run_id = live.run_id.clone();
    let received = frames(&live.rest().await);
    assert_eq!(
        received.iter().map(|frame| frame["type"].as_str().unwrap()).collect::<Vec<_>>(),
        ["session", "text", "done"]
    );
    assert_eq!(text(&received), stored_answer(&client, &run_id).await);
    let pieces = frames(&rejoin_frames(&client, &run_id, "&stream_mode=events", None).await);
    assert_eq!((of_type(&pieces, "text").len(), text(&pieces)), (5, text(&received)));
    // Without deltas, a stream has steps, calls and one text.
    let submission = client.post("/v1/runs", json!({"input": "[tokens=5] [delay=1]", "stream": false})).await.unwrap();
    let all_blocks = frames(&rejoin_frames(&client, submission["run"]["id"].as_str().unwrap(), "", None).await);
    assert_eq!((of_type(&all_blocks, "text").len(), of_type(&all_blocks, "agent_state").len()), (1, 1));
}

async fn a_run_that_fails_before_its_first_output_has_the_sentence_in_a_frame(mut deployment: Deployment) {
    let client = deployment.client();
    for _ in 0..2 {
        let request = request(&client, message_body("[tokens=0] [fail]")).header("idempotency-key", "k");
        let stream = BlockStream::open(request).await;
        let run_id = stream.run_id.clone();
        let received = frames(&stream.rest().await);
        assert_eq!(types(&received), ["session", "error"]);
        assert_eq!(received.last().unwrap()["error"], client.run(&run_id).await["error"]["message"]);
    }
}

async fn a_later_failure_is_a_frame_without_done(mut deployment: Deployment) {
    let client = deployment.client();
    let stream = stream(&client, message_body("[tokens=4] [delay=1] [fail]")).await;
    let run_id = stream.run_id.clone();
    let blocks = stream.rest().await;
    let received = frames(&blocks);
    assert_eq!(types(&received), ["session", "text", "text", "error"]);
    let run = client.run(&run_id).await;
    assert_eq!(received.last().unwrap()["error"], run["error"]["message"]);
    let ids: Vec<_> = blocks[blocks.len() - 2..].iter().map(|block| block.id.as_deref()).collect();
    assert_eq!(ids, [None, run["last_event_id"].as_str()]);
}

async fn a_failing_tool_is_a_result_without_success(mut deployment: Deployment) {
    let client = deployment.client();
    let agent = agent(&client, json!([]), json!({})).await;
    let conversation = conversation_with(&client, &agent).await;
    let body = session_body(&conversation, "[call=no__such] [tokens=1] [delay=1]");
    let received = frames(&stream(&client, body).await.rest().await);
    let result = &of_type(&received, "tool_result")[0]["result"];
    assert_eq!((&result["success"], &result["toolName"]), (&json!(false), &json!("no__such")));
    assert!(
        result["error"].as_str().is_some_and(|error| !error.is_empty()) && result.get("data").is_none(),
        "{result}"
    );
    let call = &of_type(&received, "tool_call")[0]["tool_call"];
    assert_eq!((&call["id"], &call["function"]["name"]), (&result["toolCallId"], &json!("no__such")));
    let mut kinds = types(&received);
    kinds.dedup();
    assert_eq!(kinds, ["session", "text", "tool_call", "tool_result", "text", "done"]);
}

async fn a_takeover_is_marked(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let mut stream = stream(&client, session_body("tide", "[tokens=40] [delay=20] hi")).await;
    let received = stream.take(7).await;
    let run_id = stream.run_id.clone();
    drop(stream);
    deployment.kill_worker();
    let client = deployment.client();
    let rest = frames(&rejoin_frames(&client, &run_id, "", received.last().unwrap().id.as_deref()).await);
    let marked = rest.iter().position(|frame| frame["superseded"] == true).expect("no takeover was marked");
    let (mark, first) = (&rest[marked], received[0].json());
    assert_eq!((&mark["type"], &mark["session"]), (&json!("session"), &first["session"]));
    let events = client.events(&run_id, None).await.rest().await;
    assert_eq!(mark["base"], of_kind(&events, "attempt.started").last().unwrap()["base"]);
    assert_eq!(text(&rest[marked..]), stored_answer(&client, &run_id).await);
    assert_eq!(types(&rest).last().unwrap(), &"done");
}

async fn a_cancelled_run_is_done(mut deployment: Deployment) {
    let client = deployment.client();
    let mut stream = stream(&client, message_body("[tokens=500] [delay=20] hi")).await;
    let mut blocks = stream.take(5).await;
    let run_id = stream.run_id.clone();
    client.cancel(&run_id).await;
    blocks.extend(stream.rest().await);
    let received = frames(&blocks);
    let usage = client.run(&run_id).await["usage"].clone();
    let total = ["input_tokens", "output_tokens"].map(|tokens| usage[tokens].as_u64().unwrap_or(0)).iter().sum::<u64>();
    assert_eq!(received.last().unwrap(), &json!({"type": "done", "usage": {"total_tokens": total}}));
    assert_eq!(text(&received), stored_answer(&client, &run_id).await);
    assert!(rejoin_frames(&client, &run_id, "", blocks.last().unwrap().id.as_deref()).await.is_empty());
}

async fn a_waiting_run_continues_in_the_same_stream(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_HEARTBEAT_MS", 50);
    let client = deployment.client();
    let mut stream = stream(&client, message_body("[tokens=2] [delay=1] [approval]")).await;
    let run_id = stream.run_id.clone();
    let question = client.events(&run_id, None).await.up_to("approval.requested").await.pop().unwrap();
    let mut blocks = Vec::new();
    while blocks.last().is_none_or(|block: &StreamBlock| block.json()["state"] != "waiting_on_user") {
        blocks.extend(stream.take(1).await);
    }
    stream.until_sent(": hb\n: hb\n").await;
    let approval = question.data["approval_id"].as_str().unwrap();
    client.post(&format!("/v1/runs/{run_id}/approvals/{approval}"), json!({"decision": "approve"})).await.unwrap();
    blocks.extend(stream.rest().await);
    let received = frames(&blocks);
    assert_eq!(states(&received), ["thinking", "waiting_on_user", "thinking"]);
    let mut kinds = types(&received);
    kinds.dedup();
    assert_eq!(kinds, ["session", "text", "tool_call", "tool_result", "text", "done"]);
    assert_eq!(text(&received), stored_answer(&client, &run_id).await);
    let all = frames(&rejoin_frames(&client, &run_id, "", None).await);
    assert_eq!(all, received, "an answer supersedes nothing");
}

async fn a_denied_call_is_a_call_and_a_result(mut deployment: Deployment) {
    let client = deployment.client();
    let stream = stream(&client, message_body("[tokens=2] [delay=1] [approval]")).await;
    let run_id = stream.run_id.clone();
    let question = client.events(&run_id, None).await.up_to("approval.requested").await.pop().unwrap();
    let approval = question.data["approval_id"].as_str().unwrap();
    let denied = json!({"decision": "deny", "reason": "not on a Sunday"});
    client.post(&format!("/v1/runs/{run_id}/approvals/{approval}"), denied).await.unwrap();
    let received = frames(&stream.rest().await);
    let call = &of_type(&received, "tool_call")[0]["tool_call"];
    let result = &of_type(&received, "tool_result")[0]["result"];
    assert_eq!((&call["id"], &result["success"]), (&result["toolCallId"], &json!(false)));
    assert!(result["error"].as_str().unwrap().contains("not on a Sunday"), "{result}");
}

async fn a_session_continues(mut deployment: Deployment) {
    let client = deployment.client();
    let first = session(&client, session_body("tide", "[tokens=1]")).await;
    assert_eq!(first["id"], "tide");
    let again = session(&client, session_body("tide", "[tokens=1]")).await;
    assert_eq!((&again["id"], &again["conversation_id"]), (&json!("tide"), &first["conversation_id"]));
    assert_ne!(again["run_id"], first["run_id"]);
    // Body, header and path name the same session.
    let named = request(&client, message_body("[tokens=1]")).header("x-session-id", "tide");
    let named = BlockStream::open(named).await.take(1).await[0].json()["session"].clone();
    assert_eq!((&named["id"], &named["conversation_id"]), (&json!("tide"), &first["conversation_id"]));
    let native = client.post("/v1/sessions/tide/messages", json!({"content": "[tokens=1]"})).await.unwrap();
    assert_eq!(native["run"]["conversation_id"], first["conversation_id"]);
    // The body takes precedence.
    let other = request(&client, session_body("ebb", "[tokens=1]")).header("x-session-id", "tide");
    let other = BlockStream::open(other).await.take(1).await[0].json()["session"].clone();
    assert_eq!(other["id"], "ebb");
    assert_ne!(other["conversation_id"], first["conversation_id"]);
    let somebody_elses = session(&client.user("bob"), session_body("tide", "[tokens=1]")).await;
    assert_ne!(somebody_elses["conversation_id"], first["conversation_id"]);
}

async fn an_unnamed_session_continues_under_its_assigned_id(mut deployment: Deployment) {
    let client = deployment.client();
    let first = session(&client, message_body("[tokens=1]")).await;
    assert_eq!(first["id"], first["conversation_id"]);
    let id = first["id"].as_str().unwrap();
    let again = session(&client, session_body(id, "[tokens=1]")).await;
    assert_eq!((&again["id"], &again["conversation_id"]), (&first["id"], &first["conversation_id"]));
    // For another user the id is an ordinary name.
    let bob = client.user("bob");
    let (bobs_session, unknown) = (session(&bob, session_body(id, "hi")).await, "01890000-0000-7000-8000-000000000000");
    assert_eq!(bobs_session["id"], id);
    assert_ne!(bobs_session["conversation_id"], first["conversation_id"]);
    assert_eq!(session(&bob, session_body(unknown, "hi")).await["id"], unknown);
}

async fn a_dash_names_the_default_session(mut deployment: Deployment) {
    let client = deployment.client().user("ann");
    let first = session(&client, session_body("-", "[tokens=1]")).await;
    assert_eq!(first["id"], client.get("/v1/users/me").await.unwrap()["default_session"]);
    let native = client.post("/v1/sessions/-/messages", json!({"content": "[tokens=1]"})).await.unwrap();
    assert_eq!(native["run"]["conversation_id"], first["conversation_id"]);
}

async fn invalid_names_are_refused_and_store_nothing(mut deployment: Deployment) {
    let client = deployment.client();
    let long = "x".repeat(129);
    for (body, expected) in [
        (session_body("", "hi"), "invalid_session"),
        (session_body(&long, "hi"), "invalid_session"),
        (session_body("a\nb", "hi"), "invalid_session"),
        (message_body(" "), "empty_content"),
        (message_body(&"x".repeat(65_537)), "content_too_long"),
        (json!({"message": "hi"}), "invalid_body"),
        (json!({"context_type": "project"}), "invalid_body"),
        (
            json!({"message": "hi", "context_type": "project", "projectFocus": {"focusType": "task", "projectId": "x".repeat(20_000), "projectName": "P"}}),
            "invalid_metadata",
        ),
    ] {
        let failure = answer(request(&client, body)).await.expect_err("it was accepted");
        assert_eq!((failure.status, failure.code.as_str()), (400, expected));
    }
    assert_eq!(client.get("/v1/conversations").await.unwrap()["items"], json!([]));
}

async fn the_servers_history_is_the_truth(mut deployment: Deployment) {
    let client = deployment.client();
    let mut body = session_body("tide", "[tokens=1] truly");
    body["conversation_history"] = json!([{"role": "user", "content": "never"}, {"role": "assistant", "content": 7}]);
    body["theme"] = json!("dark");
    stream(&client, body).await.rest().await;
    let history = client.get("/v1/sessions/tide/history").await.unwrap();
    assert_eq!((history.as_array().unwrap().len(), &history[0]["content"]), (2, &json!("[tokens=1] truly")));
    // The server ignores a history that is no list, as it ignores any unknown field.
    let mut body = session_body("tide", "[tokens=1] again");
    body["conversation_history"] = json!("none");
    stream(&client, body).await.rest().await;
    assert_eq!(client.get("/v1/sessions/tide/history").await.unwrap().as_array().unwrap().len(), 4);
}

async fn the_context_is_kept_with_the_run(mut deployment: Deployment) {
    let client = deployment.client();
    let focus = json!({"focusType": "goal", "focusEntityId": "b-7", "projectId": "p-1", "projectName": "Harbour"});
    let body = json!({"message": "[tokens=1]", "session_id": "tide", "context_type": "project", "entity_id": "b-7",
        "ontologyEntityType": "goal", "projectFocus": focus});
    let run_id = stream(&client, body).await.run_id;
    let context = json!({"session_id": "tide", "context_type": "project", "entity_id": "b-7", "ontologyEntityType": "goal",
        "projectFocus": focus});
    assert_eq!(client.run(&run_id).await["metadata"], json!({"agent_context": context}));
    let nulls = json!({"message": "[tokens=1]", "session_id": null, "context_type": "project", "entity_id": null,
        "ontologyEntityType": null, "projectFocus": null, "conversation_history": null});
    let run_id = stream(&client, nulls).await.run_id;
    assert_eq!(client.run(&run_id).await["metadata"], json!({"agent_context": {"context_type": "project"}}));
}

async fn the_same_key_is_the_same_run(mut deployment: Deployment) {
    let client = deployment.client();
    let post_request = |body: Value, after: Option<&str>| {
        let request = request(&client, body).header("idempotency-key", "k");
        after.into_iter().fold(request, |request, id| request.header("last-event-id", id))
    };
    let body = session_body("tide", "[tokens=3] [delay=1]");
    let first = BlockStream::open(post_request(body.clone(), None)).await;
    let run_id = first.run_id.clone();
    let first = first.rest().await;
    let again = BlockStream::open(post_request(body.clone(), first[0].id.as_deref())).await;
    assert_eq!(again.run_id, run_id);
    assert_eq!(raw(&again.rest().await), raw(&first[1..]));
    let last = first.last().unwrap().id.as_deref();
    assert_eq!(post_request(body.clone(), last).send().await.unwrap().status(), 204);
    for field in ["message", "session_id", "context_type", "entity_id", "projectFocus"] {
        let mut other = body.clone();
        other[field] = match field {
            "context_type" => json!("global"),
            "projectFocus" => json!({"focusType": "project-wide", "projectId": "p-1", "projectName": "Harbour"}),
            _ => json!("other"),
        };
        let failure = answer(post_request(other, None)).await.expect_err("it was accepted");
        assert_eq!((failure.status, failure.code.as_str()), (422, "idempotency_key_reused"), "{field}");
    }
}
