-- Changes of plans whose planner works at the moment, in the order of their acceptance. Its holder takes them before it begins
-- the next steps.
create table agent_plan_edits (
    plan_id uuid not null references agent_plans (id) on delete cascade,
    number bigint not null,
    edit jsonb not null,
    created_at timestamptz not null,
    primary key (plan_id, number)
);
