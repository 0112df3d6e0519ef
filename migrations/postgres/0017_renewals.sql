-- A lease is renewed more often than anything else is written, and a column in an index makes each renewal a new entry in
-- every index of the table. There are few running runs; whoever looks for expired leases looks through them.
drop index agent_runs_leases;
create index agent_runs_running on agent_runs (id) where status = 'running';
-- Room on each page for the next versions of its rows.
alter table agent_runs set (fillfactor = 70);
-- A chunk of events is compressed each time it is written; lz4 does it in a tenth of the time, where the server has it.
do $$ begin
    alter table run_events alter column body set compression lz4;
exception when feature_not_supported then null;
end $$;
