-- Files that tools return: the calls that have returned them, and the runs that name them.
alter table agent_run_tool_calls add column files jsonb;
-- A file has no key here: the write of an outcome must not wait for the deletion of a file, or fail by it.
create table run_files (
    file_id uuid not null,
    run_id uuid not null references agent_runs (id) on delete cascade,
    primary key (file_id, run_id)
);
create index run_files_of_run on run_files (run_id);
