-- The first message that stood in this place of the conversation; null for the first one itself.
alter table chat_messages add column version_of uuid;
-- The same for the run's answer.
alter table agent_runs add column version_of uuid;
-- The change that superseded the row together with others; a restoration takes back all of it.
alter table chat_messages add column superseded_in uuid;
alter table agent_runs add column superseded_in uuid;
create index chat_messages_versions on chat_messages (conversation_id) where version_of is not null;
create index agent_runs_versions on agent_runs (conversation_id) where version_of is not null;
-- Earlier times in which a message was no part of its conversation. A fork of a run of those times reads them.
create table chat_message_absences (
    message_id uuid not null references chat_messages (id) on delete cascade,
    superseded_at timestamptz not null,
    restored_at timestamptz not null,
    primary key (message_id, superseded_at, restored_at)
);
