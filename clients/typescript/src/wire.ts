// Made from /openapi.json by clients/generate_types.py; changes belong there.

/** A committed message and its run. */
export interface AcceptedMessage {
  message: Message;
  run: Run;
}

/** A committed run with its message and conversation. */
export interface AcceptedRun {
  conversation: Conversation;
  message: Message;
  run: Run;
}

/** Where in its application the client was when it sent the message. */
export interface AgentContext {
  /**
   * The kind of thing that the client shows: for the planner `global`, `project`, `project_create`, `project_audit`
   * or `project_forecast`.
   */
  context_type: string;
  /** The thing that the client shows. */
  entity_id?: string | null;
  /** The kind of that thing. */
  ontologyEntityType?: EntityType | null;
  /** The part of a project that the user looks at. */
  projectFocus?: ProjectFocus | null;
  /** The session's name; absent if the conversation's id is the name. */
  session_id?: string | null;
}

/** The agent is in a state that no other event shows. */
export interface AgentStateEvent {
  /** The state. */
  state: string;
  /** The tokens of the step that waits. Its `step.completed` has them again. */
  usage?: Usage | null;
  id: EventId;
  run_id: string;
  type: "agent.state";
  at: string;
}

/** A question about one call, as the API shows it. The answer counts for this exact input only. */
export interface Approval {
  /** The call of that run: `call_` and a UUIDv7 in hexadecimal digits. */
  call_id: string;
  /** Time of the database at which the question was settled; null while it is pending. */
  decided_at?: string | null;
  /** Owner id of the approver; null if no approver decided. */
  decided_by?: string | null;
  /** Arguments that replace `input`, if the approver changed them. */
  edited_input?: unknown;
  /** Time of the database after which the sweeper denies the call. */
  expires_at: string;
  /** UUIDv7, chosen by the worker that asks. */
  id: string;
  /** Arguments of the call, as the model wrote them. */
  input: unknown;
  /** Tells the approver whether the agent's policy or a crash raised the question. */
  kind: ApprovalKind;
  /** Name of the tool, as `<server>__<tool>`. */
  name: string;
  /** Free text that the approver sent with the decision. */
  reason?: string | null;
  /** Time of the database at which the run began to wait. */
  requested_at: string;
  /** The run that asks and waits. */
  run_id: string;
  /** `pending` until an answer, the expiry or the end of the run settles the question. */
  status: ApprovalStatus;
}

/** The reason why the run asks. */
export type ApprovalKind = "policy" | "unknown_outcome" | "plan";

/** A run waits for a human's decision about a call. */
export interface ApprovalRequestedEvent {
  /** The approval. */
  approval_id: string;
  /** On a question of a run below that comes during this run's wait: it supersedes all events after its base. */
  base?: EventId | null;
  /** The call that waits for it. */
  call_id: string;
  /** The run below that asks; absent for a question of this run. */
  child_run_id?: string | null;
  /** When the approval counts as denied. */
  expires_at: string;
  /** The arguments of the call. */
  input: unknown;
  /** Why a human must decide. */
  kind: ApprovalKind;
  /** The tool. */
  name: string;
  id: EventId;
  run_id: string;
  type: "approval.requested";
  at: string;
}

/** An approval is no longer pending. */
export interface ApprovalResolvedEvent {
  /** The approval. */
  approval_id: string;
  /** On the first event of an attempt: it supersedes all events after its base. */
  base?: EventId | null;
  /** The call that the approval is about. */
  call_id: string;
  /** The run below that has asked; absent for a question of this run. */
  child_run_id?: string | null;
  /** The decision. */
  decision: ApprovalStatus;
  /** The arguments that replace those of the model. */
  edited_input?: unknown;
  /** The human's reason. */
  reason?: string | null;
  id: EventId;
  run_id: string;
  type: "approval.resolved";
  at: string;
}

/** The state of a question. */
export type ApprovalStatus = "pending" | "approved" | "denied" | "expired" | "superseded" | "cancelled";

/** A page of a run's approvals, in order. */
export interface Approvals {
  items: Approval[];
  /** Whether the caller may decide them. */
  may_decide: boolean;
  /** The cursor of the next page, null at the end. */
  next?: string | null;
}

/** A file of a message. */
export interface Attachment {
  /** Bytes of its contents. */
  bytes: number;
  /** The file. Its owner may have deleted it. */
  file_id: string;
  /** Its media type. */
  media_type: string;
  /** Its name at the time of the message. */
  name: string;
  /** Its place in the message: the number of bytes of UTF-8 of the text before it. */
  offset: number;
  /** `image` for a picture that models can see. */
  type: AttachmentKind;
}

/** How a message has a file. */
export type AttachmentKind = "image" | "file";

/** Why a worker began an attempt. */
export type AttemptReason = "claimed" | "resumed" | "drain" | "lease_expired";

/** A worker has begun an attempt at the run. */
export interface AttemptStartedEvent {
  /** The number of the attempt, from 1. */
  attempt: number;
  /** This event supersedes all events after its base. */
  base: EventId;
  /** Workers that were lost with this run since its last completed step. */
  crashes?: number;
  /** The number of crashes that fails the run. */
  max_crashes?: number;
  /** Why the attempt began. */
  reason: AttemptReason;
  id: EventId;
  run_id: string;
  type: "attempt.started";
  at: string;
}

/** A copy of a briefing in a conversation, taken when the card was added. */
export interface BriefingCard {
  /** The briefing that was copied; it may be deleted since. */
  briefing_id: string;
  /** The briefing's own time, not the time of the card's message. */
  created_at: string;
  /** The author's JSON at the time of the copy. */
  data?: unknown;
  /** The author's label at the time of the copy, such as `P1`. */
  priority?: string | null;
  /** Summary at the time of the copy. */
  summary: string;
  /** Title at the time of the copy. */
  title: string;
}

/** The state of a tool call. */
export interface CallSoFar {
  /** The id of the call. */
  call_id: string;
  /** The child run that answers the call. */
  child_run_id?: string | null;
  /** Why there is no output. */
  error?: ToolError | null;
  /** When a call that the client executes expires without a result. */
  expires_at?: string | null;
  /** The files that the tool has returned. */
  files?: ToolFile[];
  /** The arguments once they are complete; null before. */
  input?: unknown;
  /** The arguments that the model has written so far, while they are incomplete. */
  input_text?: string | null;
  /** The tool. */
  name: string;
  /** The text that the tool returned. */
  output?: string | null;
  /** The status by the events. */
  status: ToolCallStatus;
}

/** A passage that an answer cites. */
export interface Citation {
  /** The number of the passage in the document, from 0. */
  chunk: number;
  /** The place after its last character. */
  end: number;
  /** The document. */
  id: string;
  /** The page on which the passage begins. */
  page?: number | null;
  /** How well it fits, within one search. */
  score: number;
  /** The place of its first character in the document's text, in Unicode scalar values. */
  start: number;
  /** The title of the document at the time of the answer. */
  title: string;
}

/** The answer cites a passage for the first time. The event follows the delta that has the mark. */
export interface CitationAddedEvent {
  /** The number in the answer's text, as in `[1]`. */
  number: number;
  /** The passage. */
  source: Citation;
  id: EventId;
  run_id: string;
  type: "citation.added";
  at: string;
}

/** The step of the model had a mark that is not in the text. */
export interface CitationDroppedEvent {
  /** The number that the model wrote. */
  number: number;
  /** Why the mark was dropped. */
  reason: DropReason;
  id: EventId;
  run_id: string;
  type: "citation.dropped";
  at: string;
}

/** A tool that the client itself executes. */
export interface ClientTool {
  /** Tells the model what the tool does. */
  description?: string;
  /** JSON schema of the arguments; any object by default. */
  input_schema?: Record<string, unknown>;
  /** 1 to 64 letters, digits, dashes and underscores. */
  name: string;
}

/** The content of a message. */
export type ContentInput = string | PartInput[];

/** The model has passages of documents before it. */
export interface ContextRetrievedEvent {
  /** The passages, in the order of their numbers. */
  passages: RetrievedPassage[];
  id: EventId;
  run_id: string;
  type: "context.retrieved";
  at: string;
}

/** The turn, and the conversation after it, are about another project. */
export interface ContextShiftedEvent {
  /** The new context type. */
  context_type: string;
  /** The project. */
  entity_id: string;
  /** Its name. */
  entity_name: string;
  /** The shift in a sentence. */
  message: string;
  id: EventId;
  run_id: string;
  type: "context.shifted";
  at: string;
}

/** The size of the conversation and its budget, in tokens. */
export interface ContextUsageEvent {
  /** Tokens that the conversation may take. */
  budget: number;
  /** Whether the model reads a summary in place of older messages. */
  compressed: boolean;
  /** Estimated tokens of the conversation. */
  tokens: number;
  /** The first message that the model reads word by word, if there are older ones. */
  verbatim_from?: string | null;
  /** The id of that message that its client has chosen. */
  verbatim_from_client_id?: string | null;
  id: EventId;
  run_id: string;
  type: "context.usage";
  at: string;
}

/** A conversation, as the API shows it. */
export interface Conversation {
  /** The agent that answers in it; null for a plain conversation. */
  agent_id?: string | null;
  /** Time of the database. */
  created_at: string;
  /** The conversation that owns this checkpoint. */
  forked_conversation_id?: string | null;
  /** The checkpoint that the conversation was forked from. */
  forked_from?: string | null;
  /** Only in a search: the newest matching message. Absent where the title alone has all words. */
  found?: Found | null;
  /** UUIDv7. */
  id: string;
  /** Collections that its runs answer from, beside those of its agent. */
  knowledge?: string[];
  /** Time of the database at which the newest message was stored; null for an empty conversation. */
  last_message_at?: string | null;
  /** The first unfinished run of its queue: running, waiting or queued. */
  live_run_id?: string | null;
  /** The title that a client gave, else the first words of the first message. */
  title?: string | null;
}

export interface DecisionBody {
  decision: Verdict;
  /** Arguments that replace the model's. */
  edited_input?: unknown;
  /** For the model and the record. */
  reason?: string | null;
}

/** How far the ingestion of a document is. */
export interface DocumentProgressEvent {
  /** The document. */
  document_id: string;
  /** The progress of the step: passages, or bytes of the file while the worker extracts its text. */
  done: number;
  /** The step that is under way. */
  stage: IngestionStage;
  /** The whole work of the step. */
  total: number;
  id: EventId;
  run_id: string;
  type: "document.progress";
  at: string;
}

/** Why a mark was dropped. */
export type DropReason = "not_told" | "not_readable" | "not_quoted" | "unknown";

/** An entity of the workspace that a call was about. */
export interface EntityAccessed {
  /** The entity. */
  id: string;
  /** Its kind, such as `task`. */
  kind: string;
  /** Its name; empty if the call has only its id. */
  name?: string;
}

/** Entities of a project by kind. */
export interface EntityCounts {
  /** Documents. */
  documents?: number;
  /** Relations. */
  edges?: number;
  /** Goals. */
  goals?: number;
  /** Outputs. */
  outputs?: number;
  /** Plans. */
  plans?: number;
  /** Tasks. */
  tasks?: number;
}

/** A kind of thing in a project. */
export type EntityType = "task" | "plan" | "goal" | "document" | "output";

/** Position in a run's log: attempt, dash, number. */
export type EventId = string;

/** The party that executes a tool call. */
export type ExecutedBy = "worker" | "client";

/** Tells whether someone must approve a plan before its execution. */
export type ExecutionMode = "auto_execute" | "draft_only" | "agent_review";

/** The reason why the model ended an answer or a step. */
export type FinishReason = "stop" | "tool_calls" | "length" | "content_filter" | "other";

/** The turn is about another part of a project. */
export interface FocusChangedEvent {
  /** The new focus. */
  focus: ProjectFocus;
  id: EventId;
  run_id: string;
  type: "focus.changed";
  at: string;
}

/** A kind of part of a project. */
export type FocusType = "project-wide" | "task" | "goal" | "plan" | "document" | "output";

/** The message in which a search found its words. */
export interface Found {
  /** The id that the client gave this message. */
  client_id?: string | null;
  /** One line of at most 142 characters around the first word. */
  excerpt: string;
  /** The matching message. */
  message_id: string;
}

/** A step of an ingestion. */
export type IngestionStage = "extract" | "embed" | "index" | "unknown";

/** A version of a memory, without its text. */
export interface MemoryReference {
  /** The memory. */
  id: string;
  /** Its version. */
  version: number;
}

/**
 * A call has shown memories of the user to the model. The event has no text, so that nothing of a deleted memory
 * stays.
 */
export interface MemoryToldEvent {
  /** The call of `recall`. */
  call_id: string;
  /** The memories, most relevant first. */
  memories: MemoryReference[];
  id: EventId;
  run_id: string;
  type: "memory.told";
  at: string;
}

/** One message, as the API shows it and as `message.completed` carries it. */
export interface Message {
  content_type: "text" | "briefing_card";
  /** Plain text of a client or of a model. */
  content: string | BriefingCard;
  /** Files of a client's message. */
  attachments?: Attachment[];
  /** The id that the client gave its message. */
  client_id?: string | null;
  /** The conversation that the message belongs to, superseded messages included. */
  conversation_id: string;
  /** Time of the database. */
  created_at: string;
  /** The model's reason for ending a complete answer. */
  finish_reason?: FinishReason | null;
  /** True for a message that a client brought from elsewhere: no run wrote or answered it. */
  given?: boolean;
  /** UUIDv7. */
  id: string;
  /**
   * Sources of an answer, as `{"agent_run_id": …}`, and `documents` and `dropped` if its run had documents before
   * it.
   */
  retrieval_context?: unknown;
  /** `user` for a client's message, `assistant` for an answer, `system` for a card. */
  role: Role;
  /** The run that the message started or that wrote it. A card and a message without a run have none. */
  run_id?: string | null;
  /** `complete` for every message of a client. */
  status: MessageStatus;
  /** Time at which an edit or a rollback removed the message from its conversation. */
  superseded_at?: string | null;
  /** Its number among several versions. Lists set it after an edit or a second answer. */
  version?: Version | null;
}

/** The database has stored the answer. */
export interface MessageCompletedEvent {
  /** On the first event of an attempt: it supersedes all events after its base. */
  base?: EventId | null;
  /** The answer. */
  message: Message;
  id: EventId;
  run_id: string;
  type: "message.completed";
  at: string;
}

/** A piece of the answer's text. */
export interface MessageDeltaEvent {
  /** The answer. */
  message_id: string;
  /** The text that follows the answer's text so far. */
  text: string;
  id: EventId;
  run_id: string;
  type: "message.delta";
  at: string;
}

/** Tells whether the message is a complete text. */
export type MessageStatus = "complete" | "cancelled" | "failed";

/**
 * A message has joined a live run. In the log of that run, the next step answers it too. In the log of the run that
 * the message had before, the end of that run follows.
 */
export interface MessageSteeredEvent {
  /** In the log of the message's own run: this event supersedes all events after its base. */
  base?: EventId | null;
  /** In the log of the message's own run: the run that it has joined. */
  joined_run_id?: string | null;
  /** The message. */
  message_id: string;
  id: EventId;
  run_id: string;
  type: "message.steered";
  at: string;
}

export interface NewConversation {
  agent_id?: string | null;
  /** Collections that its runs answer from, beside those of its agent; at most 16. */
  knowledge?: string[];
  title?: string | null;
}

export interface NewMessageBody {
  /** Tools that the client executes: the run waits for their results. */
  client_tools?: ClientTool[];
  /** The text, or texts and files. If absent, with `replace_from`, the server makes the answer again. */
  content?: ContentInput | null;
  /** Where in its application the user is; kept with the conversation. */
  context?: AgentContext | null;
  /** A JSON object that the server stores with the run; later runs of the conversation inherit it. */
  metadata?: Record<string, unknown> | null;
  mode?: SubmitMode;
  /** The message that this one replaces; it and all later messages are superseded. */
  replace_from?: string | null;
  /** Whether the run writes `*.delta` events; true by default. */
  stream?: boolean | null;
}

export interface NewRunBody {
  /** The agent of a new conversation; an existing one keeps its agent. */
  agent_id?: string | null;
  /** Tools that the client executes: the run waits for their results. */
  client_tools?: ClientTool[];
  /** Where in its application the user is; kept with the conversation. */
  context?: AgentContext | null;
  /** If absent: the conversation of the session that `X-Session-ID` names, else a new one. */
  conversation_id?: string | null;
  /** The text, or texts and files. */
  input: ContentInput;
  /** A JSON object that the server stores with the run; later runs of the conversation inherit it. */
  metadata?: Record<string, unknown> | null;
  mode?: SubmitMode;
  /** Whether the run writes `*.delta` events; true by default. */
  stream?: boolean | null;
}

/** The model has a project of the workspace before it. */
export interface OntologyLoadedEvent {
  /** Entities of the project by kind. */
  counts: EntityCounts;
  /** Its name. */
  name: string;
  /** Tasks that are neither done nor cancelled. */
  open_tasks: number;
  /** The project. */
  project_id: string;
  id: EventId;
  run_id: string;
  type: "ontology.loaded";
  at: string;
}

/** A question that waits for a human. */
export interface OpenApproval {
  /** The id of the approval. */
  approval_id: string;
  /** The call that waits for it. */
  call_id: string;
  /** The run below that asks; absent for a question of this run. */
  child_run_id?: string | null;
  /** When the approval counts as denied. */
  expires_at: string;
  /** The arguments of the call. */
  input: unknown;
  /** `policy` or `unknown_outcome`. */
  kind: string;
  /** The tool. */
  name: string;
}

/** Part of a list. */
export interface PageConversation {
  /** The items, in the order of the list. */
  items: Conversation[];
  /** Cursor of the next page; null on the last one. */
  next?: string | null;
}

/** Part of a list. */
export interface PageMessage {
  /** The items, in the order of the list. */
  items: Message[];
  /** Cursor of the next page; null on the last one. */
  next?: string | null;
}

/** Part of a list. */
export interface PageRun {
  /** The items, in the order of the list. */
  items: Run[];
  /** Cursor of the next page; null on the last one. */
  next?: string | null;
}

/** Part of a list. */
export interface PageStoredFile {
  /** The items, in the order of the list. */
  items: StoredFile[];
  /** Cursor of the next page; null on the last one. */
  next?: string | null;
}

/** A part of a message. */
export type PartInput =
  | { text: string; type: "text" }
  | { file_id: string; type: "image" }
  | { file_id: string; type: "file" };

/** A plan, as the API shows it and as events have it. */
export interface Plan {
  /** The call of `agent_create_plan`. */
  call_id: string;
  /** Tells whether someone must approve the plan before its execution. */
  execution_mode: ExecutionMode;
  /** UUIDv7. */
  id: string;
  /** Goal, requested outputs and priority entities of the call. */
  metadata: PlanMetadata;
  /** The run that made it. */
  run_id: string;
  /** The conversation of that run. */
  session_id: string;
  /** Tells how far the plan has got. */
  status: PlanStatus;
  /** 1 to 20 steps, by their numbers. */
  steps: PlanStep[];
  /** The strategy of the run, `planner_stream`. */
  strategy: string;
  /** The message that the run answers. */
  user_message: string;
}

/** A planner has made a plan, or its next version. */
export interface PlanCreatedEvent {
  /** The plan. */
  plan: Plan;
  id: EventId;
  run_id: string;
  type: "plan.created";
  at: string;
}

/** The purpose of a plan, and its reviews. */
export interface PlanMetadata {
  /** Changes by clients during the execution; at most 20. */
  edits?: number;
  /** The purpose of the plan. */
  goal: string;
  /** The entities that matter most. */
  priority_entities?: string[];
  /** The outputs that the user wants. */
  requested_outputs?: string[];
  /** Reviews so far, the oldest first. */
  reviews?: PlanReview[];
  /** Versions that were made after a review. */
  revisions?: number;
}

/** A judgement of a plan. */
export interface PlanReview {
  /** The party that has judged. */
  by: ReviewedBy;
  /** The changes to make, or a remark; empty if there is none. */
  notes: string;
  /** Its number, from 1. */
  round: number;
  /** The judgement. */
  verdict: PlanVerdict;
}

/** A reviewer or a human has judged a plan. */
export interface PlanReviewedEvent {
  /** The party that has judged. */
  by: ReviewedBy;
  /** The changes to make, or a remark; empty if there is none. */
  notes: string;
  /** The plan. */
  plan_id: string;
  /** The number of the review, from 1. */
  round: number;
  /** The judgement. */
  verdict: PlanVerdict;
  id: EventId;
  run_id: string;
  type: "plan.reviewed";
  at: string;
}

/** The state of a plan. */
export type PlanStatus = "draft" | "approved" | "executing" | "completed" | "failed";

/** A step of a plan. */
export interface PlanStep {
  /** The run that executes the step, if a subagent does. */
  child_run_id?: string | null;
  /** Steps that must be completed before it. */
  depends_on: number[];
  /** The task. */
  description: string;
  /** Why the step failed, or was not begun. */
  error?: string | null;
  /** Whether a subagent takes the step; otherwise the planner does. */
  executor_required: boolean;
  /** The answer of a completed step, up to 4,000 characters. */
  result?: string | null;
  /** Tells how far the step has got. */
  status: StepStatus;
  /** Its number, from 1. */
  step_number: number;
  /** The only tools of the step. */
  tools: string[];
}

/** A step of a plan has a result or an error. */
export interface PlanStepCompletedEvent {
  /** The plan. */
  plan_id: string;
  /** The step. */
  step: PlanStep;
  id: EventId;
  run_id: string;
  type: "plan_step.completed";
  at: string;
}

/** A step of a plan begins. */
export interface PlanStepStartedEvent {
  /** How many steps the plan has. */
  of: number;
  /** The plan. */
  plan_id: string;
  /** The step. */
  step: PlanStep;
  id: EventId;
  run_id: string;
  type: "plan_step.started";
  at: string;
}

/** The plan has another status or other steps. */
export interface PlanUpdatedEvent {
  /** On a client's change of a plan: this event supersedes all events after its base. */
  base?: EventId | null;
  /** The plan as it is now. */
  plan: Plan;
  id: EventId;
  run_id: string;
  type: "plan.updated";
  at: string;
}

/** The judgement of a reviewer. */
export type PlanVerdict = "approved" | "changes_requested";

/** An answer that says what went wrong and what the client can do. */
export interface Problem {
  /** The first decision, for `already_decided`. */
  approval?: Approval | null;
  /** Stable and lower-case, for programs. */
  code: string;
  /** A sentence for people. */
  detail: string;
  /** The path of the run that the problem concerns, if the caller can read one. */
  run?: string | null;
  /** The HTTP status code. */
  status: number;
  /** The status in words. */
  title: string;
}

/** The part of a project that the user looks at. */
export interface ProjectFocus {
  /** The part; absent for the whole project. */
  focusEntityId?: string | null;
  /** The part's name. */
  focusEntityName?: string | null;
  /** The kind of the part. */
  focusType: FocusType;
  /** The project. */
  projectId: string;
  /** The project's name. */
  projectName: string;
}

/** The agent needs answers, and its run ends. The user's next message has them. */
export interface QuestionAskedEvent {
  /** One or two questions. */
  questions: string[];
  /** How many times the agent has asked for this purpose, from 1. */
  round: number;
  id: EventId;
  run_id: string;
  type: "question.asked";
  at: string;
}

/** A piece of the model's reasoning. */
export interface ReasoningDeltaEvent {
  /** The answer that it belongs to. */
  message_id: string;
  /** The text that follows the reasoning so far. */
  text: string;
  id: EventId;
  run_id: string;
  type: "reasoning.delta";
  at: string;
}

/** A passage before the model. */
export interface RetrievedPassage {
  /** The number of the passage in the document, from 0. */
  chunk: number;
  /** The document. */
  document: string;
  /** The number by which the model cites it. */
  number: number;
  /** The page on which it begins. */
  page?: number | null;
  /** How well it fits, within one search. */
  score: number;
  /** The title of the document. */
  title: string;
}

/** The party that has judged a plan. */
export type ReviewedBy = "reviewer" | "user";

/** The author of a message. */
export type Role = "user" | "assistant" | "system";

/** A run, as the API shows it. */
export interface Run {
  /** The agent that answers; null for a plain conversation. */
  agent_id?: string | null;
  /**
   * Number of the newest attempt; 0 before the first claim. Each attempt is one worker's try, or an API's write.
   */
  attempt: number;
  /** The conversation in whose queue the run stands. */
  conversation_id: string;
  /** Time of the database. */
  created_at: string;
  /** Set for a failed run only. */
  error?: RunError | null;
  /** The cause of `error` in its own words, such as those of the model's provider. Only operators see it. */
  error_details?: string | null;
  /** The model's reason for ending the answer, once the run is completed. */
  finish_reason?: FinishReason | null;
  /** Time of the database at the terminal status. */
  finished_at?: string | null;
  /** UUIDv7, chosen by the API before the run exists. */
  id: string;
  /** The message that the run answers. */
  input_message_id: string;
  /** The newest event in the database. A live stream may be ahead of it. */
  last_event_id: EventId;
  /** The client's own JSON, sent with the message. */
  metadata?: unknown;
  /** The model that answers, as `provider/name`; null until the run's first flush, at most 2 s after its start. */
  model?: string | null;
  /** The answer, once the run has ended. */
  output_message?: Message | null;
  /** Id of the answer's message, reserved at submission. The message exists once the run has ended. */
  output_message_id: string;
  /** The run that has started this one for a part of its work; null for a run that a message has started. */
  parent_run_id?: string | null;
  /** Time of the database at the first claim. */
  started_at?: string | null;
  /** Terminal statuses are `completed`, `failed` and `cancelled`. */
  status: RunStatus;
  /** `usage` and the tokens of all runs below that have ended; absent without such runs. */
  total_usage?: Usage | null;
  /** The run's OpenTelemetry trace, as 32 hexadecimal digits, if the trace is recorded. */
  trace_id?: string | null;
  /** Tokens of all steps so far; null before the first report. */
  usage?: Usage | null;
}

/** A run was cancelled. The last event of its log. */
export interface RunCancelledEvent {
  /** On the first event of an attempt: it supersedes all events after its base. */
  base?: EventId | null;
  /** The answer, if the database has kept a part of it. */
  message_id?: string | null;
  /** The tokens of all steps. */
  usage?: Usage;
  id: EventId;
  run_id: string;
  type: "run.cancelled";
  at: string;
}

/** A run has completed. The last event of its log. */
export interface RunCompletedEvent {
  /** Why the model ended the last step. */
  finish_reason?: FinishReason | null;
  /** The answer. */
  message_id?: string;
  /** The tokens of all steps. */
  usage?: Usage;
  id: EventId;
  run_id: string;
  type: "run.completed";
  at: string;
}

/** The error of a failed run. */
export interface RunError {
  /** Stable and lower-case, for programs. */
  code: string;
  /** One sentence for the reader. */
  message: string;
  /**
   * Seconds after which the model's provider takes requests again, if it has said so. The event of the end alone
   * has them.
   */
  retry_after?: number | null;
}

export type RunEvent =
  | RunQueuedEvent
  | AttemptStartedEvent
  | StepStartedEvent
  | StepCompletedEvent
  | MessageDeltaEvent
  | ReasoningDeltaEvent
  | ToolCallDeltaEvent
  | ToolCallStartedEvent
  | ToolCallCompletedEvent
  | MessageSteeredEvent
  | SubagentStartedEvent
  | SubagentCompletedEvent
  | PlanCreatedEvent
  | PlanUpdatedEvent
  | PlanReviewedEvent
  | PlanStepStartedEvent
  | PlanStepCompletedEvent
  | QuestionAskedEvent
  | ContextShiftedEvent
  | FocusChangedEvent
  | OntologyLoadedEvent
  | TemplateRequestedEvent
  | TemplateSuggestedEvent
  | DocumentProgressEvent
  | ContextRetrievedEvent
  | CitationAddedEvent
  | CitationDroppedEvent
  | MemoryToldEvent
  | ApprovalRequestedEvent
  | ApprovalResolvedEvent
  | MessageCompletedEvent
  | AgentStateEvent
  | ContextUsageEvent
  | WarningRaisedEvent
  | RunCompletedEvent
  | RunFailedEvent
  | RunCancelledEvent;

/** A run has failed. The last event of its log. */
export interface RunFailedEvent {
  /** On the first event of an attempt: it supersedes all events after its base. */
  base?: EventId | null;
  /** Why the run has failed. */
  error: RunError;
  /** The tokens of all steps. */
  usage?: Usage;
  id: EventId;
  run_id: string;
  type: "run.failed";
  at: string;
}

/** A run is committed and waits for a worker. */
export interface RunQueuedEvent {
  /** The agent that answers; null for the deployment's plain model. */
  agent_id?: string | null;
  /** Always `0-0`. */
  base: EventId;
  /** The conversation of the run. */
  conversation_id: string;
  /** The message that the run answers. */
  input_message_id: string;
  /** The id that the answer will have. */
  message_id: string;
  id: EventId;
  run_id: string;
  type: "run.queued";
  at: string;
}

/** The state of a run in its life cycle. */
export type RunStatus = "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled";

/** A run's message, folded from its events so far. */
export interface Snapshot {
  /** The approvals that are still pending. */
  approvals: OpenApproval[];
  /** Why the run has failed. */
  error?: RunError | null;
  /** Why the model ended the answer, after the run has completed. */
  finish_reason?: FinishReason | null;
  /** The id that the answer has, or will have. */
  message_id?: string | null;
  /** The model's reasoning so far. */
  reasoning: string;
  /** The status by the events: a run that its worker handed over is `running` until another worker claims it. */
  status: RunStatus;
  /** The text of the answer so far. */
  text: string;
  /** In the order in which the model asked for them. */
  tool_calls: CallSoFar[];
  /** The usage of the completed steps; absent before the first. */
  usage?: Usage | null;
}

/** A model call and its tool calls are complete. */
export interface StepCompletedEvent {
  /** Why the model ended the step. */
  finish_reason?: FinishReason;
  /** The model that has answered, as `<provider>/<name>`. */
  model?: string | null;
  /** The number of the step, from 1. */
  step: number;
  /** How many tool calls the model asked for. */
  tool_calls: number;
  /** The tokens of the model call. */
  usage: Usage;
  id: EventId;
  run_id: string;
  type: "step.completed";
  at: string;
}

/** A model call begins. */
export interface StepStartedEvent {
  /** The number of the step, from 1. */
  step: number;
  id: EventId;
  run_id: string;
  type: "step.started";
  at: string;
}

/** The state of a step. */
export type StepStatus = "pending" | "executing" | "completed" | "failed";

/** A file, as the API shows it. */
export interface StoredFile {
  /** Bytes of the contents. While the upload lasts, the most that it can bring. */
  bytes: number;
  /** Time of the database. */
  created_at: string;
  /** UUIDv7. */
  id: string;
  /** Its media type, found in the contents and not believed. */
  media_type: string;
  /** The name that its owner gave it, without folders. */
  name: string;
  /** Bytes that the upload has stored so far. It continues from there. */
  received: number;
  /** SHA-256 of the contents, in hexadecimal digits; null while the upload lasts. */
  sha256?: string | null;
}

/** A child run has ended. The outcome of its call follows. */
export interface SubagentCompletedEvent {
  /** On an end during the parent's wait: this event supersedes all events after its base. */
  base?: EventId | null;
  /** The call that the child answers. */
  call_id: string;
  /** The child. */
  child_run_id: string;
  /** Why there is no output. */
  error?: ToolError | null;
  /** The child's answer. */
  output?: string | null;
  /** The plan whose step the child took, or that it judged. */
  plan_id?: string | null;
  /** The child's part in the work of its parent. */
  role: SubagentRole;
  /** `completed`, `failed` or `cancelled`. */
  status: RunStatus;
  /** The step that the child took. */
  step_number?: number | null;
  /** Tokens of the child and of its own children. */
  usage?: Usage;
  id: EventId;
  run_id: string;
  type: "subagent.completed";
  at: string;
}

/** The part of a child run in the work of its parent. */
export type SubagentRole = "executor" | "reviewer" | "synthesizer" | "subagent";

/** A child run was started for a call. It has a log of its own. */
export interface SubagentStartedEvent {
  /** The name of the child's agent. */
  agent: string;
  /** The call that the child answers. */
  call_id: string;
  /** The child. */
  child_run_id: string;
  /** The plan whose step the child takes, or that it judges. */
  plan_id?: string | null;
  /** The child's part in the work of its parent. */
  role: SubagentRole;
  /** The step that the child takes. */
  step_number?: number | null;
  /** The child's input. */
  task: string;
  id: EventId;
  run_id: string;
  type: "subagent.started";
  at: string;
}

/** How a new message affects the unfinished runs of its conversation. */
export type SubmitMode = "enqueue" | "reject" | "interrupt" | "rollback" | "steer";

/** A template of projects was requested from the operators. */
export interface TemplateRequestedEvent {
  /** Wishes for its contents. */
  hints?: string | null;
  /** The sort of project. */
  kind: string;
  /** Why it is needed. */
  reason: string;
  /** The template, whose state tells what became of the request. */
  template_id: string;
  id: EventId;
  run_id: string;
  type: "template.requested";
  at: string;
}

/** A template is suggested to the user. */
export interface TemplateSuggestedEvent {
  /** The sort of project. */
  kind: string;
  /** Its name. */
  name: string;
  /** Why it would help. */
  rationale: string;
  id: EventId;
  run_id: string;
  type: "template.suggested";
  at: string;
}

/** A tool call has an outcome. */
export interface ToolCallCompletedEvent {
  /** On a result that the client has returned: this event supersedes all events after its base. */
  base?: EventId | null;
  /** The party that executes the call; absent for an unknown tool. */
  by?: ExecutedBy | null;
  /** The call. */
  call_id: string;
  /** How long the call took. */
  duration_ms?: number;
  /** The entities of the workspace that the call was about. */
  entities?: EntityAccessed[];
  /** Why there is no output. */
  error?: ToolError | null;
  /** The files that the tool has returned. */
  files?: ToolFile[];
  /** The arguments of a call that was refused and so never started. */
  input?: unknown;
  /** The tool. */
  name: string;
  /** The text that the tool returned. */
  output?: string | null;
  id: EventId;
  run_id: string;
  type: "tool_call.completed";
  at: string;
}

/** A piece of a call's arguments, as the model writes them. */
export interface ToolCallDeltaEvent {
  /** The party that executes the call; in the first piece of a call; absent for an unknown tool. */
  by?: ExecutedBy | null;
  /** The call. */
  call_id: string;
  /** The tool's name; only the first piece of a call has it. */
  name?: string | null;
  /** JSON text that follows the arguments so far. */
  text: string;
  id: EventId;
  run_id: string;
  type: "tool_call.delta";
  at: string;
}

/** A tool call begins. */
export interface ToolCallStartedEvent {
  /** The party that executes the call. */
  by: ExecutedBy;
  /** The call. */
  call_id: string;
  /** When a call that the client executes expires without a result. */
  expires_at?: string | null;
  /** The arguments of the call. */
  input: unknown;
  /** The tool. */
  name: string;
  /** The step whose model call asked for it, from 1. */
  step: number;
  id: EventId;
  run_id: string;
  type: "tool_call.started";
  at: string;
}

/** The state of a call in its life cycle. */
export type ToolCallStatus = "requested" | "waiting" | "client" | "called" | "completed" | "abandoned";

/** The reason why a call has no output. The model reads it. */
export interface ToolError {
  /** Stable and lower-case, such as `tool_failed`. */
  code: string;
  /** One sentence for the model. */
  message: string;
}

/** A file that a tool has returned. */
export interface ToolFile {
  /** Bytes of its contents. */
  bytes: number;
  /** The file. Its owner may have deleted it. */
  file_id: string;
  /** Its media type, found in the contents and not believed. */
  media_type: string;
  /** Its name: that of the tool's resource, or else one that the tool's name gives. */
  name: string;
}

export interface ToolResult {
  /** The reason why the tool has no output. */
  error?: string | null;
  /** The tool's output: a text or any JSON, null included. */
  output?: unknown;
}

/** Tokens of one or more model calls, as the provider reports them. An unreported count is 0. */
export interface Usage {
  /** Part of `input_tokens` that the provider read from its cache. */
  cached_tokens: number;
  /** Tokens of the prompt, cached tokens included. */
  input_tokens: number;
  /** Tokens of the answer, reasoning included. */
  output_tokens: number;
  /** Part of `output_tokens` that is reasoning. */
  reasoning_tokens: number;
}

export type Verdict = "approve" | "deny";

/** The number of a message among its versions, oldest first. */
export interface Version {
  /** At least 2. */
  count: number;
  /** The message of the version after this one. */
  next?: string | null;
  /** From 1 to `count`. */
  number: number;
  /** The message of the version before this one. */
  previous?: string | null;
}

/** Something went wrong, and the run continues. */
export interface WarningRaisedEvent {
  /** A stable code in lower case. */
  code: string;
  /** A sentence for the reader. */
  message: string;
  id: EventId;
  run_id: string;
  type: "warning.raised";
  at: string;
}
