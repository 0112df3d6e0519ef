-- Plans of planners, and their steps. A plan has no foreign key to its conversation, because checking one would lock the
-- conversation's row after the run's.
create table agent_plans (
    id uuid primary key,
    run_id uuid not null references agent_runs (id) on delete cascade,
    conversation_id uuid not null,
    call_id text not null,
    user_message text not null,
    strategy text not null,
    execution_mode text not null,
    status text not null,
    metadata jsonb not null,
    created_at timestamptz not null,
    updated_at timestamptz not null
);
create index agent_plans_of_run on agent_plans (run_id, id);
create index agent_plans_of_conversation on agent_plans (conversation_id, id);
create table agent_plan_steps (
    plan_id uuid not null references agent_plans (id) on delete cascade,
    step_number bigint not null,
    description text not null,
    tools jsonb not null,
    executor_required boolean not null,
    depends_on jsonb not null,
    status text not null,
    result text,
    error text,
    child_run_id uuid,
    updated_at timestamptz not null,
    primary key (plan_id, step_number)
);
-- The roles of runs in the work of a planner. The end and the usage of a role are those of its run.
create table agent_agents (
    id uuid primary key,
    run_id uuid not null references agent_runs (id) on delete cascade,
    role text not null,
    profile text,
    model text,
    token_budget bigint not null,
    permissions jsonb,
    created_at timestamptz not null
);
create unique index agent_agents_of_run on agent_agents (run_id);
create index agent_plan_steps_of_children on agent_plan_steps (child_run_id) where child_run_id is not null;
-- The step of a plan that a message of a trace belongs to.
alter table agent_run_messages add column plan_step bigint;
-- The kind of a question that the version before does not know, instead of the one that it reads.
alter table agent_run_approvals add column later_kind text;
