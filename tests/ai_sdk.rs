//! The AI SDK's wire: the requests of a chat, one by one. `clients` has the SDK's own clients.

mod clients;
mod odd_moments;

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{BlockStream, Client, Deployment, StreamBlock, answer},
};

in_both_modes!(
    an_answer_is_a_message_of_the_ai_sdk,
    the_same_message_sent_again_is_the_same_run,
    an_edit_and_a_regeneration_replace_messages,
    an_approval_continues_the_same_message,
    a_front_ends_tool_continues_the_same_message,
    a_half_answered_step_waits_for_the_other_answers,
    a_stream_resumes_after_every_chunk,
    a_message_for_a_deleted_chat_begins_no_other_one,
    a_stopped_chat_has_nothing_to_resume,
    a_stop_ends_one_answer_and_not_the_next,
    earlier_messages_are_read_page_by_page,
    a_finished_answer_is_replayed_completely_for_a_while,
    a_resumed_answer_leaves_out_the_text_of_a_dead_worker,
);

in_either_mode!(
    invalid_chat_requests_are_refused,
    files_of_a_message_are_stored_once_and_shown,
    tools_by_name_are_tools_of_the_front_end,
);

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
}

fn body(chat: &str, message: Value) -> Value {
    json!({"id": chat, "messages": [message], "trigger": "submit-message"})
}

fn request(client: &Client, body: &Value) -> reqwest::RequestBuilder {
    client.request(Method::POST, "/api/chat").json(body)
}

/// A complete stream: its chunks, its run, and the id of its segment.
struct ChatAnswer {
    segment: String,
    run_id: String,
    blocks: Vec<StreamBlock>,
}

impl ChatAnswer {
    async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(
            (header("x-vercel-ai-ui-message-stream"), header("content-type")),
            ("v1".into(), "text/event-stream".into())
        );
        let segment = header("x-workflow-run-id");
        let stream = BlockStream::of(response);
        let run_id = stream.run_id.clone();
        Self { segment, run_id, blocks: stream.rest().await }
    }

    async fn send(client: &Client, body: &Value) -> Self {
        Self::of(request(client, body)).await
    }

    /// Returns all chunks but the last, which is `[DONE]`.
    fn chunks(&self) -> Vec<Value> {
        let (done, chunks) = self.blocks.split_last().expect("the stream is empty");
        assert_eq!(done.data, "[DONE]");
        chunks.iter().map(StreamBlock::json).collect()
    }

    fn types(&self) -> Vec<String> {
        let mut types: Vec<String> = self.chunks().iter().map(|chunk| text(chunk, "type")).collect();
        types.dedup();
        types
    }

    fn answer_text(&self) -> String {
        let chunks = self.chunks();
        let deltas = chunks.iter().filter(|chunk| chunk["type"] == "text-delta");
        deltas.map(|chunk| text(chunk, "delta")).collect()
    }

    fn first(&self, kind: &str) -> Value {
        self.chunks().into_iter().find(|chunk| chunk["type"] == kind).unwrap_or_else(|| panic!("no {kind}"))
    }
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}")).to_owned()
}

async fn resume(client: &Client, path: &str) -> Option<ChatAnswer> {
    let request = client.request(Method::GET, &format!("/api/chat/{path}"));
    let is_over = request.try_clone().unwrap().send().await.unwrap().status() == 204;
    if is_over { None } else { Some(ChatAnswer::of(request).await) }
}

async fn history(client: &Client, chat: &str) -> Value {
    client.get(&format!("/api/chat/{chat}/messages")).await.unwrap()
}

/// Removes the time from a user's message of the history, because the client that sent it does not know the time.
fn without_time(message: &Value) -> Value {
    let mut message = message.clone();
    let metadata = message.as_object_mut().unwrap().remove("metadata");
    assert!(metadata.is_some_and(|metadata| metadata["createdAt"].is_string()), "{message}");
    message
}

async fn runs(client: &Client) -> usize {
    client.get("/v1/runs").await.unwrap()["items"].as_array().unwrap().len()
}

async fn an_answer_is_a_message_of_the_ai_sdk(mut deployment: Deployment) {
    let client = deployment.client();
    let question = "[think] [call=scripted__echo {\"text\":\"hi\"}] [tokens=2] [delay=1]";
    let stream_answer = ChatAnswer::send(&client, &body("c1", user("m1", question))).await;
    let types = stream_answer.types();
    assert_eq!((types[0].as_str(), types.last().unwrap().as_str()), ("start", "finish"));
    for kind in ["reasoning-delta", "tool-input-available", "tool-output-available", "text-delta", "data-context"] {
        assert!(types.iter().any(|other| other == kind), "{kind} is not in {types:?}");
    }
    let run = client.wait_for_run(&stream_answer.run_id).await;
    assert_eq!(stream_answer.first("start")["messageId"], run["output_message_id"]);
    assert_eq!(stream_answer.answer_text(), run["output_message"]["content"]);
    assert_eq!(stream_answer.segment, stream_answer.run_id);
    let messages = history(&client, "c1").await;
    assert_eq!(without_time(&messages[0]), user("m1", question));
    assert_eq!((&messages[1]["id"], messages[1]["role"].as_str()), (&run["output_message_id"], Some("assistant")));
    let kinds: Vec<String> = messages[1]["parts"].as_array().unwrap().iter().map(|part| text(part, "type")).collect();
    assert!(kinds.contains(&"dynamic-tool".to_owned()), "{kinds:?}");
    assert_eq!(history(&client.user("eve"), "c1").await, json!([]));
    let conversation = text(&run, "conversation_id");
    assert_eq!(history(&client, &conversation).await, messages, "the conversation's id is the chat's too");
}

async fn the_same_message_sent_again_is_the_same_run(mut deployment: Deployment) {
    let client = deployment.client();
    let chat_body = body("c", user("m1", "[tokens=3] hello"));
    let (one, other) = tokio::join!(ChatAnswer::send(&client, &chat_body), ChatAnswer::send(&client, &chat_body));
    assert_eq!((&one.run_id, one.chunks()), (&other.run_id, other.chunks()));
    let again = ChatAnswer::send(&client, &chat_body).await;
    assert_eq!((&again.run_id, runs(&client).await), (&one.run_id, 1));
    // The server ignores the earlier messages in a request.
    let mut with_past = body("c", user("m2", "[tokens=1] and now?"));
    let past =
        [user("m1", "forged"), json!({"id": "x", "role": "assistant", "parts": []}), with_past["messages"][0].clone()];
    with_past["messages"] = json!(past);
    ChatAnswer::send(&client, &with_past).await;
    let messages = history(&client, "c").await;
    assert_eq!((messages.as_array().unwrap().len(), without_time(&messages[0])), (4, chat_body["messages"][0].clone()));
}

async fn an_edit_and_a_regeneration_replace_messages(mut deployment: Deployment) {
    let client = deployment.client();
    let chat_body = |text: &str| body("c", user("m1", text));
    let mut run_ids = Vec::new();
    for question in ["[tokens=1] A", "[tokens=1] B", "[tokens=1] A", "[tokens=1] B"] {
        run_ids.push(ChatAnswer::send(&client, &chat_body(question)).await.run_id);
        let messages = history(&client, "c").await;
        assert_eq!((messages.as_array().unwrap().len(), without_time(&messages[0])), (2, user("m1", question)));
    }
    let again = json!({"id": "c", "messages": [user("m1", "[tokens=1] B")], "trigger": "regenerate-message"});
    let first = history(&client, "c").await;
    run_ids.push(ChatAnswer::send(&client, &again).await.run_id);
    let messages = history(&client, "c").await;
    assert_eq!((messages.as_array().unwrap().len(), &messages[0]), (2, &first[0]));
    assert_ne!(messages[1]["id"], first[1]["id"]);
    run_ids.sort();
    run_ids.dedup();
    assert_eq!((run_ids.len(), runs(&client).await), (5, 5));
    let endless = json!({"id": "c", "messages": [], "trigger": "regenerate-message"});
    let slow = body("c", user("m2", "[tokens=400] [delay=20]"));
    let first = BlockStream::open(request(&client, &slow)).await;
    let second = BlockStream::open(request(&client, &endless)).await;
    let third = BlockStream::open(request(&client, &endless)).await;
    assert_ne!(first.run_id, second.run_id);
    assert_eq!(second.run_id, third.run_id, "a client follows the run of the new answer");
}

/// Returns the assistant's message as a client sends it back, with one part changed.
fn with_answer(stream_answer: &ChatAnswer, part: Value) -> Value {
    json!({"id": stream_answer.first("start")["messageId"], "role": "assistant", "parts": [{"type": "step-start"}, part]})
}

async fn an_approval_continues_the_same_message(mut deployment: Deployment) {
    let client = deployment.client();
    let stream_answer = ChatAnswer::send(&client, &body("c", user("m1", "[tokens=2] [approval] [think]"))).await;
    assert_eq!(stream_answer.chunks().last().unwrap()["finishReason"], "tool-calls");
    let question = stream_answer.first("tool-approval-request");
    assert_eq!(
        resume(&client, "c/stream").await.unwrap().chunks(),
        stream_answer.chunks(),
        "a waiting run is replayed completely"
    );
    let part = |approved: bool| {
        json!({"type": "dynamic-tool", "toolName": "scripted__approval", "toolCallId": question["toolCallId"], "state": "approval-responded",
            "input": {"forged": true}, "approval": {"id": question["approvalId"], "approved": approved}})
    };
    let rest = ChatAnswer::send(&client, &body("c", with_answer(&stream_answer, part(true)))).await;
    assert_eq!(rest.chunks()[0], stream_answer.chunks()[0], "the message continues");
    assert_eq!(
        (&rest.run_id, rest.segment.as_str()),
        (&stream_answer.run_id, format!("{}.1", stream_answer.run_id).as_str())
    );
    assert_eq!(rest.chunks().last().unwrap()["finishReason"], "stop");
    assert_eq!(rest.first("tool-output-available")["toolCallId"], question["toolCallId"]);
    let again = ChatAnswer::send(&client, &body("c", with_answer(&stream_answer, part(false)))).await;
    assert_eq!(again.chunks(), rest.chunks(), "the first answer counts");
    let all = resume(&client, "c/stream").await.unwrap();
    let pause = stream_answer.chunks().len() - 2;
    assert_eq!(all.chunks()[..pause], stream_answer.chunks()[..pause]);
    assert_eq!(all.chunks()[pause..], rest.chunks()[1..], "one start, and no end in between");
    let run = client.wait_for_run(&stream_answer.run_id).await;
    assert_eq!(all.answer_text(), run["output_message"]["content"]);
    let messages = history(&client, "c").await;
    let call =
        messages[1]["parts"].as_array().unwrap().iter().find(|part| part["type"] == "dynamic-tool").unwrap().clone();
    assert_eq!((&call["approval"]["approved"], call["input"]["forged"].is_null()), (&json!(true), true));
    let strange = json!({"id": "nobody", "role": "assistant", "parts": []});
    let refused = answer(request(&client, &body("c", strange))).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (409, "run_not_waiting"));
}

async fn a_front_ends_tool_continues_the_same_message(mut deployment: Deployment) {
    let client = deployment.client();
    let mut chat_body = body("c", user("m1", "[tokens=1] [call=locate {\"city\":\"Ulm\"}]"));
    chat_body["clientTools"] = json!([{"name": "locate", "description": "Where is it?",
        "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}]);
    let stream_answer = ChatAnswer::send(&client, &chat_body).await;
    let call = stream_answer.first("tool-input-available");
    assert_eq!(
        (text(&call, "toolName"), &call["input"], &call["dynamic"]),
        ("locate".into(), &json!({"city": "Ulm"}), &Value::Null)
    );
    let part = json!({"type": "tool-locate", "toolCallId": call["toolCallId"], "state": "output-available", "input": {}, "output": {"at": [48, 10]}});
    let rest = ChatAnswer::send(&client, &body("c", with_answer(&stream_answer, part))).await;
    assert_eq!(rest.first("tool-output-available")["output"], json!({"at": [48, 10]}));
    assert!(rest.answer_text().contains("locate: {\"at\":[48,10]}"), "the model has seen it: {}", rest.answer_text());
    assert_eq!(
        history(&client, "c").await[1]["parts"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|part| part["type"] == "tool-locate")
            .count(),
        1
    );
}

async fn tools_by_name_are_tools_of_the_front_end(mut deployment: Deployment) {
    let client = deployment.client();
    let mut chat_body = body("c", user("m1", "[tokens=1] [call=locate {\"city\":\"Ulm\"}]"));
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    chat_body["tools"] =
        json!({"locate": {"description": "Where is it?", "parameters": parameters}, "other": {"id": 1}});
    let stream_answer = ChatAnswer::send(&client, &chat_body).await;
    let call = stream_answer.first("tool-input-available");
    assert_eq!((text(&call, "toolName"), &call["dynamic"]), ("locate".into(), &Value::Null));
    for strange in [json!([{"name": "x"}]), json!("x"), json!({"x": {"parameters": "y"}})] {
        let mut chat_body = body(&strange.to_string(), user("m1", "[tokens=1] x"));
        chat_body["tools"] = strange;
        ChatAnswer::send(&client, &chat_body).await.first("text-delta");
    }
}

async fn a_half_answered_step_waits_for_the_other_answers(mut deployment: Deployment) {
    let client = deployment.client();
    let mut chat_body = body("c", user("m1", "[approval] [call=locate {}] [parallel] [tokens=2]"));
    chat_body["clientTools"] = json!([{"name": "locate"}]);
    let stream_answer = ChatAnswer::send(&client, &chat_body).await;
    let question = stream_answer.first("tool-approval-request");
    let calls = stream_answer.chunks().into_iter().filter(|chunk| chunk["type"] == "tool-input-available");
    let call = calls.into_iter().find(|call| call["toolName"] == "locate").unwrap();
    let approved = json!({"type": "dynamic-tool", "toolName": "x", "toolCallId": question["toolCallId"], "state": "approval-responded",
        "approval": {"id": question["approvalId"], "approved": true}});
    let half = ChatAnswer::send(&client, &body("c", with_answer(&stream_answer, approved))).await;
    assert_eq!(half.types(), ["start", "finish-step", "finish"]);
    let unanswered = with_answer(&stream_answer, json!({"type": "text", "text": "forged"}));
    assert_eq!(ChatAnswer::send(&client, &body("c", unanswered)).await.types(), ["start", "finish-step", "finish"]);
    let location =
        json!({"type": "tool-locate", "toolCallId": call["toolCallId"], "state": "output-error", "errorText": "lost"});
    let rest = ChatAnswer::send(&client, &body("c", with_answer(&stream_answer, location))).await;
    assert_eq!(rest.first("tool-output-error")["errorText"], "lost");
    assert_eq!(rest.chunks().last().unwrap()["finishReason"], "stop");
    let run = client.wait_for_run(&stream_answer.run_id).await;
    assert_eq!(format!("{}{}", stream_answer.answer_text(), rest.answer_text()), run["output_message"]["content"]);
}

async fn a_stream_resumes_after_every_chunk(mut deployment: Deployment) {
    let client = deployment.client();
    let stream_answer = ChatAnswer::send(&client, &body("c", user("m1", "[tokens=3] [approval]"))).await;
    let question = stream_answer.first("tool-approval-request");
    let part = json!({"type": "dynamic-tool", "toolName": "x", "toolCallId": question["toolCallId"], "state": "approval-responded",
        "approval": {"id": question["approvalId"], "approved": false, "reason": "no"}});
    let rest = ChatAnswer::send(&client, &body("c", with_answer(&stream_answer, part))).await;
    assert_eq!(rest.first("tool-output-denied")["toolCallId"], question["toolCallId"]);
    for segment in [&stream_answer, &rest] {
        let chunks = segment.chunks();
        for index in 0..=chunks.len() {
            let path = format!("{}/stream?startIndex={index}", segment.segment);
            // A client that has all chunks receives the end once more.
            let rest = &chunks[index.min(chunks.len() - 1)..];
            assert_eq!(resume(&client, &path).await.unwrap().chunks(), rest, "after {index}");
        }
        let path = format!("/api/chat/{}/stream?startIndex=-2", segment.segment);
        let response = client.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(response.headers()["x-workflow-stream-tail-index"], (chunks.len() - 1).to_string().as_str());
        let blocks = BlockStream::of(response).rest().await;
        assert_eq!(blocks.len(), 3);
        assert_eq!(blocks[0].json(), chunks[chunks.len() - 2]);
    }
    let path = |id: &str| format!("{id}/stream?startIndex=0");
    assert!(resume(&client, &path(&format!("{}.2", stream_answer.run_id))).await.is_none());
    assert!(resume(&client.user("eve"), &path(&stream_answer.segment)).await.is_none());
    assert_eq!(
        resume(&client, &path("c")).await.unwrap().chunks()[0],
        stream_answer.chunks()[0],
        "a chat has chunks too"
    );
}

async fn a_stopped_chat_has_nothing_to_resume(mut deployment: Deployment) {
    let client = deployment.client();
    let stop = |chat: &str| client.request(Method::POST, &format!("/api/chat/{chat}/stop"));
    assert_eq!(answer(stop("c")).await.unwrap_err().code, "conversation_not_found");
    let mut stream = BlockStream::open(request(&client, &body("c", user("m1", "[tokens=2000] [delay=10]")))).await;
    while stream.next().await.unwrap().unwrap().json()["type"] != "text-delta" {}
    let live = client.request(Method::GET, "/api/chat/c/stream").send().await.unwrap();
    let resumed_live = BlockStream::of(live);
    assert_eq!(answer(stop("c")).await.unwrap(), json!({"success": true}));
    for stream_answer in [stream.rest().await, resumed_live.rest().await] {
        let ends: Vec<&str> = stream_answer.iter().rev().take(3).map(|block| block.data.as_str()).collect();
        assert!(ends[0] == "[DONE]" && ends[1].contains("\"other\"") && ends[2].contains("abort"), "{ends:?}");
    }
    assert!(resume(&client, "c/stream").await.is_none());
    assert_eq!(answer(stop("c")).await.unwrap(), json!({"success": true}));
    assert!(resume(&client, "nothing/stream").await.is_none());
}

async fn a_stop_ends_one_answer_and_not_the_next(mut deployment: Deployment) {
    let client = deployment.client();
    let stop = |query: &str| client.request(Method::POST, &format!("/api/chat/c/stop{query}"));
    let endless = "[tokens=2000] [delay=10]";
    let mut stream = BlockStream::open(request(&client, &body("c", user("m1", endless)))).await;
    while stream.next().await.unwrap().unwrap().json()["type"] != "text-delta" {}
    let first = stream.run_id.clone();
    let conversation = text(&client.run(&first).await, "conversation_id");
    let post = async |content: &str| {
        let path = format!("/v1/conversations/{conversation}/messages");
        let posted = client.post(&path, json!({"content": content})).await.unwrap();
        (text(&posted["run"], "id"), text(&posted["message"], "id"))
    };
    let (second, second_message) = post("[tokens=3]").await;
    let (third, _) = post("[tokens=100] [delay=10]").await;
    assert_eq!(answer(stop("")).await.unwrap(), json!({"success": true}));
    assert_eq!(client.wait_for_run(&first).await["status"], "cancelled");
    assert_eq!(client.wait_for_run(&second).await["status"], "completed");
    // A late request names its run or its message, so it leaves the third answer alone.
    let named = [format!("?runId={first}"), "?messageId=m1".to_owned(), format!("?messageId={second_message}")];
    for query in named.iter().map(String::as_str).chain(["?messageId=unknown"]) {
        assert_eq!(answer(stop(query)).await.unwrap(), json!({"success": true}), "{query}");
    }
    let unknown = answer(stop("?runId=00000000-0000-0000-0000-000000000000")).await.unwrap_err();
    assert_eq!(unknown.code, "run_not_found");
    assert_eq!(client.wait_for_run(&third).await["status"], "completed");
    for by_run in [true, false] {
        let (run, message) = post(endless).await;
        let query = if by_run { format!("?runId={run}") } else { format!("?messageId={message}") };
        assert_eq!(answer(stop(&query)).await.unwrap(), json!({"success": true}));
        assert_eq!(client.wait_for_run(&run).await["status"], "cancelled", "{query}");
    }
}

async fn earlier_messages_are_read_page_by_page(mut deployment: Deployment) {
    let client = deployment.client();
    for (id, text) in
        [("m1", "[tokens=1]"), ("m2", "[think] [tokens=0] [fail]"), ("m3", "[tokens=1]"), ("m4", "[tokens=1]")]
    {
        let run = BlockStream::open(request(&client, &body("c", user(id, text)))).await.run_id.clone();
        client.wait_for_run(&run).await;
    }
    let read = async |path: String| {
        let response = client.request(Method::GET, &path).send().await.unwrap();
        let link = response.headers().get("link").map(|link| link.to_str().unwrap().to_owned());
        (response.status().as_u16(), link, response.json::<Value>().await.unwrap())
    };
    let roles = |messages: &Value| {
        let roles = messages.as_array().unwrap().iter().map(|message| text(message, "role"));
        roles.map(|role| role.chars().next().unwrap()).collect::<String>()
    };
    let (_, link, all) = read("/api/chat/c/messages".to_owned()).await;
    assert_eq!((link, roles(&all)), (None, "uauauaua".to_owned()));
    let (mut path, mut found) = ("/api/chat/c/messages?limit=3".to_owned(), Vec::new());
    loop {
        let (status, link, page) = read(path).await;
        assert_eq!(status, 200);
        drop(found.splice(0..0, page.as_array().unwrap().iter().cloned()));
        let Some(link) = link else { break };
        let earlier = link.strip_suffix(">; rel=\"prev\"").and_then(|link| link.strip_prefix('<')).unwrap();
        path = format!("{earlier}&limit=3");
    }
    assert_eq!(json!(found), all, "each message once, the answer without a text among them");
    for (query, status) in [("limit=0", 400), ("limit=1001", 400), ("before=x", 400)] {
        assert_eq!(read(format!("/api/chat/c/messages?{query}")).await.0, status, "{query}");
    }
    let unknown = read("/api/chat/c/messages?before=00000000-0000-0000-0000-000000000000".to_owned()).await;
    assert_eq!((unknown.0, &unknown.2["code"]), (404, &json!("message_not_found")));
}

async fn a_finished_answer_is_replayed_completely_for_a_while(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_CHAT_GRACE_MS", 1);
    let client = deployment.client();
    let stream_answer = ChatAnswer::send(&client, &body("c", user("m1", "[tokens=2]"))).await;
    client.wait_for_run(&stream_answer.run_id).await;
    crate::support::until("the grace is over", || async { resume(&client, "c/stream").await.is_none().then_some(()) })
        .await;
    let failure = ChatAnswer::send(&client, &body("c", user("m2", "[tokens=2] [fail]"))).await;
    assert_eq!(failure.first("message-metadata")["messageMetadata"]["status"], "failed");
    assert!(failure.first("error")["errorText"].as_str().unwrap().contains("as [fail] directed"));
    assert_eq!(failure.chunks().last().unwrap()["finishReason"], "error");
}

async fn a_resumed_answer_leaves_out_the_text_of_a_dead_worker(deployment: Deployment) {
    // In embedded mode, the text of the lost process is in the archive alone.
    let mut deployment = deployment.with("HOLDFAST_FLUSH_MS", 100);
    let client = deployment.client();
    let question = "[call=scripted__echo {\"text\":\"hi\"}] [tokens=200] [delay=15]";
    let mut stream = BlockStream::open(request(&client, &body("c", user("m1", question)))).await;
    let mut deltas = 0;
    while deltas < 40 {
        deltas += usize::from(stream.next().await.unwrap().unwrap().json()["type"] == "text-delta");
    }
    deployment.kill_worker();
    let client = deployment.client();
    let run = crate::support::until("another attempt has started", || async {
        let run = client.run(&stream.run_id).await;
        (run["attempt"].as_u64() > Some(1)).then_some(run)
    })
    .await;
    let all = resume(&client, "c/stream").await.unwrap();
    let ended_run = client.wait_for_run(&stream.run_id).await;
    assert_eq!(all.answer_text(), ended_run["output_message"]["content"], "{run}");
    assert!(!all.types().contains(&"data-attempt".to_owned()));
    let stream_path = |count: usize| format!("{}/stream?startIndex={count}", stream.run_id);
    let appended = resume(&client, &stream_path(0)).await.unwrap().chunks();
    let attempt = appended.iter().position(|chunk| chunk["type"] == "data-attempt");
    let attempt = attempt.expect("a client that counts chunks keeps all of them");
    assert_eq!(resume(&client, &stream_path(attempt / 2)).await.unwrap().chunks(), appended[attempt / 2..]);
    // A client with this count may have counted chunks of the lost worker.
    let refused =
        answer(client.request(Method::GET, &format!("/api/chat/{}", stream_path(attempt + 1)))).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (409, "chunks_superseded"));
    let by_count = resume(&client, "c/stream?startIndex=0").await.unwrap();
    assert_eq!(by_count.chunks(), all.chunks(), "a client that resumes by the chat's id has no chunks");
}

async fn a_message_for_a_deleted_chat_begins_no_other_one(mut deployment: Deployment) {
    let client = deployment.client();
    let known = |chat: &str, id: &str| {
        let mut body = body(chat, user(id, "[tokens=1] hi"));
        body["mustExist"] = json!(true);
        body
    };
    let first = ChatAnswer::send(&client, &body("c", user("m1", "[tokens=1] hi"))).await;
    let run = client.get(&format!("/v1/runs/{}", first.run_id)).await.unwrap();
    let id = run["conversation_id"].as_str().unwrap();
    for (name, message) in [("c", "m2"), (id, "m3")] {
        ChatAnswer::send(&client, &known(name, message)).await;
    }
    client.delete(&format!("/v1/conversations/{id}")).await.unwrap();
    for name in ["c", id] {
        let refused = answer(request(&client, &known(name, "m4"))).await.expect_err("it was accepted");
        assert_eq!((refused.status, refused.code.as_str()), (404, "conversation_not_found"));
    }
    let left = client.get("/v1/conversations").await.unwrap();
    assert_eq!(left["items"], json!([]));
    // Without the field, the name is free again.
    ChatAnswer::send(&client, &body("c", user("m4", "[tokens=1] hi"))).await;
}

async fn invalid_chat_requests_are_refused(mut deployment: Deployment) {
    let client = deployment.client();
    let file =
        json!({"id": "m", "role": "user", "parts": [{"type": "file", "mediaType": "image/png", "url": "data:"}]});
    let long = "x".repeat(129);
    for (chat_body, status, code) in [
        (body("c", file), 400, "unsupported_part"),
        (body("c", json!({"id": "m", "role": "system", "parts": []})), 409, "nothing_to_run"),
        (body(&long, user("m", "hi")), 400, "invalid_body"),
        (body("c", user(&long, "hi")), 400, "invalid_body"),
        (body("c", user("m", " ")), 400, "empty_content"),
        (json!({"id": "c"}), 400, "invalid_body"),
        (json!({"id": "c", "trigger": "regenerate-message"}), 404, "conversation_not_found"),
        (json!({"id": "c", "agentId": "nobody", "message": user("m", "hi")}), 400, "agent_not_found"),
    ] {
        let refused = answer(request(&client, &chat_body)).await.expect_err("it was accepted");
        assert_eq!((refused.status, refused.code.as_str()), (status, code), "{chat_body}");
    }
    assert_eq!(runs(&client).await, 0);
    let alone = json!({"message": user("m", "[tokens=1] hi"), "theme": "dark"});
    assert_eq!(ChatAnswer::send(&client, &alone).await.types()[0], "start");
}

async fn files_of_a_message_are_stored_once_and_shown(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_MAX_ATTACHMENTS", 2).with("HOLDFAST_MAX_CHAT_BODY_BYTES", 2_000_000);
    let client = deployment.client();
    let part = |url: &str, name: &str| json!({"type": "file", "mediaType": "text/plain", "filename": name, "url": url});
    let text = json!({"type": "text", "text": "[tokens=1] hi"});
    let message = |id: &str, parts: Value| json!({"id": id, "role": "user", "parts": parts});
    let by_data = message("m1", json!([part("data:text/plain;base64,aGVsbG8=", "a/hello.txt"), text]));
    let first = ChatAnswer::send(&client, &body("c", by_data.clone())).await;
    let again = ChatAnswer::send(&client, &body("c", by_data)).await;
    assert_eq!(again.run_id, first.run_id, "a message that is sent again has the file of its first time");
    let files = client.get("/v1/files").await.unwrap()["items"].clone();
    assert_eq!((files.as_array().unwrap().len(), &files[0]["bytes"]), (1, &json!(5)));
    let url = format!("/v1/files/{}", files[0]["id"].as_str().unwrap());
    let by_address = message("m2", json!([text, part(&format!("http://chat.example.org{url}"), "other.txt")]));
    ChatAnswer::send(&client, &body("c", by_address)).await;
    let history = client.get("/api/chat/c/messages").await.unwrap();
    let mut shown = part(&url, "hello.txt");
    shown["providerMetadata"] = json!({"holdfast": {"id": files[0]["id"], "bytes": 5}});
    assert_eq!(history[0]["parts"], json!([shown, text]));
    assert_eq!(history[2]["parts"], json!([text, shown]));
    let large = format!("data:text/plain;base64,{}", "YWFh".repeat(350_000));
    ChatAnswer::send(&client, &body("c", message("m3", json!([part(&large, "large.txt"), text])))).await;
    for (parts, status, code) in [
        (json!([part("ftp://example.org/a.png", "a"), text]), 400, "unsupported_part"),
        (json!([part("data:text/plain;base64,%%%", "a"), text]), 400, "unsupported_part"),
        (json!([part("/v1/files/00000000-0000-7000-8000-000000000000", "a"), text]), 404, "file_not_found"),
        (json!([part(&url, "a"), part(&url, "b"), part(&url, "c"), text]), 400, "too_many_attachments"),
        (json!([part("data:application/x-msdownload;base64,TVqQAA==", "a"), text]), 415, "file_type_refused"),
        (json!([part(&format!("data:text/plain,{}", "a".repeat(2_000_000)), "a"), text]), 413, "body_too_large"),
    ] {
        let refused = answer(request(&client, &body("c", message("m4", parts)))).await.expect_err("it was accepted");
        assert_eq!((refused.status, refused.code.as_str()), (status, code));
    }
}
