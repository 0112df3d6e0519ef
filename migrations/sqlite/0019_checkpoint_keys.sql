-- A checkpoint is always looked for in its conversation; an index of ids alone was written with each and read by nobody.
create table checkpoints_of_conversations (
    id blob not null,
    -- No foreign keys: checking one would lock the conversation's row after the run's, and the order is the other way round.
    conversation_id blob not null,
    run_id blob not null,
    event_id integer not null,
    node text not null check (node in ('input', 'process', 'tools', 'respond', 'fork')),
    step integer not null,
    messages integer not null,
    metadata text not null,
    created_at text not null,
    primary key (conversation_id, id)
) without rowid;
insert into checkpoints_of_conversations
    select id, conversation_id, run_id, event_id, node, step, messages, metadata, created_at from agent_run_checkpoints;
drop table agent_run_checkpoints;
alter table checkpoints_of_conversations rename to agent_run_checkpoints;
