-- The name under which its owner finds a conversation again: `session:<name>`, or `agent:<id>` for the one standing conversation with it.
alter table chat_conversations add column handle text;
create unique index chat_conversations_by_handle on chat_conversations (owner_id, handle) where handle is not null and deleted_at is null;
