-- How many suspects a worker may execute while it executes this one; null: as many as it likes. 0: it executes nothing else.
alter table agent_runs add column probation integer;
create index agent_runs_crashed on agent_runs (id) where crashes > 0 and status in ('queued', 'running');
