-- The zone of a run, and the time at which it began or resumed after its newest wait: the facts of the line that tells its model
-- the date.
alter table agent_runs add column time_zone text;
alter table agent_runs add column dated_at timestamptz;
-- The zone of a user whose requests name none.
alter table user_profiles add column time_zone text;
