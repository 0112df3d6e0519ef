-- Briefings: what somebody is to be told, and may talk about with an agent.
create table briefings (
    id blob primary key,
    owner_id text not null,
    agent_definition_id blob not null references agent_definitions (id),
    title text not null,
    summary text not null,
    priority text,
    -- For the front end; no model sees it.
    data text,
    -- As its author says, else when it was stored.
    created_at text not null
);
create index briefings_by_owner on briefings (owner_id, created_at desc, id desc);
create index briefings_by_agent on briefings (agent_definition_id);
-- The briefing that a card shows; a conversation shows it once.
alter table chat_messages add column briefing_id blob;
create unique index chat_messages_one_card_per_briefing on chat_messages (conversation_id, briefing_id) where briefing_id is not null and superseded_at is null;
