-- Agent definitions: what a run executes when its conversation is agent-backed.
create table agent_definitions (
    id uuid primary key,
    name text not null,
    created_at timestamptz not null
);
