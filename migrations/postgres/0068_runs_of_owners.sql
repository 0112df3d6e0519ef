-- The predicate is always true. PostgreSQL derives it from a condition on the owner, and not from one on the id alone, so that
-- a run's lookup by its id never reads this index. With statistics of one run, it looks as cheap as the primary key.
-- Order matters: the drop takes the strongest lock first. A writer between two locks would wait for the one and hold up the other.
drop index agent_runs_by_owner;
create index agent_runs_by_owner on agent_runs (owner_id, id desc) where owner_id is not null;
