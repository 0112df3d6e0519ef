-- The model profiles of the deployment, in one row.
create table model_profiles (
    id smallint primary key check (id = 1),
    document jsonb not null,
    origin text not null,
    updated_at timestamptz not null
);
-- The model that wrote a message of a trace.
alter table agent_run_messages add column model text;
