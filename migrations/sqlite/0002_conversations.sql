-- Conversations: durable lists of messages.
create table chat_conversations (
    id blob primary key,
    owner_id text not null,
    title text,
    agent_definition_id blob references agent_definitions (id),
    -- Position of the newest message; messages and runs take the next one under this row's lock.
    last_position integer not null default 0,
    created_at text not null,
    last_message_at text,
    -- When something last happened in it; the order of the list.
    activity_at text not null,
    -- Deleted conversations are hidden at once and removed by the sweeper when their runs have ended.
    deleted_at text
);
create index chat_conversations_by_activity on chat_conversations (owner_id, activity_at desc, id desc) where deleted_at is null;
create index chat_conversations_deleted on chat_conversations (deleted_at) where deleted_at is not null;
