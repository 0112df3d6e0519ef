-- The party that executes a call: `worker` or `client`; null for an unknown tool, and in rows of earlier versions.
alter table agent_run_tool_calls add column executed_by text;
