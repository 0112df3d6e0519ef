-- An API of the version before writes no abilities into its runs. The database does so instead, because a worker of that
-- version would execute a planner as an ordinary agent. The tables have their schema, because a client may have another search path.
alter table agent_runs alter column needs set default -1;
create function set_needs() returns trigger language plpgsql as '
begin
    new.needs := coalesce((
        select case when v.extension->>''kind'' is not null then 2 when v.extension is not null then 1 else 0 end
        from kb.agent_definitions a
        join kb.agent_definition_versions v on v.agent_definition_id = a.id and v.version = coalesce(new.agent_version, a.version)
        where a.id = new.agent_definition_id
    ), 0);
    return new;
end';
create trigger agent_runs_of_older_apis before insert on agent_runs for each row
    when (new.needs < 0)
    execute function set_needs();
