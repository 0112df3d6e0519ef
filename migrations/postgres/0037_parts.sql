-- The parts of the run's message, once it has ended: shared/src/parts.rs. Null for a run that an older version ended.
alter table agent_runs add column parts jsonb;
do $$ begin
    alter table agent_runs alter column parts set compression lz4;
exception when feature_not_supported then null;
end $$;
