-- Summaries of what the model no longer reads word by word, each made for a run. It holds for later runs too, as long as
-- nothing that it covers is superseded.
create table chat_summaries (
    run_id blob primary key references agent_runs (id) on delete cascade,
    conversation_id blob not null,
    -- The newest turn that it covers.
    up_to integer not null,
    content text not null,
    created_at text not null
);
create index chat_summaries_by_conversation on chat_summaries (conversation_id, up_to desc);
