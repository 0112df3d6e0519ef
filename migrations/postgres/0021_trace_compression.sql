-- The same for what a run's steps have said.
do $$ begin
    alter table agent_run_messages alter column content set compression lz4;
exception when feature_not_supported then null;
end $$;
