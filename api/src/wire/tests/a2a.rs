//! The fold of A2A: a task's text is right after a takeover, whether or not the log has what the lost worker has shown.

use holdfast_shared::event::{AttemptReason, AttemptStarted};

use super::*;
use crate::{
    protocols::a2a::wire::{A2aFold, A2aVersion, A2aView},
    wire::{FrameId, WireFold, with_client_bytes},
};

fn view(version: A2aVersion, after: Option<EventId>) -> A2aView {
    A2aView {
        version,
        detail: Detail::All,
        task_id: Uuid::nil(),
        context_id: "tide".into(),
        artifact_id: Uuid::nil(),
        files: "/v1/files/".into(),
        after,
    }
}

fn event(attempt: u32, n: u32, body: &EventBody<'_>) -> Event {
    Event::new(EventId::new(attempt, n), DateTime::UNIX_EPOCH, body)
}

fn taken_over() -> Event {
    let base = EventId::new(1, 3);
    let reason = AttemptReason::LeaseExpired;
    event(2, 1, &EventBody::AttemptStarted(AttemptStarted { attempt: 2, base, reason, crashes: 1, max_crashes: 3 }))
}

/// Returns the log of a run whose second worker continues after the text `a`. `lost` are the words of the first worker after that.
fn log(lost: &[&'static str]) -> Vec<Event> {
    let mut events = vec![event(0, 1, &run_queued()), event(1, 1, &attempt_started("0-1")), event(1, 3, &delta("a"))];
    events.extend((4..).zip(lost).map(|(n, word)| event(1, n, &delta(word))));
    let rest = [event(2, 2, &delta("b")), event(2, 3, &message_completed("ab")), event(2, 4, &run_completed())];
    events.push(taken_over());
    events.extend(rest);
    events
}

/// Returns each frame's id with its result in short.
fn lines(view: &A2aView, events: &[Event]) -> Vec<String> {
    let (mut fold, mut buffer) = (A2aFold::default(), Vec::new());
    events.iter().for_each(|event| fold.frame(view, &mut buffer, event));
    let text = String::from_utf8(with_client_bytes(&buffer, b"1")).unwrap();
    let line = |frame: &str| {
        let (id, data) = frame.strip_prefix("id: ").unwrap().split_once("\ndata: ").unwrap();
        id.parse::<FrameId>().unwrap();
        let response: serde_json::Value = serde_json::from_str(data).unwrap();
        let result = &response["result"];
        let named = ["task", "statusUpdate", "artifactUpdate"].iter().find_map(|name| result.get(name));
        let result = named.unwrap_or(result);
        match result.get("artifact") {
            Some(artifact) => format!("{id} {} {}", artifact["parts"][0]["text"], result["append"]),
            None => format!("{id} {}", result["status"]["state"].as_str().unwrap()),
        }
    };
    text.split_terminator("\n\n").map(line).collect()
}

#[test]
fn a_takeover_replaces_the_text_whether_or_not_the_log_has_what_is_lost() {
    let end = [r#"2-1.0 "a" false"#, "2-1.1 TASK_STATE_WORKING", r#"2-2.0 "b" true"#, "2-4.0 TASK_STATE_COMPLETED"];
    let view = view(A2aVersion::V1, None);
    let kept = lines(&view, &log(&["x", "y"]));
    assert_eq!(kept[2..5], [r#"1-3.0 "a" false"#, r#"1-4.0 "x" true"#, r#"1-5.0 "y" true"#]);
    assert_eq!(kept[5..], end);
    assert_eq!(lines(&view, &log(&[]))[3..], end);
}

#[test]
fn a_stream_after_a_pause_begins_with_the_task_as_it_is_then() {
    let events = log(&[]);
    let view = view(A2aVersion::V1, Some(events[2].id));
    assert_eq!(lines(&view, &events)[..2], ["1-3.2 TASK_STATE_WORKING", r#"2-1.0 "a" false"#]);
}

#[test]
fn the_older_version_has_its_own_names() {
    let all = lines(&view(A2aVersion::V03, None), &log(&[]));
    assert_eq!(all[..2], ["0-1.0 submitted", "1-1.0 working"]);
    assert_eq!(all.last().unwrap(), "2-4.0 completed");
}
