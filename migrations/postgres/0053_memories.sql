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
