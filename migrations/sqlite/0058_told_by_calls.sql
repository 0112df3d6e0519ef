-- The call that has found a passage for the model; null for those with the run's input.
alter table run_passages add column call_id text;
