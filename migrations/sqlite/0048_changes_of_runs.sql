-- Changes by calls of runs. A call makes its changes once.
alter table onto_changes add column run_id blob;
alter table onto_changes add column call_id text;
alter table onto_changes add column number integer;
create unique index onto_changes_of_call on onto_changes (run_id, call_id, number) where run_id is not null;
-- An undo looks for the runs below a run, which have ended.
create index agent_runs_of_parent on agent_runs (parent_run_id) where parent_run_id is not null;
