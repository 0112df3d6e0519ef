-- Summaries that are to be made after the answers of ended runs, each until a worker has made it.
create table due_summaries (
    run_id blob primary key references agent_runs (id) on delete cascade,
    conversation_id blob not null,
    -- The newest turn that the summary is to cover.
    up_to integer not null,
    -- Most tokens of the summary.
    tokens integer not null,
    -- A worker makes the summary until then; later, another one may.
    lease_until text not null,
    tries integer not null default 0
);
create index due_summaries_by_lease on due_summaries (lease_until);
create index due_summaries_by_conversation on due_summaries (conversation_id);
-- The summary of the first turns of a fork, which the forked conversation had.
alter table chat_conversations add column inherited_summary text;
alter table chat_conversations add column inherited_up_to integer;
