//! Resuming: the events up to any cursor and the events after it are the complete stream, byte for byte.

use crate::support::{Client, Embedded, EventFrame, ScaledOut, fold};

/// Resumes after every event of `all`, and from the start.
async fn resumes_everywhere(client: &Client, run_id: &str, all: &[EventFrame], when: &str) {
    let raw = |frames: &[EventFrame]| frames.iter().map(|frame| frame.raw.clone()).collect::<Vec<_>>();
    assert_eq!(raw(&client.events(run_id, None).await.rest().await), raw(all), "{when}, from the start");
    for (index, frame) in all.iter().enumerate() {
        let rest = client.rest_after(run_id, &frame.id).await;
        assert_eq!(raw(&rest), raw(&all[index + 1..]), "{when}, after {}", frame.id);
    }
}

/// Resumes a live run with reasoning and a tool call after every event, while the run continues. Returns all its events.
async fn resumes_everywhere_live(client: &Client) -> (String, Vec<EventFrame>) {
    let input = r#"[think] [call=scripted__echo {"text":"hi"}] [tokens=60] [delay=10] hi"#;
    let mut stream = client.stream(input).await;
    let run_id = stream.run_id.clone();
    let (mut all, mut rests) = (Vec::new(), Vec::new());
    while let Some(frame) = stream.next().await.unwrap() {
        let (client, run_id, id) = (client.clone(), run_id.clone(), frame.id.clone());
        rests.push(tokio::spawn(async move { client.rest_after(&run_id, &id).await }));
        all.push(frame);
    }
    for (index, rest) in rests.into_iter().enumerate() {
        assert_eq!(rest.await.unwrap(), all[index + 1..], "live, after {}", all[index].id);
    }
    let run = client.run(&run_id).await;
    assert_eq!(run["output_message"]["content"], fold(&all));
    assert_eq!(run["last_event_id"], all.last().unwrap().id);
    for kind in ["reasoning.delta", "tool_call.delta", "tool_call.started", "tool_call.completed"] {
        assert!(all.iter().any(|frame| frame.event == kind), "no {kind}");
    }
    assert!(all.iter().filter(|frame| frame.event == "message.delta").count() > 60);
    (run_id, all)
}

#[tokio::test]
async fn embedded_a_run_resumes_after_every_event() {
    let embedded = Embedded::new();
    let holdfast = &mut embedded.start();
    let client = holdfast.client();
    let (run_id, all) = resumes_everywhere_live(&client).await;
    resumes_everywhere(&client, &run_id, &all, "after the end").await;
}

#[tokio::test]
async fn embedded_a_run_resumes_after_every_event_after_a_restart() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let (run_id, all) = resumes_everywhere_live(&holdfast.client()).await;
    holdfast.kill();
    let holdfast = &mut embedded.start();
    resumes_everywhere(&holdfast.client(), &run_id, &all, "after a restart").await;
}

#[tokio::test]
async fn scaled_out_a_run_resumes_after_every_event_from_any_api() {
    let scaled = ScaledOut::new();
    let (mut first, mut second, _worker) = (scaled.api(), scaled.api(), scaled.worker());
    let (run_id, all) = resumes_everywhere_live(&first.client()).await;
    resumes_everywhere(&second.client(), &run_id, &all, "after the end").await;
    scaled.redis.flush_all();
    resumes_everywhere(&second.client(), &run_id, &all, "after FLUSHALL").await;
}

#[tokio::test]
async fn a_long_run_is_replayed_completely() {
    let embedded = Embedded::new();
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let frames = client.stream("[tokens=20000] [delay=0] hi").await.rest().await;
    assert_eq!(frames.iter().filter(|frame| frame.event == "message.delta").count(), 20_000);
    let run_id = frames[0].data["run_id"].as_str().unwrap().to_owned();
    assert_eq!(client.run(&run_id).await["output_message"]["content"], fold(&frames));
    assert_eq!(client.events(&run_id, None).await.rest().await, frames);
    holdfast.kill();
    let holdfast = &mut embedded.start();
    assert_eq!(holdfast.client().events(&run_id, None).await.rest().await, frames);
}

#[tokio::test]
async fn an_idle_stream_sends_heartbeats() {
    let embedded = Embedded::new().with("HOLDFAST_HEARTBEAT_MS", "50");
    let mut holdfast = embedded.start();
    let client = holdfast.client();
    let events = client.stream("[tokens=2] [delay=1000] hi").await;
    let run_id = events.run_id.clone();
    let text = client.events_request(&run_id, None).send().await.unwrap().text().await.unwrap();
    assert!(text.matches(": hb\n").count() >= 10, "{text}");
    assert!(!text.contains(": hb\n\n"), "a blank line after a heartbeat makes some clients see an event: {text}");
}
