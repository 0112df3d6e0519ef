-- Changes of plans whose planner works at the moment. Its holder takes them before it begins the next steps.
create table agent_plan_edits (
    id blob primary key,
    plan_id blob not null references agent_plans (id) on delete cascade,
    edit text not null,
    created_at text not null
);
create index agent_plan_edits_of_plan on agent_plan_edits (plan_id, id);
