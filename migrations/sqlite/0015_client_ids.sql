-- What the client calls its message; unique among those that are part of the conversation.
alter table chat_messages add column client_id text;
create unique index chat_messages_by_client_id on chat_messages (conversation_id, client_id) where client_id is not null and superseded_at is null;
