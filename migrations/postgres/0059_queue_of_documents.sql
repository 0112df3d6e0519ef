-- A worker with free places for documents finds their runs without the others.
create index agent_runs_queue_of_documents on agent_runs (priority desc, queue_round, id) where status = 'queued' and needs = 5;
