-- The archive: the durable events of each run, a row per chunk of lines `<id> <unix ms> <type> <payload>`.
create table run_events (
    run_id uuid not null references agent_runs (id) on delete cascade,
    last_id bigint not null,
    body bytea not null,
    primary key (run_id, last_id)
);
