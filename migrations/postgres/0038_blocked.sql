-- A queued run behind an unfinished one of its conversation is blocked, and the end of that one unblocks the first of them. So
-- a claim walks past no blocked run. A version before this one blocks none and unblocks none: the claim checks the conversation
-- too, and the sweeper unblocks.
alter table agent_runs add column blocked boolean not null default false;
update agent_runs set blocked = true where status = 'queued' and exists (select 1 from agent_runs earlier
  where earlier.conversation_id = agent_runs.conversation_id and earlier.position < agent_runs.position
  and earlier.status in ('queued', 'running', 'waiting'));
drop index agent_runs_queue;
create index agent_runs_queue on agent_runs (priority desc, queue_round, id) where status = 'queued' and not blocked;
create index agent_runs_blocked on agent_runs (conversation_id, position) where status = 'queued' and blocked;
