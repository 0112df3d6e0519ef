-- The workspace: entities of an owner, and every change of them. No foreign keys, because an undo removes and makes entities in
-- any order, within one transaction that locks the owner's row.
create table onto_owners (
    owner_id text primary key,
    entities integer not null,
    bytes integer not null
);
create table onto_projects (
    id blob primary key,
    owner_id text not null,
    name text not null,
    description text,
    type_key text,
    state text not null,
    start_at text,
    end_at text,
    props text not null,
    version integer not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text
);
create index onto_projects_of_owner on onto_projects (owner_id, id) where deleted_at is null;
create index onto_projects_deleted on onto_projects (owner_id, deleted_at) where deleted_at is not null;
create table onto_tasks (
    id blob primary key,
    owner_id text not null,
    project_id blob not null,
    title text not null,
    description text,
    state text not null,
    priority integer,
    due_at text,
    plan_id blob,
    goal_id blob,
    props text not null,
    version integer not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text
);
create index onto_tasks_of_owner on onto_tasks (owner_id, id) where deleted_at is null;
create index onto_tasks_deleted on onto_tasks (owner_id, deleted_at) where deleted_at is not null;
create index onto_tasks_of_project on onto_tasks (project_id, id);
create table onto_plans (
    id blob primary key,
    owner_id text not null,
    project_id blob not null,
    name text not null,
    description text,
    state text not null,
    start_at text,
    end_at text,
    props text not null,
    version integer not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text
);
create index onto_plans_of_owner on onto_plans (owner_id, id) where deleted_at is null;
create index onto_plans_deleted on onto_plans (owner_id, deleted_at) where deleted_at is not null;
create index onto_plans_of_project on onto_plans (project_id, id);
create table onto_goals (
    id blob primary key,
    owner_id text not null,
    project_id blob not null,
    name text not null,
    description text,
    state text not null,
    target_date text,
    props text not null,
    version integer not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text
);
create index onto_goals_of_owner on onto_goals (owner_id, id) where deleted_at is null;
create index onto_goals_deleted on onto_goals (owner_id, deleted_at) where deleted_at is not null;
create index onto_goals_of_project on onto_goals (project_id, id);
create table onto_documents (
    id blob primary key,
    owner_id text not null,
    project_id blob not null,
    title text not null,
    body text,
    type text,
    state text not null,
    props text not null,
    version integer not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text
);
create index onto_documents_of_owner on onto_documents (owner_id, id) where deleted_at is null;
create index onto_documents_deleted on onto_documents (owner_id, deleted_at) where deleted_at is not null;
create index onto_documents_of_project on onto_documents (project_id, id);
create table onto_outputs (
    id blob primary key,
    owner_id text not null,
    project_id blob not null,
    name text not null,
    kind text,
    body text,
    state text not null,
    props text not null,
    version integer not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text
);
create index onto_outputs_of_owner on onto_outputs (owner_id, id) where deleted_at is null;
create index onto_outputs_deleted on onto_outputs (owner_id, deleted_at) where deleted_at is not null;
create index onto_outputs_of_project on onto_outputs (project_id, id);
create table onto_changes (
    id blob primary key,
    owner_id text not null,
    change_set_id blob not null,
    kind text not null,
    entity_id blob not null,
    action text not null,
    before text,
    after text,
    bytes integer not null,
    user_id text not null,
    undoes blob,
    created_at text not null
);
create index onto_changes_of_owner on onto_changes (owner_id, id);
create index onto_changes_of_entity on onto_changes (entity_id, id);
create index onto_changes_of_set on onto_changes (change_set_id, id);
create index onto_changes_that_undo on onto_changes (undoes) where undoes is not null;
create index onto_changes_by_age on onto_changes (owner_id, created_at);
