-- Messages of several kinds: a card belongs to no run.
alter table chat_messages alter column run_id drop not null;
-- Where the model reads it: the position of its run, else its own; within a turn, by position.
alter table chat_messages add column turn bigint not null default 0;
update chat_messages set turn = coalesce(
    (select r.position from agent_runs r where r.id = chat_messages.run_id and r.conversation_id = chat_messages.conversation_id), position);
-- Versions before this one know no turns, and may run beside it for a while.
create function chat_messages_take_turn() returns trigger language plpgsql as $$
begin
    if new.turn = 0 then
        new.turn := coalesce(
            (select r.position from kb.agent_runs r where r.id = new.run_id and r.conversation_id = new.conversation_id), new.position);
    end if;
    return new;
end
$$;
create trigger chat_messages_turn before insert on chat_messages for each row execute function chat_messages_take_turn();
-- Since when it is no longer part of the conversation: replaced by an edit, or rolled back.
alter table chat_messages add column superseded_at timestamptz;
create index chat_messages_by_turn on chat_messages (conversation_id, turn, position);
-- What a run leaves behind after this is not part of the conversation either.
alter table agent_runs add column superseded_at timestamptz;
