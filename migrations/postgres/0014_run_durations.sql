-- What a run may take where its agent says nothing; null where the deployment's own limit holds.
alter table agent_runs add column max_duration_ms bigint;
