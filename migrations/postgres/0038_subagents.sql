-- A child run answers a call of its parent, in a conversation of its own. No foreign keys, because checking one would lock the
-- parent's row, and a child's end must lock it after the child's.
alter table chat_conversations add column parent_run_id uuid;
create index chat_conversations_by_parent on chat_conversations (parent_run_id) where parent_run_id is not null;
alter table agent_runs add column parent_run_id uuid;
alter table agent_runs add column parent_call_id text;
alter table agent_runs add column subagent_role text;
-- The run without a parent above this one, and the number of runs above this one.
alter table agent_runs add column top_run_id uuid;
alter table agent_runs add column depth bigint not null default 0;
-- Usage of all runs below this one that have ended.
alter table agent_runs add column children_usage jsonb;
-- `children` for a run that waits for children alone; else a human or a client must answer.
alter table agent_runs add column awaits text;
create index agent_runs_live_children on agent_runs (parent_run_id) where parent_run_id is not null and finished_at is null;
alter table agent_run_tool_calls add column child_run_id uuid;
create index agent_run_tool_calls_of_children on agent_run_tool_calls (child_run_id) where child_run_id is not null and status = 'called';
-- Fields of a definition that the version before does not read.
alter table agent_definition_versions add column extension jsonb;
-- A worker claims a run only if it has the abilities that the run needs. A claim writes 100 times its attempt, plus the
-- worker's abilities; a worker of an earlier version writes nothing, and its claim of such a run changes no row.
alter table agent_runs add column needs smallint not null default 0;
alter table agent_runs add column claimed_with bigint;
create function skip_row() returns trigger language plpgsql as 'begin return null; end';
create trigger agent_runs_need_an_able_worker before update of holder on agent_runs for each row
    when (new.needs > 0 and new.holder is not null and coalesce(new.claimed_with, 0) < new.attempt * 100 + new.needs)
    execute function skip_row();
