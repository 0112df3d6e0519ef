-- The archive: the durable events of each run, a row per chunk of lines `<id> <unix ms> <type> <payload>`.
create table run_events (
    run_id blob not null references agent_runs (id) on delete cascade,
    last_id integer not null,
    body blob not null,
    primary key (run_id, last_id)
);
