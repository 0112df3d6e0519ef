-- The live run that this run's message may join; null for a message that waits for its turn.
alter table agent_runs add column steers blob;
create index agent_runs_steering on agent_runs (steers) where steers is not null and status = 'queued';
