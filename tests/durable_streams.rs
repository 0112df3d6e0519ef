//! Durable Streams: clients read a run at any offset, follow it by long poll and by SSE, and resume it after a broken
//! connection. The official client does the same.

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::{
    in_both_modes, in_either_mode,
    support::{Client, ClientProgram, Deployment, Proxy, answer, until},
};

in_both_modes!(
    every_offset_gives_exactly_the_rest,
    a_long_poll_waits_and_then_returns_nothing,
    an_sse_connection_ends_between_two_stretches,
    a_drain_ends_connections_so_that_clients_reconnect,
    a_long_run_comes_in_pieces,
    a_client_after_an_offset_that_never_comes_is_refused_when_the_run_ends,
    the_official_client_follows_to_the_end,
    the_official_client_survives_a_reset,
);

in_either_mode!(a_stream_that_is_closed_says_so_in_every_mode, an_invalid_offset_is_refused, writes_are_refused,);

fn path(run_id: &str, query: &str) -> String {
    format!("/v1/stream/runs/{run_id}?{query}")
}

async fn get(client: &Client, run_id: &str, query: &str) -> Response {
    client.request(Method::GET, &path(run_id, query)).send().await.unwrap()
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

fn next_offset(response: &Response) -> String {
    header(response, "stream-next-offset").unwrap().to_owned()
}

/// Returns whether the response is up to date, and whether the stream is closed.
fn flags(response: &Response) -> (bool, bool) {
    (header(response, "stream-up-to-date") == Some("true"), header(response, "stream-closed") == Some("true"))
}

async fn events(response: Response) -> Vec<Value> {
    assert_eq!(header(&response, "content-type"), Some("application/json"));
    response.json().await.unwrap()
}

/// Returns the offset after an event of the native wire.
fn offset(event: &Value) -> String {
    let (attempt, n) = event["id"].as_str().unwrap().split_once('-').unwrap();
    format!("{:0>10}_{:0>10}", attempt, n)
}

async fn finished_run(client: &Client, input: &str) -> (String, Vec<Value>) {
    let frames = client.stream(input).await.rest().await;
    let run_id = frames[0].data["run_id"].as_str().unwrap().to_owned();
    (run_id, frames.into_iter().map(|frame| frame.data).collect())
}

async fn start_waiting_run(client: &Client) -> String {
    let mut stream = client.stream("[approval=send it] [tokens=100] [delay=15]").await;
    stream.up_to("agent.state").await;
    stream.run_id.clone()
}

/// Waits until this number of streams and polls is open.
async fn streams_are_open(client: &Client, count: usize) {
    until("so many streams are open", async || {
        let metrics = client.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
        metrics.lines().any(|line| line == format!("holdfast_streams_open {count}")).then_some(())
    })
    .await;
}

/// Returns the pairs of an SSE body: the items of `data`, and the `control` after them.
fn pairs(body: &str) -> Vec<(Vec<Value>, Value)> {
    let (mut pairs, mut items) = (Vec::new(), Vec::new());
    for block in body.split("\n\n").filter(|block| !block.is_empty()) {
        let block = block.trim_start_matches(": hb\n");
        let (kind, data) = block.strip_prefix("event: ").unwrap().split_once("\ndata:").unwrap();
        match kind {
            "data" => items = serde_json::from_str(data).unwrap(),
            "control" => pairs.push((std::mem::take(&mut items), serde_json::from_str(data).unwrap())),
            kind => panic!("there are no {kind} events"),
        }
    }
    assert!(items.is_empty(), "data without control: {body}");
    pairs
}

async fn every_offset_gives_exactly_the_rest(mut deployment: Deployment) {
    let client = deployment.client();
    let (run_id, native) = finished_run(&client, "[tokens=9] [think] hi").await;
    let response = get(&client, &run_id, "offset=-1").await;
    assert_eq!((next_offset(&response), flags(&response)), (offset(native.last().unwrap()), (true, true)));
    assert_eq!(header(&response, "x-content-type-options"), Some("nosniff"));
    assert_eq!(events(response).await, native);
    assert_eq!(events(get(&client, &run_id, "").await).await, native, "without an offset, from the start");
    let offsets: Vec<String> = native.iter().map(offset).collect();
    assert!(offsets.is_sorted());
    for (index, offset) in offsets.iter().enumerate() {
        let rest = get(&client, &run_id, &format!("offset={offset}")).await;
        assert_eq!((rest.status(), flags(&rest)), (StatusCode::OK, (true, true)), "at {offset}");
        assert_eq!(events(rest).await, native[index + 1..], "at {offset}");
        let sse = get(&client, &run_id, &format!("offset={offset}&live=sse")).await.text().await.unwrap();
        let rest: Vec<Value> = pairs(&sse).into_iter().flat_map(|(items, _)| items).collect();
        assert_eq!(rest, native[index + 1..], "at {offset} by SSE");
    }
}

async fn a_stream_that_is_closed_says_so_in_every_mode(mut deployment: Deployment) {
    let client = deployment.client();
    let (run_id, native) = finished_run(&client, "[tokens=1]").await;
    let end = offset(native.last().unwrap());
    let head = client.request(Method::HEAD, &path(&run_id, "")).send().await.unwrap();
    assert_eq!((next_offset(&head), flags(&head)), (end.clone(), (true, true)));
    assert_eq!(
        (header(&head, "content-type"), header(&head, "cache-control")),
        (Some("application/json"), Some("no-store"))
    );
    assert_eq!(header(&head, "content-length"), None, "a GET would have bytes");
    let now = get(&client, &run_id, "offset=now").await;
    assert_eq!((next_offset(&now), flags(&now), header(&now, "etag")), (end.clone(), (true, true), None));
    assert_eq!(events(now).await, [json!(null); 0]);
    for at in [&end, "now"] {
        let polled = get(&client, &run_id, &format!("offset={at}&live=long-poll")).await;
        assert_eq!((polled.status(), flags(&polled)), (StatusCode::NO_CONTENT, (true, true)), "at {at}");
        let sse = get(&client, &run_id, &format!("offset={at}&live=sse")).await.text().await.unwrap();
        let last = json!({"streamNextOffset": end, "upToDate": true, "streamClosed": true});
        assert_eq!(pairs(&sse), [(vec![], last)], "at {at}");
    }
    let tagged = get(&client, &run_id, "offset=-1").await;
    let tag = header(&tagged, "etag").unwrap();
    let again = client.request(Method::GET, &path(&run_id, "offset=-1"));
    let cached = again.try_clone().unwrap().header("if-none-match", tag).send().await.unwrap();
    assert_eq!((cached.status(), next_offset(&cached)), (StatusCode::NOT_MODIFIED, end));
    let unknown = again.header("if-none-match", "\"other\"").send().await.unwrap();
    assert_eq!(unknown.status(), StatusCode::OK);
}

async fn a_long_poll_waits_and_then_returns_nothing(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_LONG_POLL_MS", 300);
    let client = deployment.client();
    let run_id = start_waiting_run(&client).await;
    let all = get(&client, &run_id, "offset=-1&live=long-poll").await;
    assert_eq!(
        (all.status(), flags(&all)),
        (StatusCode::OK, (true, false)),
        "a poll does not wait for existing events"
    );
    let (tail, cursor) = (next_offset(&all), header(&all, "stream-cursor").unwrap().parse::<u64>().unwrap());
    let head = client.request(Method::HEAD, &path(&run_id, "")).send().await.unwrap();
    assert_eq!((next_offset(&head), flags(&head)), (tail.clone(), (true, false)));
    for at in [&tail, "now"] {
        let nothing = get(&client, &run_id, &format!("offset={at}&live=long-poll&cursor={cursor}")).await;
        assert_eq!((nothing.status(), flags(&nothing)), (StatusCode::NO_CONTENT, (true, false)));
        assert_eq!(next_offset(&nothing), tail);
        assert!(header(&nothing, "stream-cursor").unwrap().parse::<u64>().unwrap() > cursor);
    }
    let poll = path(&run_id, &format!("offset={tail}"));
    let before = client.request(Method::GET, &poll).send().await.unwrap();
    let before_tag = header(&before, "etag").unwrap().to_owned();
    assert_eq!(events(before).await, [json!(null); 0]);
    client.cancel(&run_id).await;
    let after = client.request(Method::GET, &poll).header("if-none-match", before_tag).send().await.unwrap();
    assert_eq!(flags(&after), (true, true), "a changed stream has another tag");
    let kinds: Vec<Value> = events(after).await.into_iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds.last().unwrap(), "run.cancelled");
}

async fn an_sse_connection_ends_between_two_stretches(deployment: Deployment) {
    let mut deployment = deployment.with("HOLDFAST_DURABLE_SSE_MS", 150).with("HOLDFAST_HEARTBEAT_MS", 40);
    let client = deployment.client();
    let run_id = start_waiting_run(&client).await;
    let sse = get(&client, &run_id, "offset=-1&live=sse").await;
    assert_eq!(
        (header(&sse, "content-type"), header(&sse, "cache-control")),
        (Some("text/event-stream"), Some("no-cache"))
    );
    let body = sse.text().await.expect("it ends cleanly");
    assert!(body.contains(": hb\n"), "{body}");
    let pairs = pairs(&body.replace(": hb\n", ""));
    let (_, control) = pairs.last().unwrap();
    assert_eq!((&control["upToDate"], &control["streamClosed"]), (&json!(true), &Value::Null));
    assert!(control["streamCursor"].as_str().unwrap().parse::<u64>().is_ok());
    let all: Vec<Value> = pairs.iter().flat_map(|(items, _)| items.clone()).collect();
    assert_eq!(all.last().unwrap()["type"], "agent.state");
    assert_eq!(control["streamNextOffset"], offset(all.last().unwrap()));
}

async fn a_drain_ends_connections_so_that_clients_reconnect(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    let run_id = start_waiting_run(&client).await;
    let mut sse = get(&client, &run_id, "offset=now&live=sse").await;
    let first = sse.chunk().await.unwrap().unwrap();
    let poll = tokio::spawn({
        let (client, run_id) = (client.clone(), run_id.clone());
        async move { get(&client, &run_id, "offset=now&live=long-poll").await }
    });
    streams_are_open(&client, 2).await;
    tokio::task::spawn_blocking(move || deployment.shut_down()).await.unwrap();
    let rest = sse.text().await.expect("it ends cleanly, which is not the end of the run for these clients");
    let all = String::from_utf8(first.to_vec()).unwrap() + &rest;
    assert_eq!(pairs(&all)[0].1["upToDate"], true);
    assert!(!all.contains("streamClosed"), "{all}");
    let polled = poll.await.unwrap();
    assert_eq!((polled.status(), flags(&polled)), (StatusCode::NO_CONTENT, (true, false)));
}

async fn a_long_run_comes_in_pieces(mut deployment: Deployment) {
    let client = deployment.client();
    let (run_id, native) = finished_run(&client, "[tokens=12000] [delay=0] hi").await;
    let (mut at, mut read, mut pieces) = ("-1".to_owned(), Vec::new(), 0);
    loop {
        let piece = get(&client, &run_id, &format!("offset={at}")).await;
        let (next, flags) = (next_offset(&piece), flags(&piece));
        let text = piece.text().await.unwrap();
        assert!(text.len() < 2 * 1024 * 1024, "{} bytes", text.len());
        let events: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(next, offset(events.last().unwrap()));
        (at, pieces) = (next, pieces + 1);
        read.extend(events);
        if flags.0 {
            assert!(flags.1, "the last piece closes the stream");
            break;
        }
        assert!(!flags.1, "there is more to come");
    }
    assert!(pieces > 1);
    assert_eq!(read, native);
    let sse = get(&client, &run_id, "offset=-1&live=sse").await.text().await.unwrap();
    assert_eq!(pairs(&sse).into_iter().flat_map(|(items, _)| items).collect::<Vec<_>>(), native);
}

async fn a_client_after_an_offset_that_never_comes_is_refused_when_the_run_ends(mut deployment: Deployment) {
    let client = deployment.client();
    let submission = client.start("[tokens=200] [delay=20]").await;
    let run_id = submission["run"]["id"].as_str().unwrap();
    until("the run is at work", async || (client.run(run_id).await["status"] == "running").then_some(())).await;
    let start_waiting_run = client.request(Method::GET, &path(run_id, "offset=0000000001_0000099999&live=long-poll"));
    let refused = answer(start_waiting_run).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (400, "invalid_event_id"));
    assert_eq!(client.run(run_id).await["status"], "completed");
}

async fn an_invalid_offset_is_refused(mut deployment: Deployment) {
    let client = deployment.client();
    let (run_id, _) = finished_run(&client, "[tokens=1]").await;
    let check = async |run_id: &str, query: &str, status: u16, code: &str| {
        let refused = answer(client.request(Method::GET, &path(run_id, query))).await.unwrap_err();
        assert_eq!((refused.status, refused.code.as_str()), (status, code), "{query}");
    };
    for offset in ["", "0,1", "0%201", "1-1", "-2"] {
        check(&run_id, &format!("offset={offset}"), 400, "invalid_offset").await;
        check(&run_id, &format!("offset={offset}&live=sse"), 400, "invalid_offset").await;
    }
    for live in ["live=long-poll", "live=sse"] {
        check(&run_id, live, 400, "invalid_offset").await;
        check(&run_id, &format!("offset=0000000009_0000000001&{live}"), 400, "invalid_event_id").await;
    }
    check(&run_id, "offset=0000000009_0000000001", 400, "invalid_event_id").await;
    check(&run_id, "offset=-1&offset=now", 400, "invalid_query").await;
    check(&run_id, "offset=-1&live=carrier-pigeon", 400, "invalid_query").await;
    for query in ["offset=-1", "offset=now", "offset=now&live=sse", "offset=-1&live=long-poll"] {
        check("01890000-0000-7000-8000-000000000000", query, 404, "run_not_found").await;
    }
}

async fn writes_are_refused(mut deployment: Deployment) {
    let client = deployment.client();
    let (run_id, _) = finished_run(&client, "[tokens=1]").await;
    for method in [Method::PUT, Method::POST, Method::DELETE, Method::PATCH] {
        let refused = client.request(method.clone(), &path(&run_id, "")).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED, "{method}");
        let mut allowed: Vec<&str> = header(&refused, "allow").unwrap().split(',').collect();
        allowed.sort_unstable();
        assert_eq!(allowed, ["GET", "HEAD"], "{method}");
    }
}

async fn native(client: &Client, run_id: &str) -> Vec<Value> {
    client.events(run_id, None).await.rest().await.into_iter().map(|frame| frame.data).collect()
}

async fn start_client(base: &str, run_id: &str, live: &str) -> ClientProgram {
    ClientProgram::start("durable-streams", base, json!({"run_id": run_id, "live": live})).await
}

/// Starts a run that waits for an approval, and the official client, which then has all events and also waits.
async fn follow_waiting_run(client: &Client, base: &str, live: &str) -> (String, ClientProgram) {
    let run_id = start_waiting_run(client).await;
    streams_are_open(client, 0).await;
    let program = start_client(base, &run_id, live).await;
    streams_are_open(client, 1).await;
    (run_id, program)
}

async fn approve(client: &Client, run_id: &str) {
    let approvals = client.get(&format!("/v1/runs/{run_id}/approvals")).await.unwrap();
    let path = format!("/v1/runs/{run_id}/approvals/{}", approvals["items"][0]["id"].as_str().unwrap());
    client.post(&path, json!({"decision": "approve"})).await.unwrap();
}

/// Checks that the client has read the rest from each of its offsets; returns the number of offsets.
fn are_the_rests(rests: &Value, all_events: &[Value]) -> usize {
    let rests = rests.as_array().unwrap();
    for rest in rests {
        let rest_of_events =
            all_events.iter().filter(|event| offset(event).as_str() > rest["offset"].as_str().unwrap());
        assert_eq!(rest["events"], rest_of_events.cloned().collect::<Value>(), "from {}", rest["offset"]);
    }
    rests.len()
}

async fn the_official_client_follows_to_the_end(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    for live in ["long-poll", "sse"] {
        let (run_id, program) = follow_waiting_run(&client, client.base(), live).await;
        approve(&client, &run_id).await;
        let (received, end) = program.rest().await;
        let all_events = native(&client, &run_id).await;
        assert_eq!(received, all_events, "{live}");
        let head =
            json!({"offset": offset(all_events.last().unwrap()), "closed": true, "contentType": "application/json"});
        assert_eq!(end["head"], head, "{live}");
        assert!(are_the_rests(&end["rests"], &all_events) >= 2, "{live}: new events arrive in their own batch");
        let (received, end) = start_client(client.base(), &run_id, live).await.rest().await;
        assert_eq!(
            (&received, are_the_rests(&end["rests"], &all_events)),
            (&all_events, 1),
            "{live}, of a run that is over"
        );
    }
}

async fn the_official_client_survives_a_reset(deployment: Deployment) {
    let mut deployment = deployment.own();
    let client = deployment.client();
    for live in ["long-poll", "sse"] {
        let proxy = Proxy::before(client.base()).await;
        let (run_id, mut program) = follow_waiting_run(&client, &proxy.base, live).await;
        proxy.reset();
        approve(&client, &run_id).await;
        let mut received = program.up_to_nth(1, |event| event["type"] == "message.delta").await;
        // The connection breaks in the middle of an event.
        proxy.reset_and_again_after_text("\"type\":\"message.delta\"");
        proxy.until_breaks(1).await;
        let (rest, end) = program.rest().await;
        received.extend(rest);
        let all_events = native(&client, &run_id).await;
        assert_eq!(received, all_events, "{live}");
        are_the_rests(&end["rests"], &all_events);
    }
}
