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
    -- The newest event in run_events, and the one that a later attempt goes on from.
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
    -- When the events were removed; reading them is answered 410 since then.
    events_removed_at timestamptz
);
create unique index agent_runs_by_idempotency_key on agent_runs (owner_id, idempotency_key) where idempotency_key is not null;
create unique index agent_runs_one_live_per_conversation on agent_runs (conversation_id) where status in ('running', 'waiting');
create index agent_runs_queue on agent_runs (priority desc, id) where status = 'queued';
create index agent_runs_unfinished on agent_runs (conversation_id, position) where status in ('queued', 'running', 'waiting');
create index agent_runs_leases on agent_runs (lease_until) where status = 'running';
create index agent_runs_by_owner on agent_runs (owner_id, id desc);
create index agent_runs_by_conversation on agent_runs (conversation_id, position);
create index agent_runs_to_retire on agent_runs (finished_at) where finished_at is not null and events_removed_at is null;
