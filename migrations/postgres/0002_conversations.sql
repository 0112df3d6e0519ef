-- Conversations: durable lists of messages.
create table chat_conversations (
    id uuid primary key,
    owner_id text not null,
    title text,
    agent_definition_id uuid references agent_definitions (id),
    -- Position of the newest message; messages and runs take the next one under this row's lock.
    last_position bigint not null default 0,
    created_at timestamptz not null,
    last_message_at timestamptz,
    -- When something last happened in it; the order of the list.
    activity_at timestamptz not null,
    -- Deleted conversations are hidden at once and removed by the sweeper when their runs have ended.
    deleted_at timestamptz
);
create index chat_conversations_by_activity on chat_conversations (owner_id, activity_at desc, id desc) where deleted_at is null;
create index chat_conversations_deleted on chat_conversations (deleted_at) where deleted_at is not null;
