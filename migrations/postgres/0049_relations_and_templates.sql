-- Relations between entities, templates of projects, and names in small letters for the search.
alter table onto_projects add column folded text not null default '';
update onto_projects set folded = lower(name);
alter table onto_tasks add column folded text not null default '';
update onto_tasks set folded = lower(title);
alter table onto_plans add column folded text not null default '';
update onto_plans set folded = lower(name);
alter table onto_goals add column folded text not null default '';
update onto_goals set folded = lower(name);
alter table onto_documents add column folded text not null default '';
update onto_documents set folded = lower(title);
alter table onto_outputs add column folded text not null default '';
update onto_outputs set folded = lower(name);
create table onto_edges (
    id uuid primary key,
    owner_id text not null,
    project_id uuid not null,
    from_kind text not null,
    from_id uuid not null,
    relation text not null,
    to_kind text not null,
    to_id uuid not null,
    folded text not null default '',
    props jsonb not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz
);
create index onto_edges_of_owner on onto_edges (owner_id, id) where deleted_at is null;
create index onto_edges_deleted on onto_edges (owner_id, deleted_at) where deleted_at is not null;
create index onto_edges_of_project on onto_edges (project_id, id);
create index onto_edges_from on onto_edges (from_id, id);
create index onto_edges_to on onto_edges (to_id, id);
create table onto_templates (
    id uuid primary key,
    owner_id text not null,
    name text not null,
    key text,
    kind text,
    description text,
    body jsonb,
    state text not null,
    folded text not null default '',
    props jsonb not null,
    version bigint not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz
);
create index onto_templates_of_owner on onto_templates (owner_id, id) where deleted_at is null;
create index onto_templates_deleted on onto_templates (owner_id, deleted_at) where deleted_at is not null;
create index onto_templates_by_state on onto_templates (state, id) where deleted_at is null;
