-- Agent definitions: what a run executes when its conversation is agent-backed.
create table agent_definitions (
    id blob primary key,
    name text not null,
    created_at text not null
);
