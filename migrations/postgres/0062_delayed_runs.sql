-- The time before which no worker may begin the run; null for at once.
alter table agent_runs add column not_before timestamptz;

-- The sweep finds the runs whose time has come.
create index agent_runs_delayed on agent_runs (priority, not_before) where status = 'queued' and priority = -2;

-- A process of the version before unblocks every run without a run before it. It must leave delayed runs alone.
create trigger agent_runs_keep_their_delay before update of priority on agent_runs for each row
    when (old.priority = -2 and new.not_before > statement_timestamp())
    execute function skip_row();
