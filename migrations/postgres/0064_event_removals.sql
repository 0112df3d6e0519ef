-- Runs whose events are to be removed. The row of the run says so to readers from the first of them on.
create table event_removals (
    run_id uuid primary key references agent_runs (id) on delete cascade
);
