-- What a run was submitted with, beside its message.
alter table agent_runs add column agent_version bigint;
-- Whether pieces of the answer are written as events.
alter table agent_runs add column stream boolean not null default true;
-- Tools that the client executes.
alter table agent_runs add column client_tools jsonb;
alter table agent_runs add column metadata jsonb;
-- Time spent waiting for people, which no limit counts.
alter table agent_runs add column waiting_since timestamptz;
alter table agent_runs add column waited_ms bigint not null default 0;
-- Where an answer came from.
alter table chat_messages add column retrieval_context jsonb;
