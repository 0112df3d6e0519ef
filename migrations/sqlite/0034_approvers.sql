-- The runs that wait for a decision of an approver, by the definition that names the approver.
create index agent_runs_waiting_by_agent on agent_runs (agent_definition_id, agent_version) where status = 'waiting';
create index agent_definition_versions_with_approvers on agent_definition_versions (agent_definition_id, version) where (definition ->> 'approvers') is not null;
