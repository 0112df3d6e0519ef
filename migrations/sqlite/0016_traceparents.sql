-- The OpenTelemetry span under which the run was submitted, as a W3C traceparent; null where nothing is traced.
alter table agent_runs add column traceparent text;
