-- Changes of plans whose planner works at the moment. Its holder takes them before it begins the next steps.
create table agent_plan_edits (
    id uuid primary key,
    plan_id uuid not null references agent_plans (id) on delete cascade,
    edit jsonb not null,
    created_at timestamptz not null
);
create index agent_plan_edits_of_plan on agent_plan_edits (plan_id, id);
