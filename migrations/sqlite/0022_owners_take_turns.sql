-- Owners take turns in the queue: a run's round is behind the rounds of its owner's queued runs, and never before the round
-- that the queue has reached. A run of a version before this one has round 0 and goes first.
alter table agent_runs add column queue_round bigint not null default 0;
drop index agent_runs_queue;
create index agent_runs_queue on agent_runs (priority desc, queue_round, id) where status = 'queued';
-- How many unfinished runs an owner has, and how many of them are running. SQLite proves no `in` from an equality.
create index agent_runs_unfinished_by_owner on agent_runs (owner_id, status, queue_round) where finished_at is null;
