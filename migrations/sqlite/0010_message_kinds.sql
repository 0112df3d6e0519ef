-- Messages of several kinds: a card belongs to no run.
create table chat_messages_of_all_kinds (
    id blob primary key,
    conversation_id blob not null references chat_conversations (id) on delete cascade,
    owner_id text not null,
    -- The run that the message started, or that wrote it.
    run_id blob,
    position integer not null,
    -- Where the model reads it: the position of its run, else its own; within a turn, by position.
    turn integer not null,
    role text not null check (role in ('user', 'assistant', 'system')),
    content_type text not null default 'text',
    content text not null,
    status text not null check (status in ('complete', 'cancelled', 'failed')),
    retrieval_context text,
    -- Since when it is no longer part of the conversation: replaced by an edit, or rolled back.
    superseded_at text,
    created_at text not null,
    unique (conversation_id, position)
);
insert into chat_messages_of_all_kinds
select m.id, m.conversation_id, m.owner_id, m.run_id, m.position,
    coalesce((select r.position from agent_runs r where r.id = m.run_id and r.conversation_id = m.conversation_id), m.position),
    m.role, m.content_type, m.content, m.status, m.retrieval_context, null, m.created_at
from chat_messages m;
drop table chat_messages;
alter table chat_messages_of_all_kinds rename to chat_messages;
create index chat_messages_by_run on chat_messages (run_id);
create index chat_messages_by_turn on chat_messages (conversation_id, turn, position);
-- What a run leaves behind after this is not part of the conversation either.
alter table agent_runs add column superseded_at text;
