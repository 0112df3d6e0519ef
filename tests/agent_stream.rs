//! The agent stream: its frames, its sessions, and what a client learns of failures.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    in_both_modes,
    support::{Block, Blocks, Client, Deployment, agent, answer, of_kind, tools::ToolServer},
};

in_both_modes!(
    the_frames_are_as_documented,
    a_run_resumes_after_every_frame,
    a_run_of_another_route_can_be_rejoined,
    messages_streams_carry_the_whole_message_and_the_end,
    what_fails_before_it_speaks_is_no_stream,
    what_fails_later_is_a_frame_and_no_done,
    a_failing_tool_is_a_result_without_success,
    a_takeover_is_marked,
    a_cancelled_run_is_done,
    a_run_that_waits_goes_on_in_the_same_stream,
    a_denied_call_is_a_call_and_a_result,
    a_session_goes_on,
    a_session_without_a_name_goes_on_by_the_id_that_it_was_given,
    the_default_session_goes_by_a_dash,
    names_that_are_none_are_refused_and_leave_nothing_behind,
    the_servers_history_is_the_truth,
    the_context_is_kept_with_the_run,
    the_same_key_is_the_same_run,
    a_run_may_take_as_long_as_the_route_says,
);

fn request(client: &Client, body: Value) -> RequestBuilder {
    client.request(Method::POST, "/api/agent/stream").json(&body)
}

/// A message from a board.
fn said(message: &str) -> Value {
    json!({"message": message, "context_type": "board"})
}

/// The same in a session.
fn said_in(session: &str, message: &str) -> Value {
    json!({"message": message, "context_type": "board", "session_id": session})
}

async fn stream(client: &Client, body: Value) -> Blocks {
    Blocks::open(request(client, body)).await
}

async fn rejoined(client: &Client, run_id: &str, query: &str, after: Option<&str>) -> Vec<Block> {
    match Blocks::rejoin(client, run_id, &format!("wire=agent{query}"), after).await {
        Some(blocks) => blocks.rest().await,
        None => Vec::new(),
    }
}

/// The frames of a whole stream, without its `[DONE]`.
fn frames(blocks: &[Block]) -> Vec<Value> {
    let (last, blocks) = blocks.split_last().expect("the stream is empty");
    assert_eq!(last.data, "[DONE]");
    blocks.iter().map(Block::json).collect()
}

/// The types of frames, without what is told between what the agent says and does.
fn types(frames: &[Value]) -> Vec<&str> {
    let kinds = frames.iter().map(|frame| frame["type"].as_str().unwrap());
    kinds.filter(|kind| !["agent_state", "context_usage"].contains(kind)).collect()
}

fn states(frames: &[Value]) -> Vec<&str> {
    of_type(frames, "agent_state").into_iter().map(|frame| frame["state"].as_str().unwrap()).collect()
}

/// The answer that frames show.
fn text(frames: &[Value]) -> String {
    frames.iter().filter_map(|frame| frame["content"].as_str()).collect()
}

fn of_type<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame["type"] == kind).collect()
}

fn raw(blocks: &[Block]) -> Vec<&str> {
    blocks.iter().map(|block| block.raw.as_str()).collect()
}

/// The session that a stream begins with; the rest of it is left.
async fn session(client: &Client, body: Value) -> Value {
    stream(client, body).await.take(1).await[0].json()["session"].clone()
}

async fn stored(client: &Client, run_id: &str) -> String {
    client.ended(run_id).await["output_message"]["content"].as_str().unwrap_or_default().to_owned()
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
    let response = request(&client, said_in(&conversation, message)).send().await.unwrap();
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
    assert_eq!(text(&frames(&rejoined(&client, &run_id, "", None).await)), stored(&client, &run_id).await);
}

async fn a_run_resumes_after_every_frame(mut deployment: Deployment) {
    let client = deployment.client();
    let message = "[call=scripted__echo {\"text\":\"hi\"}] [tokens=12] [delay=10] [think]";
    let mut stream = stream(&client, said_in("tide", message)).await;
    let run_id = stream.run_id.clone();
    let (mut whole, mut rests) = (Vec::new(), Vec::new());
    // A frame without an id is not the last of its event, and nowhere to stop.
    while let Some(block) = stream.next().await.unwrap() {
        if let Some(id) = block.id.clone() {
            let (client, run_id) = (client.clone(), run_id.clone());
            let rest = tokio::spawn(async move { rejoined(&client, &run_id, "", Some(&id)).await });
            rests.push((whole.len() + 1, rest));
        }
        whole.push(block);
    }
    for (known, rest) in rests {
        assert_eq!(raw(&rest.await.unwrap()), raw(&whole[known..]), "live, after {known}");
    }
    assert_eq!(raw(&rejoined(&client, &run_id, "", None).await), raw(&whole), "from the start");
    for (index, block) in whole.iter().enumerate().filter(|(_, block)| block.id.is_some()) {
        let rest = rejoined(&client, &run_id, "", block.id.as_deref()).await;
        assert_eq!(raw(&rest), raw(&whole[index + 1..]), "after {:?}", block.id);
    }
    assert_eq!(text(&frames(&whole)), stored(&client, &run_id).await);
}

async fn a_run_of_another_route_can_be_rejoined(mut deployment: Deployment) {
    let client = deployment.client();
    let started = client.start("[tokens=2] [delay=1] [clienttool]").await;
    let (run, conversation) = (&started["run"]["id"], &started["conversation"]["id"]);
    let run_id = run.as_str().unwrap();
    let mut events = client.events(run_id, None).await;
    let call = events.up_to("tool_call.started").await.pop().unwrap().data;
    let call_id = call["call_id"].as_str().unwrap();
    client.post(&format!("/v1/runs/{run_id}/tool_results/{call_id}"), json!({"output": "[1, 2]"})).await.unwrap();
    client.ended(run_id).await;
    let frames = frames(&rejoined(&client, run_id, "", None).await);
    assert_eq!(frames[0]["session"], json!({"id": conversation, "conversation_id": conversation, "run_id": run}));
    assert_eq!(states(&frames), ["thinking", "waiting_on_user", "thinking"]);
    assert_eq!(
        of_type(&frames, "agent_state")[0],
        &json!({"type": "agent_state", "state": "thinking", "contextType": null})
    );
    let asked = of_type(&frames, "tool_call")[0];
    assert_eq!((&asked["tool_call"]["id"], &asked["tool_call"]), (&json!(call_id), &asked["toolCall"]));
    let arguments: Value = serde_json::from_str(asked["toolCall"]["function"]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, call["input"]);
    let result = json!({"success": true, "data": [1, 2], "toolName": call["name"], "toolCallId": call_id});
    assert_eq!(of_type(&frames, "tool_result")[0]["result"], result);
    assert_eq!(types(&frames).last().unwrap(), &"done");
}

async fn messages_streams_carry_the_whole_message_and_the_end(mut deployment: Deployment) {
    let client = deployment.client();
    let path = "/api/agent/stream?stream_mode=messages&unknown=1";
    let live = Blocks::open(client.request(Method::POST, path).json(&said("[tokens=5] [delay=1]"))).await;
    let run_id = live.run_id.clone();
    let shown = frames(&live.rest().await);
    assert_eq!(
        shown.iter().map(|frame| frame["type"].as_str().unwrap()).collect::<Vec<_>>(),
        ["session", "text", "done"]
    );
    assert_eq!(text(&shown), stored(&client, &run_id).await);
    let pieces = frames(&rejoined(&client, &run_id, "&stream_mode=events", None).await);
    assert_eq!((of_type(&pieces, "text").len(), text(&pieces)), (5, text(&shown)));
    // A run without pieces has steps, calls and one text.
    let started = client.post("/v1/runs", json!({"input": "[tokens=5] [delay=1]", "stream": false})).await.unwrap();
    let whole = frames(&rejoined(&client, started["run"]["id"].as_str().unwrap(), "", None).await);
    assert_eq!((of_type(&whole, "text").len(), of_type(&whole, "agent_state").len()), (1, 1));
}

async fn what_fails_before_it_speaks_is_no_stream(mut deployment: Deployment) {
    let client = deployment.client();
    let request = request(&client, said("[tokens=0] [fail]")).header("idempotency-key", "k");
    let again = request.try_clone().unwrap();
    let failure = answer(request).await.expect_err("it was answered");
    assert_eq!((failure.status, failure.code.as_str()), (500, "run_failed"));
    assert_eq!(answer(again).await.expect_err("it was answered"), failure, "the same key is the same failure");
    // Who comes back by the run's id is told by a frame.
    let run_id = failure.body["run"].as_str().unwrap().trim_start_matches("/v1/runs/").to_owned();
    assert_eq!(types(&frames(&rejoined(&client, &run_id, "", None).await)), ["session", "error"]);
}

async fn what_fails_later_is_a_frame_and_no_done(mut deployment: Deployment) {
    let client = deployment.client();
    let stream = stream(&client, said("[tokens=4] [delay=1] [fail]")).await;
    let run_id = stream.run_id.clone();
    let blocks = stream.rest().await;
    let shown = frames(&blocks);
    assert_eq!(types(&shown), ["session", "text", "text", "error"]);
    let run = client.run(&run_id).await;
    assert_eq!(shown.last().unwrap()["error"], run["error"]["message"]);
    let ids: Vec<_> = blocks[blocks.len() - 2..].iter().map(|block| block.id.as_deref()).collect();
    assert_eq!(ids, [None, run["last_event_id"].as_str()]);
}

async fn a_failing_tool_is_a_result_without_success(mut deployment: Deployment) {
    let client = deployment.client();
    let agent = agent(&client, json!([]), json!({})).await;
    let conversation = conversation_with(&client, &agent).await;
    let body = said_in(&conversation, "[call=no__such] [tokens=1] [delay=1]");
    let shown = frames(&stream(&client, body).await.rest().await);
    let result = &of_type(&shown, "tool_result")[0]["result"];
    assert_eq!((&result["success"], &result["toolName"]), (&json!(false), &json!("no__such")));
    assert!(
        result["error"].as_str().is_some_and(|error| !error.is_empty()) && result.get("data").is_none(),
        "{result}"
    );
    let call = &of_type(&shown, "tool_call")[0]["tool_call"];
    assert_eq!((&call["id"], &call["function"]["name"]), (&result["toolCallId"], &json!("no__such")));
    let mut kinds = types(&shown);
    kinds.dedup();
    assert_eq!(kinds, ["session", "text", "tool_call", "tool_result", "text", "done"]);
}

async fn a_takeover_is_marked(mut deployment: Deployment) {
    let client = deployment.client();
    let mut stream = stream(&client, said_in("tide", "[tokens=40] [delay=20] hi")).await;
    let heard = stream.take(7).await;
    let run_id = stream.run_id.clone();
    drop(stream);
    deployment.kill_worker();
    let client = deployment.client();
    let rest = frames(&rejoined(&client, &run_id, "", heard.last().unwrap().id.as_deref()).await);
    let marked = rest.iter().position(|frame| frame["superseded"] == true).expect("no takeover was marked");
    let (mark, first) = (&rest[marked], heard[0].json());
    assert_eq!((&mark["type"], &mark["session"]), (&json!("session"), &first["session"]));
    let events = client.events(&run_id, None).await.rest().await;
    assert_eq!(mark["base"], of_kind(&events, "attempt.started").last().unwrap()["base"]);
    assert_eq!(text(&rest[marked..]), stored(&client, &run_id).await);
    assert_eq!(types(&rest).last().unwrap(), &"done");
}

async fn a_cancelled_run_is_done(mut deployment: Deployment) {
    let client = deployment.client();
    let mut stream = stream(&client, said("[tokens=500] [delay=20] hi")).await;
    let mut blocks = stream.take(5).await;
    let run_id = stream.run_id.clone();
    client.cancel(&run_id).await;
    blocks.extend(stream.rest().await);
    let shown = frames(&blocks);
    let usage = client.run(&run_id).await["usage"].clone();
    let total = ["input_tokens", "output_tokens"].map(|tokens| usage[tokens].as_u64().unwrap_or(0)).iter().sum::<u64>();
    assert_eq!(shown.last().unwrap(), &json!({"type": "done", "usage": {"total_tokens": total}}));
    assert_eq!(text(&shown), stored(&client, &run_id).await);
    assert!(rejoined(&client, &run_id, "", blocks.last().unwrap().id.as_deref()).await.is_empty());
}

async fn a_run_that_waits_goes_on_in_the_same_stream(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_HEARTBEAT_MS", 50);
    let client = deployment.client();
    let mut stream = stream(&client, said("[tokens=2] [delay=1] [approval]")).await;
    let run_id = stream.run_id.clone();
    let question = client.events(&run_id, None).await.up_to("approval.requested").await.pop().unwrap();
    let mut blocks = Vec::new();
    while blocks.last().is_none_or(|block: &Block| block.json()["state"] != "waiting_on_user") {
        blocks.extend(stream.take(1).await);
    }
    stream.until_sent(": hb\n: hb\n").await;
    let approval = question.data["approval_id"].as_str().unwrap();
    client.post(&format!("/v1/runs/{run_id}/approvals/{approval}"), json!({"decision": "approve"})).await.unwrap();
    blocks.extend(stream.rest().await);
    let shown = frames(&blocks);
    assert_eq!(states(&shown), ["thinking", "waiting_on_user", "thinking"]);
    let mut kinds = types(&shown);
    kinds.dedup();
    assert_eq!(kinds, ["session", "text", "tool_call", "tool_result", "text", "done"]);
    assert_eq!(text(&shown), stored(&client, &run_id).await);
    let all = frames(&rejoined(&client, &run_id, "", None).await);
    assert_eq!(all, shown, "an answer supersedes nothing");
}

async fn a_denied_call_is_a_call_and_a_result(mut deployment: Deployment) {
    let client = deployment.client();
    let stream = stream(&client, said("[tokens=2] [delay=1] [approval]")).await;
    let run_id = stream.run_id.clone();
    let question = client.events(&run_id, None).await.up_to("approval.requested").await.pop().unwrap();
    let approval = question.data["approval_id"].as_str().unwrap();
    let denied = json!({"decision": "deny", "reason": "not on a Sunday"});
    client.post(&format!("/v1/runs/{run_id}/approvals/{approval}"), denied).await.unwrap();
    let shown = frames(&stream.rest().await);
    let call = &of_type(&shown, "tool_call")[0]["tool_call"];
    let result = &of_type(&shown, "tool_result")[0]["result"];
    assert_eq!((&call["id"], &result["success"]), (&result["toolCallId"], &json!(false)));
    assert!(result["error"].as_str().unwrap().contains("not on a Sunday"), "{result}");
}

async fn a_session_goes_on(mut deployment: Deployment) {
    let client = deployment.client();
    let first = session(&client, said_in("tide", "[tokens=1]")).await;
    assert_eq!(first["id"], "tide");
    let again = session(&client, said_in("tide", "[tokens=1]")).await;
    assert_eq!((&again["id"], &again["conversation_id"]), (&json!("tide"), &first["conversation_id"]));
    assert_ne!(again["run_id"], first["run_id"]);
    // It is the session of that name, however it is named.
    let named = request(&client, said("[tokens=1]")).header("x-session-id", "tide");
    let named = Blocks::open(named).await.take(1).await[0].json()["session"].clone();
    assert_eq!((&named["id"], &named["conversation_id"]), (&json!("tide"), &first["conversation_id"]));
    let native = client.post("/v1/sessions/tide/messages", json!({"content": "[tokens=1]"})).await.unwrap();
    assert_eq!(native["run"]["conversation_id"], first["conversation_id"]);
    // The body wins.
    let other = request(&client, said_in("ebb", "[tokens=1]")).header("x-session-id", "tide");
    let other = Blocks::open(other).await.take(1).await[0].json()["session"].clone();
    assert_eq!(other["id"], "ebb");
    assert_ne!(other["conversation_id"], first["conversation_id"]);
    let somebody_elses = session(&client.user("bob"), said_in("tide", "[tokens=1]")).await;
    assert_ne!(somebody_elses["conversation_id"], first["conversation_id"]);
}

async fn a_session_without_a_name_goes_on_by_the_id_that_it_was_given(mut deployment: Deployment) {
    let client = deployment.client();
    let first = session(&client, said("[tokens=1]")).await;
    assert_eq!(first["id"], first["conversation_id"]);
    let id = first["id"].as_str().unwrap();
    let again = session(&client, said_in(id, "[tokens=1]")).await;
    assert_eq!((&again["id"], &again["conversation_id"]), (&first["id"], &first["conversation_id"]));
    // To somebody else it is a name like any other.
    let bob = client.user("bob");
    let (known, unknown) = (session(&bob, said_in(id, "hi")).await, "01890000-0000-7000-8000-000000000000");
    assert_eq!(known["id"], id);
    assert_ne!(known["conversation_id"], first["conversation_id"]);
    assert_eq!(session(&bob, said_in(unknown, "hi")).await["id"], unknown);
}

async fn the_default_session_goes_by_a_dash(mut deployment: Deployment) {
    let client = deployment.client().user("ann");
    let first = session(&client, said_in("-", "[tokens=1]")).await;
    assert_eq!(first["id"], client.get("/v1/users/me").await.unwrap()["default_session"]);
    let native = client.post("/v1/sessions/-/messages", json!({"content": "[tokens=1]"})).await.unwrap();
    assert_eq!(native["run"]["conversation_id"], first["conversation_id"]);
}

async fn names_that_are_none_are_refused_and_leave_nothing_behind(mut deployment: Deployment) {
    let client = deployment.client();
    let long = "x".repeat(129);
    for (body, expected) in [
        (said_in("", "hi"), "invalid_session"),
        (said_in(&long, "hi"), "invalid_session"),
        (said_in("a\nb", "hi"), "invalid_session"),
        (said(" "), "empty_content"),
        (said(&"x".repeat(65_537)), "content_too_long"),
        (json!({"message": "hi"}), "invalid_body"),
        (json!({"context_type": "board"}), "invalid_body"),
        (json!({"message": "hi", "context_type": "board", "projectFocus": "x".repeat(20_000)}), "invalid_metadata"),
    ] {
        let failure = answer(request(&client, body)).await.expect_err("it was accepted");
        assert_eq!((failure.status, failure.code.as_str()), (400, expected));
    }
    assert_eq!(client.get("/v1/conversations").await.unwrap()["items"], json!([]));
}

async fn the_servers_history_is_the_truth(mut deployment: Deployment) {
    let client = deployment.client();
    let mut body = said_in("tide", "[tokens=1] truly");
    body["conversation_history"] = json!([{"role": "user", "content": "never"}, {"role": "assistant", "content": 7}]);
    body["theme"] = json!("dark");
    stream(&client, body).await.rest().await;
    let history = client.get("/v1/sessions/tide/history").await.unwrap();
    assert_eq!((history.as_array().unwrap().len(), &history[0]["content"]), (2, &json!("[tokens=1] truly")));
    // A history that is no list is as unknown as any other field.
    let mut body = said_in("tide", "[tokens=1] again");
    body["conversation_history"] = json!("none");
    stream(&client, body).await.rest().await;
    assert_eq!(client.get("/v1/sessions/tide/history").await.unwrap().as_array().unwrap().len(), 4);
}

async fn the_context_is_kept_with_the_run(mut deployment: Deployment) {
    let client = deployment.client();
    let body = json!({"message": "[tokens=1]", "session_id": "tide", "context_type": "board", "entity_id": "b-7",
        "ontologyEntityType": "Board", "projectFocus": {"id": "p-1", "depth": 2}});
    let run_id = stream(&client, body).await.run_id;
    let context = json!({"session_id": "tide", "context_type": "board", "entity_id": "b-7", "ontologyEntityType": "Board",
        "projectFocus": {"id": "p-1", "depth": 2}});
    assert_eq!(client.run(&run_id).await["metadata"], json!({"agent_context": context}));
    let nulls = json!({"message": "[tokens=1]", "session_id": null, "context_type": "board", "entity_id": null,
        "ontologyEntityType": null, "projectFocus": null, "conversation_history": null});
    let run_id = stream(&client, nulls).await.run_id;
    assert_eq!(client.run(&run_id).await["metadata"], json!({"agent_context": {"context_type": "board"}}));
}

async fn the_same_key_is_the_same_run(mut deployment: Deployment) {
    let client = deployment.client();
    let asked = |body: Value, after: Option<&str>| {
        let request = request(&client, body).header("idempotency-key", "k");
        after.into_iter().fold(request, |request, id| request.header("last-event-id", id))
    };
    let body = said_in("tide", "[tokens=3] [delay=1]");
    let first = Blocks::open(asked(body.clone(), None)).await;
    let run_id = first.run_id.clone();
    let first = first.rest().await;
    let again = Blocks::open(asked(body.clone(), first[0].id.as_deref())).await;
    assert_eq!(again.run_id, run_id);
    assert_eq!(raw(&again.rest().await), raw(&first[1..]));
    let last = first.last().unwrap().id.as_deref();
    assert_eq!(asked(body.clone(), last).send().await.unwrap().status(), 204);
    for field in ["message", "session_id", "context_type", "entity_id", "projectFocus"] {
        let mut other = body.clone();
        other[field] = json!("other");
        let failure = answer(asked(other, None)).await.expect_err("it was accepted");
        assert_eq!((failure.status, failure.code.as_str()), (422, "idempotency_key_reused"), "{field}");
    }
}

async fn a_run_may_take_as_long_as_the_route_says(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_AGENT_STREAM_DURATION_MS", 400);
    let client = deployment.client();
    let long = "[tokens=60] [delay=20] hi";
    let stream_of = stream(&client, said_in("tide", long)).await;
    let run_id = stream_of.run_id.clone();
    let shown = frames(&stream_of.rest().await);
    let reason = shown.last().unwrap()["error"].as_str().unwrap();
    assert!(reason.contains("max_duration_ms, which is 400"), "{reason}");
    assert_eq!(client.run(&run_id).await["error"]["code"], "limit_exceeded");
    // The same session on another route has the deployment's limit, and an agent its own.
    let native = client.post("/v1/sessions/tide/messages", json!({"content": long})).await.unwrap();
    assert_eq!(client.ended(native["run"]["id"].as_str().unwrap()).await["status"], "completed");
    let patient = agent(&client, json!([]), json!({"limits": {"max_duration_ms": 60_000}})).await;
    let conversation = conversation_with(&client, &patient).await;
    let run_id = stream(&client, said_in(&conversation, long)).await.run_id;
    assert_eq!(client.ended(&run_id).await["status"], "completed");
}
