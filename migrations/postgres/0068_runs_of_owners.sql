-- The predicate is always true. PostgreSQL derives it from a condition on the owner, and not from one on the id alone, so that
-- a run's lookup by its id never reads this index. With statistics of one run, it looks as cheap as the primary key.
create index agent_runs_of_owner on agent_runs (owner_id, id desc) where owner_id is not null;
drop index agent_runs_by_owner;
alter index agent_runs_of_owner rename to agent_runs_by_owner;
