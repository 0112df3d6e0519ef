-- The trace of a run: all that the model was told and said.
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
    primary key (run_id, call_id)
);
create index agent_run_tool_calls_to_expire on agent_run_tool_calls (expires_at) where status = 'client';
-- Questions to a human, each about one call and bound to its input.
create table agent_run_approvals (
    id uuid primary key,
    run_id uuid not null references agent_runs (id) on delete cascade,
    call_id text not null,
    kind text not null check (kind in ('policy', 'unknown_outcome')),
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
    decided_by text
);
create index agent_run_approvals_by_run on agent_run_approvals (run_id, id);
create index agent_run_approvals_to_expire on agent_run_approvals (expires_at) where status = 'pending';
-- Points of a run that a conversation can be forked from. What was known then is the trace up to `messages`.
create table agent_run_checkpoints (
    id uuid primary key,
    -- No foreign keys: checking one would lock the conversation's row after the run's, and the order is the other way round.
    conversation_id uuid not null,
    run_id uuid not null,
    event_id bigint not null,
    node text not null check (node in ('input', 'process', 'tools', 'respond', 'fork')),
    step bigint not null,
    messages bigint not null,
    metadata jsonb not null,
    created_at timestamptz not null
);
create index agent_run_checkpoints_by_conversation on agent_run_checkpoints (conversation_id, id desc);
