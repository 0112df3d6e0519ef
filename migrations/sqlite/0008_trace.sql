-- The trace of a run: all that the model was told and said.
create table agent_run_messages (
    run_id blob not null references agent_runs (id) on delete cascade,
    position integer not null,
    step integer not null,
    role text not null check (role in ('system', 'user', 'assistant', 'tool')),
    content text not null,
    tool_calls text,
    call_id text,
    is_error boolean not null default false,
    usage text,
    created_at text not null,
    primary key (run_id, position)
);
-- Tool calls, with the intent committed before the call and the outcome after it.
create table agent_run_tool_calls (
    run_id blob not null references agent_runs (id) on delete cascade,
    call_id text not null,
    step integer not null,
    position integer not null,
    name text not null,
    input text not null,
    effect text not null check (effect in ('read_only', 'idempotent', 'once')),
    status text not null check (status in ('requested', 'waiting', 'client', 'called', 'completed', 'abandoned')),
    -- Of the tools that the client executes.
    schema text,
    expires_at text,
    output text,
    error text,
    duration_ms integer,
    created_at text not null,
    completed_at text,
    primary key (run_id, call_id)
);
create index agent_run_tool_calls_to_expire on agent_run_tool_calls (expires_at) where status = 'client';
-- Questions to a human, each about one call and bound to its input.
create table agent_run_approvals (
    id blob primary key,
    run_id blob not null references agent_runs (id) on delete cascade,
    call_id text not null,
    kind text not null check (kind in ('policy', 'unknown_outcome')),
    name text not null,
    input text not null,
    -- What an edited input must keep to.
    schema text not null,
    status text not null check (status in ('pending', 'approved', 'denied', 'expired', 'superseded', 'cancelled')),
    reason text,
    edited_input text,
    requested_at text not null,
    expires_at text not null,
    decided_at text,
    decided_by text
);
create index agent_run_approvals_by_run on agent_run_approvals (run_id, id);
create index agent_run_approvals_to_expire on agent_run_approvals (expires_at) where status = 'pending';
-- Points of a run that a conversation can be forked from. What was known then is the trace up to `messages`.
create table agent_run_checkpoints (
    id blob primary key,
    -- No foreign keys: checking one would lock the conversation's row after the run's, and the order is the other way round.
    conversation_id blob not null,
    run_id blob not null,
    event_id integer not null,
    node text not null check (node in ('input', 'process', 'tools', 'respond', 'fork')),
    step integer not null,
    messages integer not null,
    metadata text not null,
    created_at text not null
);
create index agent_run_checkpoints_by_conversation on agent_run_checkpoints (conversation_id, id desc);
