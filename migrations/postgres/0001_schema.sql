-- The schema of version 0.1, in the schema `kb`. migrations/sqlite has the same for SQLite.

-- Agent definitions: what a run executes when its conversation is agent-backed.
create table agent_definitions (
    id uuid primary key,
    name text not null,
    created_at timestamptz not null,
    -- Definitions change by versions: a run keeps the one that it was submitted with.
    version bigint not null default 1,
    -- Who defined it: the API, or the file that HOLDFAST_AGENTS names.
    origin text not null default 'api' check (origin in ('api', 'file', 'builtin')),
    updated_at timestamptz,
    -- Deleted agents are hidden; those that no conversation has are removed.
    deleted_at timestamptz
);

-- The definitions of agents. A run keeps the version of its submission.
create table agent_definition_versions (
    agent_definition_id uuid not null references agent_definitions (id) on delete cascade,
    version bigint not null,
    definition jsonb not null,
    created_at timestamptz not null,
    primary key (agent_definition_id, version)
);
create index agent_definition_versions_with_approvers
    on agent_definition_versions (agent_definition_id, version)
    where (definition ->> 'approvers') is not null;

-- Conversations: durable lists of messages.
create table chat_conversations (
    id uuid primary key,
    owner_id text not null,
    title text,
    agent_definition_id uuid references agent_definitions (id),
    -- Position of the newest message; messages and runs take the next one under this row's lock.
    last_position bigint not null default 0,
    created_at timestamptz not null,
    last_message_at timestamptz,
    -- When something last happened in it; the order of the list.
    activity_at timestamptz not null,
    -- Deleted conversations are hidden at once and removed by the sweeper when their runs have ended.
    deleted_at timestamptz,
    -- The checkpoint that a conversation was forked from. Its first messages are copies, which name runs of another conversation.
    forked_from uuid,
    -- The name by which its owner finds it again: `session:<name>`, or `agent:<id>` for the standing conversation with an agent.
    handle text,
    -- The bytes that the owner keeps here, roughly: questions, answers and the traces of runs. An empty conversation counts too.
    bytes bigint not null default 256,
    -- The branch of its newest run; null for the first one.
    branch uuid,
    -- A child run answers a call of its parent, in a conversation of its own. No foreign key, because its check would lock the
    -- parent's row, and a child's end must lock it after the child's.
    parent_run_id uuid,
    -- No list shows a hidden conversation.
    hidden boolean not null default false,
    -- The collections that its runs answer from.
    knowledge jsonb,
    -- The conversation of a request that brings its own history. It is removed with the events of its run.
    expires boolean not null default false,
    -- What a client keeps with a conversation; lists filter by it.
    metadata jsonb,
    -- The summary of the first turns of a fork, which the forked conversation had.
    inherited_summary text,
    inherited_up_to bigint
);
create index chat_conversations_by_activity
    on chat_conversations (owner_id, activity_at desc, id desc)
    where deleted_at is null;
create index chat_conversations_deleted on chat_conversations (deleted_at)
    where deleted_at is not null;
create index chat_conversations_by_agent on chat_conversations (agent_definition_id)
    where agent_definition_id is not null;
create unique index chat_conversations_by_handle on chat_conversations (owner_id, handle)
    where handle is not null and deleted_at is null;
create index chat_conversations_by_parent on chat_conversations (parent_run_id)
    where parent_run_id is not null;
create index chat_conversations_expiring on chat_conversations (activity_at)
    where expires and deleted_at is null;

-- A branch begins with a new version: its own rows follow the rows of its parent that come before the cut. The first branch of
-- a conversation has no row and is null. A fork reads the branch of its run.
create table conversation_branches (
    id uuid primary key,
    conversation_id uuid not null references chat_conversations (id) on delete cascade,
    parent uuid,
    turn bigint not null,
    position bigint not null
);
create index conversation_branches_by_conversation on conversation_branches (conversation_id);

-- Messages, in the order of their positions.
create table chat_messages (
    id uuid primary key,
    conversation_id uuid not null references chat_conversations (id) on delete cascade,
    owner_id text not null,
    -- The run that the message started, or that wrote it; null for a card and for messages that a client brought.
    run_id uuid,
    position bigint not null,
    -- Where the model reads it: the position of its run, else its own; within a turn, by position.
    turn bigint not null,
    role text not null check (role in ('user', 'assistant', 'system')),
    content_type text not null default 'text',
    content text not null,
    status text not null check (status in ('complete', 'cancelled', 'failed')),
    -- Where an answer came from.
    retrieval_context jsonb,
    created_at timestamptz not null,
    -- When an edit or a restoration took it out of the conversation.
    superseded_at timestamptz,
    -- The briefing that a card shows; a conversation shows it once.
    briefing_id uuid,
    -- The client's name for its message; unique among those that are part of the conversation.
    client_id text,
    -- Why the model ended the answer; null for messages of users and for answers that broke off.
    finish_reason text,
    -- The first message that stood in this place of the conversation; null for the first one itself, and for answers.
    version_of uuid,
    -- The change that superseded the row together with others; a restoration reverts all of it.
    superseded_in uuid,
    -- Of a card; any other message has the branch of its run.
    branch uuid,
    -- The files of a user's message.
    attachments jsonb,
    unique (conversation_id, position)
);
create index chat_messages_by_run on chat_messages (run_id);
create index chat_messages_by_turn on chat_messages (conversation_id, turn, position);
create unique index chat_messages_one_card_per_briefing
    on chat_messages (conversation_id, briefing_id)
    where briefing_id is not null and superseded_at is null;
create unique index chat_messages_by_client_id on chat_messages (conversation_id, client_id)
    where client_id is not null and superseded_at is null;
create index chat_messages_versions on chat_messages (conversation_id) where version_of is not null;

-- Runs: the row is the job. Event ids are packed into one number: attempt * 2^32 + n.
create table agent_runs (
    id uuid primary key,
    owner_id text not null,
    conversation_id uuid not null references chat_conversations (id) on delete cascade,
    agent_definition_id uuid references agent_definitions (id),
    -- Position of the input message: the run's place in its conversation's queue.
    position bigint not null,
    priority bigint not null default 0,
    status text not null check (status in ('queued', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
    -- The fence: only the holder of this attempt writes.
    attempt bigint not null default 0,
    -- Workers that died while they executed it, since its last completed step.
    crashes bigint not null default 0,
    holder text,
    lease_until timestamptz,
    -- Whether the holder has begun to execute; only then does its death count as a crash.
    executing boolean not null default false,
    -- Why the current attempt has begun, or the next one will: drain, resumed or lease_expired; null for the first.
    attempt_reason text,
    cancel_requested_at timestamptz,
    input_message_id uuid not null,
    output_message_id uuid not null,
    model text,
    -- The newest event in run_events, and the one after which a later attempt continues.
    archived_to bigint not null,
    checkpoint bigint not null,
    usage jsonb,
    error_code text,
    error_message text,
    idempotency_key text,
    idempotency_fingerprint text,
    created_at timestamptz not null,
    started_at timestamptz,
    finished_at timestamptz,
    -- When the events were removed; since then, a read of them gets 410.
    events_removed_at timestamptz,
    -- The version of the agent's definition at the time of the submission.
    agent_version bigint,
    -- Whether pieces of the answer are written as events.
    stream boolean not null default true,
    -- Tools that the client executes, and the overrides of its request.
    client_tools jsonb,
    metadata jsonb,
    -- Time spent waiting for people, which no limit counts.
    waiting_since timestamptz,
    waited_ms bigint not null default 0,
    -- When an edit or a restoration took the run out of the conversation.
    superseded_at timestamptz,
    -- Most time without a sign of life; null for the deployment's own limit.
    max_duration_ms bigint,
    -- The OpenTelemetry span of the submission, as a W3C traceparent; null without a trace.
    traceparent text,
    -- Owners take turns in the queue: a run's round is behind the rounds of its owner's queued runs, and never before the round
    -- that the queue has reached.
    queue_round bigint not null default 0,
    -- Why the model ended the newest step.
    finish_reason text,
    -- How many suspects a worker may execute while it executes this one; null: as many as it likes. 0: it executes nothing else.
    probation bigint,
    -- The first version of the run's answer; null for the first one itself.
    version_of uuid,
    superseded_in uuid,
    branch uuid,
    -- The parts of the run's message, once it has ended: shared/src/parts.rs.
    parts jsonb,
    parent_run_id uuid,
    parent_call_id text,
    subagent_role text,
    -- The run without a parent above this one, and the number of runs above this one.
    top_run_id uuid,
    depth bigint not null default 0,
    -- Usage of all runs below this one that have ended.
    children_usage jsonb,
    -- `children` for a run that waits for children alone; else a human or a client must answer.
    awaits text,
    -- The abilities that the run needs from its worker: shared/src/storage/run/abilities.rs.
    needs smallint not null default 0,
    -- Whether the run ingests a document.
    ingests boolean not null default false,
    -- Whether this run's message may join a live run before it.
    steers boolean not null default false,
    -- The collections of the conversation at the time of the run's submission.
    knowledge jsonb,
    -- The time before which no worker may begin the run; null for at once.
    not_before timestamptz,
    -- The group of a run of an anonymous caller: the runs of one address take turns as those of one owner. It is a keyed hash of
    -- the address, and null for all other runs and after the run's end.
    caller_group text,
    -- The facts of the line with the date: the zone, and the time at which the run began or resumed after its newest wait.
    time_zone text,
    dated_at timestamptz,
    -- Why a run has failed, in the words of its cause, such as the model's provider. Only operators read it.
    error_details text
);
-- Room on each page for the next versions of its rows.
alter table agent_runs set (fillfactor = 70);
create unique index agent_runs_by_idempotency_key on agent_runs (owner_id, idempotency_key)
    where idempotency_key is not null;
create unique index agent_runs_one_live_per_conversation on agent_runs (conversation_id)
    where status in ('running', 'waiting');
create index agent_runs_unfinished on agent_runs (conversation_id, position)
    where status in ('queued', 'running', 'waiting');
create index agent_runs_by_conversation on agent_runs (conversation_id, position);
create index agent_runs_to_retire on agent_runs (finished_at)
    where finished_at is not null and events_removed_at is null;
create index agent_runs_running on agent_runs (id) where status = 'running';
create index agent_runs_queue on agent_runs (priority desc, queue_round, id)
    where status = 'queued';
-- How many unfinished runs an owner has, and how many of them are running. SQLite proves no `in` from an equality.
create index agent_runs_unfinished_by_owner on agent_runs (owner_id, status, queue_round)
    where finished_at is null;
create index agent_runs_crashed on agent_runs (id)
    where crashes > 0 and status in ('queued', 'running');
-- The runs that wait for a decision of an approver, by the definition that names the approver.
create index agent_runs_waiting_by_agent on agent_runs (agent_definition_id, agent_version)
    where status = 'waiting';
create index agent_runs_versions on agent_runs (conversation_id) where version_of is not null;
create index agent_runs_live_children on agent_runs (parent_run_id)
    where parent_run_id is not null and finished_at is null;
create index agent_runs_steering on agent_runs (conversation_id, position)
    where steers and status = 'queued';
-- An undo looks for the runs below a run, which have ended.
create index agent_runs_of_parent on agent_runs (parent_run_id) where parent_run_id is not null;
-- A worker with free places for documents finds their runs without the others.
create index agent_runs_queue_of_documents on agent_runs (priority desc, queue_round, id)
    where status = 'queued' and ingests;
-- The sweep finds the runs whose time has come.
create index agent_runs_delayed on agent_runs (priority, not_before)
    where status = 'queued' and priority = -2;
create index agent_runs_unfinished_by_group on agent_runs (caller_group, status, queue_round)
    where finished_at is null and caller_group is not null;
-- The runs below a top run, which share the limits of their tree.
create index agent_runs_of_top on agent_runs (top_run_id) where top_run_id is not null;
-- The predicate is always true. PostgreSQL derives it from a condition on the owner, and not from one on the id alone, so that
-- a run's lookup by its id never reads this index. With statistics of one run, it looks as cheap as the primary key.
create index agent_runs_by_owner on agent_runs (owner_id, id desc) where owner_id is not null;

-- The archive: the durable events of each run, a row per chunk of lines `<id> <unix ms> <type> <payload>`.
create table run_events (
    run_id uuid not null references agent_runs (id) on delete cascade,
    last_id bigint not null,
    body bytea not null,
    primary key (run_id, last_id)
);

-- The trace of a run: each message to the model and of the model.
create table agent_run_messages (
    run_id uuid not null references agent_runs (id) on delete cascade,
    position bigint not null,
    step bigint not null,
    role text not null check (role in ('system', 'user', 'assistant', 'tool')),
    content text not null,
    tool_calls jsonb,
    call_id text,
    is_error boolean not null default false,
    usage jsonb,
    created_at timestamptz not null,
    -- The model that wrote the message.
    model text,
    -- The step of the plan to which the message belongs.
    plan_step bigint,
    primary key (run_id, position)
);

-- Tool calls, with the intent committed before the call and the outcome after it.
create table agent_run_tool_calls (
    run_id uuid not null references agent_runs (id) on delete cascade,
    call_id text not null,
    step bigint not null,
    position bigint not null,
    name text not null,
    input jsonb not null,
    effect text not null check (effect in ('read_only', 'idempotent', 'once')),
    status text not null check (status in ('requested', 'waiting', 'client', 'called', 'completed', 'abandoned')),
    -- Of the tools that the client executes.
    schema jsonb,
    expires_at timestamptz,
    output text,
    error jsonb,
    duration_ms bigint,
    created_at timestamptz not null,
    completed_at timestamptz,
    child_run_id uuid,
    -- The party that executes a call: `worker` or `client`; null for an unknown tool.
    executed_by text,
    -- The files that the call has returned.
    files jsonb,
    primary key (run_id, call_id)
);
create index agent_run_tool_calls_to_expire on agent_run_tool_calls (expires_at)
    where status = 'client';
create index agent_run_tool_calls_of_children on agent_run_tool_calls (child_run_id)
    where child_run_id is not null and status = 'called';

-- Questions to a human, each about one call and bound to its input.
create table agent_run_approvals (
    id uuid primary key,
    run_id uuid not null references agent_runs (id) on delete cascade,
    call_id text not null,
    kind text not null check (kind in ('policy', 'unknown_outcome', 'plan')),
    name text not null,
    input jsonb not null,
    -- What an edited input must keep to.
    schema jsonb not null,
    status text not null check (status in ('pending', 'approved', 'denied', 'expired', 'superseded', 'cancelled')),
    reason text,
    edited_input jsonb,
    requested_at timestamptz not null,
    expires_at timestamptz not null,
    decided_at timestamptz,
    decided_by text,
    -- The run above all others, for a question of a run below it, and whether the log of that run has the question.
    top_run_id uuid,
    forwarded boolean not null default false
);
create index agent_run_approvals_by_run on agent_run_approvals (run_id, id);
create index agent_run_approvals_to_expire on agent_run_approvals (expires_at)
    where status = 'pending';
create index agent_run_approvals_of_top on agent_run_approvals (top_run_id)
    where top_run_id is not null;

-- Points of a run that a conversation can be forked from: the trace up to `messages`. Each read names the conversation.
create table agent_run_checkpoints (
    id uuid not null,
    -- No foreign keys: a check would lock the conversation's row after the run's, and the order is the other way round.
    conversation_id uuid not null,
    run_id uuid not null,
    event_id bigint not null,
    node text not null check (node in ('input', 'process', 'tools', 'respond', 'fork')),
    step bigint not null,
    messages bigint not null,
    metadata jsonb not null,
    created_at timestamptz not null,
    primary key (conversation_id, id)
);

-- Briefings: news for a user, who may talk about them with an agent.
create table briefings (
    id uuid primary key,
    owner_id text not null,
    agent_definition_id uuid not null references agent_definitions (id),
    title text not null,
    summary text not null,
    priority text,
    -- For the front end; no model sees it.
    data jsonb,
    -- As its author says, else when it was stored.
    created_at timestamptz not null,
    bytes bigint not null default 0,
    -- A briefing is stored once per key of its author, who may be another user than its owner.
    author_id text,
    idempotency_key text,
    idempotency_fingerprint text
);
create index briefings_by_owner on briefings (owner_id, created_at desc, id desc);
create index briefings_by_agent on briefings (agent_definition_id);
create unique index briefings_by_idempotency_key on briefings (author_id, idempotency_key)
    where idempotency_key is not null;

-- Summaries of the turns that the model no longer reads word by word, each made for a run. Later runs read it too, until an
-- edit supersedes one of its turns.
create table chat_summaries (
    run_id uuid primary key references agent_runs (id) on delete cascade,
    conversation_id uuid not null,
    -- The newest turn that it covers.
    up_to bigint not null,
    content text not null,
    created_at timestamptz not null
);
create index chat_summaries_by_conversation on chat_summaries (conversation_id, up_to desc);

-- Anonymous users, and the last visit of each. The sweeper removes those who do not come back.
create table anonymous_users (
    owner_id text primary key,
    seen_at timestamptz not null
);
create index anonymous_users_by_time on anonymous_users (seen_at);

-- The model of plain conversations, as the worker that started last noted it. An API alone has no setting that names it.
create table deployment_model (
    id smallint primary key check (id = 1),
    provider text not null,
    name text not null,
    noted_at timestamptz not null,
    -- The model of vectors, as the worker that started last noted it.
    embedding_model text
);

-- The model profiles of the deployment, in one row.
create table model_profiles (
    id smallint primary key check (id = 1),
    document jsonb not null,
    origin text not null,
    updated_at timestamptz not null
);

-- Plans of planners, and their steps. A plan has no foreign key to its conversation, because checking one would lock the
-- conversation's row after the run's.
create table agent_plans (
    id uuid primary key,
    run_id uuid not null references agent_runs (id) on delete cascade,
    conversation_id uuid not null,
    call_id text not null,
    user_message text not null,
    strategy text not null,
    execution_mode text not null,
    status text not null,
    metadata jsonb not null,
    created_at timestamptz not null,
    updated_at timestamptz not null
);
create index agent_plans_of_run on agent_plans (run_id, id);
create index agent_plans_of_conversation on agent_plans (conversation_id, id);

create table agent_plan_steps (
    plan_id uuid not null references agent_plans (id) on delete cascade,
    step_number bigint not null,
    description text not null,
    tools jsonb not null,
    executor_required boolean not null,
    depends_on jsonb not null,
    status text not null,
    result text,
    error text,
    child_run_id uuid,
    updated_at timestamptz not null,
    primary key (plan_id, step_number)
);
create index agent_plan_steps_of_children on agent_plan_steps (child_run_id)
    where child_run_id is not null;

-- The roles of runs in the work of a planner. The end and the usage of a role are those of its run.
create table agent_agents (
    id uuid primary key,
    run_id uuid not null references agent_runs (id) on delete cascade,
    role text not null,
    profile text,
    model text,
    token_budget bigint not null,
    permissions jsonb,
    created_at timestamptz not null
);
create unique index agent_agents_of_run on agent_agents (run_id);

-- Texts that users have written about themselves, for planners.
create table user_profiles (
    owner_id text primary key,
    profile text not null,
    updated_at timestamptz not null,
    -- The zone of a user whose requests name none.
    time_zone text
);

-- Changes of plans whose planner works at the moment, in the order of their acceptance. Its holder takes them before the next
-- steps.
create table agent_plan_edits (
    plan_id uuid not null references agent_plans (id) on delete cascade,
    number bigint not null,
    edit jsonb not null,
    created_at timestamptz not null,
    primary key (plan_id, number)
);

-- The workspace: entities of an owner, and every change of them. No foreign keys, because an undo removes and makes entities in
-- any order, within one transaction that locks the owner's row.
create table onto_owners (
    owner_id text primary key,
    entities bigint not null,
    bytes bigint not null
);

create table onto_projects (
    id uuid primary key,
    owner_id text not null,
    name text not null,
    description text,
    type_key text,
    state text not null,
    start_at timestamptz,
    end_at timestamptz,
    props jsonb not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz,
    -- The name in small letters, for the search.
    folded text not null default ''
);
create index onto_projects_deleted on onto_projects (owner_id, deleted_at)
    where deleted_at is not null;
create index onto_projects_of_owner on onto_projects (owner_id, id) include (folded, state)
    where deleted_at is null;

create table onto_tasks (
    id uuid primary key,
    owner_id text not null,
    project_id uuid not null,
    title text not null,
    description text,
    state text not null,
    priority bigint,
    due_at timestamptz,
    plan_id uuid,
    goal_id uuid,
    props jsonb not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz,
    folded text not null default ''
);
create index onto_tasks_deleted on onto_tasks (owner_id, deleted_at) where deleted_at is not null;
create index onto_tasks_of_project on onto_tasks (project_id, id);
create index onto_tasks_of_owner on onto_tasks (owner_id, id) include (folded, project_id, state)
    where deleted_at is null;

create table onto_plans (
    id uuid primary key,
    owner_id text not null,
    project_id uuid not null,
    name text not null,
    description text,
    state text not null,
    start_at timestamptz,
    end_at timestamptz,
    props jsonb not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz,
    folded text not null default ''
);
create index onto_plans_deleted on onto_plans (owner_id, deleted_at) where deleted_at is not null;
create index onto_plans_of_project on onto_plans (project_id, id);
create index onto_plans_of_owner on onto_plans (owner_id, id) include (folded, project_id, state)
    where deleted_at is null;

create table onto_goals (
    id uuid primary key,
    owner_id text not null,
    project_id uuid not null,
    name text not null,
    description text,
    state text not null,
    target_date timestamptz,
    props jsonb not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz,
    folded text not null default ''
);
create index onto_goals_deleted on onto_goals (owner_id, deleted_at) where deleted_at is not null;
create index onto_goals_of_project on onto_goals (project_id, id);
create index onto_goals_of_owner on onto_goals (owner_id, id) include (folded, project_id, state)
    where deleted_at is null;

create table onto_documents (
    id uuid primary key,
    owner_id text not null,
    project_id uuid not null,
    title text not null,
    body text,
    type text,
    state text not null,
    props jsonb not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz,
    folded text not null default ''
);
create index onto_documents_deleted on onto_documents (owner_id, deleted_at)
    where deleted_at is not null;
create index onto_documents_of_project on onto_documents (project_id, id);
create index onto_documents_of_owner
    on onto_documents (owner_id, id) include (folded, project_id, state)
    where deleted_at is null;

create table onto_outputs (
    id uuid primary key,
    owner_id text not null,
    project_id uuid not null,
    name text not null,
    kind text,
    body text,
    state text not null,
    props jsonb not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz,
    folded text not null default ''
);
create index onto_outputs_deleted on onto_outputs (owner_id, deleted_at)
    where deleted_at is not null;
create index onto_outputs_of_project on onto_outputs (project_id, id);
create index onto_outputs_of_owner
    on onto_outputs (owner_id, id) include (folded, project_id, state)
    where deleted_at is null;

create table onto_changes (
    id uuid primary key,
    owner_id text not null,
    change_set_id uuid not null,
    kind text not null,
    entity_id uuid not null,
    action text not null,
    before jsonb,
    after jsonb,
    bytes bigint not null,
    user_id text not null,
    undoes uuid,
    created_at timestamptz not null,
    -- The call of a run that made the change. A call makes its changes once.
    run_id uuid,
    call_id text,
    number bigint,
    -- The bytes of both whole states, if the row has only what differs: a deletion, a restoration and the undo of either change
    -- no field of an entity.
    size bigint
);
create index onto_changes_of_owner on onto_changes (owner_id, id);
create index onto_changes_of_entity on onto_changes (entity_id, id);
create index onto_changes_of_set on onto_changes (change_set_id, id);
create index onto_changes_that_undo on onto_changes (undoes) where undoes is not null;
create index onto_changes_by_age on onto_changes (owner_id, created_at);
create unique index onto_changes_of_call on onto_changes (run_id, call_id, number)
    where run_id is not null;

create table onto_edges (
    id uuid primary key,
    owner_id text not null,
    project_id uuid not null,
    from_kind text not null,
    from_id uuid not null,
    relation text not null,
    to_kind text not null,
    to_id uuid not null,
    folded text not null default '',
    props jsonb not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz
);
create index onto_edges_of_owner on onto_edges (owner_id, id) where deleted_at is null;
create index onto_edges_deleted on onto_edges (owner_id, deleted_at) where deleted_at is not null;
create index onto_edges_of_project on onto_edges (project_id, id);
create index onto_edges_from on onto_edges (from_id, id);
create index onto_edges_to on onto_edges (to_id, id);

create table onto_templates (
    id uuid primary key,
    owner_id text not null,
    name text not null,
    key text,
    kind text,
    description text,
    body jsonb,
    state text not null,
    folded text not null default '',
    props jsonb not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz
);
create index onto_templates_of_owner on onto_templates (owner_id, id) where deleted_at is null;
create index onto_templates_deleted on onto_templates (owner_id, deleted_at)
    where deleted_at is not null;
create index onto_templates_by_state on onto_templates (state, id) where deleted_at is null;

-- Files of owners, the messages that have them, and contents that are to be removed. Contents are parts of 1 MiB, here or in an
-- object store.
create table files (
    id uuid primary key,
    owner_id text not null,
    name text not null,
    media_type text not null,
    -- While the upload lasts, the most that it can bring.
    bytes bigint not null,
    -- Null while the upload lasts.
    sha256 text,
    -- Equal contents of one owner are stored once.
    content_id uuid not null,
    -- The request that brings bytes; the fence of its writes.
    writer uuid not null,
    -- The bytes of the parts that an upload has stored.
    received bigint not null,
    idempotency_key text,
    idempotency_fingerprint text,
    created_at timestamptz not null,
    -- The last step of the upload, or the last time when something was found to name the file.
    touched_at timestamptz not null
);
create index files_of_owner on files (owner_id, id);
create index files_of_contents on files (content_id);
create index files_by_touch on files (touched_at);
create unique index files_by_idempotency_key on files (owner_id, idempotency_key)
    where idempotency_key is not null;

create table file_parts (
    content_id uuid not null,
    number bigint not null,
    body bytea not null,
    primary key (content_id, number)
);
-- The contents are compressed already, or large.
alter table file_parts alter column body set storage external;

-- The conversations that name a file.
create table file_uses (
    file_id uuid not null references files (id) on delete cascade,
    conversation_id uuid not null references chat_conversations (id) on delete cascade,
    primary key (file_id, conversation_id)
);
create index file_uses_of_conversation on file_uses (conversation_id);

create table file_removals (
    content_id uuid primary key,
    -- Rises with each note, so that a note during a removal is not forgotten with it.
    version bigint not null,
    tried_at timestamptz not null
);
create index file_removals_by_try on file_removals (tried_at);

-- A file has no key here: the write of an outcome must not wait for the deletion of a file, or fail by it.
create table run_files (
    file_id uuid not null,
    run_id uuid not null references agent_runs (id) on delete cascade,
    primary key (file_id, run_id)
);
create index run_files_of_run on run_files (run_id);

-- Facts that agents remember of a user, beyond a conversation.
create table memories (
    id uuid primary key,
    owner_id text not null,
    -- The name of the agent that wrote it.
    agent text not null,
    -- `agent`: that agent alone recalls it; `user`: all agents of the owner do.
    scope text not null check (scope in ('agent', 'user')),
    text text not null,
    -- Counts the writes, from 1.
    version bigint not null,
    -- The last writer.
    writer text not null check (writer in ('agent', 'user')),
    -- The call that wrote it first. No foreign key: the memory outlives the run.
    run_id uuid not null,
    call_id text not null,
    -- The user's message that the run, or the run above it, has answered.
    message_id uuid not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    expires_at timestamptz
);
create index memories_of_owner on memories (owner_id, created_at, id);
create index memories_to_expire on memories (expires_at) where expires_at is not null;

create table memory_versions (
    memory_id uuid not null references memories (id) on delete cascade,
    version bigint not null,
    text text not null,
    expires_at timestamptz,
    writer text not null check (writer in ('agent', 'user')),
    -- The run that wrote it, if an agent did.
    run_id uuid,
    written_at timestamptz not null,
    primary key (memory_id, version)
);

-- Calls whose arguments have the text of a deleted memory. They are removed from the trace when the run has ended.
create table memory_removals (
    run_id uuid not null,
    call_id text not null,
    noted_at timestamptz not null,
    primary key (run_id, call_id)
);
create index memory_removals_by_time on memory_removals (noted_at);

-- Collections of documents, the texts that were extracted from them, and their passages with the words of the search.
create table collections (
    id uuid primary key,
    -- Begins each word of the collection in the search, so that no search reads the words of another collection.
    number bigint generated always as identity unique,
    owner_id text not null,
    name text not null,
    description text,
    -- 'owner' or 'everyone'
    readable_by text not null,
    -- The words that many passages have, with the share of passages, from a sample.
    common_words jsonb,
    -- The number of passages at the time of the sample.
    sampled_passages bigint not null default 0,
    created_at timestamptz not null,
    deleted_at timestamptz
);
create index collections_of_owner on collections (owner_id, id);
create index collections_to_remove on collections (deleted_at) where deleted_at is not null;

create table documents (
    id uuid primary key,
    collection_id uuid not null references collections (id) on delete cascade,
    owner_id text not null,
    -- The hidden conversation of the document's runs.
    conversation_id uuid not null unique,
    -- The newest of these runs.
    run_id uuid not null,
    file_id uuid not null,
    title text not null,
    media_type text not null,
    bytes bigint not null,
    -- Of the text, once it is extracted.
    chars bigint,
    passages bigint not null default 0,
    extracted_at timestamptz,
    -- The search finds the document from then on.
    indexed_at timestamptz,
    created_at timestamptz not null,
    deleted_at timestamptz,
    -- The bytes of the extracted text with the headings of its passages, from before the text is stored.
    text_bytes bigint not null default 0,
    -- The model whose vectors searches use. A document is ready with its words alone, and gets its vectors later.
    vectors_model text,
    -- The number of passages with a vector of that model.
    embedded bigint not null default 0,
    -- The time of the newest change of these two.
    vectors_at timestamptz,
    -- The model that has answered for all passages, by a vector or a refusal; empty before that.
    vectors_of text not null default '',
    -- The tries in the background since then, and the time before which there is no further one.
    vectors_tries bigint not null default 0,
    vectors_retry_at timestamptz,
    -- When the newest try failed, and why: {code, message}.
    vectors_failed_at timestamptz,
    vectors_error jsonb
);
create index documents_of_collection on documents (collection_id, id);
create index documents_of_owner on documents (owner_id);
create index documents_of_file on documents (file_id);
create index documents_to_remove on documents (deleted_at) where deleted_at is not null;
create index documents_by_vectors on documents (vectors_of, id)
    where indexed_at is not null and deleted_at is null;
create index documents_retried on documents (id) where vectors_tries > 0;
create index documents_without_vectors on documents (vectors_failed_at)
    where vectors_failed_at is not null;

-- The extracted text, in pieces of 8,192 characters.
create table document_texts (
    document_id uuid not null references documents (id) on delete cascade,
    number bigint not null,
    body text not null,
    primary key (document_id, number)
);

create table passages (
    id bigint generated always as identity primary key,
    document_id uuid not null references documents (id) on delete cascade,
    number bigint not null,
    -- In characters of the extracted text.
    start_at bigint not null,
    end_at bigint not null,
    page bigint,
    heading text,
    words tsvector,
    unique (document_id, number)
);
create index passages_by_word on passages using gin (words) with (fastupdate = off);

-- A null vector: the provider refused the passage.
create table passage_vectors (
    document_id uuid not null references documents (id) on delete cascade,
    number bigint not null,
    model text not null,
    vector bytea,
    primary key (document_id, model, number)
);

-- The passages that the model of a run has read, by the numbers of its citations.
create table run_passages (
    run_id uuid not null references agent_runs (id) on delete cascade,
    number bigint not null,
    document_id uuid not null,
    passage bigint not null,
    score double precision not null,
    -- The call that has found a passage for the model; null for those with the run's input.
    call_id text,
    primary key (run_id, number)
);

-- The name that a client gives to the part of a run after a pause, when it answers there. No foreign key locks the run, because a
-- claim skips locked runs; a run leaves with its conversation only.
create table pause_names (
    run_id uuid not null,
    -- The event of the pause.
    paused_at bigint not null,
    conversation_id uuid not null references chat_conversations (id) on delete cascade,
    name text not null,
    primary key (run_id, paused_at)
);
create index pause_names_by_name on pause_names (name);
create index pause_names_by_conversation on pause_names (conversation_id);

-- Runs whose events are to be removed. The row of the run says so to readers from the first of them on.
create table event_removals (
    run_id uuid primary key references agent_runs (id) on delete cascade
);

-- The bytes of all anonymous users together, which one sweep after another measures. One row.
create table anonymous_data (
    id integer primary key check (id = 1),
    bytes bigint not null,
    -- Counts the measurements.
    number bigint not null default 0,
    -- The last sweep that began to measure.
    begun_at timestamptz not null
);

-- Summaries that are to be made after the answers of ended runs, each until a worker has made it.
create table due_summaries (
    run_id uuid primary key references agent_runs (id) on delete cascade,
    conversation_id uuid not null,
    -- The newest turn that the summary is to cover.
    up_to bigint not null,
    -- Most tokens of the summary.
    tokens bigint not null,
    -- A worker makes the summary until then; later, another one may.
    lease_until timestamptz not null,
    tries bigint not null default 0
);
create index due_summaries_by_lease on due_summaries (lease_until);
create index due_summaries_by_conversation on due_summaries (conversation_id);

-- A write compresses its row. lz4 does it in a tenth of the time, where the server has it.
do $$ begin
    alter table run_events alter column body set compression lz4;
    alter table chat_messages alter column content set compression lz4;
    alter table agent_run_messages alter column content set compression lz4;
    alter table agent_runs alter column parts set compression lz4;
exception when feature_not_supported then null;
end $$;
