-- The parts of the run's message, once it has ended: shared/src/parts.rs. Null for a run that an older version ended.
alter table agent_runs add column parts text;
