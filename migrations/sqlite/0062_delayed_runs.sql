-- The time before which no worker may begin the run; null for at once.
alter table agent_runs add column not_before text;

-- The sweep finds the runs whose time has come.
create index agent_runs_delayed on agent_runs (priority, not_before) where status = 'queued' and priority = -2;
