//! The AI SDK's wire opens and closes blocks, wherever a projector starts.

use holdfast_shared::event::ReasoningDelta;

use super::*;

fn reasoning(text: &str) -> EventBody<'_> {
    EventBody::ReasoningDelta(ReasoningDelta { message_id: Uuid::nil(), text: text.into() })
}

fn log() -> Vec<Event> {
    let first = vec![
        run_queued(),
        attempt_started("0-1"),
        EventBody::StepStarted(StepStarted { step: 1 }),
        reasoning("hm"),
        reasoning("m"),
        delta("a"),
        delta("b"),
        call_started(),
        call_completed(None, Some("too slow")),
        EventBody::AgentState(AgentStateChanged { state: AgentState::WaitingOnUser, usage: None }),
        delta("c"),
    ];
    let second = [attempt_started("1-9"), delta("d"), run_completed()];
    let event = |attempt, n: usize, body| Event::new(EventId::new(attempt, n as u32 + 1), DateTime::UNIX_EPOCH, body);
    let first = first.iter().enumerate().map(|(n, body)| event(1, n, body));
    first.chain(second.iter().enumerate().map(|(n, body)| event(2, n, body))).collect()
}

#[test]
fn the_ai_sdks_wire_opens_and_closes_blocks() {
    let view = view(Wire::AiSdk, Detail::All);
    let mut position = LogPosition::START;
    let mut types = Vec::new();
    for event in log() {
        types.extend(ai_sdk::wire::chunks(&view, position, &event).iter().map(|chunk| json!(chunk)["type"].clone()));
        position = LogPosition::after(&event);
    }
    assert_eq!(
        json!(types),
        json!([
            "start",
            "start-step",
            "reasoning-start",
            "reasoning-delta",
            "reasoning-delta",
            "reasoning-end",
            "text-start",
            "text-delta",
            "text-delta",
            "text-end",
            "finish-step",
            "tool-input-available",
            "tool-output-error",
            "data-call",
            "data-state",
            "text-start",
            "text-delta",
            "text-end",
            "finish-step",
            "data-attempt",
            "text-start",
            "text-delta",
            "text-end",
            "finish-step",
            "finish"
        ])
    );
}

#[test]
fn the_ai_sdks_wire_is_equal_from_every_position() {
    let (view, log) = (view(Wire::AiSdk, Detail::All), log());
    let frames_from = |from: usize| {
        let position = from.checked_sub(1).map_or(LogPosition::START, |last| LogPosition::after(&log[last]));
        let (mut projector, mut buffer) = (Projector::after(position, view.clone()), Vec::new());
        log[from..].iter().for_each(|event| projector.frame(&mut buffer, event));
        String::from_utf8(buffer).unwrap()
    };
    let complete = frames_from(0);
    assert!(complete.ends_with("data: [DONE]\n\n"));
    assert!((0..log.len()).all(|from| complete.ends_with(&frames_from(from))));
}
