-- Messages of several kinds: a card belongs to no run.
alter table chat_messages alter column run_id drop not null;
-- Where the model reads it: the position of its run, else its own; within a turn, by position. Versions before this one write 0.
alter table chat_messages add column turn bigint not null default 0;
update chat_messages set turn = coalesce(
    (select r.position from agent_runs r where r.id = chat_messages.run_id and r.conversation_id = chat_messages.conversation_id), position);
-- Since when it is no longer part of the conversation: replaced by an edit, or rolled back.
alter table chat_messages add column superseded_at timestamptz;
create index chat_messages_by_turn on chat_messages (conversation_id, turn, position);
-- What a run leaves behind after this is not part of the conversation either.
alter table agent_runs add column superseded_at timestamptz;
