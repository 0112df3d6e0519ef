//! Many subscribers of one run, and a subscriber that does not read.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use reqwest::Method;
use test_servers::Postgres;

use crate::support::{Embedded, ScaledOut, ScriptGate, answer, until};

#[tokio::test]
async fn all_subscribers_of_a_run_receive_the_same() {
    let scaled = ScaledOut::new();
    let (mut first, mut second, _worker) = (scaled.api(), scaled.api(), scaled.worker());
    let (one, two) = (first.client(), second.client());
    let stream = one.stream("[tokens=60] [delay=10] hi").await;
    let run_id = stream.run_id.clone();
    let mut subscribers = Vec::new();
    for index in 0..40 {
        let client = if index % 2 == 0 { one.clone() } else { two.clone() };
        let run_id = run_id.clone();
        subscribers.push(tokio::spawn(async move { client.events(&run_id, None).await.rest().await }));
    }
    let frames = stream.rest().await;
    for subscriber in subscribers {
        assert_eq!(subscriber.await.unwrap(), frames);
    }
}

#[tokio::test]
async fn a_run_whose_conversation_is_deleted_is_unknown_at_once_although_it_is_followed() {
    let scaled = ScaledOut::new();
    let (mut api, worker) = (scaled.api(), scaled.worker());
    let client = api.client();
    let mut stream = client.stream("[tokens=600] [delay=20] hi").await;
    let run_id = stream.run_id.clone();
    stream.up_to_nth("message.delta", 1).await;
    let conversation_id = client.run(&run_id).await["conversation_id"].as_str().unwrap().to_owned();
    // The long run does not end during the test.
    worker.signal("STOP");
    answer(client.request(Method::DELETE, &format!("/v1/conversations/{conversation_id}"))).await.unwrap();
    let failure = answer(client.events_request(&run_id, None)).await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (404, "run_not_found"));
}

#[tokio::test]
async fn a_stream_after_an_event_that_never_comes_is_broken_off_when_the_run_has_ended() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let gate = ScriptGate::closed();
    let submission = client.start(&format!("[tokens=9] {} hi", gate.directive())).await;
    let run_id = submission["run"]["id"].as_str().unwrap().to_owned();
    until("the run is at work", async || {
        let run = client.run(&run_id).await;
        (run["status"] == "running").then_some(())
    })
    .await;
    // The cursor may be another run's, but this run could still get that far.
    let mut ahead = client.events(&run_id, Some("1-99999")).await;
    gate.open();
    assert_eq!(client.wait_for_run(&run_id).await["status"], "completed");
    assert!(ahead.next().await.is_err(), "it has ended as if the run's end had been seen");
    let failure = answer(client.events_request(&run_id, Some("1-99999"))).await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (400, "invalid_event_id"));
}

#[tokio::test]
async fn a_stream_of_a_run_that_was_removed_is_broken_off() {
    let database = Postgres::database();
    let scaled = ScaledOut::on(database.url().to_owned(), None);
    let mut api = scaled.api();
    let client = api.client();
    let mut stream = client.stream("hi").await;
    let run_id = stream.run_id.clone();
    stream.up_to("run.queued").await;
    database.execute("delete from kb.chat_conversations");
    assert!(stream.next().await.is_err(), "it has ended as if the run's end had been seen");
    let failure = answer(client.events_request(&run_id, None)).await.unwrap_err();
    assert_eq!((failure.status, failure.code.as_str()), (404, "run_not_found"));
}

#[tokio::test]
async fn a_stalled_reader_slows_no_other_and_is_disconnected() {
    let embedded = Embedded::new().with("HOLDFAST_STALL_MS", 500);
    let mut holdfast = embedded.start();
    let base = holdfast.base();
    let client = holdfast.client();
    let mut stream = client.stream("[tokens=40000] [delay=0] hi").await;
    let run_id = stream.run_id.clone();
    let mut stalled = TcpStream::connect(base.trim_start_matches("http://")).unwrap();
    stalled.write_all(format!("GET /v1/runs/{run_id}/events HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).unwrap();
    let frames = stream.up_to("run.completed").await;
    assert_eq!(frames.iter().filter(|frame| frame.event == "message.delta").count(), 40_000);
    // The client has read nothing so far. The bytes that it receives now lack the end of the body.
    until("the stalled connection is closed", || async {
        let metrics = client.request(reqwest::Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
        let closed = ["holdfast_streams_open 0", "holdfast_connections_stalled_total 1"];
        closed.iter().all(|line| metrics.contains(line)).then_some(())
    })
    .await;
    stalled.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut received = Vec::new();
    let _ = stalled.read_to_end(&mut received);
    assert!(
        !received.windows(13).any(|bytes| bytes == b"run.completed"),
        "it was sent everything, so the kernel has buffered megabytes"
    );
}
