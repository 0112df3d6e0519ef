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
