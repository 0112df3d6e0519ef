-- Whether this run's message may join a live run before it.
alter table agent_runs add column steers boolean not null default false;
create index agent_runs_steering on agent_runs (conversation_id, position) where steers and status = 'queued';
