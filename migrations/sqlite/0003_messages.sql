-- Messages, in the order of their positions.
create table chat_messages (
    id blob primary key,
    conversation_id blob not null references chat_conversations (id) on delete cascade,
    owner_id text not null,
    -- The run that the message started, or that wrote it.
    run_id blob not null,
    position integer not null,
    role text not null check (role in ('user', 'assistant', 'system')),
    content_type text not null default 'text',
    content text not null,
    status text not null check (status in ('complete', 'cancelled', 'failed')),
    created_at text not null,
    unique (conversation_id, position)
);
create index chat_messages_by_run on chat_messages (run_id);
