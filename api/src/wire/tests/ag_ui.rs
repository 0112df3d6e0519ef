//! The fold of AG-UI: what begins ends, and frames have ids of their own.

use holdfast_shared::event::{ReasoningDelta, StepCompleted};

use super::*;
use crate::{
    protocols::ag_ui::wire::{AgUiFold, AgUiVersion, AgUiView},
    wire::{FrameId, WireFold},
};

fn view(detail: Detail) -> AgUiView {
    AgUiView { detail, thread_id: "t".into(), run_id: "r".into(), after: None, version: AgUiVersion::One }
}

fn log() -> Vec<Event> {
    let bodies = [
        run_queued(),
        attempt_started("0-1"),
        EventBody::StepStarted(StepStarted { step: 1 }),
        EventBody::ReasoningDelta(ReasoningDelta { message_id: Uuid::nil(), text: "hm".into() }),
        delta("a"),
        delta("b"),
        call_started(),
        call_completed(Some("7"), None),
        EventBody::StepCompleted(StepCompleted {
            step: 1,
            tool_calls: 1,
            usage: Usage::default(),
            finish_reason: Default::default(),
            model: None,
        }),
        EventBody::StepStarted(StepStarted { step: 2 }),
        delta("c"),
        message_completed("abc"),
        run_completed(),
    ];
    let event = |(n, body): (u32, &EventBody<'_>)| Event::new(EventId::new(1, n), DateTime::UNIX_EPOCH, body);
    (1..).zip(&bodies).map(event).collect()
}

/// Returns each frame's id with the type of its event, and the name of what it is about.
fn lines(detail: Detail) -> Vec<String> {
    let (view, mut fold, mut buffer) = (view(detail), AgUiFold::of_answer(Uuid::nil()), Vec::new());
    log().iter().for_each(|event| fold.frame(&view, &mut buffer, event));
    let text = String::from_utf8(buffer).unwrap();
    let line = |frame: &str| {
        let (id, data) = frame.strip_prefix("id: ").unwrap().split_once("\ndata: ").unwrap();
        let event: serde_json::Value = serde_json::from_str(data).unwrap();
        let about = ["messageId", "toolCallId", "stepName", "name"].iter().find_map(|field| event[field].as_str());
        let about = about.unwrap_or_default().replace(&Uuid::nil().to_string(), "answer");
        format!("{id} {} {about}", event["type"].as_str().unwrap())
    };
    text.split_terminator("\n\n").map(line).collect()
}

#[test]
fn each_part_of_an_answer_begins_and_ends_once() {
    let expected = [
        "1-1.0 RUN_STARTED ",
        "1-1.1 CUSTOM run.queued",
        "1-3.0 STEP_STARTED step 1",
        "1-4.0 REASONING_START answer.r1",
        "1-4.1 REASONING_MESSAGE_START answer.r1",
        "1-4.2 REASONING_MESSAGE_CONTENT answer.r1",
        "1-5.0 REASONING_MESSAGE_END answer.r1",
        "1-5.1 REASONING_END answer.r1",
        "1-5.2 TEXT_MESSAGE_START answer",
        "1-5.3 TEXT_MESSAGE_CONTENT answer",
        "1-6.0 TEXT_MESSAGE_CONTENT answer",
        "1-7.0 TEXT_MESSAGE_END answer",
        "1-7.1 TOOL_CALL_START c",
        "1-7.2 TOOL_CALL_ARGS c",
        "1-7.3 TOOL_CALL_END c",
        "1-8.0 TOOL_CALL_RESULT c.result",
        "1-9.0 STEP_FINISHED step 1",
        "1-10.0 STEP_STARTED step 2",
        "1-11.0 TEXT_MESSAGE_START answer.2",
        "1-11.1 TEXT_MESSAGE_CONTENT answer.2",
        "1-13.0 TEXT_MESSAGE_END answer.2",
        "1-13.1 STEP_FINISHED step 2",
        "1-13.2 RUN_FINISHED ",
    ];
    assert_eq!(lines(Detail::All), expected);
}

#[test]
fn a_client_of_whole_messages_gets_the_text_at_the_end() {
    let expected = [
        "1-1.0 RUN_STARTED ",
        "1-1.1 CUSTOM run.queued",
        "1-12.0 TEXT_MESSAGE_START answer",
        "1-12.1 TEXT_MESSAGE_CONTENT answer",
        "1-12.2 TEXT_MESSAGE_END answer",
        "1-13.0 RUN_FINISHED ",
    ];
    assert_eq!(lines(Detail::Messages), expected);
}

#[test]
fn the_id_of_a_frame_parses_back() {
    let id = FrameId { event: EventId::new(2, 17), number: 3 };
    assert_eq!(id.to_string().parse(), Ok(id));
    assert_eq!("2-17".parse(), Ok(FrameId { number: u32::MAX, ..id }), "an event stands for its last frame");
    for malformed in ["", "2", "2-17.", "2-17.x", "2-17.-1", "2.3", "2-17.3.1"] {
        assert!(malformed.parse::<FrameId>().is_err(), "{malformed}");
    }
}
