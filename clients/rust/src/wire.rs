//! Types of the API. Made from /openapi.json by clients/generate_types.py; changes belong there.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::EventId;

/// A committed message and its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AcceptedMessage {
    pub message: Message,
    pub run: Run,
}

/// A committed run with its message and conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AcceptedRun {
    pub conversation: Conversation,
    pub message: Message,
    pub run: Run,
}

/// Where in its application the client was when it sent the message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentContext {
    /// The kind of thing that the client shows: for the planner `global`, `project`, `project_create`,
    /// `project_audit` or `project_forecast`.
    pub context_type: String,
    /// The thing that the client shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity_id: Option<String>,
    /// The kind of that thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "ontologyEntityType")]
    pub ontology_entity_type: Option<EntityType>,
    /// The part of a project that the user looks at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "projectFocus")]
    pub project_focus: Option<ProjectFocus>,
    /// The session's name; absent if the conversation's id is the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// The agent is in a state that no other event shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentStateEvent {
    /// The state.
    pub state: String,
    /// The tokens of the step that waits. Its `step.completed` has them again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A question about one call, as the API shows it. The answer counts for this exact input only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Approval {
    /// The call of that run: `call_` and a UUIDv7 in hexadecimal digits.
    pub call_id: String,
    /// Time of the database at which the question was settled; null while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<String>,
    /// Owner id of the approver; null if no approver decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// Arguments that replace `input`, if the approver changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_input: Option<Value>,
    /// Time of the database after which the sweeper denies the call.
    pub expires_at: String,
    /// UUIDv7, chosen by the worker that asks.
    pub id: String,
    /// Arguments of the call, as the model wrote them.
    pub input: Value,
    /// Tells the approver whether the agent's policy or a crash raised the question.
    pub kind: ApprovalKind,
    /// Name of the tool, as `<server>__<tool>`.
    pub name: String,
    /// Free text that the approver sent with the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time of the database at which the run began to wait.
    pub requested_at: String,
    /// The run that asks and waits.
    pub run_id: String,
    /// `pending` until an answer, the expiry or the end of the run settles the question.
    pub status: ApprovalStatus,
}

/// The reason why the run asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ApprovalKind {
    #[serde(rename = "policy")]
    Policy,
    #[serde(rename = "unknown_outcome")]
    UnknownOutcome,
    #[serde(rename = "plan")]
    Plan,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// A run waits for a human's decision about a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalRequestedEvent {
    /// The approval.
    pub approval_id: String,
    /// On a question of a run below that comes during this run's wait: it supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The call that waits for it.
    pub call_id: String,
    /// The run below that asks; absent for a question of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<String>,
    /// When the approval counts as denied.
    pub expires_at: String,
    /// The arguments of the call.
    pub input: Value,
    /// Why a human must decide.
    pub kind: ApprovalKind,
    /// The tool.
    pub name: String,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// An approval is no longer pending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalResolvedEvent {
    /// The approval.
    pub approval_id: String,
    /// On the first event of an attempt: it supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The call that the approval is about.
    pub call_id: String,
    /// The run below that has asked; absent for a question of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<String>,
    /// The decision.
    pub decision: ApprovalStatus,
    /// The arguments that replace those of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_input: Option<Value>,
    /// The human's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// The state of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ApprovalStatus {
    #[serde(rename = "pending")]
    Pending,
    #[serde(rename = "approved")]
    Approved,
    #[serde(rename = "denied")]
    Denied,
    #[serde(rename = "expired")]
    Expired,
    #[serde(rename = "superseded")]
    Superseded,
    #[serde(rename = "cancelled")]
    Cancelled,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// A page of a run's approvals, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Approvals {
    pub items: Vec<Approval>,
    /// Whether the caller may decide them.
    pub may_decide: bool,
    /// The cursor of the next page, null at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A file of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Attachment {
    /// Bytes of its contents.
    pub bytes: u64,
    /// The file. Its owner may have deleted it.
    pub file_id: String,
    /// Its media type.
    pub media_type: String,
    /// Its name at the time of the message.
    pub name: String,
    /// Its place in the message: the number of bytes of UTF-8 of the text before it.
    pub offset: u64,
    /// `image` for a picture that models can see.
    pub r#type: AttachmentKind,
}

/// How a message has a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AttachmentKind {
    #[serde(rename = "image")]
    Image,
    #[serde(rename = "file")]
    File,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// Why a worker began an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AttemptReason {
    #[serde(rename = "claimed")]
    Claimed,
    #[serde(rename = "resumed")]
    Resumed,
    #[serde(rename = "drain")]
    Drain,
    #[serde(rename = "lease_expired")]
    LeaseExpired,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// A worker has begun an attempt at the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AttemptStartedEvent {
    /// The number of the attempt, from 1.
    pub attempt: u64,
    /// This event supersedes all events after its base.
    pub base: EventId,
    /// Workers that were lost with this run since its last completed step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crashes: Option<u64>,
    /// The number of crashes that fails the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_crashes: Option<u64>,
    /// Why the attempt began.
    pub reason: AttemptReason,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A copy of a briefing in a conversation, taken when the card was added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BriefingCard {
    /// The briefing that was copied; it may be deleted since.
    pub briefing_id: String,
    /// The briefing's own time, not the time of the card's message.
    pub created_at: String,
    /// The author's JSON at the time of the copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The author's label at the time of the copy, such as `P1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Summary at the time of the copy.
    pub summary: String,
    /// Title at the time of the copy.
    pub title: String,
}

/// The state of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallSoFar {
    /// The id of the call.
    pub call_id: String,
    /// The child run that answers the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<String>,
    /// Why there is no output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// When a call that the client executes expires without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The files that the tool has returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<ToolFile>>,
    /// The arguments once they are complete; null before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The arguments that the model has written so far, while they are incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_text: Option<String>,
    /// The tool.
    pub name: String,
    /// The text that the tool returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The status by the events.
    pub status: ToolCallStatus,
}

/// A passage that an answer cites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Citation {
    /// The number of the passage in the document, from 0.
    pub chunk: u64,
    /// The place after its last character.
    pub end: u64,
    /// The document.
    pub id: String,
    /// The page on which the passage begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u64>,
    /// How well it fits, within one search.
    pub score: f64,
    /// The place of its first character in the document's text, in Unicode scalar values.
    pub start: u64,
    /// The title of the document at the time of the answer.
    pub title: String,
}

/// The answer cites a passage for the first time. The event follows the delta that has the mark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CitationAddedEvent {
    /// The number in the answer's text, as in `[1]`.
    pub number: u64,
    /// The passage.
    pub source: Citation,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// The step of the model had a mark that is not in the text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CitationDroppedEvent {
    /// The number that the model wrote.
    pub number: u64,
    /// Why the mark was dropped.
    pub reason: DropReason,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A tool that the client itself executes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientTool {
    /// Tells the model what the tool does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON schema of the arguments; any object by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// 1 to 64 letters, digits, dashes and underscores.
    pub name: String,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ContentInput {
    /// A text alone.
    Text(String),
    /// Texts and files, in order.
    Parts(Vec<PartInput>),
}

/// The model has passages of documents before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContextRetrievedEvent {
    /// The passages, in the order of their numbers.
    pub passages: Vec<RetrievedPassage>,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// The turn, and the conversation after it, are about another project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContextShiftedEvent {
    /// The new context type.
    pub context_type: String,
    /// The project.
    pub entity_id: String,
    /// Its name.
    pub entity_name: String,
    /// The shift in a sentence.
    pub message: String,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// The size of the conversation and its budget, in tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContextUsageEvent {
    /// Tokens that the conversation may take.
    pub budget: u64,
    /// Whether the model reads a summary in place of older messages.
    pub compressed: bool,
    /// Estimated tokens of the conversation.
    pub tokens: u64,
    /// The first message that the model reads word by word, if there are older ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbatim_from: Option<String>,
    /// The id of that message that its client has chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbatim_from_client_id: Option<String>,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A conversation, as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Conversation {
    /// The agent that answers in it; null for a plain conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Time of the database.
    pub created_at: String,
    /// The conversation that owns this checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_conversation_id: Option<String>,
    /// The checkpoint that the conversation was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
    /// Only in a search: the newest matching message. Absent where the title alone has all words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// UUIDv7.
    pub id: String,
    /// Collections that its runs answer from, beside those of its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<Vec<String>>,
    /// Time of the database at which the newest message was stored; null for an empty conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_message_at: Option<String>,
    /// The first unfinished run of its queue: running, waiting or queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_run_id: Option<String>,
    /// The title that a client gave, else the first words of the first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// `DecisionBody`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionBody {
    pub decision: Verdict,
    /// Arguments that replace the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_input: Option<Value>,
    /// For the model and the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How far the ingestion of a document is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DocumentProgressEvent {
    /// The document.
    pub document_id: String,
    /// The progress of the step: passages, or bytes of the file while the worker extracts its text.
    pub done: u64,
    /// The step that is under way.
    pub stage: IngestionStage,
    /// The whole work of the step.
    pub total: u64,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// Why a mark was dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum DropReason {
    #[serde(rename = "not_told")]
    NotTold,
    #[serde(rename = "not_readable")]
    NotReadable,
    #[serde(rename = "not_quoted")]
    NotQuoted,
    #[serde(rename = "unknown")]
    #[serde(other)]
    Unknown,
}

/// An entity of the workspace that a call was about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EntityAccessed {
    /// The entity.
    pub id: String,
    /// Its kind, such as `task`.
    pub kind: String,
    /// Its name; empty if the call has only its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Entities of a project by kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EntityCounts {
    /// Documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<i64>,
    /// Relations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<i64>,
    /// Goals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goals: Option<i64>,
    /// Outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<i64>,
    /// Plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plans: Option<i64>,
    /// Tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<i64>,
}

/// A kind of thing in a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum EntityType {
    #[serde(rename = "task")]
    Task,
    #[serde(rename = "plan")]
    Plan,
    #[serde(rename = "goal")]
    Goal,
    #[serde(rename = "document")]
    Document,
    #[serde(rename = "output")]
    Output,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// The party that executes a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ExecutedBy {
    #[serde(rename = "worker")]
    Worker,
    #[serde(rename = "client")]
    Client,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// Tells whether someone must approve a plan before its execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ExecutionMode {
    #[serde(rename = "auto_execute")]
    AutoExecute,
    #[serde(rename = "draft_only")]
    DraftOnly,
    #[serde(rename = "agent_review")]
    AgentReview,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// The reason why the model ended an answer or a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FinishReason {
    #[serde(rename = "stop")]
    Stop,
    #[serde(rename = "tool_calls")]
    ToolCalls,
    #[serde(rename = "length")]
    Length,
    #[serde(rename = "content_filter")]
    ContentFilter,
    #[serde(rename = "other")]
    Other,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// The turn is about another part of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FocusChangedEvent {
    /// The new focus.
    pub focus: ProjectFocus,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A kind of part of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FocusType {
    #[serde(rename = "project-wide")]
    ProjectWide,
    #[serde(rename = "task")]
    Task,
    #[serde(rename = "goal")]
    Goal,
    #[serde(rename = "plan")]
    Plan,
    #[serde(rename = "document")]
    Document,
    #[serde(rename = "output")]
    Output,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// The message in which a search found its words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Found {
    /// The id that the client gave this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// One line of at most 142 characters around the first word.
    pub excerpt: String,
    /// The matching message.
    pub message_id: String,
}

/// A step of an ingestion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum IngestionStage {
    #[serde(rename = "extract")]
    Extract,
    #[serde(rename = "embed")]
    Embed,
    #[serde(rename = "index")]
    Index,
    #[serde(rename = "unknown")]
    #[serde(other)]
    Unknown,
}

/// A version of a memory, without its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryReference {
    /// The memory.
    pub id: String,
    /// Its version.
    pub version: u64,
}

/// A call has shown memories of the user to the model. The event has no text, so that nothing of a deleted memory
/// stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryToldEvent {
    /// The call of `recall`.
    pub call_id: String,
    /// The memories, most relevant first.
    pub memories: Vec<MemoryReference>,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// One message, as the API shows it and as `message.completed` carries it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    pub content_type: String,
    /// Plain text of a client or of a model.
    pub content: Value,
    /// Files of a client's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<Attachment>>,
    /// The id that the client gave its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The conversation that the message belongs to, superseded messages included.
    pub conversation_id: String,
    /// Time of the database.
    pub created_at: String,
    /// The model's reason for ending a complete answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// True for a message that a client brought from elsewhere: no run wrote or answered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<bool>,
    /// UUIDv7.
    pub id: String,
    /// Sources of an answer, as `{"agent_run_id": …}`, and `documents` and `dropped` if its run had documents before
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retrieval_context: Option<Value>,
    /// `user` for a client's message, `assistant` for an answer, `system` for a card.
    pub role: Role,
    /// The run that the message started or that wrote it. A card and a message without a run have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// `complete` for every message of a client.
    pub status: MessageStatus,
    /// Time at which an edit or a rollback removed the message from its conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_at: Option<String>,
    /// Its number among several versions. Lists set it after an edit or a second answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

/// The database has stored the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessageCompletedEvent {
    /// On the first event of an attempt: it supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The answer.
    pub message: Message,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A piece of the answer's text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessageDeltaEvent {
    /// The answer.
    pub message_id: String,
    /// The text that follows the answer's text so far.
    pub text: String,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// Tells whether the message is a complete text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MessageStatus {
    #[serde(rename = "complete")]
    Complete,
    #[serde(rename = "cancelled")]
    Cancelled,
    #[serde(rename = "failed")]
    Failed,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// A message has joined a live run. In the log of that run, the next step answers it too. In the log of the run that
/// the message had before, the end of that run follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessageSteeredEvent {
    /// In the log of the message's own run: this event supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// In the log of the message's own run: the run that it has joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined_run_id: Option<String>,
    /// The message.
    pub message_id: String,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// `NewConversation`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NewConversation {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Collections that its runs answer from, beside those of its agent; at most 16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// `NewMessageBody`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NewMessageBody {
    /// Tools that the client executes: the run waits for their results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_tools: Option<Vec<ClientTool>>,
    /// The text, or texts and files. If absent, with `replace_from`, the server makes the answer again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<ContentInput>,
    /// Where in its application the user is; kept with the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<AgentContext>,
    /// A JSON object that the server stores with the run; later runs of the conversation inherit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SubmitMode>,
    /// The message that this one replaces; it and all later messages are superseded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace_from: Option<String>,
    /// Whether the run writes `*.delta` events; true by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
}

/// `NewRunBody`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NewRunBody {
    /// The agent of a new conversation; an existing one keeps its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Tools that the client executes: the run waits for their results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_tools: Option<Vec<ClientTool>>,
    /// Where in its application the user is; kept with the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<AgentContext>,
    /// If absent: the conversation of the session that `X-Session-ID` names, else a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// The text, or texts and files.
    pub input: ContentInput,
    /// A JSON object that the server stores with the run; later runs of the conversation inherit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SubmitMode>,
    /// Whether the run writes `*.delta` events; true by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
}

/// The model has a project of the workspace before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OntologyLoadedEvent {
    /// Entities of the project by kind.
    pub counts: EntityCounts,
    /// Its name.
    pub name: String,
    /// Tasks that are neither done nor cancelled.
    pub open_tasks: i64,
    /// The project.
    pub project_id: String,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A question that waits for a human.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenApproval {
    /// The id of the approval.
    pub approval_id: String,
    /// The call that waits for it.
    pub call_id: String,
    /// The run below that asks; absent for a question of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<String>,
    /// When the approval counts as denied.
    pub expires_at: String,
    /// The arguments of the call.
    pub input: Value,
    /// `policy` or `unknown_outcome`.
    pub kind: String,
    /// The tool.
    pub name: String,
}

/// Part of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PageConversation {
    /// The items, in the order of the list.
    pub items: Vec<Conversation>,
    /// Cursor of the next page; null on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Part of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PageMessage {
    /// The items, in the order of the list.
    pub items: Vec<Message>,
    /// Cursor of the next page; null on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Part of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PageRun {
    /// The items, in the order of the list.
    pub items: Vec<Run>,
    /// Cursor of the next page; null on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Part of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PageStoredFile {
    /// The items, in the order of the list.
    pub items: Vec<StoredFile>,
    /// Cursor of the next page; null on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum PartInput {
    /// A text.
    #[serde(rename = "text")]
    Text { text: String },
    /// A picture.
    #[serde(rename = "image")]
    Image { file_id: String },
    /// Any file.
    #[serde(rename = "file")]
    File { file_id: String },
}

/// A plan, as the API shows it and as events have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Plan {
    /// The call of `agent_create_plan`.
    pub call_id: String,
    /// Tells whether someone must approve the plan before its execution.
    pub execution_mode: ExecutionMode,
    /// UUIDv7.
    pub id: String,
    /// Goal, requested outputs and priority entities of the call.
    pub metadata: PlanMetadata,
    /// The run that made it.
    pub run_id: String,
    /// The conversation of that run.
    pub session_id: String,
    /// Tells how far the plan has got.
    pub status: PlanStatus,
    /// 1 to 20 steps, by their numbers.
    pub steps: Vec<PlanStep>,
    /// The strategy of the run, `planner_stream`.
    pub strategy: String,
    /// The message that the run answers.
    pub user_message: String,
}

/// A planner has made a plan, or its next version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanCreatedEvent {
    /// The plan.
    pub plan: Plan,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// The purpose of a plan, and its reviews.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanMetadata {
    /// Changes by clients during the execution; at most 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<u64>,
    /// The purpose of the plan.
    pub goal: String,
    /// The entities that matter most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_entities: Option<Vec<String>>,
    /// The outputs that the user wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_outputs: Option<Vec<String>>,
    /// Reviews so far, the oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviews: Option<Vec<PlanReview>>,
    /// Versions that were made after a review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revisions: Option<u64>,
}

/// A judgement of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanReview {
    /// The party that has judged.
    pub by: ReviewedBy,
    /// The changes to make, or a remark; empty if there is none.
    pub notes: String,
    /// Its number, from 1.
    pub round: u64,
    /// The judgement.
    pub verdict: PlanVerdict,
}

/// A reviewer or a human has judged a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanReviewedEvent {
    /// The party that has judged.
    pub by: ReviewedBy,
    /// The changes to make, or a remark; empty if there is none.
    pub notes: String,
    /// The plan.
    pub plan_id: String,
    /// The number of the review, from 1.
    pub round: u64,
    /// The judgement.
    pub verdict: PlanVerdict,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// The state of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum PlanStatus {
    #[serde(rename = "draft")]
    Draft,
    #[serde(rename = "approved")]
    Approved,
    #[serde(rename = "executing")]
    Executing,
    #[serde(rename = "completed")]
    Completed,
    #[serde(rename = "failed")]
    Failed,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanStep {
    /// The run that executes the step, if a subagent does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_run_id: Option<String>,
    /// Steps that must be completed before it.
    pub depends_on: Vec<u64>,
    /// The task.
    pub description: String,
    /// Why the step failed, or was not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether a subagent takes the step; otherwise the planner does.
    pub executor_required: bool,
    /// The answer of a completed step, up to 4,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Tells how far the step has got.
    pub status: StepStatus,
    /// Its number, from 1.
    pub step_number: u64,
    /// The only tools of the step.
    pub tools: Vec<String>,
}

/// A step of a plan has a result or an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanStepCompletedEvent {
    /// The plan.
    pub plan_id: String,
    /// The step.
    pub step: PlanStep,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A step of a plan begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanStepStartedEvent {
    /// How many steps the plan has.
    pub of: u64,
    /// The plan.
    pub plan_id: String,
    /// The step.
    pub step: PlanStep,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// The plan has another status or other steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanUpdatedEvent {
    /// On a client's change of a plan: this event supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The plan as it is now.
    pub plan: Plan,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// The judgement of a reviewer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum PlanVerdict {
    #[serde(rename = "approved")]
    Approved,
    #[serde(rename = "changes_requested")]
    ChangesRequested,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// An answer that says what went wrong and what the client can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The first decision, for `already_decided`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Stable and lower-case, for programs.
    pub code: String,
    /// A sentence for people.
    pub detail: String,
    /// The path of the run that the problem concerns, if the caller can read one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The HTTP status code.
    pub status: u64,
    /// The status in words.
    pub title: String,
}

/// The part of a project that the user looks at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProjectFocus {
    /// The part; absent for the whole project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "focusEntityId")]
    pub focus_entity_id: Option<String>,
    /// The part's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "focusEntityName")]
    pub focus_entity_name: Option<String>,
    /// The kind of the part.
    #[serde(rename = "focusType")]
    pub focus_type: FocusType,
    /// The project.
    #[serde(rename = "projectId")]
    pub project_id: String,
    /// The project's name.
    #[serde(rename = "projectName")]
    pub project_name: String,
}

/// The agent needs answers, and its run ends. The user's next message has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QuestionAskedEvent {
    /// One or two questions.
    pub questions: Vec<String>,
    /// How many times the agent has asked for this purpose, from 1.
    pub round: u64,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A piece of the model's reasoning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReasoningDeltaEvent {
    /// The answer that it belongs to.
    pub message_id: String,
    /// The text that follows the reasoning so far.
    pub text: String,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A passage before the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RetrievedPassage {
    /// The number of the passage in the document, from 0.
    pub chunk: u64,
    /// The document.
    pub document: String,
    /// The number by which the model cites it.
    pub number: u64,
    /// The page on which it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u64>,
    /// How well it fits, within one search.
    pub score: f64,
    /// The title of the document.
    pub title: String,
}

/// The party that has judged a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ReviewedBy {
    #[serde(rename = "reviewer")]
    Reviewer,
    #[serde(rename = "user")]
    User,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// The author of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Role {
    #[serde(rename = "user")]
    User,
    #[serde(rename = "assistant")]
    Assistant,
    #[serde(rename = "system")]
    System,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// A run, as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Run {
    /// The agent that answers; null for a plain conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Number of the newest attempt; 0 before the first claim. Each attempt is one worker's try, or an API's write.
    pub attempt: u64,
    /// The conversation in whose queue the run stands.
    pub conversation_id: String,
    /// Time of the database.
    pub created_at: String,
    /// Set for a failed run only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// The cause of `error` in its own words, such as those of the model's provider. Only operators see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_details: Option<String>,
    /// The model's reason for ending the answer, once the run is completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// Time of the database at the terminal status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// UUIDv7, chosen by the API before the run exists.
    pub id: String,
    /// The message that the run answers.
    pub input_message_id: String,
    /// The newest event in the database. A live stream may be ahead of it.
    pub last_event_id: EventId,
    /// The client's own JSON, sent with the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// The model that answers, as `provider/name`; null until the run's first flush, at most 2 s after its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The answer, once the run has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_message: Option<Message>,
    /// Id of the answer's message, reserved at submission. The message exists once the run has ended.
    pub output_message_id: String,
    /// The run that has started this one for a part of its work; null for a run that a message has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<String>,
    /// Time of the database at the first claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// Terminal statuses are `completed`, `failed` and `cancelled`.
    pub status: RunStatus,
    /// `usage` and the tokens of all runs below that have ended; absent without such runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_usage: Option<Usage>,
    /// The run's OpenTelemetry trace, as 32 hexadecimal digits, if the trace is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Tokens of all steps so far; null before the first report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A run was cancelled. The last event of its log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunCancelledEvent {
    /// On the first event of an attempt: it supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The answer, if the database has kept a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The tokens of all steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A run has completed. The last event of its log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunCompletedEvent {
    /// Why the model ended the last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The tokens of all steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// The error of a failed run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunError {
    /// Stable and lower-case, for programs.
    pub code: String,
    /// One sentence for the reader.
    pub message: String,
    /// Seconds after which the model's provider takes requests again, if it has said so. The event of the end alone
    /// has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}

/// `RunEvent`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum RunEvent {
    #[serde(rename = "run.queued")]
    RunQueued(Box<RunQueuedEvent>),
    #[serde(rename = "attempt.started")]
    AttemptStarted(Box<AttemptStartedEvent>),
    #[serde(rename = "step.started")]
    StepStarted(Box<StepStartedEvent>),
    #[serde(rename = "step.completed")]
    StepCompleted(Box<StepCompletedEvent>),
    #[serde(rename = "message.delta")]
    MessageDelta(Box<MessageDeltaEvent>),
    #[serde(rename = "reasoning.delta")]
    ReasoningDelta(Box<ReasoningDeltaEvent>),
    #[serde(rename = "tool_call.delta")]
    ToolCallDelta(Box<ToolCallDeltaEvent>),
    #[serde(rename = "tool_call.started")]
    ToolCallStarted(Box<ToolCallStartedEvent>),
    #[serde(rename = "tool_call.completed")]
    ToolCallCompleted(Box<ToolCallCompletedEvent>),
    #[serde(rename = "message.steered")]
    MessageSteered(Box<MessageSteeredEvent>),
    #[serde(rename = "subagent.started")]
    SubagentStarted(Box<SubagentStartedEvent>),
    #[serde(rename = "subagent.completed")]
    SubagentCompleted(Box<SubagentCompletedEvent>),
    #[serde(rename = "plan.created")]
    PlanCreated(Box<PlanCreatedEvent>),
    #[serde(rename = "plan.updated")]
    PlanUpdated(Box<PlanUpdatedEvent>),
    #[serde(rename = "plan.reviewed")]
    PlanReviewed(Box<PlanReviewedEvent>),
    #[serde(rename = "plan_step.started")]
    PlanStepStarted(Box<PlanStepStartedEvent>),
    #[serde(rename = "plan_step.completed")]
    PlanStepCompleted(Box<PlanStepCompletedEvent>),
    #[serde(rename = "question.asked")]
    QuestionAsked(Box<QuestionAskedEvent>),
    #[serde(rename = "context.shifted")]
    ContextShifted(Box<ContextShiftedEvent>),
    #[serde(rename = "focus.changed")]
    FocusChanged(Box<FocusChangedEvent>),
    #[serde(rename = "ontology.loaded")]
    OntologyLoaded(Box<OntologyLoadedEvent>),
    #[serde(rename = "template.requested")]
    TemplateRequested(Box<TemplateRequestedEvent>),
    #[serde(rename = "template.suggested")]
    TemplateSuggested(Box<TemplateSuggestedEvent>),
    #[serde(rename = "document.progress")]
    DocumentProgress(Box<DocumentProgressEvent>),
    #[serde(rename = "context.retrieved")]
    ContextRetrieved(Box<ContextRetrievedEvent>),
    #[serde(rename = "citation.added")]
    CitationAdded(Box<CitationAddedEvent>),
    #[serde(rename = "citation.dropped")]
    CitationDropped(Box<CitationDroppedEvent>),
    #[serde(rename = "memory.told")]
    MemoryTold(Box<MemoryToldEvent>),
    #[serde(rename = "approval.requested")]
    ApprovalRequested(Box<ApprovalRequestedEvent>),
    #[serde(rename = "approval.resolved")]
    ApprovalResolved(Box<ApprovalResolvedEvent>),
    #[serde(rename = "message.completed")]
    MessageCompleted(Box<MessageCompletedEvent>),
    #[serde(rename = "agent.state")]
    AgentState(Box<AgentStateEvent>),
    #[serde(rename = "context.usage")]
    ContextUsage(Box<ContextUsageEvent>),
    #[serde(rename = "warning.raised")]
    WarningRaised(Box<WarningRaisedEvent>),
    #[serde(rename = "run.completed")]
    RunCompleted(Box<RunCompletedEvent>),
    #[serde(rename = "run.failed")]
    RunFailed(Box<RunFailedEvent>),
    #[serde(rename = "run.cancelled")]
    RunCancelled(Box<RunCancelledEvent>),
    /// An event of a later version.
    #[serde(other)]
    Unknown,
}

/// A run has failed. The last event of its log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunFailedEvent {
    /// On the first event of an attempt: it supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// Why the run has failed.
    pub error: RunError,
    /// The tokens of all steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A run is committed and waits for a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunQueuedEvent {
    /// The agent that answers; null for the deployment's plain model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Always `0-0`.
    pub base: EventId,
    /// The conversation of the run.
    pub conversation_id: String,
    /// The message that the run answers.
    pub input_message_id: String,
    /// The id that the answer will have.
    pub message_id: String,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// The state of a run in its life cycle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RunStatus {
    #[serde(rename = "queued")]
    Queued,
    #[serde(rename = "running")]
    Running,
    #[serde(rename = "waiting")]
    Waiting,
    #[serde(rename = "completed")]
    Completed,
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "cancelled")]
    Cancelled,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// A run's message, folded from its events so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// The approvals that are still pending.
    pub approvals: Vec<OpenApproval>,
    /// Why the run has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Why the model ended the answer, after the run has completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// The id that the answer has, or will have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The model's reasoning so far.
    pub reasoning: String,
    /// The status by the events: a run that its worker handed over is `running` until another worker claims it.
    pub status: RunStatus,
    /// The text of the answer so far.
    pub text: String,
    /// In the order in which the model asked for them.
    pub tool_calls: Vec<CallSoFar>,
    /// The usage of the completed steps; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A model call and its tool calls are complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepCompletedEvent {
    /// Why the model ended the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// The model that has answered, as `<provider>/<name>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The number of the step, from 1.
    pub step: u64,
    /// How many tool calls the model asked for.
    pub tool_calls: u64,
    /// The tokens of the model call.
    pub usage: Usage,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A model call begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StepStartedEvent {
    /// The number of the step, from 1.
    pub step: u64,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// The state of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum StepStatus {
    #[serde(rename = "pending")]
    Pending,
    #[serde(rename = "executing")]
    Executing,
    #[serde(rename = "completed")]
    Completed,
    #[serde(rename = "failed")]
    Failed,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// A file, as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredFile {
    /// Bytes of the contents. While the upload lasts, the most that it can bring.
    pub bytes: u64,
    /// Time of the database.
    pub created_at: String,
    /// UUIDv7.
    pub id: String,
    /// Its media type, found in the contents and not believed.
    pub media_type: String,
    /// The name that its owner gave it, without folders.
    pub name: String,
    /// Bytes that the upload has stored so far. It continues from there.
    pub received: u64,
    /// SHA-256 of the contents, in hexadecimal digits; null while the upload lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A child run has ended. The outcome of its call follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubagentCompletedEvent {
    /// On an end during the parent's wait: this event supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The call that the child answers.
    pub call_id: String,
    /// The child.
    pub child_run_id: String,
    /// Why there is no output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// The child's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The plan whose step the child took, or that it judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    /// The child's part in the work of its parent.
    pub role: SubagentRole,
    /// `completed`, `failed` or `cancelled`.
    pub status: RunStatus,
    /// The step that the child took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_number: Option<u64>,
    /// Tokens of the child and of its own children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// The part of a child run in the work of its parent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SubagentRole {
    #[serde(rename = "executor")]
    Executor,
    #[serde(rename = "reviewer")]
    Reviewer,
    #[serde(rename = "synthesizer")]
    Synthesizer,
    #[serde(rename = "subagent")]
    Subagent,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// A child run was started for a call. It has a log of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubagentStartedEvent {
    /// The name of the child's agent.
    pub agent: String,
    /// The call that the child answers.
    pub call_id: String,
    /// The child.
    pub child_run_id: String,
    /// The plan whose step the child takes, or that it judges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    /// The child's part in the work of its parent.
    pub role: SubagentRole,
    /// The step that the child takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_number: Option<u64>,
    /// The child's input.
    pub task: String,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// How a new message affects the unfinished runs of its conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SubmitMode {
    #[serde(rename = "enqueue")]
    Enqueue,
    #[serde(rename = "reject")]
    Reject,
    #[serde(rename = "interrupt")]
    Interrupt,
    #[serde(rename = "rollback")]
    Rollback,
    #[serde(rename = "steer")]
    Steer,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// A template of projects was requested from the operators.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TemplateRequestedEvent {
    /// Wishes for its contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<String>,
    /// The sort of project.
    pub kind: String,
    /// Why it is needed.
    pub reason: String,
    /// The template, whose state tells what became of the request.
    pub template_id: String,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A template is suggested to the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TemplateSuggestedEvent {
    /// The sort of project.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Why it would help.
    pub rationale: String,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A tool call has an outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCallCompletedEvent {
    /// On a result that the client has returned: this event supersedes all events after its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<EventId>,
    /// The party that executes the call; absent for an unknown tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ExecutedBy>,
    /// The call.
    pub call_id: String,
    /// How long the call took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The entities of the workspace that the call was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entities: Option<Vec<EntityAccessed>>,
    /// Why there is no output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// The files that the tool has returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<ToolFile>>,
    /// The arguments of a call that was refused and so never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The tool.
    pub name: String,
    /// The text that the tool returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A piece of a call's arguments, as the model writes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCallDeltaEvent {
    /// The party that executes the call; in the first piece of a call; absent for an unknown tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ExecutedBy>,
    /// The call.
    pub call_id: String,
    /// The tool's name; only the first piece of a call has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// JSON text that follows the arguments so far.
    pub text: String,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// A tool call begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCallStartedEvent {
    /// The party that executes the call.
    pub by: ExecutedBy,
    /// The call.
    pub call_id: String,
    /// When a call that the client executes expires without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The arguments of the call.
    pub input: Value,
    /// The tool.
    pub name: String,
    /// The step whose model call asked for it, from 1.
    pub step: u64,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}

/// The state of a call in its life cycle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ToolCallStatus {
    #[serde(rename = "requested")]
    Requested,
    #[serde(rename = "waiting")]
    Waiting,
    #[serde(rename = "client")]
    Client,
    #[serde(rename = "called")]
    Called,
    #[serde(rename = "completed")]
    Completed,
    #[serde(rename = "abandoned")]
    Abandoned,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// The reason why a call has no output. The model reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolError {
    /// Stable and lower-case, such as `tool_failed`.
    pub code: String,
    /// One sentence for the model.
    pub message: String,
}

/// A file that a tool has returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolFile {
    /// Bytes of its contents.
    pub bytes: u64,
    /// The file. Its owner may have deleted it.
    pub file_id: String,
    /// Its media type, found in the contents and not believed.
    pub media_type: String,
    /// Its name: that of the tool's resource, or else one that the tool's name gives.
    pub name: String,
}

/// `ToolResult`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The reason why the tool has no output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The tool's output: a text or any JSON, null included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// Tokens of one or more model calls, as the provider reports them. An unreported count is 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Part of `input_tokens` that the provider read from its cache.
    pub cached_tokens: u64,
    /// Tokens of the prompt, cached tokens included.
    pub input_tokens: u64,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: u64,
    /// Part of `output_tokens` that is reasoning.
    pub reasoning_tokens: u64,
}

/// `Verdict`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Verdict {
    #[serde(rename = "approve")]
    Approve,
    #[serde(rename = "deny")]
    Deny,
    /// A value of a later version.
    #[serde(other)]
    Unknown,
}

/// The number of a message among its versions, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Version {
    /// At least 2.
    pub count: u64,
    /// The message of the version after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// From 1 to `count`.
    pub number: u64,
    /// The message of the version before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
}

/// Something went wrong, and the run continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WarningRaisedEvent {
    /// A stable code in lower case.
    pub code: String,
    /// A sentence for the reader.
    pub message: String,
    pub id: EventId,
    pub run_id: String,
    pub at: String,
}
