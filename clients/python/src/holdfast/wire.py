"""Types of the API.

Made from /openapi.json by clients/generate_types.py; changes belong there.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class Attachment(TypedDict):
    """A file of a message."""

    # Bytes of its contents.
    bytes: int
    # The file. Its owner may have deleted it.
    file_id: str
    # Its media type.
    media_type: str
    # Its name at the time of the message.
    name: str
    # Its place in the message: the number of bytes of UTF-8 of the text before it.
    offset: int
    # `image` for a picture that models can see.
    type: AttachmentKind


class BriefingCard(TypedDict):
    """A copy of a briefing in a conversation, taken when the card was added."""

    # The briefing that was copied; it may be deleted since.
    briefing_id: str
    # The briefing's own time, not the time of the card's message.
    created_at: str
    # The author's JSON at the time of the copy.
    data: NotRequired[Any]
    # The author's label at the time of the copy, such as `P1`.
    priority: NotRequired[str | None]
    # Summary at the time of the copy.
    summary: str
    # Title at the time of the copy.
    title: str


class Version(TypedDict):
    """The number of a message among its versions, oldest first."""

    # At least 2.
    count: int
    # The message of the version after this one.
    next: NotRequired[str | None]
    # From 1 to `count`.
    number: int
    # The message of the version before this one.
    previous: NotRequired[str | None]


class Message(TypedDict):
    """One message, as the API shows it and as `message.completed` carries it."""

    content_type: Literal["text", "briefing_card"]
    # Plain text of a client or of a model.
    content: str | BriefingCard
    # Files of a client's message.
    attachments: NotRequired[list[Attachment]]
    # The id that the client gave its message.
    client_id: NotRequired[str | None]
    # The conversation that the message belongs to, superseded messages included.
    conversation_id: str
    # Time of the database.
    created_at: str
    # The model's reason for ending a complete answer.
    finish_reason: NotRequired[FinishReason | None]
    # True for a message that a client brought from elsewhere: no run wrote or answered it.
    given: NotRequired[bool]
    # UUIDv7.
    id: str
    # Sources of an answer, as `{"agent_run_id": …}`, and `documents` and `dropped` if its run had documents before
    # it.
    retrieval_context: NotRequired[Any]
    # `user` for a client's message, `assistant` for an answer, `system` for a card.
    role: Role
    # The run that the message started or that wrote it. A card and a message without a run have none.
    run_id: NotRequired[str | None]
    # `complete` for every message of a client.
    status: MessageStatus
    # Time at which an edit or a rollback removed the message from its conversation.
    superseded_at: NotRequired[str | None]
    # Its number among several versions. Lists set it after an edit or a second answer.
    version: NotRequired[Version | None]


class RunError(TypedDict):
    """The error of a failed run."""

    # Stable and lower-case, for programs.
    code: str
    # One sentence for the reader.
    message: str
    # Seconds after which the model's provider takes requests again, if it has said so. The event of the end alone
    # has them.
    retry_after: NotRequired[int | None]


class Usage(TypedDict):
    """Tokens of one or more model calls, as the provider reports them. An unreported count is 0."""

    # Part of `input_tokens` that the provider read from its cache.
    cached_tokens: int
    # Tokens of the prompt, cached tokens included.
    input_tokens: int
    # Tokens of the answer, reasoning included.
    output_tokens: int
    # Part of `output_tokens` that is reasoning.
    reasoning_tokens: int


class Run(TypedDict):
    """A run, as the API shows it."""

    # The agent that answers; null for a plain conversation.
    agent_id: NotRequired[str | None]
    # Number of the newest attempt; 0 before the first claim. Each attempt is one worker's try, or an API's write.
    attempt: int
    # The conversation in whose queue the run stands.
    conversation_id: str
    # Time of the database.
    created_at: str
    # Set for a failed run only.
    error: NotRequired[RunError | None]
    # The cause of `error` in its own words, such as those of the model's provider. Only operators see it.
    error_details: NotRequired[str | None]
    # The model's reason for ending the answer, once the run is completed.
    finish_reason: NotRequired[FinishReason | None]
    # Time of the database at the terminal status.
    finished_at: NotRequired[str | None]
    # UUIDv7, chosen by the API before the run exists.
    id: str
    # The message that the run answers.
    input_message_id: str
    # The newest event in the database. A live stream may be ahead of it.
    last_event_id: EventId
    # The client's own JSON, sent with the message.
    metadata: NotRequired[Any]
    # The model that answers, as `provider/name`; null until the run's first flush, at most 2 s after its start.
    model: NotRequired[str | None]
    # The answer, once the run has ended.
    output_message: NotRequired[Message | None]
    # Id of the answer's message, reserved at submission. The message exists once the run has ended.
    output_message_id: str
    # The run that has started this one for a part of its work; null for a run that a message has started.
    parent_run_id: NotRequired[str | None]
    # Time of the database at the first claim.
    started_at: NotRequired[str | None]
    # Terminal statuses are `completed`, `failed` and `cancelled`.
    status: RunStatus
    # `usage` and the tokens of all runs below that have ended; absent without such runs.
    total_usage: NotRequired[Usage | None]
    # The run's OpenTelemetry trace, as 32 hexadecimal digits, if the trace is recorded.
    trace_id: NotRequired[str | None]
    # Tokens of all steps so far; null before the first report.
    usage: NotRequired[Usage | None]


class AcceptedMessage(TypedDict):
    """A committed message and its run."""

    message: Message
    run: Run


class Found(TypedDict):
    """The message in which a search found its words."""

    # The id that the client gave this message.
    client_id: NotRequired[str | None]
    # One line of at most 142 characters around the first word.
    excerpt: str
    # The matching message.
    message_id: str


class Conversation(TypedDict):
    """A conversation, as the API shows it."""

    # The agent that answers in it; null for a plain conversation.
    agent_id: NotRequired[str | None]
    # Time of the database.
    created_at: str
    # The conversation that owns this checkpoint.
    forked_conversation_id: NotRequired[str | None]
    # The checkpoint that the conversation was forked from.
    forked_from: NotRequired[str | None]
    # Only in a search: the newest matching message. Absent where the title alone has all words.
    found: NotRequired[Found | None]
    # UUIDv7.
    id: str
    # Collections that its runs answer from, beside those of its agent.
    knowledge: NotRequired[list[str]]
    # Time of the database at which the newest message was stored; null for an empty conversation.
    last_message_at: NotRequired[str | None]
    # The first unfinished run of its queue: running, waiting or queued.
    live_run_id: NotRequired[str | None]
    # The title that a client gave, else the first words of the first message.
    title: NotRequired[str | None]


class AcceptedRun(TypedDict):
    """A committed run with its message and conversation."""

    conversation: Conversation
    message: Message
    run: Run


class ProjectFocus(TypedDict):
    """The part of a project that the user looks at."""

    # The part; absent for the whole project.
    focusEntityId: NotRequired[str | None]
    # The part's name.
    focusEntityName: NotRequired[str | None]
    # The kind of the part.
    focusType: FocusType
    # The project.
    projectId: str
    # The project's name.
    projectName: str


class AgentContext(TypedDict):
    """Where in its application the client was when it sent the message."""

    # The kind of thing that the client shows: for the planner `global`, `project`, `project_create`,
    # `project_audit` or `project_forecast`.
    context_type: str
    # The thing that the client shows.
    entity_id: NotRequired[str | None]
    # The kind of that thing.
    ontologyEntityType: NotRequired[EntityType | None]
    # The part of a project that the user looks at.
    projectFocus: NotRequired[ProjectFocus | None]
    # The session's name; absent if the conversation's id is the name.
    session_id: NotRequired[str | None]


class AgentStateEvent(TypedDict):
    """The agent is in a state that no other event shows."""

    # The state.
    state: str
    # The tokens of the step that waits. Its `step.completed` has them again.
    usage: NotRequired[Usage | None]
    id: EventId
    run_id: str
    type: Literal["agent.state"]
    at: str


class Approval(TypedDict):
    """A question about one call, as the API shows it. The answer counts for this exact input only."""

    # The call of that run: `call_` and a UUIDv7 in hexadecimal digits.
    call_id: str
    # Time of the database at which the question was settled; null while it is pending.
    decided_at: NotRequired[str | None]
    # Owner id of the approver; null if no approver decided.
    decided_by: NotRequired[str | None]
    # Arguments that replace `input`, if the approver changed them.
    edited_input: NotRequired[Any]
    # Time of the database after which the sweeper denies the call.
    expires_at: str
    # UUIDv7, chosen by the worker that asks.
    id: str
    # Arguments of the call, as the model wrote them.
    input: Any
    # Tells the approver whether the agent's policy or a crash raised the question.
    kind: ApprovalKind
    # Name of the tool, as `<server>__<tool>`.
    name: str
    # Free text that the approver sent with the decision.
    reason: NotRequired[str | None]
    # Time of the database at which the run began to wait.
    requested_at: str
    # The run that asks and waits.
    run_id: str
    # `pending` until an answer, the expiry or the end of the run settles the question.
    status: ApprovalStatus


class ApprovalRequestedEvent(TypedDict):
    """A run waits for a human's decision about a call."""

    # The approval.
    approval_id: str
    # On a question of a run below that comes during this run's wait: it supersedes all events after its base.
    base: NotRequired[EventId | None]
    # The call that waits for it.
    call_id: str
    # The run below that asks; absent for a question of this run.
    child_run_id: NotRequired[str | None]
    # When the approval counts as denied.
    expires_at: str
    # The arguments of the call.
    input: Any
    # Why a human must decide.
    kind: ApprovalKind
    # The tool.
    name: str
    id: EventId
    run_id: str
    type: Literal["approval.requested"]
    at: str


class ApprovalResolvedEvent(TypedDict):
    """An approval is no longer pending."""

    # The approval.
    approval_id: str
    # On the first event of an attempt: it supersedes all events after its base.
    base: NotRequired[EventId | None]
    # The call that the approval is about.
    call_id: str
    # The run below that has asked; absent for a question of this run.
    child_run_id: NotRequired[str | None]
    # The decision.
    decision: ApprovalStatus
    # The arguments that replace those of the model.
    edited_input: NotRequired[Any]
    # The human's reason.
    reason: NotRequired[str | None]
    id: EventId
    run_id: str
    type: Literal["approval.resolved"]
    at: str


class Approvals(TypedDict):
    """A page of a run's approvals, in order."""

    items: list[Approval]
    # Whether the caller may decide them.
    may_decide: bool
    # The cursor of the next page, null at the end.
    next: NotRequired[str | None]


class AttemptStartedEvent(TypedDict):
    """A worker has begun an attempt at the run."""

    # The number of the attempt, from 1.
    attempt: int
    # This event supersedes all events after its base.
    base: EventId
    # Workers that were lost with this run since its last completed step.
    crashes: NotRequired[int]
    # The number of crashes that fails the run.
    max_crashes: NotRequired[int]
    # Why the attempt began.
    reason: AttemptReason
    id: EventId
    run_id: str
    type: Literal["attempt.started"]
    at: str


class ToolError(TypedDict):
    """The reason why a call has no output. The model reads it."""

    # Stable and lower-case, such as `tool_failed`.
    code: str
    # One sentence for the model.
    message: str


class ToolFile(TypedDict):
    """A file that a tool has returned."""

    # Bytes of its contents.
    bytes: int
    # The file. Its owner may have deleted it.
    file_id: str
    # Its media type, found in the contents and not believed.
    media_type: str
    # Its name: that of the tool's resource, or else one that the tool's name gives.
    name: str


class CallSoFar(TypedDict):
    """The state of a tool call."""

    # The id of the call.
    call_id: str
    # The child run that answers the call.
    child_run_id: NotRequired[str | None]
    # Why there is no output.
    error: NotRequired[ToolError | None]
    # When a call that the client executes expires without a result.
    expires_at: NotRequired[str | None]
    # The files that the tool has returned.
    files: NotRequired[list[ToolFile]]
    # The arguments once they are complete; null before.
    input: NotRequired[Any]
    # The arguments that the model has written so far, while they are incomplete.
    input_text: NotRequired[str | None]
    # The tool.
    name: str
    # The text that the tool returned.
    output: NotRequired[str | None]
    # The status by the events.
    status: ToolCallStatus


class Citation(TypedDict):
    """A passage that an answer cites."""

    # The number of the passage in the document, from 0.
    chunk: int
    # The place after its last character.
    end: int
    # The document.
    id: str
    # The page on which the passage begins.
    page: NotRequired[int | None]
    # How well it fits, within one search.
    score: float
    # The place of its first character in the document's text, in Unicode scalar values.
    start: int
    # The title of the document at the time of the answer.
    title: str


class CitationAddedEvent(TypedDict):
    """The answer cites a passage for the first time. The event follows the delta that has the mark."""

    # The number in the answer's text, as in `[1]`.
    number: int
    # The passage.
    source: Citation
    id: EventId
    run_id: str
    type: Literal["citation.added"]
    at: str


class CitationDroppedEvent(TypedDict):
    """The step of the model had a mark that is not in the text."""

    # The number that the model wrote.
    number: int
    # Why the mark was dropped.
    reason: DropReason
    id: EventId
    run_id: str
    type: Literal["citation.dropped"]
    at: str


class ClientTool(TypedDict):
    """A tool that the client itself executes."""

    # Tells the model what the tool does.
    description: NotRequired[str]
    # JSON schema of the arguments; any object by default.
    input_schema: NotRequired[dict[str, Any]]
    # 1 to 64 letters, digits, dashes and underscores.
    name: str


class RetrievedPassage(TypedDict):
    """A passage before the model."""

    # The number of the passage in the document, from 0.
    chunk: int
    # The document.
    document: str
    # The number by which the model cites it.
    number: int
    # The page on which it begins.
    page: NotRequired[int | None]
    # How well it fits, within one search.
    score: float
    # The title of the document.
    title: str


class ContextRetrievedEvent(TypedDict):
    """The model has passages of documents before it."""

    # The passages, in the order of their numbers.
    passages: list[RetrievedPassage]
    id: EventId
    run_id: str
    type: Literal["context.retrieved"]
    at: str


class ContextShiftedEvent(TypedDict):
    """The turn, and the conversation after it, are about another project."""

    # The new context type.
    context_type: str
    # The project.
    entity_id: str
    # Its name.
    entity_name: str
    # The shift in a sentence.
    message: str
    id: EventId
    run_id: str
    type: Literal["context.shifted"]
    at: str


class ContextUsageEvent(TypedDict):
    """The size of the conversation and its budget, in tokens."""

    # Tokens that the conversation may take.
    budget: int
    # Whether the model reads a summary in place of older messages.
    compressed: bool
    # Estimated tokens of the conversation.
    tokens: int
    # The first message that the model reads word by word, if there are older ones.
    verbatim_from: NotRequired[str | None]
    # The id of that message that its client has chosen.
    verbatim_from_client_id: NotRequired[str | None]
    id: EventId
    run_id: str
    type: Literal["context.usage"]
    at: str


class DecisionBody(TypedDict):
    """`DecisionBody`."""

    decision: Verdict
    # Arguments that replace the model's.
    edited_input: NotRequired[Any]
    # For the model and the record.
    reason: NotRequired[str | None]


class DocumentProgressEvent(TypedDict):
    """How far the ingestion of a document is."""

    # The document.
    document_id: str
    # The progress of the step: passages, or bytes of the file while the worker extracts its text.
    done: int
    # The step that is under way.
    stage: IngestionStage
    # The whole work of the step.
    total: int
    id: EventId
    run_id: str
    type: Literal["document.progress"]
    at: str


class EntityAccessed(TypedDict):
    """An entity of the workspace that a call was about."""

    # The entity.
    id: str
    # Its kind, such as `task`.
    kind: str
    # Its name; empty if the call has only its id.
    name: NotRequired[str]


class EntityCounts(TypedDict):
    """Entities of a project by kind."""

    # Documents.
    documents: NotRequired[int]
    # Relations.
    edges: NotRequired[int]
    # Goals.
    goals: NotRequired[int]
    # Outputs.
    outputs: NotRequired[int]
    # Plans.
    plans: NotRequired[int]
    # Tasks.
    tasks: NotRequired[int]


class FocusChangedEvent(TypedDict):
    """The turn is about another part of a project."""

    # The new focus.
    focus: ProjectFocus
    id: EventId
    run_id: str
    type: Literal["focus.changed"]
    at: str


class MemoryReference(TypedDict):
    """A version of a memory, without its text."""

    # The memory.
    id: str
    # Its version.
    version: int


class MemoryToldEvent(TypedDict):
    """A call has shown memories of the user to the model. The event has no text, so that nothing of a deleted memory
    stays.
    """

    # The call of `recall`.
    call_id: str
    # The memories, most relevant first.
    memories: list[MemoryReference]
    id: EventId
    run_id: str
    type: Literal["memory.told"]
    at: str


class MessageCompletedEvent(TypedDict):
    """The database has stored the answer."""

    # On the first event of an attempt: it supersedes all events after its base.
    base: NotRequired[EventId | None]
    # The answer.
    message: Message
    id: EventId
    run_id: str
    type: Literal["message.completed"]
    at: str


class MessageDeltaEvent(TypedDict):
    """A piece of the answer's text."""

    # The answer.
    message_id: str
    # The text that follows the answer's text so far.
    text: str
    id: EventId
    run_id: str
    type: Literal["message.delta"]
    at: str


class MessageSteeredEvent(TypedDict):
    """A message has joined a live run. In the log of that run, the next step answers it too. In the log of the run
    that the message had before, the end of that run follows.
    """

    # In the log of the message's own run: this event supersedes all events after its base.
    base: NotRequired[EventId | None]
    # In the log of the message's own run: the run that it has joined.
    joined_run_id: NotRequired[str | None]
    # The message.
    message_id: str
    id: EventId
    run_id: str
    type: Literal["message.steered"]
    at: str


class NewConversation(TypedDict):
    """`NewConversation`."""

    agent_id: NotRequired[str | None]
    # Collections that its runs answer from, beside those of its agent; at most 16.
    knowledge: NotRequired[list[str]]
    title: NotRequired[str | None]


class NewMessageBody(TypedDict):
    """`NewMessageBody`."""

    # Tools that the client executes: the run waits for their results.
    client_tools: NotRequired[list[ClientTool]]
    # The text, or texts and files. If absent, with `replace_from`, the server makes the answer again.
    content: NotRequired[ContentInput | None]
    # Where in its application the user is; kept with the conversation.
    context: NotRequired[AgentContext | None]
    # A JSON object that the server stores with the run; later runs of the conversation inherit it.
    metadata: NotRequired[dict[str, Any] | None]
    mode: NotRequired[SubmitMode]
    # The message that this one replaces; it and all later messages are superseded.
    replace_from: NotRequired[str | None]
    # Whether the run writes `*.delta` events; true by default.
    stream: NotRequired[bool | None]


class NewRunBody(TypedDict):
    """`NewRunBody`."""

    # The agent of a new conversation; an existing one keeps its agent.
    agent_id: NotRequired[str | None]
    # Tools that the client executes: the run waits for their results.
    client_tools: NotRequired[list[ClientTool]]
    # Where in its application the user is; kept with the conversation.
    context: NotRequired[AgentContext | None]
    # If absent: the conversation of the session that `X-Session-ID` names, else a new one.
    conversation_id: NotRequired[str | None]
    # The text, or texts and files.
    input: ContentInput
    # A JSON object that the server stores with the run; later runs of the conversation inherit it.
    metadata: NotRequired[dict[str, Any] | None]
    mode: NotRequired[SubmitMode]
    # Whether the run writes `*.delta` events; true by default.
    stream: NotRequired[bool | None]


class OntologyLoadedEvent(TypedDict):
    """The model has a project of the workspace before it."""

    # Entities of the project by kind.
    counts: EntityCounts
    # Its name.
    name: str
    # Tasks that are neither done nor cancelled.
    open_tasks: int
    # The project.
    project_id: str
    id: EventId
    run_id: str
    type: Literal["ontology.loaded"]
    at: str


class OpenApproval(TypedDict):
    """A question that waits for a human."""

    # The id of the approval.
    approval_id: str
    # The call that waits for it.
    call_id: str
    # The run below that asks; absent for a question of this run.
    child_run_id: NotRequired[str | None]
    # When the approval counts as denied.
    expires_at: str
    # The arguments of the call.
    input: Any
    # `policy` or `unknown_outcome`.
    kind: str
    # The tool.
    name: str


class PageConversation(TypedDict):
    """Part of a list."""

    # The items, in the order of the list.
    items: list[Conversation]
    # Cursor of the next page; null on the last one.
    next: NotRequired[str | None]


class PageMessage(TypedDict):
    """Part of a list."""

    # The items, in the order of the list.
    items: list[Message]
    # Cursor of the next page; null on the last one.
    next: NotRequired[str | None]


class PageRun(TypedDict):
    """Part of a list."""

    # The items, in the order of the list.
    items: list[Run]
    # Cursor of the next page; null on the last one.
    next: NotRequired[str | None]


class StoredFile(TypedDict):
    """A file, as the API shows it."""

    # Bytes of the contents. While the upload lasts, the most that it can bring.
    bytes: int
    # Time of the database.
    created_at: str
    # UUIDv7.
    id: str
    # Its media type, found in the contents and not believed.
    media_type: str
    # The name that its owner gave it, without folders.
    name: str
    # Bytes that the upload has stored so far. It continues from there.
    received: int
    # SHA-256 of the contents, in hexadecimal digits; null while the upload lasts.
    sha256: NotRequired[str | None]


class PageStoredFile(TypedDict):
    """Part of a list."""

    # The items, in the order of the list.
    items: list[StoredFile]
    # Cursor of the next page; null on the last one.
    next: NotRequired[str | None]


class PlanReview(TypedDict):
    """A judgement of a plan."""

    # The party that has judged.
    by: ReviewedBy
    # The changes to make, or a remark; empty if there is none.
    notes: str
    # Its number, from 1.
    round: int
    # The judgement.
    verdict: PlanVerdict


class PlanMetadata(TypedDict):
    """The purpose of a plan, and its reviews."""

    # Changes by clients during the execution; at most 20.
    edits: NotRequired[int]
    # The purpose of the plan.
    goal: str
    # The entities that matter most.
    priority_entities: NotRequired[list[str]]
    # The outputs that the user wants.
    requested_outputs: NotRequired[list[str]]
    # Reviews so far, the oldest first.
    reviews: NotRequired[list[PlanReview]]
    # Versions that were made after a review.
    revisions: NotRequired[int]


class PlanStep(TypedDict):
    """A step of a plan."""

    # The run that executes the step, if a subagent does.
    child_run_id: NotRequired[str | None]
    # Steps that must be completed before it.
    depends_on: list[int]
    # The task.
    description: str
    # Why the step failed, or was not begun.
    error: NotRequired[str | None]
    # Whether a subagent takes the step; otherwise the planner does.
    executor_required: bool
    # The answer of a completed step, up to 4,000 characters.
    result: NotRequired[str | None]
    # Tells how far the step has got.
    status: StepStatus
    # Its number, from 1.
    step_number: int
    # The only tools of the step.
    tools: list[str]


class Plan(TypedDict):
    """A plan, as the API shows it and as events have it."""

    # The call of `agent_create_plan`.
    call_id: str
    # Tells whether someone must approve the plan before its execution.
    execution_mode: ExecutionMode
    # UUIDv7.
    id: str
    # Goal, requested outputs and priority entities of the call.
    metadata: PlanMetadata
    # The run that made it.
    run_id: str
    # The conversation of that run.
    session_id: str
    # Tells how far the plan has got.
    status: PlanStatus
    # 1 to 20 steps, by their numbers.
    steps: list[PlanStep]
    # The strategy of the run, `planner_stream`.
    strategy: str
    # The message that the run answers.
    user_message: str


class PlanCreatedEvent(TypedDict):
    """A planner has made a plan, or its next version."""

    # The plan.
    plan: Plan
    id: EventId
    run_id: str
    type: Literal["plan.created"]
    at: str


class PlanReviewedEvent(TypedDict):
    """A reviewer or a human has judged a plan."""

    # The party that has judged.
    by: ReviewedBy
    # The changes to make, or a remark; empty if there is none.
    notes: str
    # The plan.
    plan_id: str
    # The number of the review, from 1.
    round: int
    # The judgement.
    verdict: PlanVerdict
    id: EventId
    run_id: str
    type: Literal["plan.reviewed"]
    at: str


class PlanStepCompletedEvent(TypedDict):
    """A step of a plan has a result or an error."""

    # The plan.
    plan_id: str
    # The step.
    step: PlanStep
    id: EventId
    run_id: str
    type: Literal["plan_step.completed"]
    at: str


class PlanStepStartedEvent(TypedDict):
    """A step of a plan begins."""

    # How many steps the plan has.
    of: int
    # The plan.
    plan_id: str
    # The step.
    step: PlanStep
    id: EventId
    run_id: str
    type: Literal["plan_step.started"]
    at: str


class PlanUpdatedEvent(TypedDict):
    """The plan has another status or other steps."""

    # On a client's change of a plan: this event supersedes all events after its base.
    base: NotRequired[EventId | None]
    # The plan as it is now.
    plan: Plan
    id: EventId
    run_id: str
    type: Literal["plan.updated"]
    at: str


class Problem(TypedDict):
    """An answer that says what went wrong and what the client can do."""

    # The first decision, for `already_decided`.
    approval: NotRequired[Approval | None]
    # Stable and lower-case, for programs.
    code: str
    # A sentence for people.
    detail: str
    # The path of the run that the problem concerns, if the caller can read one.
    run: NotRequired[str | None]
    # The HTTP status code.
    status: int
    # The status in words.
    title: str


class QuestionAskedEvent(TypedDict):
    """The agent needs answers, and its run ends. The user's next message has them."""

    # One or two questions.
    questions: list[str]
    # How many times the agent has asked for this purpose, from 1.
    round: int
    id: EventId
    run_id: str
    type: Literal["question.asked"]
    at: str


class ReasoningDeltaEvent(TypedDict):
    """A piece of the model's reasoning."""

    # The answer that it belongs to.
    message_id: str
    # The text that follows the reasoning so far.
    text: str
    id: EventId
    run_id: str
    type: Literal["reasoning.delta"]
    at: str


class RunCancelledEvent(TypedDict):
    """A run was cancelled. The last event of its log."""

    # On the first event of an attempt: it supersedes all events after its base.
    base: NotRequired[EventId | None]
    # The answer, if the database has kept a part of it.
    message_id: NotRequired[str | None]
    # The tokens of all steps.
    usage: NotRequired[Usage]
    id: EventId
    run_id: str
    type: Literal["run.cancelled"]
    at: str


class RunCompletedEvent(TypedDict):
    """A run has completed. The last event of its log."""

    # Why the model ended the last step.
    finish_reason: NotRequired[FinishReason | None]
    # The answer.
    message_id: NotRequired[str]
    # The tokens of all steps.
    usage: NotRequired[Usage]
    id: EventId
    run_id: str
    type: Literal["run.completed"]
    at: str


class RunFailedEvent(TypedDict):
    """A run has failed. The last event of its log."""

    # On the first event of an attempt: it supersedes all events after its base.
    base: NotRequired[EventId | None]
    # Why the run has failed.
    error: RunError
    # The tokens of all steps.
    usage: NotRequired[Usage]
    id: EventId
    run_id: str
    type: Literal["run.failed"]
    at: str


class RunQueuedEvent(TypedDict):
    """A run is committed and waits for a worker."""

    # The agent that answers; null for the deployment's plain model.
    agent_id: NotRequired[str | None]
    # Always `0-0`.
    base: EventId
    # The conversation of the run.
    conversation_id: str
    # The message that the run answers.
    input_message_id: str
    # The id that the answer will have.
    message_id: str
    id: EventId
    run_id: str
    type: Literal["run.queued"]
    at: str


class StepCompletedEvent(TypedDict):
    """A model call and its tool calls are complete."""

    # Why the model ended the step.
    finish_reason: NotRequired[FinishReason]
    # The model that has answered, as `<provider>/<name>`.
    model: NotRequired[str | None]
    # The number of the step, from 1.
    step: int
    # How many tool calls the model asked for.
    tool_calls: int
    # The tokens of the model call.
    usage: Usage
    id: EventId
    run_id: str
    type: Literal["step.completed"]
    at: str


class StepStartedEvent(TypedDict):
    """A model call begins."""

    # The number of the step, from 1.
    step: int
    id: EventId
    run_id: str
    type: Literal["step.started"]
    at: str


class SubagentCompletedEvent(TypedDict):
    """A child run has ended. The outcome of its call follows."""

    # On an end during the parent's wait: this event supersedes all events after its base.
    base: NotRequired[EventId | None]
    # The call that the child answers.
    call_id: str
    # The child.
    child_run_id: str
    # Why there is no output.
    error: NotRequired[ToolError | None]
    # The child's answer.
    output: NotRequired[str | None]
    # The plan whose step the child took, or that it judged.
    plan_id: NotRequired[str | None]
    # The child's part in the work of its parent.
    role: SubagentRole
    # `completed`, `failed` or `cancelled`.
    status: RunStatus
    # The step that the child took.
    step_number: NotRequired[int | None]
    # Tokens of the child and of its own children.
    usage: NotRequired[Usage]
    id: EventId
    run_id: str
    type: Literal["subagent.completed"]
    at: str


class SubagentStartedEvent(TypedDict):
    """A child run was started for a call. It has a log of its own."""

    # The name of the child's agent.
    agent: str
    # The call that the child answers.
    call_id: str
    # The child.
    child_run_id: str
    # The plan whose step the child takes, or that it judges.
    plan_id: NotRequired[str | None]
    # The child's part in the work of its parent.
    role: SubagentRole
    # The step that the child takes.
    step_number: NotRequired[int | None]
    # The child's input.
    task: str
    id: EventId
    run_id: str
    type: Literal["subagent.started"]
    at: str


class TemplateRequestedEvent(TypedDict):
    """A template of projects was requested from the operators."""

    # Wishes for its contents.
    hints: NotRequired[str | None]
    # The sort of project.
    kind: str
    # Why it is needed.
    reason: str
    # The template, whose state tells what became of the request.
    template_id: str
    id: EventId
    run_id: str
    type: Literal["template.requested"]
    at: str


class TemplateSuggestedEvent(TypedDict):
    """A template is suggested to the user."""

    # The sort of project.
    kind: str
    # Its name.
    name: str
    # Why it would help.
    rationale: str
    id: EventId
    run_id: str
    type: Literal["template.suggested"]
    at: str


class ToolCallCompletedEvent(TypedDict):
    """A tool call has an outcome."""

    # On a result that the client has returned: this event supersedes all events after its base.
    base: NotRequired[EventId | None]
    # The party that executes the call; absent for an unknown tool.
    by: NotRequired[ExecutedBy | None]
    # The call.
    call_id: str
    # How long the call took.
    duration_ms: NotRequired[int]
    # The entities of the workspace that the call was about.
    entities: NotRequired[list[EntityAccessed]]
    # Why there is no output.
    error: NotRequired[ToolError | None]
    # The files that the tool has returned.
    files: NotRequired[list[ToolFile]]
    # The arguments of a call that was refused and so never started.
    input: NotRequired[Any]
    # The tool.
    name: str
    # The text that the tool returned.
    output: NotRequired[str | None]
    id: EventId
    run_id: str
    type: Literal["tool_call.completed"]
    at: str


class ToolCallDeltaEvent(TypedDict):
    """A piece of a call's arguments, as the model writes them."""

    # The party that executes the call; in the first piece of a call; absent for an unknown tool.
    by: NotRequired[ExecutedBy | None]
    # The call.
    call_id: str
    # The tool's name; only the first piece of a call has it.
    name: NotRequired[str | None]
    # JSON text that follows the arguments so far.
    text: str
    id: EventId
    run_id: str
    type: Literal["tool_call.delta"]
    at: str


class ToolCallStartedEvent(TypedDict):
    """A tool call begins."""

    # The party that executes the call.
    by: ExecutedBy
    # The call.
    call_id: str
    # When a call that the client executes expires without a result.
    expires_at: NotRequired[str | None]
    # The arguments of the call.
    input: Any
    # The tool.
    name: str
    # The step whose model call asked for it, from 1.
    step: int
    id: EventId
    run_id: str
    type: Literal["tool_call.started"]
    at: str


class WarningRaisedEvent(TypedDict):
    """Something went wrong, and the run continues."""

    # A stable code in lower case.
    code: str
    # A sentence for the reader.
    message: str
    id: EventId
    run_id: str
    type: Literal["warning.raised"]
    at: str


class Snapshot(TypedDict):
    """A run's message, folded from its events so far."""

    # The approvals that are still pending.
    approvals: list[OpenApproval]
    # Why the run has failed.
    error: NotRequired[RunError | None]
    # Why the model ended the answer, after the run has completed.
    finish_reason: NotRequired[FinishReason | None]
    # The id that the answer has, or will have.
    message_id: NotRequired[str | None]
    # The model's reasoning so far.
    reasoning: str
    # The status by the events: a run that its worker handed over is `running` until another worker claims it.
    status: RunStatus
    # The text of the answer so far.
    text: str
    # In the order in which the model asked for them.
    tool_calls: list[CallSoFar]
    # The usage of the completed steps; absent before the first.
    usage: NotRequired[Usage | None]


class ToolResult(TypedDict):
    """`ToolResult`."""

    # The reason why the tool has no output.
    error: NotRequired[str | None]
    # The tool's output: a text or any JSON, null included.
    output: NotRequired[Any]


AttachmentKind: TypeAlias = Literal["image", "file"]


FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "content_filter", "other"]


MessageStatus: TypeAlias = Literal["complete", "cancelled", "failed"]


Role: TypeAlias = Literal["user", "assistant", "system"]


EventId: TypeAlias = str


RunStatus: TypeAlias = Literal["queued", "running", "waiting", "completed", "failed", "cancelled"]


EntityType: TypeAlias = Literal["task", "plan", "goal", "document", "output"]


FocusType: TypeAlias = Literal["project-wide", "task", "goal", "plan", "document", "output"]


ApprovalKind: TypeAlias = Literal["policy", "unknown_outcome", "plan"]


ApprovalStatus: TypeAlias = Literal["pending", "approved", "denied", "expired", "superseded", "cancelled"]


AttemptReason: TypeAlias = Literal["claimed", "resumed", "drain", "lease_expired"]


ToolCallStatus: TypeAlias = Literal["requested", "waiting", "client", "called", "completed", "abandoned"]


DropReason: TypeAlias = Literal["not_told", "not_readable", "not_quoted", "unknown"]


class TextPartInput(TypedDict):
    """A text."""

    text: str
    type: Literal["text"]


class ImagePartInput(TypedDict):
    """A picture."""

    file_id: str
    type: Literal["image"]


class FilePartInput(TypedDict):
    """Any file."""

    file_id: str
    type: Literal["file"]


PartInput: TypeAlias = TextPartInput | ImagePartInput | FilePartInput


ContentInput: TypeAlias = str | list[PartInput]


Verdict: TypeAlias = Literal["approve", "deny"]


IngestionStage: TypeAlias = Literal["extract", "embed", "index", "unknown"]


ExecutedBy: TypeAlias = Literal["worker", "client"]


ExecutionMode: TypeAlias = Literal["auto_execute", "draft_only", "agent_review"]


SubmitMode: TypeAlias = Literal["enqueue", "reject", "interrupt", "rollback", "steer"]


PlanVerdict: TypeAlias = Literal["approved", "changes_requested"]


ReviewedBy: TypeAlias = Literal["reviewer", "user"]


PlanStatus: TypeAlias = Literal["draft", "approved", "executing", "completed", "failed"]


StepStatus: TypeAlias = Literal["pending", "executing", "completed", "failed"]


SubagentRole: TypeAlias = Literal["executor", "reviewer", "synthesizer", "subagent"]


RunEvent: TypeAlias = (
    RunQueuedEvent
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
    | RunCancelledEvent
)
