-- The run above all others, for a question of a run below it, and whether the log of that run has the question.
alter table agent_run_approvals add column top_run_id blob;
alter table agent_run_approvals add column forwarded boolean not null default false;
create index agent_run_approvals_of_top on agent_run_approvals (top_run_id) where top_run_id is not null;
