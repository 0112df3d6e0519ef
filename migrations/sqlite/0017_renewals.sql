-- A lease is renewed more often than anything else is written, and a column in an index makes each renewal a new entry in
-- every index of the table. There are few running runs; whoever looks for expired leases looks through them.
drop index agent_runs_leases;
create index agent_runs_running on agent_runs (id) where status = 'running';
