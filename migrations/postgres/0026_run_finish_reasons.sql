-- Why the model ended the newest step; null for runs of older versions.
alter table agent_runs add column finish_reason text;
