//! The finish reason of an answer on every wire.

use holdfast_shared::finish_reason::FinishReason;

use super::*;

fn completed_by(reason: FinishReason) -> EventBody<'static> {
    EventBody::RunCompleted(RunCompleted {
        message_id: Uuid::nil(),
        usage: Usage::default(),
        finish_reason: Some(reason),
    })
}

#[test]
fn every_wire_has_the_finish_reason() {
    let check = |wire, reason, expected: &str| {
        let found = frames(wire, Detail::All, ("1-4", "1-5"), &completed_by(reason));
        assert!(found.contains(expected), "{found}");
    };
    check(Wire::Native, FinishReason::Length, r#""finish_reason":"length""#);
    check(Wire::Chat, FinishReason::Length, r#"{"type":"done","finishReason":"length"}"#);
    check(Wire::Agent, FinishReason::ContentFilter, r#""finish_reason":"content_filter""#);
    check(Wire::Text, FinishReason::Length, ": finish_reason length\nid: 1-5\ndata: [DONE]\n\n");
    check(Wire::AiSdk, FinishReason::Length, r#""finishReason":"length""#);
    check(Wire::AiSdk, FinishReason::ContentFilter, r#""finishReason":"content-filter""#);
    check(Wire::AiSdk, FinishReason::ContentFilter, r#""finish_reason":"content_filter""#);
    check(Wire::AiSdk, FinishReason::ToolCalls, r#""finishReason":"other""#);
    let stopped = frames(Wire::Text, Detail::All, ("1-4", "1-5"), &completed_by(FinishReason::Stop));
    assert_eq!(stopped, "id: 1-5\ndata: [DONE]\n\n");
    // An older version wrote no reason.
    let old = frames(Wire::AiSdk, Detail::All, ("1-4", "1-5"), &run_completed());
    assert!(old.contains(r#""finishReason":"stop""#) && !old.contains("finish_reason"), "{old}");
}
