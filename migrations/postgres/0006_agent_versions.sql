-- Definitions change by versions: a run keeps the one that it was submitted with.
alter table agent_definitions add column version bigint not null default 1;
-- Who defined it: the API, or the file that HOLDFAST_AGENTS names.
alter table agent_definitions add column origin text not null default 'api' check (origin in ('api', 'file'));
alter table agent_definitions add column updated_at timestamptz;
-- Deleted agents are hidden; those that no conversation has are removed.
alter table agent_definitions add column deleted_at timestamptz;
create table agent_definition_versions (
    agent_definition_id uuid not null references agent_definitions (id) on delete cascade,
    version bigint not null,
    definition jsonb not null,
    created_at timestamptz not null,
    primary key (agent_definition_id, version)
);
create index chat_conversations_by_agent on chat_conversations (agent_definition_id) where agent_definition_id is not null;
