-- Plans of planners, and their steps.
create table agent_plans (
    id blob primary key,
    run_id blob not null references agent_runs (id) on delete cascade,
    conversation_id blob not null,
    call_id text not null,
    user_message text not null,
    strategy text not null,
    execution_mode text not null,
    status text not null,
    metadata text not null,
    created_at text not null,
    updated_at text not null
);
create index agent_plans_of_run on agent_plans (run_id, id);
create index agent_plans_of_conversation on agent_plans (conversation_id, id);
create table agent_plan_steps (
    plan_id blob not null references agent_plans (id) on delete cascade,
    step_number integer not null,
    description text not null,
    tools text not null,
    executor_required boolean not null,
    depends_on text not null,
    status text not null,
    result text,
    error text,
    child_run_id blob,
    updated_at text not null,
    primary key (plan_id, step_number)
);
-- The roles of runs in the work of a planner. The end and the usage of a role are those of its run.
create table agent_agents (
    id blob primary key,
    run_id blob not null references agent_runs (id) on delete cascade,
    role text not null,
    profile text,
    model text,
    token_budget integer not null,
    permissions text,
    created_at text not null
);
create unique index agent_agents_of_run on agent_agents (run_id);
create index agent_plan_steps_of_children on agent_plan_steps (child_run_id) where child_run_id is not null;
-- The step of a plan that a message of a trace belongs to.
alter table agent_run_messages add column plan_step integer;
-- The kind of a question that the version before does not know, instead of the one that it reads.
alter table agent_run_approvals add column later_kind text;
