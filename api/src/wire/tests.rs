//! What each event becomes on each wire.

use chrono::DateTime;
use holdfast_shared::{
    event::{AgentState, AttemptReason, EventBody, ExecutedBy},
    message::{Content, Message, MessageStatus, Role},
    run::RunError,
    tool::ToolError,
    usage::Usage,
};
use serde_json::json;

use super::*;

fn view(wire: Wire, shows: Shows) -> View {
    View { wire, shows, run_id: Uuid::nil(), conversation_id: Uuid::max(), message_id: Uuid::nil() }
}

/// What one event at `id`, after `before`, becomes.
fn frames(wire: Wire, shows: Shows, (before, id): (&str, &str), body: &EventBody) -> String {
    let event = Event::new(id.parse().unwrap(), DateTime::UNIX_EPOCH, body);
    let mut buffer = Vec::new();
    Projector::after(Before::cursor(before.parse().unwrap()), view(wire, shows)).frame(&mut buffer, &event);
    String::from_utf8(buffer).unwrap()
}

fn delta(text: &str) -> EventBody {
    EventBody::MessageDelta { message_id: Uuid::nil(), text: text.into() }
}

fn completed(content: &str) -> EventBody {
    let message = Message {
        id: Uuid::nil(),
        conversation_id: Uuid::nil(),
        client_id: None,
        run_id: None,
        role: Role::Assistant,
        content: Content::Text(content.into()),
        status: MessageStatus::Complete,
        retrieval_context: None,
        superseded_at: None,
        created_at: DateTime::UNIX_EPOCH,
    };
    EventBody::MessageCompleted { base: None, message }
}

fn queued() -> EventBody {
    EventBody::RunQueued {
        base: EventId::ORIGIN,
        conversation_id: Uuid::max(),
        input_message_id: Uuid::nil(),
        message_id: Uuid::nil(),
        agent_id: None,
    }
}

fn attempt(base: &str) -> EventBody {
    let base = base.parse().unwrap();
    EventBody::AttemptStarted { attempt: 2, base, reason: AttemptReason::LeaseExpired, crashes: 1, max_crashes: 3 }
}

fn called() -> EventBody {
    EventBody::ToolCallStarted {
        call_id: "c".into(),
        step: 1,
        name: "kb__count".into(),
        input: json!({}),
        by: ExecutedBy::Worker,
        expires_at: None,
    }
}

fn answered(output: Option<&str>, error: Option<&str>) -> EventBody {
    EventBody::ToolCallCompleted {
        input: None,
        base: None,
        call_id: "c".into(),
        name: "kb__count".into(),
        output: output.map(Into::into),
        error: error.map(|message| ToolError::new("timeout", message)),
        duration_ms: 1,
    }
}

fn failed() -> EventBody {
    EventBody::RunFailed {
        base: None,
        error: RunError::new("model_failed", "it \"broke\"\nagain"),
        usage: Usage::default(),
    }
}

fn run_completed() -> EventBody {
    EventBody::RunCompleted { message_id: Uuid::nil(), usage: Usage::default() }
}

fn cancelled() -> EventBody {
    EventBody::RunCancelled { base: None, message_id: None, usage: Usage::default() }
}

fn warning() -> EventBody {
    EventBody::WarningRaised { code: "c".into(), message: "m".into() }
}

const META: &str = r#"{"type":"meta","conversationId":"ffffffff-ffff-ffff-ffff-ffffffffffff","runId":"00000000-0000-0000-0000-000000000000"}"#;

#[test]
fn the_chat_wire_has_five_kinds_of_frames() {
    let check = |body: &EventBody, expected: &[&str]| {
        let last = expected.len().saturating_sub(1);
        let frame = |(index, data): (usize, &&str)| match index == last {
            true => format!("id: 1-5\ndata: {data}\n\n"),
            false => format!("data: {data}\n\n"),
        };
        let expected: String = expected.iter().enumerate().map(frame).collect();
        assert_eq!(frames(Wire::Chat, Shows::Everything, ("1-4", "1-5"), body), expected, "{body:?}");
    };
    check(&queued(), &[META]);
    check(&delta("a \"b\"\nü"), &[r#"{"type":"token","token":"a \"b\"\nü"}"#]);
    check(&delta(""), &[]);
    check(&completed("whole"), &[]);
    check(&called(), &[r#"{"type":"mcp_tool","tool":"kb__count","status":"started"}"#]);
    check(
        &answered(Some("1\n2"), None),
        &[r#"{"type":"mcp_tool","tool":"kb__count","status":"completed","result":"1\n2"}"#],
    );
    check(&answered(None, None), &[r#"{"type":"mcp_tool","tool":"kb__count","status":"completed","result":""}"#]);
    check(
        &answered(None, Some("too slow")),
        &[r#"{"type":"mcp_tool","tool":"kb__count","status":"error","error":"too slow"}"#],
    );
    check(&warning(), &[]);
    check(&failed(), &[r#"{"type":"error","error":"it \"broke\"\nagain"}"#, r#"{"type":"done"}"#]);
    check(&run_completed(), &[r#"{"type":"done"}"#]);
    check(&cancelled(), &[r#"{"type":"done"}"#]);
}

#[test]
fn the_text_wire_has_text_and_an_end() {
    let check = |body: &EventBody, expected: &str| {
        assert_eq!(frames(Wire::Text, Shows::Everything, ("1-4", "1-5"), body), expected, "{body:?}");
    };
    check(&queued(), "");
    check(&delta("word "), "id: 1-5\ndata: word \n\n");
    check(&delta(" word"), "id: 1-5\ndata:  word\n\n");
    check(&delta(""), "");
    check(&completed("whole"), "");
    check(&called(), "");
    check(&answered(Some("1"), None), "");
    check(&warning(), "");
    check(&failed(), "event: error\ndata: it \"broke\"\ndata: again\n\nid: 1-5\ndata: [DONE]\n\n");
    check(&run_completed(), "id: 1-5\ndata: [DONE]\n\n");
    check(&cancelled(), "id: 1-5\ndata: [DONE]\n\n");
}

#[test]
fn what_ends_a_line_begins_another_data_line() {
    let check = |text: &str, lines: &[&str]| {
        let expected: String = lines.iter().map(|line| format!("data: {line}\n")).collect();
        let expected = format!("id: 1-5\n{expected}\n");
        assert_eq!(frames(Wire::Text, Shows::Everything, ("1-4", "1-5"), &delta(text)), expected, "{text:?}");
    };
    check("a\nb", &["a", "b"]);
    check("\n", &["", ""]);
    check("\n\n", &["", "", ""]);
    check("a\n", &["a", ""]);
    check("a\r\nb\rc", &["a", "b", "c"]);
    check("id: 9-9\ndata: x\n\nevent: y", &["id: 9-9", "data: x", "", "event: y"]);
}

#[test]
fn the_whole_message_is_shown_where_no_pieces_are() {
    let check = |shows, body: &EventBody, shown: [bool; 3]| {
        let wires = [Wire::Native, Wire::Chat, Wire::Text];
        let found = wires.map(|wire| !frames(wire, shows, ("1-4", "1-5"), body).is_empty());
        assert_eq!(found, shown, "{shows:?} {body:?}");
    };
    for shows in [Shows::Whole, Shows::Messages] {
        check(shows, &delta("piece"), [shows == Shows::Whole, false, false]);
        check(shows, &completed("whole"), [true, true, true]);
        check(shows, &completed(""), [true, false, false]);
        check(shows, &failed(), [true, true, true]);
        check(shows, &run_completed(), [true, true, true]);
        check(shows, &cancelled(), [true, true, true]);
        check(shows, &called(), [shows == Shows::Whole, shows == Shows::Whole, false]);
        check(shows, &queued(), [shows == Shows::Whole, true, false]);
    }
    let whole = frames(Wire::Text, Shows::Messages, ("1-4", "1-5"), &completed("a\nb"));
    assert_eq!(whole, "id: 1-5\ndata: a\ndata: b\n\n");
}

#[test]
fn what_supersedes_something_is_marked() {
    let mark = |base: &str| META.replace('}', &format!(r#","superseded":true,"base":"{base}"}}"#));
    let check = |shows, before: &str, base: &str, is_marked: bool| {
        let at = (before, "2-1");
        let (chat, text) = match is_marked {
            true => (format!("id: 2-1\ndata: {}\n\n", mark(base)), format!(": superseded after {base}\n")),
            false => (String::new(), String::new()),
        };
        assert_eq!(frames(Wire::Chat, shows, at, &attempt(base)), chat, "{base} after {before}");
        assert_eq!(frames(Wire::Text, shows, at, &attempt(base)), text, "{base} after {before}");
    };
    check(Shows::Everything, "1-9", "1-1", true);
    check(Shows::Whole, "1-9", "1-1", true);
    check(Shows::Messages, "1-9", "1-1", false);
    check(Shows::Everything, "1-1", "1-1", false);
    // Another client may have seen more than this one.
    check(Shows::Everything, "1-1", "1-3", false);
    // An end that was written for a dead worker supersedes too, and is an end all the same.
    let base = Some(EventId::new(1, 1));
    let ended = EventBody::RunCancelled { base, message_id: None, usage: Usage::default() };
    let chat = format!("data: {}\n\nid: 2-1\ndata: {{\"type\":\"done\"}}\n\n", mark("1-1"));
    assert_eq!(frames(Wire::Chat, Shows::Everything, ("1-9", "2-1"), &ended), chat);
    let text = ": superseded after 1-1\nid: 2-1\ndata: [DONE]\n\n";
    assert_eq!(frames(Wire::Text, Shows::Everything, ("1-9", "2-1"), &ended), text);
}

#[test]
fn what_a_newer_version_wrote_is_passed_over_except_for_the_end() {
    let check = |line: &'static str, expected: &str| {
        let event = Event::parse(line.into()).unwrap();
        let mut buffer = Vec::new();
        Projector::after(Before::cursor(EventId::new(1, 1)), view(Wire::Chat, Shows::Everything))
            .frame(&mut buffer, &event);
        assert_eq!(String::from_utf8(buffer).unwrap(), expected, "{line}");
    };
    check("1-2 0 dream.dreamt {}", "");
    check(r#"1-2 0 message.delta {"pieces":[]}"#, "");
    let end = "data: {\"type\":\"error\",\"error\":\"the run has failed\"}\n\nid: 1-2\ndata: {\"type\":\"done\"}\n\n";
    check(r#"1-2 0 run.failed {"why":"x"}"#, end);
}

fn thought(text: &str) -> EventBody {
    EventBody::ReasoningDelta { message_id: Uuid::nil(), text: text.into() }
}

fn a_log() -> Vec<Event> {
    let first = vec![
        queued(),
        attempt("0-1"),
        EventBody::StepStarted { step: 1 },
        thought("hm"),
        thought("m"),
        delta("a"),
        delta("b"),
        called(),
        answered(None, Some("too slow")),
        EventBody::AgentState { state: AgentState::WaitingOnUser },
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
            "tool-input-available",
            "tool-output-error",
            "data-state",
            "text-start",
            "text-delta",
            "text-end",
            "data-attempt",
            "text-start",
            "text-delta",
            "text-end",
            "finish"
        ])
    );
}

#[test]
fn the_ai_sdks_wire_says_the_same_from_wherever_it_begins() {
    let (view, log) = (view(Wire::AiSdk, Shows::Everything), a_log());
    let told = |from: usize| {
        let before = from.checked_sub(1).map_or(Before::START, |last| Before::behind(&log[last]));
        let (mut projector, mut buffer) = (Projector::after(before, view), Vec::new());
        log[from..].iter().for_each(|event| projector.frame(&mut buffer, event));
        String::from_utf8(buffer).unwrap()
    };
    let whole = told(0);
    assert!(whole.ends_with("data: [DONE]\n\n"));
    assert!((0..log.len()).all(|from| whole.ends_with(&told(from))));
}
