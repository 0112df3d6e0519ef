//! Tasks and their updates, in the two forms of the protocol: 1.0, and 0.3 with a `kind` in each object.

use std::borrow::Cow;

use holdfast_shared::{
    file::{ContentPart, parts_of_message},
    message::Message,
    run::{Run, RunStatus},
    timestamp,
};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{A2aVersion, A2aView};

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum A2aState {
    Submitted,
    Working,
    InputRequired,
    Completed,
    Failed,
    Canceled,
}

/// A part of a message of the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum A2aPart {
    Text(String),
    Data(Value),
}

/// The status of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct A2aStatus {
    pub state: A2aState,
    /// The words of the agent about the state.
    pub parts: Vec<A2aPart>,
    /// The name of the status among those of the task.
    pub name: String,
    /// When the task got it, in ms since the Unix epoch.
    pub at_ms: i64,
}

/// A task.
#[derive(Debug, Clone, PartialEq)]
pub struct A2aTask {
    pub status: A2aStatus,
    /// The answer so far; `None` if the task is listed without it.
    pub text: Option<String>,
    /// The messages of the user, if the client wants them.
    pub history: Vec<Message>,
}

/// A frame of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum A2aUpdate<'a> {
    Task(A2aTask),
    Status {
        status: A2aStatus,
        /// The event that the update shows, if it is more than a change of the state.
        event: Option<Value>,
    },
    Text {
        text: Cow<'a, str>,
        /// Whether the text follows the one before, or replaces all.
        appends: bool,
    },
}

/// A text in a stream. Most updates are texts, so they are written without a tree of values.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TextUpdate<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    task_id: Uuid,
    context_id: &'a str,
    artifact: TextArtifact<'a>,
    append: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TextArtifact<'a> {
    artifact_id: Uuid,
    name: &'static str,
    parts: [TextPart<'a>; 1],
}

#[derive(Serialize)]
struct TextPart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    text: &'a str,
}

/// An update in the form of 1.0, under the name of its kind.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum NamedUpdate<'a> {
    ArtifactUpdate(TextUpdate<'a>),
}

impl A2aState {
    /// Returns the state of a run with this status.
    pub const fn of(status: RunStatus) -> Self {
        match status {
            RunStatus::Queued => Self::Submitted,
            RunStatus::Running => Self::Working,
            RunStatus::Waiting => Self::InputRequired,
            RunStatus::Completed => Self::Completed,
            RunStatus::Failed => Self::Failed,
            RunStatus::Cancelled => Self::Canceled,
        }
    }

    const fn is_final(self) -> bool {
        !matches!(self, Self::Submitted | Self::Working)
    }

    const fn name(self, version: A2aVersion) -> &'static str {
        let (newest, older) = match self {
            Self::Submitted => ("TASK_STATE_SUBMITTED", "submitted"),
            Self::Working => ("TASK_STATE_WORKING", "working"),
            Self::InputRequired => ("TASK_STATE_INPUT_REQUIRED", "input-required"),
            Self::Completed => ("TASK_STATE_COMPLETED", "completed"),
            Self::Failed => ("TASK_STATE_FAILED", "failed"),
            Self::Canceled => ("TASK_STATE_CANCELED", "canceled"),
        };
        match version {
            A2aVersion::V1 => newest,
            A2aVersion::V03 => older,
        }
    }
}

impl A2aStatus {
    /// Returns the status of a run as its row has it.
    pub fn of(run: &Run) -> Self {
        let at = run.finished_at.or(run.started_at).unwrap_or(run.created_at);
        let parts = run.error.iter().map(|error| A2aPart::Text(error.message.clone())).collect();
        let name = run.last_event_id.to_string();
        Self { state: A2aState::of(run.status), parts, name, at_ms: at.timestamp_millis() }
    }
}

/// Returns the response with a result.
pub fn response(request_id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request_id, "result": result})
}

impl A2aView {
    /// Returns a task as the result of a request, or as an item of a list.
    pub fn task(&self, task: &A2aTask) -> Value {
        let mut value = json!({
            "id": self.task_id, "contextId": self.context_id, "status": self.status(&task.status),
        });
        let texts = task.text.iter().filter(|text| !text.is_empty());
        if task.text.is_some() {
            value["artifacts"] = texts.map(|text| json!(self.artifact(text))).collect();
        }
        if !task.history.is_empty() {
            value["history"] = task.history.iter().map(|message| self.message(message)).collect();
        }
        self.of_kind("task", value)
    }

    /// Appends an update as the result of a response in a stream.
    pub fn write_update(&self, buffer: &mut Vec<u8>, update: &A2aUpdate<'_>) {
        let written = match update {
            A2aUpdate::Task(task) => serde_json::to_writer(buffer, &self.result(task)),
            A2aUpdate::Status { status, event } => serde_json::to_writer(buffer, &self.changed(status, event.as_ref())),
            A2aUpdate::Text { text, appends } => {
                let (kind, context_id) = (self.kind("artifact-update"), &self.context_id);
                let (task_id, artifact) = (self.task_id, self.artifact(text));
                let update = TextUpdate { kind, task_id, context_id, artifact, append: *appends };
                match self.version {
                    A2aVersion::V1 => serde_json::to_writer(buffer, &NamedUpdate::ArtifactUpdate(update)),
                    A2aVersion::V03 => serde_json::to_writer(buffer, &update),
                }
            }
        };
        written.expect("an update is always valid JSON");
    }

    fn changed(&self, status: &A2aStatus, event: Option<&Value>) -> Value {
        let mut value = json!({"taskId": self.task_id, "contextId": self.context_id, "status": self.status(status)});
        if let Some(event) = event {
            value["metadata"] = event.clone();
        }
        if self.version == A2aVersion::V03 {
            value["final"] = status.state.is_final().into();
        }
        self.named("statusUpdate", self.of_kind("status-update", value))
    }

    /// Returns a task as the answer to a message.
    pub fn result(&self, task: &A2aTask) -> Value {
        self.named("task", self.task(task))
    }

    fn named(&self, name: &str, value: Value) -> Value {
        match self.version {
            A2aVersion::V1 => json!({name: value}),
            A2aVersion::V03 => value,
        }
    }

    fn kind(&self, kind: &'static str) -> Option<&'static str> {
        (self.version == A2aVersion::V03).then_some(kind)
    }

    fn of_kind(&self, kind: &'static str, mut value: Value) -> Value {
        if let Some(kind) = self.kind(kind) {
            value["kind"] = kind.into();
        }
        value
    }

    fn status(&self, status: &A2aStatus) -> Value {
        let at = chrono::DateTime::from_timestamp_millis(status.at_ms).unwrap_or_default();
        let mut value = json!({"state": status.state.name(self.version), "timestamp": timestamp::text(at)});
        if !status.parts.is_empty() {
            let parts: Vec<Value> = status.parts.iter().map(|part| self.part(part)).collect();
            let message = json!({
                "messageId": format!("{}:{}", self.task_id, status.name), "taskId": self.task_id,
                "contextId": self.context_id, "role": self.role("ROLE_AGENT", "agent"), "parts": parts,
            });
            value["message"] = self.of_kind("message", message);
        }
        value
    }

    fn artifact<'a>(&self, text: &'a str) -> TextArtifact<'a> {
        let part = TextPart { kind: self.kind("text"), text };
        TextArtifact { artifact_id: self.artifact_id, name: "answer", parts: [part] }
    }

    fn part(&self, part: &A2aPart) -> Value {
        match part {
            A2aPart::Text(text) => self.of_kind("text", json!({"text": text})),
            A2aPart::Data(data) => self.of_kind("data", json!({"data": data})),
        }
    }

    fn role(&self, newest: &'static str, older: &'static str) -> &'static str {
        match self.version {
            A2aVersion::V1 => newest,
            A2aVersion::V03 => older,
        }
    }

    /// Returns a user's message. Files have the addresses of this server.
    fn message(&self, message: &Message) -> Value {
        let text = message.content.to_stored();
        let parts = parts_of_message(&text, &message.attachments);
        let parts: Vec<Value> = parts.into_iter().map(|part| self.content_part(part)).collect();
        let id = message.client_id.clone().unwrap_or_else(|| message.id.to_string());
        let value = json!({
            "messageId": id, "taskId": self.task_id, "contextId": self.context_id,
            "role": self.role("ROLE_USER", "user"), "parts": parts,
        });
        self.of_kind("message", value)
    }

    fn content_part(&self, part: ContentPart<'_>) -> Value {
        let file = match part {
            ContentPart::Text(text) => return self.of_kind("text", json!({"text": text})),
            ContentPart::File(file) => file,
        };
        let address = format!("{}{}", self.files, file.file_id);
        match self.version {
            A2aVersion::V1 => json!({"url": address, "mediaType": file.media_type}),
            A2aVersion::V03 => {
                json!({"kind": "file", "file": {"uri": address, "mimeType": file.media_type}})
            }
        }
    }
}
