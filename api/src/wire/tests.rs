//! What each event becomes on each wire.

use chrono::DateTime;
use holdfast_shared::{
    event::{
        AgentState, AgentStateChanged, AttemptReason, AttemptStarted, ContextUsage, EventBody, ExecutedBy,
        MessageCompleted, MessageDelta, RunCancelled, RunCompleted, RunFailed, RunQueued, StepStarted,
        ToolCallCompleted, ToolCallStarted, WarningRaised,
    },
    message::{Content, Message, MessageStatus, Role},
    run::{RunError, RunStatus},
    tool::ToolError,
    usage::Usage,
};
use serde_json::json;

use super::*;

fn view(wire: Wire, shows: Shows) -> View {
    let created_at = DateTime::UNIX_EPOCH;
    let (run_id, conversation_id, message_id) = (Uuid::nil(), Uuid::max(), Uuid::nil());
    View { wire, shows, run_id, conversation_id, message_id, created_at, context: None }
}

/// The agent wire of a run that was started in the session `tide`, from a board.
fn of_board(shows: Shows) -> View {
    let metadata =
        json!({"agent_context": {"session_id": "tide", "context_type": "board", "projectFocus": {"depth": 2}}});
    let run = Run {
        id: Uuid::nil(),
        conversation_id: Uuid::max(),
        agent_id: None,
        status: RunStatus::Queued,
        attempt: 0,
        model: None,
        input_message_id: Uuid::nil(),
        output_message_id: Uuid::nil(),
        output_message: None,
        usage: None,
        finish_reason: None,
        error: None,
        last_event_id: EventId::ORIGIN,
        metadata: Some(metadata),
        trace_id: None,
        created_at: DateTime::UNIX_EPOCH,
        started_at: None,
        finished_at: None,
    };
    View::of(&run, Wire::Agent, shows)
}

/// What one event at `id`, after `before`, becomes.
fn frames(wire: Wire, shows: Shows, (before, id): (&str, &str), body: &EventBody<'_>) -> String {
    let event = Event::new(id.parse().unwrap(), DateTime::UNIX_EPOCH, body);
    frames_in(view(wire, shows), before, &event)
}

fn frames_in(view: View, before: &str, event: &Event) -> String {
    let mut buffer = Vec::new();
    Projector::after(Before::cursor(before.parse().unwrap()), view).frame(&mut buffer, event);
    String::from_utf8(buffer).unwrap()
}

/// A wire's text of frames of one event, of which the last has the id.
fn written(id: &str, frames: &[&str]) -> String {
    let last = frames.len().saturating_sub(1);
    let frame = |(index, data): (usize, &&str)| match index == last {
        true => format!("id: {id}\ndata: {data}\n\n"),
        false => format!("data: {data}\n\n"),
    };
    frames.iter().enumerate().map(frame).collect()
}

fn delta(text: &str) -> EventBody<'_> {
    EventBody::MessageDelta(MessageDelta { message_id: Uuid::nil(), text: text.into() })
}

fn completed(content: &str) -> EventBody<'static> {
    let message = Message {
        id: Uuid::nil(),
        conversation_id: Uuid::nil(),
        client_id: None,
        run_id: None,
        role: Role::Assistant,
        content: Content::Text(content.into()),
        status: MessageStatus::Complete,
        finish_reason: None,
        retrieval_context: None,
        superseded_at: None,
        version: None,
        created_at: DateTime::UNIX_EPOCH,
    };
    EventBody::MessageCompleted(MessageCompleted { base: None, message: message.into() })
}

fn queued() -> EventBody<'static> {
    EventBody::RunQueued(RunQueued {
        base: EventId::ORIGIN,
        conversation_id: Uuid::max(),
        input_message_id: Uuid::nil(),
        message_id: Uuid::nil(),
        agent_id: None,
    })
}

fn attempt(base: &str) -> EventBody<'static> {
    let base = base.parse().unwrap();
    EventBody::AttemptStarted(AttemptStarted {
        attempt: 2,
        base,
        reason: AttemptReason::LeaseExpired,
        crashes: 1,
        max_crashes: 3,
    })
}

fn called() -> EventBody<'static> {
    EventBody::ToolCallStarted(ToolCallStarted {
        call_id: "c".into(),
        step: 1,
        name: "kb__count".into(),
        input: json!({}).into(),
        by: ExecutedBy::Worker,
        expires_at: None,
    })
}

fn answered<'a>(output: Option<&'a str>, error: Option<&str>) -> EventBody<'a> {
    EventBody::ToolCallCompleted(ToolCallCompleted {
        input: None,
        base: None,
        call_id: "c".into(),
        name: "kb__count".into(),
        output: output.map(Into::into),
        error: error.map(|message| ToolError::new("timeout", message)),
        duration_ms: 1,
    })
}

fn failed() -> EventBody<'static> {
    EventBody::RunFailed(RunFailed {
        base: None,
        error: RunError::new("model_failed", "it \"broke\"\nagain"),
        usage: Usage::default(),
    })
}

fn run_completed() -> EventBody<'static> {
    EventBody::RunCompleted(RunCompleted { message_id: Uuid::nil(), usage: Usage::default(), finish_reason: None })
}

fn cancelled() -> EventBody<'static> {
    EventBody::RunCancelled(RunCancelled { base: None, message_id: None, usage: Usage::default() })
}

fn warning() -> EventBody<'static> {
    EventBody::WarningRaised(WarningRaised { code: "c".into(), message: "m".into() })
}

const META: &str = r#"{"type":"meta","conversationId":"ffffffff-ffff-ffff-ffff-ffffffffffff","runId":"00000000-0000-0000-0000-000000000000"}"#;

#[test]
fn the_chat_wire_has_five_kinds_of_frames() {
    let check = |body: &EventBody<'_>, expected: &[&str]| {
        let expected = written("1-5", expected);
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
    let check = |body: &EventBody<'_>, expected: &str| {
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

const SESSION: &str = r#"{"type":"session","session":{"id":"tide","conversation_id":"ffffffff-ffff-ffff-ffff-ffffffffffff","run_id":"00000000-0000-0000-0000-000000000000"}}"#;

#[test]
fn the_agent_wire_has_eight_kinds_of_frames() {
    let check = |body: &EventBody<'_>, expected: &[&str]| {
        let event = Event::new(EventId::new(1, 5), DateTime::UNIX_EPOCH, body);
        let found = frames_in(of_board(Shows::Everything), "1-4", &event);
        assert_eq!(found, written("1-5", expected), "{body:?}");
    };
    let used = Usage { input_tokens: 30, output_tokens: 12, cached_tokens: 5, reasoning_tokens: 4 };
    let call = r#"{"id":"c","function":{"name":"kb__count","arguments":"{\"note\":\"a \\\"b\\\"\\nü\"}"}}"#;
    let input = json!({"note": "a \"b\"\nü"});
    let by_client = EventBody::ToolCallStarted(ToolCallStarted {
        call_id: "c".into(),
        step: 1,
        name: "kb__count".into(),
        input: input.into(),
        by: ExecutedBy::Client,
        expires_at: None,
    });
    check(&queued(), &[SESSION]);
    check(
        &EventBody::StepStarted(StepStarted { step: 3 }),
        &[r#"{"type":"agent_state","state":"thinking","contextType":"board"}"#],
    );
    check(&delta("a \"b\"\nü"), &[r#"{"type":"text","content":"a \"b\"\nü"}"#]);
    check(&delta(""), &[]);
    check(&completed("whole"), &[]);
    check(&by_client, &[&format!(r#"{{"type":"tool_call","tool_call":{call},"toolCall":{call}}}"#)]);
    let usage = EventBody::ContextUsage(ContextUsage { tokens: 4100, budget: 5000, compressed: true });
    check(&usage, &[r#"{"type":"context_usage","tokens":4100,"budget":5000,"compressed":true}"#]);
    check(&warning(), &[]);
    check(&failed(), &[r#"{"type":"error","error":"it \"broke\"\nagain"}"#, "[DONE]"]);
    let done = r#"{"type":"done","usage":{"total_tokens":42}}"#;
    check(
        &EventBody::RunCompleted(RunCompleted { message_id: Uuid::nil(), usage: used, finish_reason: None }),
        &[done, "[DONE]"],
    );
    check(&EventBody::RunCancelled(RunCancelled { base: None, message_id: None, usage: used }), &[done, "[DONE]"]);
}

#[test]
fn what_a_tool_answers_is_json_where_its_text_is() {
    let check = |body: &EventBody<'_>, expected: &str| {
        let named = r#""toolName":"kb__count","toolCallId":"c""#;
        let expected = format!(r#"{{"type":"tool_result","result":{{{expected},{named}}}}}"#);
        let found = frames(Wire::Agent, Shows::Everything, ("1-4", "1-5"), body);
        assert_eq!(found, written("1-5", &[&expected]), "{body:?}");
    };
    check(&answered(Some("counted"), None), r#""success":true,"data":"counted""#);
    check(&answered(Some("{\"b\": [1,\r\n 2]\n}"), None), r#""success":true,"data":{"b":[1,2]}"#);
    check(&answered(Some("7"), None), r#""success":true,"data":7"#);
    check(&answered(Some("7 or 8"), None), r#""success":true,"data":"7 or 8""#);
    check(&answered(Some("1e999"), None), r#""success":true,"data":"1e999""#);
    check(&answered(Some(""), None), r#""success":true,"data":"""#);
    check(&answered(None, None), r#""success":true,"data":"""#);
    check(&answered(None, Some("too slow")), r#""success":false,"error":"too slow""#);
}

#[test]
fn a_refused_call_is_told_with_its_result() {
    let refused = EventBody::ToolCallCompleted(ToolCallCompleted {
        input: Some(json!({"x": 1}).into()),
        base: None,
        call_id: "c".into(),
        name: "kb__drop".into(),
        output: None,
        error: Some(ToolError::new("denied", "no")),
        duration_ms: 0,
    });
    let call = r#"{"id":"c","function":{"name":"kb__drop","arguments":"{\"x\":1}"}}"#;
    let call = format!(r#"{{"type":"tool_call","tool_call":{call},"toolCall":{call}}}"#);
    let result =
        r#"{"type":"tool_result","result":{"success":false,"error":"no","toolName":"kb__drop","toolCallId":"c"}}"#;
    let found = frames(Wire::Agent, Shows::Everything, ("1-4", "1-5"), &refused);
    assert_eq!(found, written("1-5", &[&call, result]));
    let chat = r#"{"type":"mcp_tool","tool":"kb__drop","status":"error","error":"no"}"#;
    assert_eq!(frames(Wire::Chat, Shows::Everything, ("1-4", "1-5"), &refused), written("1-5", &[chat]));
}

#[test]
fn the_agent_wire_shows_what_a_run_says_of_its_state() {
    let check = |view: View, line: &'static str, expected: &[&str]| {
        let found = frames_in(view, "1-4", &Event::parse(line.into()).unwrap());
        assert_eq!(found, written("1-5", expected), "{line}");
    };
    let waiting = r#"1-5 0 agent.state {"state":"waiting_on_user"}"#;
    let shown = r#"{"type":"agent_state","state":"waiting_on_user","contextType":"board"}"#;
    check(of_board(Shows::Everything), waiting, &[shown]);
    check(of_board(Shows::Whole), waiting, &[shown]);
    check(of_board(Shows::Messages), waiting, &[]);
    // Another route has started the run: there is no context.
    let unnamed = r#"{"type":"agent_state","state":"waiting_on_user","contextType":null}"#;
    check(view(Wire::Agent, Shows::Everything), waiting, &[unnamed]);
    check(view(Wire::Chat, Shows::Everything), waiting, &[]);
    check(view(Wire::Text, Shows::Everything), waiting, &[]);
    check(of_board(Shows::Everything), r#"1-5 0 agent.state {"phase":"dreaming"}"#, &[]);
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
    let check = |shows, body: &EventBody<'_>, [native, chat, text]: [bool; 3]| {
        let wires = [Wire::Native, Wire::Chat, Wire::Agent, Wire::Text];
        let found = wires.map(|wire| !frames(wire, shows, ("1-4", "1-5"), body).is_empty());
        // The agent wire tells of calls as the chat wire does.
        assert_eq!(found, [native, chat, chat, text], "{shows:?} {body:?}");
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
    let marked =
        |first: &str, base: &str| format!(r#"{},"superseded":true,"base":"{base}"}}"#, &first[..first.len() - 1]);
    let (mark, session) = (|base: &str| marked(META, base), |base: &str| marked(SESSION, base));
    let check = |shows, before: &str, base: &str, is_marked: bool| {
        let at = (before, "2-1");
        let (chat, agent, text) = match is_marked {
            true => (
                written("2-1", &[&mark(base)]),
                written("2-1", &[&session(base)]),
                format!(": superseded after {base}\n"),
            ),
            false => Default::default(),
        };
        let event = Event::new(EventId::new(2, 1), DateTime::UNIX_EPOCH, &attempt(base));
        assert_eq!(frames_in(of_board(shows), before, &event), agent, "{base} after {before}");
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
    let ended = EventBody::RunCancelled(RunCancelled { base, message_id: None, usage: Usage::default() });
    let chat = format!("data: {}\n\nid: 2-1\ndata: {{\"type\":\"done\"}}\n\n", mark("1-1"));
    assert_eq!(frames(Wire::Chat, Shows::Everything, ("1-9", "2-1"), &ended), chat);
    let text = ": superseded after 1-1\nid: 2-1\ndata: [DONE]\n\n";
    assert_eq!(frames(Wire::Text, Shows::Everything, ("1-9", "2-1"), &ended), text);
    let event = Event::new(EventId::new(2, 1), DateTime::UNIX_EPOCH, &ended);
    let agent = [&session("1-1"), r#"{"type":"done","usage":{"total_tokens":0}}"#, "[DONE]"];
    assert_eq!(frames_in(of_board(Shows::Everything), "1-9", &event), written("2-1", &agent));
}

#[test]
fn what_a_newer_version_wrote_is_passed_over_except_for_the_end() {
    let check = |line: &'static str, chat: &[&str], agent: &[&str]| {
        for (wire, expected) in [(Wire::Chat, chat), (Wire::Agent, agent)] {
            let found = frames_in(view(wire, Shows::Everything), "1-1", &Event::parse(line.into()).unwrap());
            assert_eq!(found, written("1-2", expected), "{wire:?} {line}");
        }
    };
    check("1-2 0 dream.dreamt {}", &[], &[]);
    check(r#"1-2 0 message.delta {"pieces":[]}"#, &[], &[]);
    let error = r#"{"type":"error","error":"the run has failed"}"#;
    check(r#"1-2 0 run.failed {"why":"x"}"#, &[error, r#"{"type":"done"}"#], &[error, "[DONE]"]);
    let done = r#"{"type":"done","usage":{"total_tokens":0}}"#;
    check(r#"1-2 0 run.completed {"used":[]}"#, &[r#"{"type":"done"}"#], &[done, "[DONE]"]);
}

mod blocks;
mod finish_reasons;
