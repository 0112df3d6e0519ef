-- The group of a run of an anonymous caller: the runs of one address take turns as those of one owner. It is a keyed hash of the
-- address, null for all other runs, and null again after the run's end.
alter table agent_runs add column caller_group text;
create index agent_runs_unfinished_by_group on agent_runs (caller_group, status, queue_round)
    where finished_at is null and caller_group is not null;
-- The runs below a top run, which share the limits of their tree.
create index agent_runs_of_top on agent_runs (top_run_id) where top_run_id is not null;
-- Times that the agent may appear in one chain of subagents. A version before this one reads no such column.
alter table agent_definition_versions add column most_in_chain integer;
