-- The conversation of a request that brings its own history. It is removed with the events of its run.
alter table chat_conversations add column expires boolean not null default false;
create index chat_conversations_expiring on chat_conversations (activity_at) where expires and deleted_at is null;
