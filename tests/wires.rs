//! The chat wire and the text wire: their frames, how clients resume, and the failures that clients receive.

use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{
        BlockStream, Client, Deployment, ErrorResponse, ScaledOut, StreamBlock, agent, answer, fold, of_kind,
        tools::ToolServer,
    },
};

in_both_modes!(
    the_frames_are_as_documented,
    a_run_resumes_after_every_frame_of_every_wire,
    messages_streams_carry_complete_messages_and_the_end,
    a_later_failure_is_a_frame,
    the_head_waits_for_the_first_output,
    a_takeover_is_marked,
    a_cancelled_run_ends_its_streams,
    a_run_that_waits_keeps_its_streams_open,
    the_same_key_is_the_same_run,
    the_streams_break_off_when_the_api_shuts_down,
);

in_either_mode!(
    an_agents_stream_mode_holds_for_its_streams,
    a_run_without_deltas_shows_its_message,
    a_text_that_fails_before_its_first_output_is_no_stream,
    a_chat_that_fails_before_its_first_output_has_the_sentence_in_a_frame,
    a_failing_tool_is_a_frame,
    the_head_waits_no_longer_than_it_may,
    an_unknown_agent_is_refused_and_nothing_is_stored,
    an_existing_conversations_agent_wins,
    without_the_accept_header_a_message_is_answered_as_json,
    unknown_wires_are_refused,
);

fn chat(client: &Client, body: Value) -> RequestBuilder {
    client.request(Method::POST, "/api/chat/stream").json(&body)
}

async fn conversation(client: &Client, body: Value) -> String {
    client.post("/v1/conversations", body).await.unwrap()["id"].as_str().unwrap().to_owned()
}

/// Returns a request for a message in a new conversation on the text route.
async fn text(client: &Client, content: &str) -> RequestBuilder {
    let conversation = conversation(client, json!({})).await;
    let path = format!("/api/conversations/{conversation}/messages");
    client.request(Method::POST, &path).json(&json!({ "content": content })).header("accept", "text/event-stream")
}

async fn chat_stream(client: &Client, message: &str) -> BlockStream {
    BlockStream::open(chat(client, json!({ "message": message }))).await
}

async fn text_stream(client: &Client, content: &str) -> BlockStream {
    BlockStream::open(text(client, content).await).await
}

async fn rejoin_blocks(client: &Client, run_id: &str, query: &str, after: Option<&str>) -> Vec<StreamBlock> {
    match BlockStream::rejoin(client, run_id, query, after).await {
        Some(blocks) => blocks.rest().await,
        None => Vec::new(),
    }
}

/// Returns the types of chat frames.
fn types(blocks: &[StreamBlock]) -> Vec<String> {
    blocks.iter().map(|block| block.json()["type"].as_str().unwrap().to_owned()).collect()
}

/// Returns the answer of a chat stream.
fn tokens(blocks: &[StreamBlock]) -> String {
    blocks.iter().filter_map(|block| block.json()["token"].as_str().map(str::to_owned)).collect()
}

/// Returns the answer of a text stream: all frames but the last.
fn chunks(blocks: &[StreamBlock]) -> String {
    let (last, chunks) = blocks.split_last().expect("the stream is empty");
    assert_eq!(last.data, "[DONE]");
    chunks.iter().map(|block| block.data.as_str()).collect()
}

fn data(blocks: &[StreamBlock]) -> Vec<&str> {
    blocks.iter().map(|block| block.data.as_str()).collect()
}

fn raw(blocks: &[StreamBlock]) -> Vec<&str> {
    blocks.iter().map(|block| block.raw.as_str()).collect()
}

async fn stored_answer(client: &Client, run_id: &str) -> String {
    client.wait_for_run(run_id).await["output_message"]["content"].as_str().unwrap_or_default().to_owned()
}

fn failure_of(result: Result<Value, ErrorResponse>) -> (u16, String, String) {
    let failure = result.expect_err("it was accepted");
    (failure.status, failure.code, failure.body["detail"].as_str().unwrap().to_owned())
}

async fn the_frames_are_as_documented(mut deployment: Deployment) {
    let client = deployment.client();
    let server = ToolServer::answering_at_once().await;
    let agent = agent(&client, json!([server.describe()]), json!({})).await;
    let message = "[call=kb__count {\"note\":\"x\"}] [tokens=2] [delay=1]";
    let response = chat(&client, json!({"message": message, "agentDefinitionId": agent, "theme": "dark"})).send();
    let response = response.await.unwrap();
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(
        (header("content-type").as_str(), header("cache-control").as_str(), header("x-accel-buffering").as_str()),
        ("text/event-stream", "no-cache", "no")
    );
    let run_id = header("x-run-id");
    let body = response.text().await.unwrap();
    let conversation = client.run(&run_id).await["conversation_id"].as_str().unwrap().to_owned();
    let redacted = |body: String| body.replace(&run_id, "<run>").replace(&conversation, "<conversation>");
    insta::assert_snapshot!("chat", redacted(body));
    let request = client.request(Method::GET, &format!("/v1/runs/{run_id}/events?wire=text"));
    let body = request.send().await.unwrap().text().await.unwrap();
    insta::assert_snapshot!("text", redacted(body));
    let shown_text = chunks(&rejoin_blocks(&client, &run_id, "wire=text", None).await);
    assert_eq!(shown_text, stored_answer(&client, &run_id).await);
    assert!(shown_text.contains("kb__count: counted\n"), "{shown_text:?}");
}

async fn a_run_resumes_after_every_frame_of_every_wire(mut deployment: Deployment) {
    let client = deployment.client();
    for wire in ["chat", "text"] {
        let message = "[tokens=20] [delay=10] [think] hi";
        let mut stream = match wire {
            "chat" => chat_stream(&client, message).await,
            _ => text_stream(&client, message).await,
        };
        let run_id = stream.run_id.clone();
        let query = format!("wire={wire}");
        let (mut all_blocks, mut rests) = (Vec::new(), Vec::new());
        while let Some(block) = stream.next().await.unwrap() {
            let (client, run_id, query, id) = (client.clone(), run_id.clone(), query.clone(), block.id.clone());
            rests.push(tokio::spawn(async move { rejoin_blocks(&client, &run_id, &query, id.as_deref()).await }));
            all_blocks.push(block);
        }
        for (index, rest) in rests.into_iter().enumerate() {
            assert_eq!(raw(&rest.await.unwrap()), raw(&all_blocks[index + 1..]), "{wire}, live, after {index}");
        }
        assert_eq!(
            raw(&rejoin_blocks(&client, &run_id, &query, None).await),
            raw(&all_blocks),
            "{wire}, from the start"
        );
        for (index, block) in all_blocks.iter().enumerate() {
            let rest = rejoin_blocks(&client, &run_id, &query, block.id.as_deref()).await;
            assert_eq!(raw(&rest), raw(&all_blocks[index + 1..]), "{wire}, after {:?}", block.id);
        }
        let shown_text = if wire == "chat" { tokens(&all_blocks) } else { chunks(&all_blocks) };
        assert_eq!(shown_text, stored_answer(&client, &run_id).await);
    }
}

/// Checks that each wire shows one message for an ended run in `messages` mode, and for a run without deltas.
async fn shows_one_message(client: &Client, run_id: &str, query: &str) {
    let content = stored_answer(client, run_id).await;
    assert!(!content.is_empty());
    let chat = rejoin_blocks(client, run_id, &format!("wire=chat{query}"), None).await;
    assert_eq!((types(&chat), tokens(&chat)), (["meta", "token", "done"].map(str::to_owned).to_vec(), content.clone()));
    let text = rejoin_blocks(client, run_id, &format!("wire=text{query}"), None).await;
    assert_eq!(data(&text), [content.as_str(), "[DONE]"]);
}

async fn messages_streams_carry_complete_messages_and_the_end(mut deployment: Deployment) {
    let client = deployment.client();
    let path = "/api/chat/stream?stream_mode=messages&unknown=1";
    let stream = client.request(Method::POST, path).json(&json!({"message": "[tokens=5]"}));
    let live = BlockStream::open(stream).await;
    let run_id = live.run_id.clone();
    assert_eq!(types(&live.rest().await), ["meta", "token", "done"]);
    shows_one_message(&client, &run_id, "&stream_mode=messages").await;
    let native = client.request(Method::GET, &format!("/v1/runs/{run_id}/events?wire=native&stream_mode=messages"));
    let native = native.send().await.unwrap().text().await.unwrap();
    let kinds: Vec<&str> = native.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(kinds, ["message.completed", "run.completed"]);
}

async fn an_agents_stream_mode_holds_for_its_streams(mut deployment: Deployment) {
    let client = deployment.client();
    let agent = agent(&client, json!([]), json!({"stream_mode": "messages"})).await;
    let body = json!({"message": "[tokens=3] [delay=1]", "agentDefinitionId": agent});
    let stream = BlockStream::open(chat(&client, body)).await;
    let run_id = stream.run_id.clone();
    assert_eq!(types(&stream.rest().await), ["meta", "token", "done"]);
    let all = rejoin_blocks(&client, &run_id, "wire=chat&stream_mode=events", None).await;
    assert_eq!(types(&all), ["meta", "token", "token", "token", "done"]);
}

async fn a_run_without_deltas_shows_its_message(mut deployment: Deployment) {
    let client = deployment.client();
    let submission = client.post("/v1/runs", json!({"input": "[tokens=5] [delay=1]", "stream": false})).await.unwrap();
    shows_one_message(&client, submission["run"]["id"].as_str().unwrap(), "").await;
}

async fn a_text_that_fails_before_its_first_output_is_no_stream(mut deployment: Deployment) {
    let client = deployment.client();
    let request = text(&client, "[tokens=0] [fail]").await.header("idempotency-key", "k");
    let again = request.try_clone().unwrap();
    let failure = answer(request).await.expect_err("it was accepted");
    assert_eq!((failure.status, failure.code.as_str()), (500, "run_failed"));
    let run_id = failure.body["run"].as_str().unwrap().trim_start_matches("/v1/runs/").to_owned();
    let run = client.run(&run_id).await;
    assert_eq!((run["status"].as_str(), run["error"]["code"].as_str()), (Some("failed"), Some("scripted_failure")));
    let detail = failure.body["detail"].as_str().unwrap();
    assert!(detail.contains("before its first output (scripted_failure)"), "{detail}");
    assert_eq!(answer(again).await.expect_err("it was accepted"), failure, "the same key is the same failure");
}

async fn a_chat_that_fails_before_its_first_output_has_the_sentence_in_a_frame(mut deployment: Deployment) {
    let client = deployment.client();
    for _ in 0..2 {
        let request = chat(&client, json!({"message": "[tokens=0] [fail]"})).header("idempotency-key", "k");
        let stream = BlockStream::open(request).await;
        let run_id = stream.run_id.clone();
        let blocks = stream.rest().await;
        assert_eq!(types(&blocks), ["meta", "error", "done"]);
        assert_eq!(blocks[1].json()["error"], client.run(&run_id).await["error"]["message"]);
    }
}

async fn a_later_failure_is_a_frame(mut deployment: Deployment) {
    let client = deployment.client();
    let stream = chat_stream(&client, "[tokens=4] [delay=1] [fail]").await;
    let run_id = stream.run_id.clone();
    let blocks = stream.rest().await;
    assert_eq!(types(&blocks), ["meta", "token", "token", "error", "done"]);
    let run = client.run(&run_id).await;
    assert_eq!(blocks[3].json()["error"], run["error"]["message"]);
    assert_eq!((&blocks[3].id, blocks[4].id.as_deref()), (&None, run["last_event_id"].as_str()));
    let text = rejoin_blocks(&client, &run_id, "wire=text", None).await;
    assert_eq!(text.len(), 4);
    assert_eq!(
        (text[2].event.as_deref(), text[2].data.as_str()),
        (Some("error"), run["error"]["message"].as_str().unwrap())
    );
    assert_eq!((text[3].data.as_str(), text[3].id.as_deref()), ("[DONE]", run["last_event_id"].as_str()));
    // A client that has some text resumes, and receives no problem that there was no output.
    let rest = rejoin_blocks(&client, &run_id, "wire=text", text[1].id.as_deref()).await;
    assert_eq!(raw(&rest), raw(&text[2..]));
}

async fn a_failing_tool_is_a_frame(mut deployment: Deployment) {
    let client = deployment.client();
    let agent = agent(&client, json!([]), json!({})).await;
    let body = json!({"message": "[call=no__such] [tokens=1] [delay=1]", "agentDefinitionId": agent});
    let blocks = BlockStream::open(chat(&client, body)).await.rest().await;
    let tools: Vec<Value> = blocks.iter().map(StreamBlock::json).filter(|frame| frame["type"] == "mcp_tool").collect();
    let last = tools.last().unwrap();
    assert_eq!((&last["tool"], &last["status"]), (&json!("no__such"), &json!("error")));
    assert!(last["error"].as_str().is_some_and(|error| !error.is_empty()) && last.get("result").is_none(), "{last}");
    assert_eq!(types(&blocks).last().unwrap(), "done");
}

async fn the_head_waits_for_the_first_output(deployment: Deployment) {
    // The wait for the head is longer than the test, so only output can start the response in time.
    let mut deployment = deployment.with("HOLDFAST_HEAD_WAIT_MS", 600_000);
    let client = deployment.client();
    let stream = text_stream(&client, "[tokens=2] [delay=400]").await;
    let page = client.request(Method::GET, &format!("/v1/runs/{}/events", stream.run_id));
    let page: Value = page.header("accept", "application/json").send().await.unwrap().json().await.unwrap();
    assert!(page["events"].to_string().contains("message.delta"), "the head came before the output: {page}");
    assert_eq!(stream.rest().await.last().unwrap().data, "[DONE]");
}

async fn the_head_waits_no_longer_than_it_may(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_HEAD_WAIT_MS", 100);
    let client = deployment.client();
    let since = Instant::now();
    let mut streams = vec![chat_stream(&client, "[delay=60000]").await, text_stream(&client, "[delay=60000]").await];
    assert!(since.elapsed() < Duration::from_secs(20), "the heads took {:?}", since.elapsed());
    assert_eq!(types(&streams[0].take(1).await), ["meta"]);
    for (stream, end) in streams.into_iter().zip([r#"{"type":"done"}"#, "[DONE]"]) {
        client.cancel(&stream.run_id).await;
        assert_eq!(data(&stream.rest().await), [end]);
    }
}

async fn a_takeover_is_marked(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let message = "[tokens=40] [delay=20] hi";
    let (mut chat, mut text) = (chat_stream(&client, message).await, text_stream(&client, message).await);
    let chat_blocks = chat.take(6).await;
    let text_blocks = text.take(5).await;
    let (chat_run, text_run) = (chat.run_id.clone(), text.run_id.clone());
    drop((chat, text));
    deployment.kill_worker();
    let client = deployment.client();

    let rest = rejoin_blocks(&client, &chat_run, "wire=chat", chat_blocks.last().unwrap().id.as_deref()).await;
    let marked = rest.iter().position(|block| block.json()["superseded"] == true).expect("no takeover was marked");
    let (mark, meta) = (rest[marked].json(), chat_blocks[0].json());
    assert_eq!(
        (&mark["type"], &mark["runId"], &mark["conversationId"]),
        (&json!("meta"), &meta["runId"], &meta["conversationId"])
    );
    assert_eq!(mark["base"], newest_base(&client, &chat_run).await.as_str());
    assert_eq!(tokens(&rest[marked..]), stored_answer(&client, &chat_run).await);
    assert_eq!(types(&rest).last().unwrap(), "done");

    let rest = rejoin_blocks(&client, &text_run, "wire=text", text_blocks.last().unwrap().id.as_deref()).await;
    let marked = rest.iter().position(|block| !block.comments.is_empty()).expect("no takeover was marked");
    assert_eq!(rest[marked].comments, [format!("superseded after {}", newest_base(&client, &text_run).await)]);
    assert_eq!(chunks(&rest[marked..]), stored_answer(&client, &text_run).await);
}

#[tokio::test]
async fn a_takeover_is_marked_on_one_connection() {
    let scaled = ScaledOut::new();
    let (mut api, worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let message = "[tokens=40] [delay=20] hi";
    let (mut chat, mut text) = (chat_stream(&client, message).await, text_stream(&client, message).await);
    chat.take(6).await;
    text.take(5).await;
    worker.kill();
    let _other = scaled.worker();
    let (chat_run, text_run) = (chat.run_id.clone(), text.run_id.clone());
    let (chat_blocks, text_blocks) = (chat.rest().await, text.rest().await);
    let marked =
        chat_blocks.iter().position(|block| block.json()["superseded"] == true).expect("no takeover was marked");
    assert_eq!(tokens(&chat_blocks[marked..]), stored_answer(&client, &chat_run).await);
    let marked = text_blocks.iter().position(|block| !block.comments.is_empty()).expect("no takeover was marked");
    assert_eq!(chunks(&text_blocks[marked..]), stored_answer(&client, &text_run).await);
}

/// Returns the base of the run's newest attempt.
async fn newest_base(client: &Client, run_id: &str) -> String {
    let frames = client.events(run_id, None).await.rest().await;
    assert_eq!(fold(&frames), stored_answer(client, run_id).await);
    of_kind(&frames, "attempt.started").last().unwrap()["base"].as_str().unwrap().to_owned()
}

async fn a_cancelled_run_ends_its_streams(mut deployment: Deployment) {
    let client = deployment.client();
    let message = "[tokens=500] [delay=20] hi";
    let (mut chat, mut text) = (chat_stream(&client, message).await, text_stream(&client, message).await);
    let (mut chat_blocks, mut text_blocks) = (chat.take(4).await, text.take(4).await);
    let (chat_run, text_run) = (chat.run_id.clone(), text.run_id.clone());
    client.cancel(&chat_run).await;
    client.cancel(&text_run).await;
    chat_blocks.extend(chat.rest().await);
    text_blocks.extend(text.rest().await);
    assert_eq!(types(&chat_blocks).last().unwrap(), "done");
    assert_eq!(tokens(&chat_blocks), stored_answer(&client, &chat_run).await);
    assert_eq!(chunks(&text_blocks), stored_answer(&client, &text_run).await);
    assert!(rejoin_blocks(&client, &text_run, "wire=text", text_blocks.last().unwrap().id.as_deref()).await.is_empty());
}

async fn a_run_that_waits_keeps_its_streams_open(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_HEARTBEAT_MS", 50);
    let client = deployment.client();
    let mut stream = chat_stream(&client, "[tokens=2] [delay=1] [approval]").await;
    let run_id = stream.run_id.clone();
    let question = client.events(&run_id, None).await.up_to("approval.requested").await.pop().unwrap();
    let mut blocks = stream.take(3).await;
    stream.until_sent(": hb\n: hb\n").await;
    let approval = question.data["approval_id"].as_str().unwrap();
    client.post(&format!("/v1/runs/{run_id}/approvals/{approval}"), json!({"decision": "approve"})).await.unwrap();
    blocks.extend(stream.rest().await);
    let kinds: Vec<String> = types(&blocks).into_iter().filter(|kind| kind != "token").collect();
    assert_eq!(kinds, ["meta", "mcp_tool", "mcp_tool", "done"]);
    assert_eq!(tokens(&blocks), stored_answer(&client, &run_id).await);
    let all = rejoin_blocks(&client, &run_id, "wire=chat", None).await;
    assert_eq!(data(&all), data(&blocks), "an answer supersedes nothing");
}

async fn an_unknown_agent_is_refused_and_nothing_is_stored(mut deployment: Deployment) {
    let client = deployment.client();
    for id in ["01890000-0000-7000-8000-000000000000", "my-agent"] {
        let (status, code, detail) =
            failure_of(answer(chat(&client, json!({"message": "hi", "agentDefinitionId": id}))).await);
        assert_eq!((status, code.as_str()), (400, "agent_not_found"));
        assert!(detail.contains(id), "{detail}");
        let unknown = failure_of(answer(chat(&client, json!({"message": "hi", "conversationId": id}))).await);
        assert_eq!((unknown.0, unknown.1.as_str()), (404, "conversation_not_found"));
    }
    for (body, expected) in [
        (json!({"message": " "}), "empty_content"),
        (json!({"message": "x".repeat(65_537)}), "content_too_long"),
        (json!({"input": "x"}), "invalid_body"),
    ] {
        let (status, code, _) = failure_of(answer(chat(&client, body)).await);
        assert_eq!((status, code.as_str()), (400, expected));
    }
    assert_eq!(client.get("/v1/conversations").await.unwrap()["items"], json!([]));
}

async fn an_existing_conversations_agent_wins(mut deployment: Deployment) {
    let client = deployment.client();
    let own = agent(&client, json!([]), json!({})).await;
    let other = agent(&client, json!([]), json!({})).await;
    let conversation = conversation(&client, json!({"agent_id": own})).await;
    let body = json!({"message": "[tokens=1]", "conversationId": conversation, "agentDefinitionId": other});
    let mut stream = BlockStream::open(chat(&client, body)).await;
    assert_eq!(stream.take(1).await[0].json()["conversationId"], conversation.as_str());
    assert_eq!(client.run(&stream.run_id).await["agent_id"], own.as_str());
}

async fn without_the_accept_header_a_message_is_answered_as_json(mut deployment: Deployment) {
    let client = deployment.client();
    let conversation = conversation(&client, json!({})).await;
    let path = format!("/api/conversations/{conversation}/messages");
    let response = client.request(Method::POST, &path).json(&json!({"content": "[tokens=2]", "tone": "kind"})).send();
    let response = response.await.unwrap();
    assert_eq!(response.status(), 202);
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let accepted: Value = response.json().await.unwrap();
    assert_eq!(location, format!("/v1/runs/{}", accepted["run"]["id"].as_str().unwrap()));
    let native = client.post(&format!("/v1/conversations/{conversation}/messages"), json!({"content": "hi"})).await;
    let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&accepted), fields(&native.unwrap()));
}

async fn the_same_key_is_the_same_run(mut deployment: Deployment) {
    let client = deployment.client();
    let requests =
        [chat(&client, json!({"message": "[tokens=3] [delay=1]"})), text(&client, "[tokens=3] [delay=1]").await];
    for (request, key) in requests.into_iter().zip(["chat", "text"]) {
        let request = |after: Option<&str>| {
            let request = request.try_clone().unwrap().header("idempotency-key", key);
            after.into_iter().fold(request, |request, id| request.header("last-event-id", id))
        };
        let first = BlockStream::open(request(None)).await;
        let run_id = first.run_id.clone();
        let first = first.rest().await;
        let again = BlockStream::open(request(first[0].id.as_deref())).await;
        assert_eq!(again.run_id, run_id);
        assert_eq!(raw(&again.rest().await), raw(&first[1..]));
        let last = first.last().unwrap().id.as_deref();
        assert_eq!(request(last).send().await.unwrap().status(), 204);
        let other = client.request(Method::POST, "/v1/runs").header("idempotency-key", key);
        let (status, code, _) = failure_of(answer(other.json(&json!({"input": "other"}))).await);
        assert_eq!((status, code.as_str()), (422, "idempotency_key_reused"));
    }
}

async fn the_streams_break_off_when_the_api_shuts_down(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let message = "[tokens=100] [delay=50] hi";
    let (mut chat, mut text) = (chat_stream(&client, message).await, text_stream(&client, message).await);
    chat.take(3).await;
    text.take(3).await;
    let breaking = tokio::spawn(async move {
        for stream in [&mut chat, &mut text] {
            while let Ok(block) = stream.next().await {
                let block = block.expect("the stream ended cleanly in mid-run");
                assert!(!block.data.contains("[DONE]") && !block.data.contains("done"), "{block:?}");
            }
        }
    });
    let stopped = tokio::task::spawn_blocking(move || deployment.shut_down());
    breaking.await.unwrap();
    stopped.await.unwrap();
}

async fn unknown_wires_are_refused(mut deployment: Deployment) {
    let client = deployment.client();
    let run = client.start("[tokens=1]").await["run"]["id"].as_str().unwrap().to_owned();
    for wire in ["ai_sdk", "Agent", "Chat", ""] {
        let refused = failure_of(client.get(&format!("/v1/runs/{run}/events?wire={wire}")).await);
        assert_eq!((refused.0, refused.1.as_str()), (400, "invalid_query"), "{wire}");
    }
}
