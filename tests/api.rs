//! The native API: the responses of its routes, and its errors for bad input.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Client, Embedded, ErrorResponse, Holdfast};

fn start() -> (Embedded, Holdfast, Client) {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    (embedded, holdfast, client)
}

fn fields(value: &Value) -> Vec<&str> {
    let mut fields: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

fn failure_of(result: Result<Value, ErrorResponse>) -> (u16, String) {
    let failure = result.expect_err("it was accepted");
    assert!(failure.body["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{failure:?}");
    (failure.status, failure.code)
}

#[tokio::test]
async fn conversations_are_made_listed_renamed_and_deleted() {
    let (_embedded, _holdfast, client) = start();
    let made = client.post("/v1/conversations", json!({"title": "Plans"})).await.unwrap();
    assert_eq!(
        fields(&made),
        [
            "agent_id",
            "created_at",
            "forked_conversation_id",
            "forked_from",
            "id",
            "last_message_at",
            "live_run_id",
            "title"
        ]
    );
    let path = format!("/v1/conversations/{}", made["id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.unwrap(), made);
    let renamed = client.patch(&path, json!({"title": "为什么会这样？"})).await.unwrap();
    assert_eq!(renamed["title"], "为什么会这样？");
    assert_eq!(client.patch(&path, json!({"title": null})).await.unwrap()["title"], Value::Null);
    assert_eq!(client.delete(&path).await.unwrap(), Value::Null);
    assert_eq!(failure_of(client.get(&path).await), (404, "conversation_not_found".into()));
    assert_eq!(failure_of(client.delete(&path).await), (404, "conversation_not_found".into()));
    assert_eq!(client.get("/v1/conversations").await.unwrap(), json!({"items": [], "next": null}));
}

#[tokio::test]
async fn a_message_and_its_answer_are_read_in_order() {
    let (_embedded, _holdfast, client) = start();
    let conversation = client.post("/v1/conversations", json!({})).await.unwrap();
    let path = format!("/v1/conversations/{}/messages", conversation["id"].as_str().unwrap());
    let response =
        client.request(Method::POST, &path).json(&json!({"content": "[tokens=3] one"})).send().await.unwrap();
    assert_eq!(response.status(), 202);
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let accepted: Value = response.json().await.unwrap();
    assert_eq!(location, format!("/v1/runs/{}", accepted["run"]["id"].as_str().unwrap()));
    assert_eq!(accepted["run"]["status"], "queued");
    let message_fields = [
        "content",
        "content_type",
        "conversation_id",
        "created_at",
        "id",
        "retrieval_context",
        "role",
        "run_id",
        "status",
        "superseded_at",
    ];
    assert_eq!(fields(&accepted["message"]), message_fields);
    let run = client.wait_for_run(accepted["run"]["id"].as_str().unwrap()).await;
    for field in [
        "id",
        "conversation_id",
        "agent_id",
        "status",
        "attempt",
        "input_message_id",
        "output_message",
        "usage",
        "finish_reason",
        "error",
        "last_event_id",
        "created_at",
        "started_at",
        "finished_at",
    ] {
        assert!(run.get(field).is_some(), "{field} is missing in {run}");
    }
    assert_eq!(run["usage"]["output_tokens"], 3);
    let messages = client.get(&path).await.unwrap();
    let (question, answer) = (&messages["items"][0], &messages["items"][1]);
    assert_eq!(question, &accepted["message"]);
    assert_eq!(answer, &run["output_message"]);
    assert_eq!((answer["role"].as_str(), answer["status"].as_str()), (Some("assistant"), Some("complete")));
}

#[tokio::test]
async fn the_sample_runs_of_the_docs_have_all_fields_of_a_run() {
    let (_embedded, _holdfast, client) = start();
    let submission = client.start("[tokens=3] hi").await;
    let run_record = client.wait_for_run(submission["run"]["id"].as_str().unwrap()).await;
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/api.md")).unwrap();
    let sample = |section: &str| -> Value {
        let text = page.split(section).nth(1).unwrap().split("```").nth(1).unwrap();
        serde_json::from_str(&text[text.find("\n{").unwrap()..]).unwrap()
    };
    assert_eq!(fields(&sample("## Starting a run\n")["run"]), fields(&submission["run"]));
    let documented = sample("## A run\n");
    assert_eq!(fields(&documented), fields(&run_record));
    assert_eq!(fields(&documented["output_message"]), fields(&run_record["output_message"]));
}

#[tokio::test]
async fn a_run_can_be_started_streamed_and_read_as_json() {
    let (_embedded, _holdfast, client) = start();
    let response = client
        .request(Method::POST, "/v1/runs")
        .header("accept", "text/event-stream")
        .json(&json!({"input": "[tokens=5] [think] hi"}))
        .send()
        .await
        .unwrap();
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(
        (header("content-type").as_str(), header("cache-control").as_str(), header("x-accel-buffering").as_str()),
        ("text/event-stream", "no-cache", "no")
    );
    let run_id = header("x-run-id");
    let text = response.text().await.unwrap();
    assert!(text.starts_with("retry: 1000\n"), "{text}");
    let kinds: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(kinds[..4], ["run.queued", "attempt.started", "context.usage", "step.started"]);
    assert_eq!(kinds[kinds.len() - 2..], ["message.completed", "run.completed"]);
    assert_eq!(kinds.iter().filter(|kind| **kind == "message.delta").count(), 5);

    let request = |query: &str| {
        client.request(Method::GET, &format!("/v1/runs/{run_id}/events{query}")).header("accept", "application/json")
    };
    let page: Value = request("").send().await.unwrap().json().await.unwrap();
    let events = page["events"].as_array().unwrap();
    assert_eq!((events.len(), page["complete"].as_bool()), (kinds.len(), Some(true)));
    assert_eq!(page["last_event_id"], events.last().unwrap()["id"]);
    let page: Value = request("?limit=4").send().await.unwrap().json().await.unwrap();
    assert_eq!(
        (page["events"].as_array().unwrap()[..] == events[..4], page["complete"].as_bool()),
        (true, Some(false))
    );
    let after = page["last_event_id"].as_str().unwrap();
    let page: Value = request(&format!("?after={after}")).send().await.unwrap().json().await.unwrap();
    assert_eq!(page["events"].as_array().unwrap()[..], events[4..]);
    let last = events.last().unwrap()["id"].as_str().unwrap();
    let page: Value = request(&format!("?after={last}")).send().await.unwrap().json().await.unwrap();
    assert_eq!(page, json!({"events": [], "last_event_id": last, "complete": true}));
}

#[tokio::test]
async fn a_failed_run_says_why_and_keeps_its_text() {
    let (_embedded, _holdfast, client) = start();
    let frames = client.stream("[tokens=8] [fail] hi").await.rest().await;
    let last = frames.last().unwrap();
    assert_eq!((last.event.as_str(), last.data["error"]["code"].as_str()), ("run.failed", Some("scripted_failure")));
    let run = client.run(last.data["run_id"].as_str().unwrap()).await;
    assert_eq!((run["status"].as_str(), &run["error"]), (Some("failed"), &last.data["error"]));
    assert_eq!(run["output_message"]["status"], "failed");
    assert_eq!(run["output_message"]["content"], crate::support::fold(&frames));
    assert!(!run["output_message"]["content"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn waiting_ends_with_the_run_or_at_its_time_out() {
    let (_embedded, _holdfast, client) = start();
    let submission = client.start("[tokens=500] [delay=100] hi").await;
    let id = submission["run"]["id"].as_str().unwrap();
    let waited = client.get(&format!("/v1/runs/{id}/wait?timeout_ms=50")).await.unwrap();
    assert!(waited["finished_at"].is_null());
    client.cancel(id).await;
    assert_eq!(client.wait_for_run(id).await["status"], "cancelled");
    assert_eq!(
        failure_of(client.get(&format!("/v1/runs/{id}/wait?timeout_ms=600001")).await),
        (400, "invalid_query".into())
    );
}

#[tokio::test]
async fn lists_come_in_pages_without_gap_or_double() {
    let (_embedded, _holdfast, client) = start();
    let mut made = Vec::new();
    for index in 0..7 {
        made.push(client.post("/v1/conversations", json!({"title": format!("{index}")})).await.unwrap()["id"].clone());
    }
    made.reverse();
    let (mut listed_ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/v1/conversations?limit=3{cursor}")).await.unwrap();
        listed_ids.extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()));
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    // Several runs may start in one millisecond; the order is then that of their ids, which grow with time.
    assert_eq!(listed_ids.len(), 7);
    assert!(made.iter().all(|id| listed_ids.contains(id)));
    let far = format!("/v1/conversations?cursor=-300000000000000.{}", made[0].as_str().unwrap());
    for path in ["/v1/conversations?cursor=x", "/v1/runs?cursor=x", &far] {
        assert_eq!(failure_of(client.get(path).await), (400, "invalid_cursor".into()));
    }
    for path in [
        "/v1/conversations?limit=0",
        "/v1/conversations?limit=201",
        "/v1/conversations?limit=x",
        "/v1/runs?status=odd",
        "/v1/runs?stauts=queued",
    ] {
        assert_eq!(failure_of(client.get(path).await), (400, "invalid_query".into()), "{path}");
    }
    client.get("/v1/conversations?limit=200").await.unwrap();
}

#[tokio::test]
async fn runs_are_listed_newest_first_and_filtered() {
    let (_embedded, _holdfast, client) = start();
    let first = client.start("[tokens=1] hi").await;
    let second = client.start("[tokens=1] hi").await;
    for submission in [&first, &second] {
        client.wait_for_run(submission["run"]["id"].as_str().unwrap()).await;
    }
    let ids = |page: Value| page["items"].as_array().unwrap().iter().map(|run| run["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(client.get("/v1/runs").await.unwrap()), [second["run"]["id"].clone(), first["run"]["id"].clone()]);
    let conversation = first["conversation"]["id"].as_str().unwrap();
    assert_eq!(
        ids(client.get(&format!("/v1/runs?conversation_id={conversation}&status=completed")).await.unwrap()),
        [first["run"]["id"].clone()]
    );
    assert!(ids(client.get("/v1/runs?status=queued").await.unwrap()).is_empty());
}

#[tokio::test]
async fn bad_input_gets_a_clear_error_and_leaves_nothing() {
    let (_embedded, _holdfast, client) = start();
    let conversation = client.post("/v1/conversations", json!({})).await.unwrap();
    let path = format!("/v1/conversations/{}/messages", conversation["id"].as_str().unwrap());
    let unknown = "01890000-0000-7000-8000-000000000000";
    let refuse = async |body: Value| failure_of(client.post(&path, body).await);
    assert_eq!(refuse(json!({"content": ""})).await, (400, "empty_content".into()));
    assert_eq!(refuse(json!({"content": " \n\t\u{3000}"})).await, (400, "empty_content".into()));
    assert_eq!(refuse(json!({"content": "a\u{0}b"})).await, (400, "invalid_content".into()));
    assert_eq!(
        failure_of(client.post("/v1/conversations", json!({"title": "a\u{0}b"})).await),
        (400, "invalid_content".into())
    );
    assert_eq!(refuse(json!({})).await, (400, "invalid_body".into()));
    assert_eq!(refuse(json!({"content": 7})).await, (400, "invalid_body".into()));
    assert_eq!(refuse(json!({"content": "x", "mod": "reject"})).await, (400, "invalid_body".into()));
    assert_eq!(refuse(json!({"content": "x", "mode": "queue"})).await, (400, "invalid_body".into()));
    assert_eq!(refuse(json!([])).await, (400, "invalid_body".into()));
    assert_eq!(
        failure_of(client.post("/v1/runs", json!({"input": "x", "conversation_id": "x"})).await),
        (400, "invalid_body".into())
    );
    assert_eq!(
        failure_of(client.post("/v1/runs", json!({"input": "x", "conversation_id": unknown})).await),
        (404, "conversation_not_found".into())
    );
    assert_eq!(
        failure_of(client.post("/v1/runs", json!({"input": "x", "agent_id": unknown})).await),
        (400, "agent_not_found".into())
    );
    assert_eq!(
        failure_of(client.post("/v1/conversations", json!({"agent_id": unknown})).await),
        (400, "agent_not_found".into())
    );
    assert_eq!(
        failure_of(client.post("/v1/conversations", json!({"title": " "})).await),
        (400, "invalid_title".into())
    );
    let raw = async |method: Method, path: &str, media_type: &str, body: &str| {
        let request = client.request(method, path).header("content-type", media_type).body(body.to_owned());
        failure_of(crate::support::answer(request).await)
    };
    assert_eq!(raw(Method::POST, &path, "application/json", "{\"content\": ").await, (400, "invalid_json".into()));
    assert_eq!(raw(Method::POST, &path, "application/json", "\u{0}").await, (400, "invalid_json".into()));
    assert_eq!(
        raw(Method::POST, &path, "text/plain", "{\"content\": \"x\"}").await,
        (415, "unsupported_media_type".into())
    );
    assert_eq!(raw(Method::PUT, &path, "application/json", "{}").await, (405, "method_not_allowed".into()));
    assert_eq!(raw(Method::GET, "/v1/nothing", "application/json", "").await, (404, "not_found".into()));
    assert_eq!(
        raw(Method::GET, &format!("/v1/runs/{unknown}"), "application/json", "").await,
        (404, "run_not_found".into())
    );
    assert_eq!(
        raw(Method::GET, "/v1/runs/not-an-id/events", "application/json", "").await,
        (404, "run_not_found".into())
    );
    assert_eq!(client.get(&path).await.unwrap()["items"], json!([]));
    assert_eq!(client.get("/v1/runs").await.unwrap()["items"], json!([]));
    assert_eq!(client.get("/v1/conversations").await.unwrap()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn every_cursor_that_was_never_issued_is_refused() {
    let (_embedded, _holdfast, client) = start();
    let submission = client.start("[tokens=2] hi").await;
    let id = submission["run"]["id"].as_str().unwrap();
    let run = client.wait_for_run(id).await;
    let last = run["last_event_id"].as_str().unwrap();
    let status = async |cursor: &str| client.events_request(id, Some(cursor)).send().await.unwrap().status().as_u16();
    assert_eq!(status(last).await, 204);
    for cursor in ["x", "1", "1-x", "2-1", "9-1", "1-99"] {
        assert_eq!(status(cursor).await, 400, "{cursor}");
        let problem = failure_of(client.get(&format!("/v1/runs/{id}/events?after={cursor}")).await);
        assert_eq!(problem, (400, "invalid_event_id".into()));
    }
    // The header takes precedence over the query.
    let response = client.request(Method::GET, &format!("/v1/runs/{id}/events?after=x")).header("last-event-id", last);
    assert_eq!(response.send().await.unwrap().status(), 204);
}

#[tokio::test]
async fn events_past_their_time_are_gone_and_the_result_is_kept() {
    let embedded = Embedded::new().with("HOLDFAST_ARCHIVE_RETENTION_MS", "1").with("HOLDFAST_SWEEP_MS", "50");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let submission = client.start("[tokens=2] hi").await;
    let id = submission["run"]["id"].as_str().unwrap().to_owned();
    client.wait_for_run(&id).await;
    holdfast.wait_for_log("removed data past its retention");
    // The run log in this process may still have the events; after a restart only the database has them.
    holdfast.kill();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let failure = client.get(&format!("/v1/runs/{id}/events")).await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (410, "events_gone"));
    assert_eq!(failure.body["run"], format!("/v1/runs/{id}"));
    let run = client.run(&id).await;
    assert_eq!(run["output_message"]["status"], "complete");
    let last = run["last_event_id"].as_str().unwrap();
    assert_eq!(client.events_request(&id, Some(last)).send().await.unwrap().status(), 204);
}

#[tokio::test]
async fn the_openapi_document_describes_every_route() {
    let (_embedded, _holdfast, client) = start();
    let document = client.get("/openapi.json").await.unwrap();
    let routes = document["paths"].as_object().unwrap();
    let mut operations: Vec<String> = routes
        .iter()
        .flat_map(|(path, methods)| methods.as_object().unwrap().keys().map(move |method| format!("{method} {path}")))
        .collect();
    operations.sort();
    insta::assert_snapshot!(operations.join("\n"));
}

#[tokio::test]
async fn the_frames_of_a_run_are_as_documented() {
    let (_embedded, _holdfast, client) = start();
    let frames = client.stream("[tokens=2] [think] hi").await.rest().await;
    let mut text = frames.iter().map(|frame| frame.raw.clone()).collect::<Vec<_>>().join("\n\n");
    // Ids and times differ between test runs. The snapshot replaces equal ids by equal names.
    let mut names: Vec<String> = Vec::new();
    let is_id = |word: &str| word.len() == 36 && word.chars().filter(|c| *c == '-').count() == 4;
    for word in text.clone().split('"').filter(|word| is_id(word)) {
        if !names.iter().any(|name| name == word) {
            names.push(word.to_owned());
        }
    }
    for (index, name) in names.iter().enumerate() {
        text = text.replace(name, &format!("<id {index}>"));
    }
    for frame in &frames {
        for at in [&frame.data["at"], &frame.data["message"]["created_at"]] {
            if let Some(at) = at.as_str() {
                text = text.replace(at, "<time>");
            }
        }
    }
    insta::assert_snapshot!(text);
}
