-- The name that a client gives to the part of a run after a pause, when it answers there.
create table pause_names (
    run_id blob not null references agent_runs (id) on delete cascade,
    -- The event of the pause.
    paused_at integer not null,
    name text not null,
    primary key (run_id, paused_at)
);
create index pause_names_by_name on pause_names (name);
