//! The fold of LangGraph: frames have numbers of their own, and an attempt takes back what it supersedes.

use holdfast_shared::event::StepCompleted;
use serde_json::Value;

use super::*;
use crate::{
    protocols::langgraph::wire::{LangFold, LangModes, LangView},
    wire::WireFold,
};

fn step(step: u32) -> EventBody<'static> {
    StepStarted { step }.into()
}

/// A run whose first worker was lost in its first step.
fn log() -> Vec<Event> {
    let claimed = AttemptStarted {
        attempt: 1,
        base: EventId::first_of(0),
        reason: AttemptReason::Claimed,
        crashes: 0,
        max_crashes: 3,
    };
    let (finish_reason, usage, model) = (Default::default(), Usage::default(), None);
    let attempts = [
        vec![run_queued()],
        vec![claimed.into(), step(1), delta("ab")],
        vec![
            attempt_started("1-1"),
            step(1),
            delta("a"),
            call_started(),
            call_completed(Some("7"), None),
            StepCompleted { step: 1, tool_calls: 1, usage, finish_reason, model }.into(),
            step(2),
            delta("c"),
            message_completed("ac"),
            run_completed(),
        ],
    ];
    let event =
        |attempt: u32, n: u32, body: &EventBody<'_>| Event::new(EventId::new(attempt, n), DateTime::UNIX_EPOCH, body);
    let of_attempt = |(attempt, bodies): (u32, Vec<EventBody<'static>>)| {
        (1..).zip(bodies).map(move |(n, body)| event(attempt, n, &body)).collect::<Vec<_>>()
    };
    (0..).zip(attempts).flat_map(of_attempt).collect()
}

/// Returns the frames for a client with these modes: id, kind and data.
fn frames_for(modes: &[&str]) -> Vec<(String, String, Value)> {
    let modes = modes.iter().try_fold(LangModes::default(), |modes, name| modes.with(name)).unwrap();
    let (view, mut fold, mut buffer) =
        (LangView { modes, ..LangView::default() }, LangFold::of_answer(Uuid::nil()), Vec::new());
    log().iter().for_each(|event| fold.frame(&view, &mut buffer, event));
    let text = String::from_utf8(buffer).unwrap();
    let frame = |frame: &str| {
        let (id, rest) = frame.strip_prefix("id: ").unwrap().split_once("\nevent: ").unwrap();
        let (kind, data) = rest.split_once("\ndata: ").unwrap();
        (id.to_owned(), kind.to_owned(), serde_json::from_str(data).unwrap())
    };
    text.split_terminator("\n\n").map(frame).collect()
}

/// Returns each frame's id and kind, and the id of its message.
fn lines(modes: &[&str]) -> Vec<String> {
    let line = |(id, kind, data): (String, String, Value)| {
        let about = data[0]["id"].as_str().unwrap_or_default().replace(&Uuid::nil().to_string(), "answer");
        format!("{id} {kind} {about}").trim_end().to_owned()
    };
    frames_for(modes).into_iter().map(line).collect()
}

#[test]
fn pieces_after_a_takeover_have_other_ids() {
    let expected = [
        "0-1.0 metadata",
        "0-1.1 values",
        "1-3.0 messages answer",
        "2-1.0 metadata",
        "2-1.1 values",
        "2-3.0 messages answer~2",
        "2-4.0 messages answer~2",
        "2-4.1 messages answer~2",
        "2-4.2 messages answer~2",
        "2-4.3 updates",
        "2-4.4 tasks",
        "2-4.5 tools",
        "2-5.0 messages c.result~2",
        "2-5.1 updates",
        "2-5.2 tasks",
        "2-5.3 tools",
        "2-6.0 values",
        "2-8.0 messages answer.2~2",
        "2-10.0 messages answer.2~2",
        "2-10.1 updates",
        "2-10.2 values",
        "2-10.3 end",
    ];
    assert_eq!(lines(&["values", "messages-tuple", "updates", "tasks", "tools"]), expected);
}

#[test]
fn the_modes_of_a_client_change_no_frames_number() {
    let expected = [
        "0-1.0 metadata",
        "0-1.1 values",
        "2-1.0 metadata",
        "2-1.1 values",
        "2-6.0 values",
        "2-10.2 values",
        "2-10.3 end",
    ];
    assert_eq!(lines(&["values"]), expected);
}

#[test]
fn values_have_the_messages_that_hold() {
    let values: Vec<Value> =
        frames_for(&["values"]).into_iter().filter(|frame| frame.1 == "values").map(|frame| frame.2).collect();
    assert_eq!(values[1], json!({"messages": []}), "the text of the lost worker is gone");
    let messages = values.last().unwrap()["messages"].as_array().unwrap();
    let shown: Vec<[&str; 3]> = messages
        .iter()
        .map(|message| ["type", "id", "content"].map(|field| message[field].as_str().unwrap()))
        .collect();
    let answer = Uuid::nil().to_string();
    let second = format!("{answer}.2");
    assert_eq!(shown, [["ai", &*answer, "a"], ["tool", "c.result", "7"], ["ai", &*second, "c"]]);
    assert_eq!(messages[0]["tool_calls"][0]["name"], "kb__count");
}
