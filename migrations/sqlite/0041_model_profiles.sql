-- The model profiles of the deployment, in one row.
create table model_profiles (
    id smallint primary key check (id = 1),
    document text not null,
    origin text not null,
    updated_at text not null
);
-- The model that wrote a message of a trace.
alter table agent_run_messages add column model text;
