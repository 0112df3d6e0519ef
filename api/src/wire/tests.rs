//! The frames of each event on each wire.

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

fn view(wire: Wire, detail: Detail) -> View {
    let created_at = DateTime::UNIX_EPOCH;
    let (run_id, conversation_id, message_id) = (Uuid::nil(), Uuid::max(), Uuid::nil());
    View { wire, detail, run_id, conversation_id, message_id, created_at, context: None, plan: None }
}

/// The agent wire of a run that a client has started in the session `tide`, from a project.
fn of_project(detail: Detail) -> View {
    let metadata = json!({"agent_context": {"session_id": "tide", "context_type": "project", "projectFocus": {"focusType": "task", "focusEntityId": "t-1", "projectId": "p-1", "projectName": "P"}}});
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
        total_usage: None,
        finish_reason: None,
        error: None,
        error_details: None,
        last_event_id: EventId::ORIGIN,
        metadata: Some(metadata),
        parent_run_id: None,
        trace_id: None,
        created_at: DateTime::UNIX_EPOCH,
        started_at: None,
        finished_at: None,
    };
    View::of(&run, Wire::Agent, detail)
}

/// Returns the frames of one event at `id`, after the event `previous`.
fn frames(wire: Wire, detail: Detail, (previous, id): (&str, &str), body: &EventBody<'_>) -> String {
    let event = Event::new(id.parse().unwrap(), DateTime::UNIX_EPOCH, body);
    frames_in(view(wire, detail), previous, &event)
}

fn frames_in(view: View, previous: &str, event: &Event) -> String {
    let mut buffer = Vec::new();
    let position = LogPosition { id: previous.parse().unwrap(), block: Block::None };
    Projector::after(position, view).frame(&mut buffer, event);
    String::from_utf8(buffer).unwrap()
}

/// Returns the text of one event's frames, of which the last has the id.
fn text_of_frames(id: &str, frames: &[&str]) -> String {
    let last = frames.len().saturating_sub(1);
    let frame = |(index, data): (usize, &&str)| {
        if index == last { format!("id: {id}\ndata: {data}\n\n") } else { format!("data: {data}\n\n") }
    };
    frames.iter().enumerate().map(frame).collect()
}

fn delta(text: &str) -> EventBody<'_> {
    EventBody::MessageDelta(MessageDelta { message_id: Uuid::nil(), text: text.into() })
}

fn message_completed(content: &str) -> EventBody<'static> {
    let message = Message {
        id: Uuid::nil(),
        conversation_id: Uuid::nil(),
        client_id: None,
        run_id: None,
        given: false,
        role: Role::Assistant,
        content: Content::Text(content.into()),
        attachments: Vec::new(),
        status: MessageStatus::Complete,
        finish_reason: None,
        retrieval_context: None,
        superseded_at: None,
        version: None,
        created_at: DateTime::UNIX_EPOCH,
    };
    EventBody::MessageCompleted(MessageCompleted { base: None, message: message.into() })
}

fn run_queued() -> EventBody<'static> {
    EventBody::RunQueued(RunQueued {
        base: EventId::ORIGIN,
        conversation_id: Uuid::max(),
        input_message_id: Uuid::nil(),
        message_id: Uuid::nil(),
        agent_id: None,
    })
}

fn attempt_started(base: &str) -> EventBody<'static> {
    let base = base.parse().unwrap();
    EventBody::AttemptStarted(AttemptStarted {
        attempt: 2,
        base,
        reason: AttemptReason::LeaseExpired,
        crashes: 1,
        max_crashes: 3,
    })
}

fn call_started() -> EventBody<'static> {
    EventBody::ToolCallStarted(ToolCallStarted {
        call_id: "c".into(),
        step: 1,
        name: "kb__count".into(),
        input: json!({}).into(),
        by: ExecutedBy::Worker,
        expires_at: None,
    })
}

fn call_completed<'a>(output: Option<&'a str>, error: Option<&str>) -> EventBody<'a> {
    let (call_id, name, output) = ("c".into(), "kb__count".into(), output.map(Into::into));
    let error = error.map(|message| ToolError::new("timeout", message));
    ToolCallCompleted { call_id, name, output, error, duration_ms: 1, ..Default::default() }.into()
}

fn run_failed() -> EventBody<'static> {
    let error = RunError::new("model_failed", "it \"broke\"\nagain");
    EventBody::RunFailed(RunFailed { base: None, error, usage: Usage::default() })
}

fn run_completed() -> EventBody<'static> {
    EventBody::RunCompleted(RunCompleted { message_id: Uuid::nil(), usage: Usage::default(), finish_reason: None })
}

fn run_cancelled() -> EventBody<'static> {
    EventBody::RunCancelled(RunCancelled { base: None, message_id: None, usage: Usage::default() })
}

fn warning() -> EventBody<'static> {
    EventBody::WarningRaised(WarningRaised { code: "c".into(), message: "m".into() })
}

const META: &str = r#"{"type":"meta","conversationId":"ffffffff-ffff-ffff-ffff-ffffffffffff","runId":"00000000-0000-0000-0000-000000000000"}"#;

#[test]
fn the_chat_wire_has_five_kinds_of_frames() {
    let check = |body: &EventBody<'_>, expected: &[&str]| {
        let expected = text_of_frames("1-5", expected);
        assert_eq!(frames(Wire::Chat, Detail::All, ("1-4", "1-5"), body), expected, "{body:?}");
    };
    check(&run_queued(), &[META]);
    check(&delta("a \"b\"\nü"), &[r#"{"type":"token","token":"a \"b\"\nü"}"#]);
    check(&delta(""), &[]);
    check(&message_completed("whole"), &[]);
    check(&call_started(), &[r#"{"type":"mcp_tool","tool":"kb__count","status":"started"}"#]);
    check(
        &call_completed(Some("1\n2"), None),
        &[r#"{"type":"mcp_tool","tool":"kb__count","status":"completed","result":"1\n2"}"#],
    );
    check(&call_completed(None, None), &[r#"{"type":"mcp_tool","tool":"kb__count","status":"completed","result":""}"#]);
    check(
        &call_completed(None, Some("too slow")),
        &[r#"{"type":"mcp_tool","tool":"kb__count","status":"error","error":"too slow"}"#],
    );
    check(&warning(), &[]);
    check(&run_failed(), &[r#"{"type":"error","error":"it \"broke\"\nagain"}"#, r#"{"type":"done"}"#]);
    check(&run_completed(), &[r#"{"type":"done"}"#]);
    check(&run_cancelled(), &[r#"{"type":"done"}"#]);
}

#[test]
fn the_text_wire_has_text_and_an_end() {
    let check = |body: &EventBody<'_>, expected: &str| {
        assert_eq!(frames(Wire::Text, Detail::All, ("1-4", "1-5"), body), expected, "{body:?}");
    };
    check(&run_queued(), "");
    check(&delta("word "), "id: 1-5\ndata: word \n\n");
    check(&delta(" word"), "id: 1-5\ndata:  word\n\n");
    check(&delta(""), "");
    check(&message_completed("whole"), "");
    check(&call_started(), "");
    check(&call_completed(Some("1"), None), "");
    check(&warning(), "");
    check(&run_failed(), "event: error\ndata: it \"broke\"\ndata: again\n\nid: 1-5\ndata: [DONE]\n\n");
    check(&run_completed(), "id: 1-5\ndata: [DONE]\n\n");
    check(&run_cancelled(), "id: 1-5\ndata: [DONE]\n\n");
}

const SESSION: &str = r#"{"type":"session","session":{"id":"tide","conversation_id":"ffffffff-ffff-ffff-ffff-ffffffffffff","run_id":"00000000-0000-0000-0000-000000000000","context":{"context_type":"project"},"focus":{"focusType":"task","focusEntityId":"t-1","projectId":"p-1","projectName":"P"}}}"#;

#[test]
fn the_agent_wire_has_a_frame_for_each_kind_that_it_shows() {
    let check = |body: &EventBody<'_>, expected: &[&str]| {
        let event = Event::new(EventId::new(1, 5), DateTime::UNIX_EPOCH, body);
        let found = frames_in(of_project(Detail::All), "1-4", &event);
        assert_eq!(found, text_of_frames("1-5", expected), "{body:?}");
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
    let focus = r#"{"type":"focus_active","focus":{"focusType":"task","focusEntityId":"t-1","projectId":"p-1","projectName":"P"}}"#;
    check(&run_queued(), &[SESSION, focus]);
    check(
        &EventBody::StepStarted(StepStarted { step: 3 }),
        &[r#"{"type":"agent_state","state":"thinking","contextType":"project"}"#],
    );
    check(&delta("a \"b\"\nü"), &[r#"{"type":"text","content":"a \"b\"\nü"}"#]);
    check(&delta(""), &[]);
    check(&message_completed("whole"), &[]);
    check(&by_client, &[&format!(r#"{{"type":"tool_call","tool_call":{call},"toolCall":{call}}}"#)]);
    let usage = ContextUsage { tokens: 4100, budget: 5000, compressed: true, ..ContextUsage::default() };
    let frame = r#"{"type":"context_usage","tokens":4100,"budget":5000,"compressed":true}"#;
    check(&EventBody::ContextUsage(usage), &[frame]);
    check(&warning(), &[]);
    check(&run_failed(), &[r#"{"type":"error","error":"it \"broke\"\nagain"}"#, "[DONE]"]);
    let done = r#"{"type":"done","usage":{"total_tokens":42}}"#;
    check(
        &EventBody::RunCompleted(RunCompleted { message_id: Uuid::nil(), usage: used, finish_reason: None }),
        &[done, "[DONE]"],
    );
    check(&EventBody::RunCancelled(RunCancelled { base: None, message_id: None, usage: used }), &[done, "[DONE]"]);
}

#[test]
fn a_tool_result_is_json_if_its_text_is() {
    let check = |body: &EventBody<'_>, expected: &str| {
        let named = r#""toolName":"kb__count","toolCallId":"c""#;
        let expected = format!(r#"{{"type":"tool_result","result":{{{expected},{named}}}}}"#);
        let found = frames(Wire::Agent, Detail::All, ("1-4", "1-5"), body);
        assert_eq!(found, text_of_frames("1-5", &[&expected]), "{body:?}");
    };
    check(&call_completed(Some("counted"), None), r#""success":true,"data":"counted""#);
    check(&call_completed(Some("{\"b\": [1,\r\n 2]\n}"), None), r#""success":true,"data":{"b":[1,2]}"#);
    check(&call_completed(Some("7"), None), r#""success":true,"data":7"#);
    check(&call_completed(Some("7 or 8"), None), r#""success":true,"data":"7 or 8""#);
    check(&call_completed(Some("1e999"), None), r#""success":true,"data":"1e999""#);
    check(&call_completed(Some(""), None), r#""success":true,"data":"""#);
    check(&call_completed(None, None), r#""success":true,"data":"""#);
    check(&call_completed(None, Some("too slow")), r#""success":false,"error":"too slow""#);
}

#[test]
fn a_refused_call_comes_before_its_result() {
    let refused = EventBody::ToolCallCompleted(ToolCallCompleted {
        input: Some(json!({"x": 1}).into()),
        call_id: "c".into(),
        name: "kb__drop".into(),
        error: Some(ToolError::new("denied", "no")),
        ..Default::default()
    });
    let call = r#"{"id":"c","function":{"name":"kb__drop","arguments":"{\"x\":1}"}}"#;
    let call = format!(r#"{{"type":"tool_call","tool_call":{call},"toolCall":{call}}}"#);
    let result =
        r#"{"type":"tool_result","result":{"success":false,"error":"no","toolName":"kb__drop","toolCallId":"c"}}"#;
    let found = frames(Wire::Agent, Detail::All, ("1-4", "1-5"), &refused);
    assert_eq!(found, text_of_frames("1-5", &[&call, result]));
    let chat = r#"{"type":"mcp_tool","tool":"kb__drop","status":"error","error":"no"}"#;
    assert_eq!(frames(Wire::Chat, Detail::All, ("1-4", "1-5"), &refused), text_of_frames("1-5", &[chat]));
}

#[test]
fn the_agent_wire_shows_agent_states() {
    let check = |view: View, line: &'static str, expected: &[&str]| {
        let found = frames_in(view, "1-4", &Event::parse(line.into()).unwrap());
        assert_eq!(found, text_of_frames("1-5", expected), "{line}");
    };
    let waiting = r#"1-5 0 agent.state {"state":"waiting_on_user"}"#;
    let shown = r#"{"type":"agent_state","state":"waiting_on_user","contextType":"project"}"#;
    check(of_project(Detail::All), waiting, &[shown]);
    check(of_project(Detail::NoDeltas), waiting, &[shown]);
    check(of_project(Detail::Messages), waiting, &[]);
    // Another route has started the run, so it has no context.
    let unnamed = r#"{"type":"agent_state","state":"waiting_on_user","contextType":null}"#;
    check(view(Wire::Agent, Detail::All), waiting, &[unnamed]);
    check(view(Wire::Chat, Detail::All), waiting, &[]);
    check(view(Wire::Text, Detail::All), waiting, &[]);
    check(of_project(Detail::All), r#"1-5 0 agent.state {"phase":"dreaming"}"#, &[]);
}

#[test]
fn a_line_break_starts_another_data_line() {
    let check = |text: &str, lines: &[&str]| {
        let expected: String = lines.iter().map(|line| format!("data: {line}\n")).collect();
        let expected = format!("id: 1-5\n{expected}\n");
        assert_eq!(frames(Wire::Text, Detail::All, ("1-4", "1-5"), &delta(text)), expected, "{text:?}");
    };
    check("a\nb", &["a", "b"]);
    check("\n", &["", ""]);
    check("\n\n", &["", "", ""]);
    check("a\n", &["a", ""]);
    check("a\r\nb\rc", &["a", "b", "c"]);
    check("id: 9-9\ndata: x\n\nevent: y", &["id: 9-9", "data: x", "", "event: y"]);
}

#[test]
fn views_without_deltas_show_the_complete_message() {
    let check = |detail, body: &EventBody<'_>, [native, chat, text]: [bool; 3]| {
        let wires = [Wire::Native, Wire::Chat, Wire::Agent, Wire::Text];
        let found = wires.map(|wire| !frames(wire, detail, ("1-4", "1-5"), body).is_empty());
        // The agent wire shows calls where the chat wire does.
        assert_eq!(found, [native, chat, chat, text], "{detail:?} {body:?}");
    };
    for detail in [Detail::NoDeltas, Detail::Messages] {
        check(detail, &delta("piece"), [detail == Detail::NoDeltas, false, false]);
        check(detail, &message_completed("whole"), [true, true, true]);
        check(detail, &message_completed(""), [true, false, false]);
        check(detail, &run_failed(), [true, true, true]);
        check(detail, &run_completed(), [true, true, true]);
        check(detail, &run_cancelled(), [true, true, true]);
        check(detail, &call_started(), [detail == Detail::NoDeltas, detail == Detail::NoDeltas, false]);
        check(detail, &run_queued(), [detail == Detail::NoDeltas, true, false]);
    }
    let whole = frames(Wire::Text, Detail::Messages, ("1-4", "1-5"), &message_completed("a\nb"));
    assert_eq!(whole, "id: 1-5\ndata: a\ndata: b\n\n");
}

#[test]
fn an_event_that_supersedes_shown_events_is_marked() {
    let marked =
        |first: &str, base: &str| format!(r#"{},"superseded":true,"base":"{base}"}}"#, &first[..first.len() - 1]);
    let (mark, session) = (|base: &str| marked(META, base), |base: &str| marked(SESSION, base));
    let check = |detail, previous: &str, base: &str, is_marked: bool| {
        let at = (previous, "2-1");
        let (chat, agent, text) = if is_marked {
            (
                text_of_frames("2-1", &[&mark(base)]),
                text_of_frames("2-1", &[&session(base)]),
                format!(": superseded after {base}\n"),
            )
        } else {
            Default::default()
        };
        let event = Event::new(EventId::new(2, 1), DateTime::UNIX_EPOCH, &attempt_started(base));
        assert_eq!(frames_in(of_project(detail), previous, &event), agent, "{base} after {previous}");
        assert_eq!(frames(Wire::Chat, detail, at, &attempt_started(base)), chat, "{base} after {previous}");
        assert_eq!(frames(Wire::Text, detail, at, &attempt_started(base)), text, "{base} after {previous}");
    };
    check(Detail::All, "1-9", "1-1", true);
    check(Detail::NoDeltas, "1-9", "1-1", true);
    check(Detail::Messages, "1-9", "1-1", false);
    check(Detail::All, "1-1", "1-1", false);
    // Another client may have seen more events.
    check(Detail::All, "1-1", "1-3", false);
    // The end of a dead worker's run supersedes events, and is still an end.
    let base = Some(EventId::new(1, 1));
    let ended = EventBody::RunCancelled(RunCancelled { base, message_id: None, usage: Usage::default() });
    let chat = format!("data: {}\n\nid: 2-1\ndata: {{\"type\":\"done\"}}\n\n", mark("1-1"));
    assert_eq!(frames(Wire::Chat, Detail::All, ("1-9", "2-1"), &ended), chat);
    let text = ": superseded after 1-1\nid: 2-1\ndata: [DONE]\n\n";
    assert_eq!(frames(Wire::Text, Detail::All, ("1-9", "2-1"), &ended), text);
    let event = Event::new(EventId::new(2, 1), DateTime::UNIX_EPOCH, &ended);
    let agent = [&session("1-1"), r#"{"type":"done","usage":{"total_tokens":0}}"#, "[DONE]"];
    assert_eq!(frames_in(of_project(Detail::All), "1-9", &event), text_of_frames("2-1", &agent));
}

#[test]
fn wires_skip_events_of_newer_versions_except_the_end() {
    let check = |line: &'static str, chat: &[&str], agent: &[&str]| {
        for (wire, expected) in [(Wire::Chat, chat), (Wire::Agent, agent)] {
            let found = frames_in(view(wire, Detail::All), "1-1", &Event::parse(line.into()).unwrap());
            assert_eq!(found, text_of_frames("1-2", expected), "{wire:?} {line}");
        }
    };
    check("1-2 0 dream.dreamt {}", &[], &[]);
    check(r#"1-2 0 message.delta {"pieces":[]}"#, &[], &[]);
    let error = r#"{"type":"error","error":"the run has failed"}"#;
    check(r#"1-2 0 run.failed {"why":"x"}"#, &[error, r#"{"type":"done"}"#], &[error, "[DONE]"]);
    let done = r#"{"type":"done","usage":{"total_tokens":0}}"#;
    check(r#"1-2 0 run.completed {"used":[]}"#, &[r#"{"type":"done"}"#], &[done, "[DONE]"]);
}

mod a2a;
mod ag_ui;
mod blocks;
mod files;
mod finish_reasons;
mod langgraph;
mod table;
