-- A checkpoint is always looked for in its conversation; an index of ids alone was written with each and read by nobody.
drop index agent_run_checkpoints_by_conversation;
alter table agent_run_checkpoints drop constraint agent_run_checkpoints_pkey, add primary key (conversation_id, id);
