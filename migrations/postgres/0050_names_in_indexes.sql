-- The search reads the names of an owner from the index alone.
drop index onto_projects_of_owner;
create index onto_projects_of_owner on onto_projects (owner_id, id) include (folded, state) where deleted_at is null;
drop index onto_tasks_of_owner;
create index onto_tasks_of_owner on onto_tasks (owner_id, id) include (folded, project_id, state) where deleted_at is null;
drop index onto_plans_of_owner;
create index onto_plans_of_owner on onto_plans (owner_id, id) include (folded, project_id, state) where deleted_at is null;
drop index onto_goals_of_owner;
create index onto_goals_of_owner on onto_goals (owner_id, id) include (folded, project_id, state) where deleted_at is null;
drop index onto_documents_of_owner;
create index onto_documents_of_owner on onto_documents (owner_id, id) include (folded, project_id, state) where deleted_at is null;
drop index onto_outputs_of_owner;
create index onto_outputs_of_owner on onto_outputs (owner_id, id) include (folded, project_id, state) where deleted_at is null;
