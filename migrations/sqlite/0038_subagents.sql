-- A child run answers a call of its parent, in a conversation of its own.
alter table chat_conversations add column parent_run_id blob;
create index chat_conversations_by_parent on chat_conversations (parent_run_id) where parent_run_id is not null;
alter table agent_runs add column parent_run_id blob;
alter table agent_runs add column parent_call_id text;
alter table agent_runs add column subagent_role text;
-- The run without a parent above this one, and the number of runs above this one.
alter table agent_runs add column top_run_id blob;
alter table agent_runs add column depth integer not null default 0;
-- Usage of all runs below this one that have ended.
alter table agent_runs add column children_usage text;
-- `children` for a run that waits for children alone; else a human or a client must answer.
alter table agent_runs add column awaits text;
create index agent_runs_live_children on agent_runs (parent_run_id) where parent_run_id is not null and finished_at is null;
alter table agent_run_tool_calls add column child_run_id blob;
create index agent_run_tool_calls_of_children on agent_run_tool_calls (child_run_id) where child_run_id is not null and status = 'called';
-- Fields of a definition that the version before does not read.
alter table agent_definition_versions add column extension text;
-- The abilities that a worker of the run needs. PostgreSQL checks them, because versions run side by side only there.
alter table agent_runs add column needs integer not null default 0;
alter table agent_runs add column claimed_with integer;
