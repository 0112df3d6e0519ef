//! A UI message of the AI SDK, as a client has it that followed the message's streams. The history of a chat has these
//! messages.

use std::{collections::HashMap, str::Chars};

use chrono::{DateTime, Utc};
use holdfast_shared::{
    event::CitationAdded,
    message::Version,
    parts::{CallApproval, CallProgress, MessagePart, MessageParts, QuestionPart, ToolCallPart},
    plan::Plan,
    storage::{StoredAnswer, StoredCall},
};
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value, json};

use super::{
    Chunk, REASONING,
    chunk::{ApprovalDetails, CallSummary, UiMetadata, is_dynamic},
    output_of,
};

/// `UIMessage` of the AI SDK.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct UiMessage {
    pub id: String,
    pub role: &'static str,
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    #[schema(value_type = Vec<Object>)]
    pub parts: Vec<Value>,
}

impl UiMessage {
    /// Returns a stored message without parts.
    pub fn of_stored(created_at: DateTime<Utc>, id: String, role: &'static str, parts: Vec<Value>) -> Self {
        let metadata = UiMetadata { created_at: Some(created_at), ..UiMetadata::default() };
        Self { id, role, metadata: fields(json!(metadata)), parts }
    }

    /// Returns the answer of an ended run.
    pub fn of_answer(answer: &StoredAnswer, parts: &MessageParts, text: &str) -> Self {
        let metadata = UiMetadata {
            run_id: Some(answer.run_id),
            conversation_id: Some(answer.conversation_id),
            created_at: DateTime::from_timestamp_millis(parts.ended_ms),
            status: Some(answer.status),
            error: answer.error.clone(),
            usage: Some(answer.usage),
            finish_reason: answer.finish_reason,
        };
        let parts = parts_of(answer, parts, text);
        Self { id: answer.message_id.to_string(), role: "assistant", metadata: fields(json!(metadata)), parts }
    }

    /// Returns the part of a plan.
    pub fn plan_part(plan: Plan) -> Value {
        json!(Chunk::DataPlan { id: plan.id, data: plan.into() })
    }

    /// Adds the number of this version, if the message has several.
    pub fn with_version(mut self, version: Option<&Version>) -> Self {
        if let Some(version) = version {
            self.metadata.insert("version".into(), json!(version));
        }
        self
    }
}

fn parts_of(answer: &StoredAnswer, parts: &MessageParts, text: &str) -> Vec<Value> {
    let calls: HashMap<&str, &StoredCall> = answer.calls.iter().map(|call| (call.call_id.as_str(), call)).collect();
    if answer.defaults.has_deltas() {
        let mut rest = text.chars();
        return parts.parts.iter().flat_map(|part| with_files(part, &calls, &mut rest)).collect();
    }
    // A client without deltas has the text as its last part.
    let is_delta = |part: &&MessagePart| match part {
        MessagePart::Text { .. } | MessagePart::Reasoning { .. } => true,
        MessagePart::Call(call) => matches!(call.state, CallProgress::Incomplete(_)),
        _ => false,
    };
    let others = parts.parts.iter().filter(|part| !is_delta(part));
    let others = others.flat_map(|part| with_files(part, &calls, &mut "".chars()));
    others.chain((!text.is_empty()).then(|| text_part(text.to_owned()))).collect()
}

/// Returns the part as the SDK has it; the files of a call come before its end. `rest` is the text after the parts before.
fn with_files(part: &MessagePart, calls: &HashMap<&str, &StoredCall>, rest: &mut Chars<'_>) -> Vec<Value> {
    let mut parts = Vec::new();
    if let MessagePart::CallEnd { call_id } = part
        && let Some(call) = calls.get(call_id.as_str())
    {
        parts.extend(call.files().iter().map(|file| json!(Chunk::of_file(call_id, file))));
    }
    parts.extend(part_of(part, calls, rest));
    parts
}

/// Returns the part as the SDK has it; `rest` is the text after the parts before. `None` for a part of a later version.
fn part_of(part: &MessagePart, calls: &HashMap<&str, &StoredCall>, rest: &mut Chars<'_>) -> Option<Value> {
    Some(match part {
        MessagePart::Step => json!({"type": "step-start"}),
        MessagePart::Text { chars } => text_part(rest.take(*chars).collect()),
        MessagePart::Reasoning { text, duration_ms } => json!({
            "type": "reasoning", "id": REASONING, "text": text, "state": "done",
            "providerMetadata": {"holdfast": {"durationMs": duration_ms}}
        }),
        MessagePart::Call(call) => call_part(call, calls.get(call.call_id.as_str()).copied()),
        MessagePart::CallEnd { call_id } => {
            let duration_ms = calls.get(call_id.as_str()).and_then(|call| call.duration_ms).unwrap_or_default();
            let data = CallSummary { tool_call_id: call_id.clone(), duration_ms, entities: Vec::new() };
            json!(Chunk::DataCall { id: call_id.clone(), data })
        }
        MessagePart::Question(question) => question_part(question),
        MessagePart::Context { payload } => json!(Chunk::DataContext { id: "context", data: payload.clone() }),
        MessagePart::Warning { payload } => json!(Chunk::DataWarning { data: payload.clone() }),
        MessagePart::Source { payload } => json!(Chunk::source(CitationAdded::deserialize(payload).ok()?)),
        MessagePart::Questions { payload } => json!(Chunk::DataQuestions { data: payload.clone() }),
        MessagePart::Dropped { .. } | MessagePart::Unknown => return None,
    })
}

fn text_part(text: String) -> Value {
    json!({"type": "text", "text": text, "state": "done"})
}

fn call_part(call: &ToolCallPart, outcome: Option<&StoredCall>) -> Value {
    let mut part = if is_dynamic(&call.name, call.by) {
        json!({"type": "dynamic-tool", "toolName": call.name, "toolCallId": call.call_id})
    } else {
        json!({"type": format!("tool-{}", call.name), "toolCallId": call.call_id})
    };
    if let CallProgress::Incomplete(input) = &call.state {
        part["state"] = "input-streaming".into();
        if !input.is_empty() {
            part["rawInput"] = input.as_str().into();
        }
        return part;
    }
    part["input"] = outcome.map(StoredCall::input).unwrap_or_default();
    if call.by_worker {
        part["providerExecuted"] = true.into();
    }
    if let Some(approval) = &call.approval {
        part["approval"] = approval_of(approval);
    }
    part["state"] = match (&call.state, outcome.and_then(StoredCall::error)) {
        (CallProgress::Incomplete(_) | CallProgress::Started, _) => "input-available",
        (CallProgress::Asked, _) => "approval-requested",
        (CallProgress::Withdrawn, _) => "output-denied",
        (CallProgress::Ended, Some(error)) if error.code == "denied" => "output-denied",
        (CallProgress::Ended, Some(error)) => {
            part["errorText"] = error.message.into();
            "output-error"
        }
        (CallProgress::Ended, None) => {
            let output = outcome.and_then(|call| call.output.clone()).unwrap_or_default();
            part["output"] = output_of(is_dynamic(&call.name, call.by), output);
            "output-available"
        }
    }
    .into();
    part
}

fn approval_of(approval: &CallApproval) -> Value {
    let mut value = json!({"id": approval.id});
    if let Some(approved) = approval.approved {
        value["approved"] = approved.into();
    }
    if let Some(reason) = &approval.reason {
        value["reason"] = reason.as_str().into();
    }
    value
}

/// The SDK's own approval has no field for the kind of question, or for an edited input.
fn question_part(question: &QuestionPart) -> Value {
    let (approval_id, call_id) = (question.approval_id, question.call_id.clone());
    let data = ApprovalDetails { approval_id, call_id, kind: question.kind, expires_at: question.expires_at };
    let mut part = json!(Chunk::DataQuestion { id: approval_id, data });
    if question.edited {
        part["data"]["edited"] = true.into();
    }
    part
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use holdfast_shared::{
        agent::StreamMode, approval::ApprovalKind, run::RunStatus, storage::StreamDefaults, usage::Usage,
    };
    use uuid::Uuid;

    use super::*;

    /// Returns the parts of an answer with this text, on a stream with this mode.
    fn rendered(parts: Vec<MessagePart>, text: &str, mode: StreamMode) -> Vec<Value> {
        let call = |id: &str, output: Option<&str>, error: Option<&str>| StoredCall {
            call_id: id.into(),
            status: "completed".into(),
            input: r#"{"amount":1}"#.into(),
            output: output.map(str::to_owned),
            error: error.map(str::to_owned),
            files: None,
            duration_ms: Some(7),
        };
        let answer = StoredAnswer {
            run_id: Uuid::nil(),
            conversation_id: Uuid::nil(),
            message_id: Uuid::nil(),
            input_message_id: Uuid::nil(),
            status: RunStatus::Completed,
            usage: Usage::default(),
            finish_reason: None,
            error: None,
            finished_at: DateTime::UNIX_EPOCH,
            defaults: StreamDefaults { mode, writes_deltas: true },
            parts: None,
            calls: vec![
                call("done", Some("paid"), None),
                call("denied", None, Some(r#"{"code":"denied","message":"no"}"#)),
                call("failed", None, Some(r#"{"code":"tool_failed","message":"it broke"}"#)),
            ],
        };
        UiMessage::of_answer(&answer, &MessageParts { ended_ms: 0, parts }, text).parts
    }

    fn call(id: &str, state: CallProgress) -> MessagePart {
        let (call_id, name) = (id.to_owned(), "bank__pay".to_owned());
        MessagePart::Call(ToolCallPart { call_id, name, by: None, state, by_worker: true, approval: None })
    }

    #[test]
    fn each_text_part_has_its_characters_of_the_message() {
        let texts = vec![MessagePart::Text { chars: 3 }, MessagePart::Step, MessagePart::Text { chars: 9 }];
        let parts = rendered(texts, "süß!", StreamMode::Events);
        let expected = [json!({"type": "text", "text": "süß", "state": "done"}), json!({"type": "step-start"})];
        assert_eq!(parts[..2], expected);
        assert_eq!(parts[2]["text"], "!", "a shorter text has no more characters");
    }

    #[test]
    fn a_part_of_a_later_version_hides_no_other() {
        let stored = r#"{"ended_ms":0,"parts":[{"type":"dream","of":1},{"type":"text","chars":2}]}"#;
        let MessageParts { parts, .. } = serde_json::from_str(stored).unwrap();
        assert_eq!(rendered(parts, "ab", StreamMode::Events), [text_part("ab".into())]);
    }

    #[test]
    fn reasoning_has_its_duration() {
        let reasoning = MessagePart::Reasoning { text: "The tide".into(), duration_ms: 3_000 };
        let parts = rendered(vec![reasoning], "", StreamMode::Events);
        assert_eq!(parts[0]["providerMetadata"], json!({"holdfast": {"durationMs": 3_000}}));
    }

    #[test]
    fn a_question_marks_an_edited_input() {
        let question = |edited| {
            let (approval_id, call_id, expires_at) = (Uuid::max(), "c".into(), DateTime::UNIX_EPOCH);
            let kind = ApprovalKind::Policy;
            MessagePart::Question(QuestionPart { approval_id, call_id, kind, expires_at, edited })
        };
        let parts = rendered(vec![question(true), question(false)], "", StreamMode::Events);
        assert_eq!((&parts[0]["data"]["edited"], &parts[1]["data"]["edited"]), (&json!(true), &Value::Null));
    }

    #[test]
    fn a_call_has_the_outcome_of_its_row() {
        let calls = ["done", "denied", "failed"].map(|id| call(id, CallProgress::Ended));
        let parts = rendered(calls.to_vec(), "", StreamMode::Events);
        let states: Vec<&Value> = parts.iter().map(|part| &part["state"]).collect();
        assert_eq!(states, ["output-available", "output-denied", "output-error"]);
        assert_eq!((&parts[0]["output"], &parts[2]["errorText"]), (&json!("paid"), &json!("it broke")));
        assert_eq!((&parts[0]["input"], &parts[0]["providerExecuted"]), (&json!({"amount": 1}), &json!(true)));
    }

    #[test]
    fn without_deltas_the_text_comes_last_and_nothing_half_written_is_shown() {
        let parts = vec![
            MessagePart::Reasoning { text: "why".into(), duration_ms: 1 },
            MessagePart::Text { chars: 2 },
            call("cut", CallProgress::Incomplete("{\"am".into())),
            MessagePart::Step,
        ];
        let shown = rendered(parts, "ab", StreamMode::Messages);
        let kinds: Vec<&Value> = shown.iter().map(|part| &part["type"]).collect();
        assert_eq!(kinds, ["step-start", "text"]);
    }
}
