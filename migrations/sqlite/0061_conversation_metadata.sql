-- What a client keeps with a conversation; lists filter by it.
alter table chat_conversations add column metadata text;
