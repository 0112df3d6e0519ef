-- The first message that stood in this place of the conversation; null for the first one itself, and for answers.
alter table chat_messages add column version_of uuid;
-- The first version of the run's answer; null for the first one itself.
alter table agent_runs add column version_of uuid;
-- The change that superseded the row together with others; a restoration reverts all of it.
alter table chat_messages add column superseded_in uuid;
alter table agent_runs add column superseded_in uuid;
create index chat_messages_versions on chat_messages (conversation_id) where version_of is not null;
create index agent_runs_versions on agent_runs (conversation_id) where version_of is not null;
-- A branch begins with a new version: its own rows follow the rows of its parent that come before the cut. The first branch of
-- a conversation has no row and is null. A fork reads the branch of its run.
create table conversation_branches (
    id uuid primary key,
    conversation_id uuid not null references chat_conversations (id) on delete cascade,
    parent uuid,
    turn bigint not null,
    position bigint not null
);
create index conversation_branches_by_conversation on conversation_branches (conversation_id);
alter table chat_conversations add column branch uuid;
alter table agent_runs add column branch uuid;
-- Of a card; any other message has the branch of its run.
alter table chat_messages add column branch uuid;
