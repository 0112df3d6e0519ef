//! The table of `docs/wires.md`: each kind of event on each wire, as the code writes it.

use std::{collections::BTreeMap, path::Path};

use holdfast_shared::event::EventKind;
use serde_json::{Map, Value};

use super::*;
use crate::{
    protocols::{
        a2a::wire::{A2aFold, A2aVersion, A2aView},
        ag_ui::wire::{AgUiFold, AgUiVersion, AgUiView},
        langgraph::wire::{LangFold, LangModes, LangView},
        openai::wire::{
            CompletionFold, CompletionHead, CompletionView, ResponseFold, ResponseHead, ResponseId, ResponseView,
        },
    },
    wire::WireFold,
};

/// The columns of the table, after the kind.
const COLUMNS: [&str; 9] = ["chat", "agent", "text", "ai-sdk", "responses", "completions", "AG-UI", "LangGraph", "A2A"];

/// The schemas that other schemas name.
type Referred = BTreeMap<String, Value>;

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// Returns a value of a schema, with all its fields but those of rare events.
fn example(schema: &Value, referred: &Referred) -> Value {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return referred.get(name).map_or(Value::Null, |schema| example(schema, referred));
    }
    for union in ["allOf", "oneOf", "anyOf"] {
        let options = schema[union].as_array().into_iter().flatten();
        let values: Vec<Value> =
            options.map(|option| example(option, referred)).filter(|value| !value.is_null()).collect();
        match (union, values.first()) {
            ("allOf", Some(Value::Object(_))) => {
                return values.iter().filter_map(Value::as_object).flatten().map(owned).collect::<Map<_, _>>().into();
            }
            (_, Some(first)) => return first.clone(),
            _ => {}
        }
    }
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    let kinds = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    match kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null") {
        Some("object") => {
            let rare = ["base", "child_run_id", "error"];
            let fields = schema["properties"].as_object().into_iter().flatten();
            let is_required =
                |name: &str| schema["required"].as_array().is_some_and(|names| names.contains(&name.into()));
            let fields = fields.filter(|(name, _)| is_required(name) || !rare.contains(&name.as_str()));
            fields.map(|(name, schema)| (name.clone(), example(schema, referred))).collect::<Map<_, _>>().into()
        }
        Some("array") => vec![example(&schema["items"], referred)].into(),
        Some("integer" | "number") => 1.into(),
        Some("boolean") => true.into(),
        Some("string") => match schema["format"].as_str() {
            Some("uuid") => Uuid::max().to_string().into(),
            Some("date-time") => "2026-11-27T00:00:00.000Z".into(),
            _ => "x".into(),
        },
        _ => Value::Null,
    }
}

/// Returns the payload of each kind as JSON.
fn payloads() -> Vec<(EventKind, Value)> {
    let mut referred = Vec::new();
    let schemas = EventBody::schemas(&mut referred);
    let referred = referred.into_iter().map(|(name, schema)| (name, json!(schema))).collect::<Referred>();
    let payload = |(kind, schema)| {
        let mut payload = example(&json!(schema), &referred);
        match kind {
            EventKind::RunQueued => payload["base"] = "0-0".into(),
            EventKind::AttemptStarted => {
                (payload["base"], payload["reason"]) = ("0-1".into(), "claimed".into());
            }
            EventKind::RunFailed => payload["error"] = json!({"code": "x", "message": "x"}),
            EventKind::AgentState => payload["state"] = "thinking".into(),
            _ => {}
        }
        (kind, payload)
    };
    schemas.into_iter().map(payload).collect()
}

/// Returns a log that ends with an event of this kind, and how many of its events come before.
fn log_of(kind: EventKind, all: &[(EventKind, Value)]) -> Vec<Event> {
    let before: &[EventKind] = match kind {
        EventKind::RunQueued => &[],
        EventKind::AttemptStarted => &[EventKind::RunQueued],
        EventKind::ToolCallCompleted => &[EventKind::RunQueued, EventKind::AttemptStarted, EventKind::ToolCallStarted],
        EventKind::ApprovalResolved => &[EventKind::RunQueued, EventKind::AttemptStarted, EventKind::ApprovalRequested],
        EventKind::StepCompleted => &[EventKind::RunQueued, EventKind::AttemptStarted, EventKind::StepStarted],
        _ => &[EventKind::RunQueued, EventKind::AttemptStarted],
    };
    let ids = [EventId::new(0, 1), EventId::new(1, 1), EventId::new(1, 2), EventId::new(1, 3)];
    let event = |(id, kind): (EventId, &EventKind)| {
        let (_, payload) = all.iter().find(|(known, _)| known == kind).unwrap();
        let payload = payload.to_string();
        let body = EventBody::read(*kind, payload.as_bytes());
        assert_eq!(body.kind(), *kind, "the schema of {} and its reader differ: {payload}", kind.name());
        Event::new(id, DateTime::UNIX_EPOCH, &body)
    };
    ids.into_iter().zip(before.iter().chain([&kind])).map(event).collect()
}

/// Returns the names of some frames, each once, in order.
fn names(frames: &[u8], name: impl Fn(&str, &Value) -> String) -> String {
    let text = String::from_utf8(frames.to_vec()).unwrap();
    let mut names: Vec<String> = Vec::new();
    for block in text.split_inclusive("\n\n") {
        let field = |field: &str| block.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
        if field("data: ").is_empty() {
            continue;
        }
        let data = serde_json::from_str(field("data: ")).unwrap_or(Value::String(field("data: ").to_owned()));
        let name = format!("`{}`", name(field("event: "), &data));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

fn of_projection(wire: Wire, log: &[Event]) -> String {
    let (mut projector, mut frames) = (Projector::after(LogPosition::START, view(wire, Detail::All)), Vec::new());
    for event in log {
        frames.clear();
        projector.frame(&mut frames, event);
    }
    names(&frames, |_, data| match (wire, data) {
        (Wire::Text, Value::String(text)) if text != "[DONE]" => "text".to_owned(),
        (_, Value::String(text)) => text.clone(),
        (_, data) => data["type"].as_str().unwrap_or("text").to_owned(),
    })
}

fn of_fold<F: WireFold>(mut fold: F, view: &F::View, log: &[Event], name: impl Fn(&str, &Value) -> String) -> String {
    let mut frames = Vec::new();
    for event in log {
        frames.clear();
        fold.frame(view, &mut frames, event);
    }
    names(&with_client_bytes(&frames, b"1"), name)
}

/// Returns the frames of the last event of a log on each wire.
fn row(log: &[Event]) -> [String; 9] {
    let detail = Detail::All;
    let ag_ui = AgUiView { detail, thread_id: "t".into(), run_id: "r".into(), after: None, version: AgUiVersion::One };
    let head = ResponseHead {
        id: ResponseId::first_of(Uuid::nil()),
        conversation_id: Uuid::nil(),
        message_id: Uuid::nil(),
        created_at: 0,
        model: "default".into(),
        previous_response_id: None,
        background: false,
        store: true,
        metadata: Map::new(),
        namespaces: Vec::new(),
        repeated: Map::new(),
    };
    let responses = ResponseView { detail, head: head.into(), after: None };
    let head = CompletionHead { run_id: Uuid::nil(), created_at: 0, model: "default".into() };
    let completions = CompletionView { detail, head: head.into(), after: None, has_usage: false };
    let modes = ["values", "updates", "messages-tuple", "custom"];
    let modes = modes.iter().try_fold(LangModes::default(), |modes, name| modes.with(name)).unwrap();
    let langgraph = LangView { modes, ..LangView::default() };
    let a2a = A2aView {
        version: A2aVersion::V1,
        detail,
        task_id: Uuid::nil(),
        context_id: "c".into(),
        artifact_id: Uuid::nil(),
        files: "/v1/files/".into(),
        after: None,
    };
    let kind_of_chunk = |_: &str, data: &Value| match data {
        Value::String(done) => done.clone(),
        data if data["error"].is_object() => "error".to_owned(),
        data if data["choices"][0]["finish_reason"].is_string() => "finish_reason".to_owned(),
        data => data["choices"][0]["delta"].as_object().unwrap().keys().next_back().unwrap().clone(),
    };
    [
        of_projection(Wire::Chat, log),
        of_projection(Wire::Agent, log),
        of_projection(Wire::Text, log),
        of_projection(Wire::AiSdk, log),
        of_fold(ResponseFold::of_run(Uuid::nil()), &responses, log, |kind, _| {
            kind.trim_start_matches("response.").to_owned()
        }),
        of_fold(CompletionFold::new(), &completions, log, kind_of_chunk),
        of_fold(AgUiFold::of_answer(Uuid::nil()), &ag_ui, log, |_, data| data["type"].as_str().unwrap().to_owned()),
        of_fold(LangFold::of_answer(Uuid::nil()), &langgraph, log, |kind, _| kind.to_owned()),
        of_fold(A2aFold::default(), &a2a, log, |_, data| {
            data["result"].as_object().unwrap().keys().next().unwrap().clone()
        }),
    ]
}

fn table() -> String {
    let all = payloads();
    let line = |first: &str, cells: &[String]| {
        let cells = cells.iter().map(|cell| if cell.is_empty() { "–" } else { cell });
        format!("| {first} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let heads = line("event of the log", &COLUMNS.map(str::to_owned));
    let rule = format!("|{}\n", "---|".repeat(COLUMNS.len() + 1));
    let rows = EventKind::ALL.iter().map(|kind| line(&format!("`{}`", kind.name()), &row(&log_of(*kind, &all))));
    heads + &rule + &rows.collect::<String>()
}

#[test]
fn the_page_of_wires_has_the_frames_of_each_event() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/wires.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- the table of events -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- the end of the table -->\n").unwrap();
    let table = table();
    let current = format!("{before}<!-- the table of events -->\n{table}<!-- the end of the table -->\n{after}");
    if std::env::var_os("HOLDFAST_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    assert!(page == current, "set HOLDFAST_UPDATE_DOCS to write the table of docs/wires.md: {table}");
}
