//! The AI SDK's wire: blocks that open and close, from wherever it begins.

use holdfast_shared::event::ReasoningDelta;

use super::*;

fn thought(text: &str) -> EventBody<'_> {
    EventBody::ReasoningDelta(ReasoningDelta { message_id: Uuid::nil(), text: text.into() })
}

fn a_log() -> Vec<Event> {
    let first = vec![
        queued(),
        attempt("0-1"),
        EventBody::StepStarted(StepStarted { step: 1 }),
        thought("hm"),
        thought("m"),
        delta("a"),
        delta("b"),
        called(),
        answered(None, Some("too slow")),
        EventBody::AgentState(AgentStateChanged { state: AgentState::WaitingOnUser }),
        delta("c"),
    ];
    let second = [attempt("1-9"), delta("d"), run_completed()];
    let event = |attempt, n: usize, body| Event::new(EventId::new(attempt, n as u32 + 1), DateTime::UNIX_EPOCH, body);
    let first = first.iter().enumerate().map(|(n, body)| event(1, n, body));
    first.chain(second.iter().enumerate().map(|(n, body)| event(2, n, body))).collect()
}

#[test]
fn the_ai_sdks_wire_opens_what_it_says_and_closes_it() {
    let view = view(Wire::AiSdk, Shows::Everything);
    let mut before = Before::START;
    let mut types = Vec::new();
    for event in a_log() {
        types.extend(ai_sdk::chunks(&view, before, &event).iter().map(|chunk| json!(chunk)["type"].clone()));
        before = Before::behind(&event);
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
fn the_ai_sdks_wire_says_the_same_from_wherever_it_begins() {
    let (view, log) = (view(Wire::AiSdk, Shows::Everything), a_log());
    let told = |from: usize| {
        let before = from.checked_sub(1).map_or(Before::START, |last| Before::behind(&log[last]));
        let (mut projector, mut buffer) = (Projector::after(before, view.clone()), Vec::new());
        log[from..].iter().for_each(|event| projector.frame(&mut buffer, event));
        String::from_utf8(buffer).unwrap()
    };
    let whole = told(0);
    assert!(whole.ends_with("data: [DONE]\n\n"));
    assert!((0..log.len()).all(|from| whole.ends_with(&told(from))));
}
