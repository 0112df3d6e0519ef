-- The schema of a new file: all migrations of migrations/sqlite in one. A test writes it.
CREATE TABLE agent_definitions (
    id blob primary key,
    name text not null,
    created_at text not null
, version integer not null default 1, origin text not null default 'api' check (origin in ('api', 'file')), updated_at text, deleted_at text);
CREATE TABLE chat_conversations (
    id blob primary key,
    owner_id text not null,
    title text,
    agent_definition_id blob references agent_definitions (id),
    -- Position of the newest message; messages and runs take the next one under this row's lock.
    last_position integer not null default 0,
    created_at text not null,
    last_message_at text,
    -- When something last happened in it; the order of the list.
    activity_at text not null,
    -- Deleted conversations are hidden at once and removed by the sweeper when their runs have ended.
    deleted_at text
, forked_from blob, handle text, bytes bigint not null default 256, branch blob, parent_run_id blob, hidden boolean not null default false, knowledge text, expires boolean not null default false, metadata text, inherited_summary text, inherited_up_to integer);
CREATE INDEX chat_conversations_by_activity on chat_conversations (owner_id, activity_at desc, id desc) where deleted_at is null;
CREATE INDEX chat_conversations_deleted on chat_conversations (deleted_at) where deleted_at is not null;
CREATE TABLE agent_runs (
    id blob primary key,
    owner_id text not null,
    conversation_id blob not null references chat_conversations (id) on delete cascade,
    agent_definition_id blob references agent_definitions (id),
    -- Position of the input message: the run's place in its conversation's queue.
    position integer not null,
    priority integer not null default 0,
    status text not null check (status in ('queued', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
    -- The fence: only the holder of this attempt writes.
    attempt integer not null default 0,
    -- Workers that died while they executed it, since its last completed step.
    crashes integer not null default 0,
    holder text,
    lease_until text,
    -- Whether the holder has begun to execute; only then does its death count as a crash.
    executing boolean not null default false,
    -- Why the current attempt has begun, or the next one will: drain, resumed or lease_expired; null for the first.
    attempt_reason text,
    cancel_requested_at text,
    input_message_id blob not null,
    output_message_id blob not null,
    model text,
    -- The newest event in run_events, and the one that a later attempt goes on from.
    archived_to integer not null,
    checkpoint integer not null,
    usage text,
    error_code text,
    error_message text,
    idempotency_key text,
    idempotency_fingerprint text,
    created_at text not null,
    started_at text,
    finished_at text,
    -- When the events were removed; reading them is answered 410 since then.
    events_removed_at text
, agent_version integer, stream boolean not null default true, client_tools text, metadata text, waiting_since text, waited_ms integer not null default 0, superseded_at text, max_duration_ms integer, traceparent text, queue_round bigint not null default 0, finish_reason text, probation integer, version_of blob, superseded_in blob, branch blob, parts text, parent_run_id blob, parent_call_id text, subagent_role text, top_run_id blob, depth integer not null default 0, children_usage text, awaits text, needs integer not null default 0, claimed_with integer, steers boolean not null default false, knowledge text, not_before text, caller_group text, time_zone text, dated_at text, error_details text);
CREATE UNIQUE INDEX agent_runs_by_idempotency_key on agent_runs (owner_id, idempotency_key) where idempotency_key is not null;
CREATE UNIQUE INDEX agent_runs_one_live_per_conversation on agent_runs (conversation_id) where status in ('running', 'waiting');
CREATE INDEX agent_runs_unfinished on agent_runs (conversation_id, position) where status in ('queued', 'running', 'waiting');
CREATE INDEX agent_runs_by_owner on agent_runs (owner_id, id desc);
CREATE INDEX agent_runs_by_conversation on agent_runs (conversation_id, position);
CREATE INDEX agent_runs_to_retire on agent_runs (finished_at) where finished_at is not null and events_removed_at is null;
CREATE TABLE run_events (
    run_id blob not null references agent_runs (id) on delete cascade,
    last_id integer not null,
    body blob not null,
    primary key (run_id, last_id)
);
CREATE TABLE agent_definition_versions (
    agent_definition_id blob not null references agent_definitions (id) on delete cascade,
    version integer not null,
    definition text not null,
    created_at text not null, extension text, most_in_chain integer,
    primary key (agent_definition_id, version)
);
CREATE INDEX chat_conversations_by_agent on chat_conversations (agent_definition_id) where agent_definition_id is not null;
CREATE TABLE agent_run_messages (
    run_id blob not null references agent_runs (id) on delete cascade,
    position integer not null,
    step integer not null,
    role text not null check (role in ('system', 'user', 'assistant', 'tool')),
    content text not null,
    tool_calls text,
    call_id text,
    is_error boolean not null default false,
    usage text,
    created_at text not null, model text, plan_step integer,
    primary key (run_id, position)
);
CREATE TABLE agent_run_tool_calls (
    run_id blob not null references agent_runs (id) on delete cascade,
    call_id text not null,
    step integer not null,
    position integer not null,
    name text not null,
    input text not null,
    effect text not null check (effect in ('read_only', 'idempotent', 'once')),
    status text not null check (status in ('requested', 'waiting', 'client', 'called', 'completed', 'abandoned')),
    -- Of the tools that the client executes.
    schema text,
    expires_at text,
    output text,
    error text,
    duration_ms integer,
    created_at text not null,
    completed_at text, child_run_id blob, executed_by text, files text,
    primary key (run_id, call_id)
);
CREATE INDEX agent_run_tool_calls_to_expire on agent_run_tool_calls (expires_at) where status = 'client';
CREATE TABLE agent_run_approvals (
    id blob primary key,
    run_id blob not null references agent_runs (id) on delete cascade,
    call_id text not null,
    kind text not null check (kind in ('policy', 'unknown_outcome')),
    name text not null,
    input text not null,
    -- What an edited input must keep to.
    schema text not null,
    status text not null check (status in ('pending', 'approved', 'denied', 'expired', 'superseded', 'cancelled')),
    reason text,
    edited_input text,
    requested_at text not null,
    expires_at text not null,
    decided_at text,
    decided_by text
, top_run_id blob, forwarded boolean not null default false, later_kind text);
CREATE INDEX agent_run_approvals_by_run on agent_run_approvals (run_id, id);
CREATE INDEX agent_run_approvals_to_expire on agent_run_approvals (expires_at) where status = 'pending';
CREATE TABLE "chat_messages" (
    id blob primary key,
    conversation_id blob not null references chat_conversations (id) on delete cascade,
    owner_id text not null,
    -- The run that the message started, or that wrote it.
    run_id blob,
    position integer not null,
    -- Where the model reads it: the position of its run, else its own; within a turn, by position.
    turn integer not null,
    role text not null check (role in ('user', 'assistant', 'system')),
    content_type text not null default 'text',
    content text not null,
    status text not null check (status in ('complete', 'cancelled', 'failed')),
    retrieval_context text,
    -- Since when it is no longer part of the conversation: replaced by an edit, or rolled back.
    superseded_at text,
    created_at text not null, briefing_id blob, client_id text, finish_reason text, version_of blob, superseded_in blob, branch blob, attachments text,
    unique (conversation_id, position)
);
CREATE INDEX chat_messages_by_run on chat_messages (run_id);
CREATE INDEX chat_messages_by_turn on chat_messages (conversation_id, turn, position);
CREATE UNIQUE INDEX chat_conversations_by_handle on chat_conversations (owner_id, handle) where handle is not null and deleted_at is null;
CREATE TABLE briefings (
    id blob primary key,
    owner_id text not null,
    agent_definition_id blob not null references agent_definitions (id),
    title text not null,
    summary text not null,
    priority text,
    -- For the front end; no model sees it.
    data text,
    -- As its author says, else when it was stored.
    created_at text not null
, bytes bigint not null default 0, author_id text, idempotency_key text, idempotency_fingerprint text);
CREATE INDEX briefings_by_owner on briefings (owner_id, created_at desc, id desc);
CREATE INDEX briefings_by_agent on briefings (agent_definition_id);
CREATE UNIQUE INDEX chat_messages_one_card_per_briefing on chat_messages (conversation_id, briefing_id) where briefing_id is not null and superseded_at is null;
CREATE TABLE chat_summaries (
    run_id blob primary key references agent_runs (id) on delete cascade,
    conversation_id blob not null,
    -- The newest turn that it covers.
    up_to integer not null,
    content text not null,
    created_at text not null
);
CREATE INDEX chat_summaries_by_conversation on chat_summaries (conversation_id, up_to desc);
CREATE UNIQUE INDEX chat_messages_by_client_id on chat_messages (conversation_id, client_id) where client_id is not null and superseded_at is null;
CREATE INDEX agent_runs_running on agent_runs (id) where status = 'running';
CREATE TABLE "agent_run_checkpoints" (
    id blob not null,
    -- No foreign keys: checking one would lock the conversation's row after the run's, and the order is the other way round.
    conversation_id blob not null,
    run_id blob not null,
    event_id integer not null,
    node text not null check (node in ('input', 'process', 'tools', 'respond', 'fork')),
    step integer not null,
    messages integer not null,
    metadata text not null,
    created_at text not null,
    primary key (conversation_id, id)
) without rowid;
CREATE INDEX agent_runs_queue on agent_runs (priority desc, queue_round, id) where status = 'queued';
CREATE INDEX agent_runs_unfinished_by_owner on agent_runs (owner_id, status, queue_round) where finished_at is null;
CREATE UNIQUE INDEX briefings_by_idempotency_key on briefings (author_id, idempotency_key) where idempotency_key is not null;
CREATE TABLE anonymous_users (
    owner_id text primary key,
    seen_at text not null
);
CREATE INDEX anonymous_users_by_time on anonymous_users (seen_at);
CREATE INDEX agent_runs_crashed on agent_runs (id) where crashes > 0 and status in ('queued', 'running');
CREATE INDEX agent_runs_waiting_by_agent on agent_runs (agent_definition_id, agent_version) where status = 'waiting';
CREATE INDEX agent_definition_versions_with_approvers on agent_definition_versions (agent_definition_id, version) where (definition ->> 'approvers') is not null;
CREATE TABLE deployment_model (
    id integer primary key check (id = 1),
    provider text not null,
    name text not null,
    noted_at text not null
, embedding_model text);
CREATE INDEX chat_messages_versions on chat_messages (conversation_id) where version_of is not null;
CREATE INDEX agent_runs_versions on agent_runs (conversation_id) where version_of is not null;
CREATE TABLE conversation_branches (
    id blob primary key,
    conversation_id blob not null references chat_conversations (id) on delete cascade,
    parent blob,
    turn integer not null,
    position integer not null
);
CREATE INDEX conversation_branches_by_conversation on conversation_branches (conversation_id);
CREATE INDEX chat_conversations_by_parent on chat_conversations (parent_run_id) where parent_run_id is not null;
CREATE INDEX agent_runs_live_children on agent_runs (parent_run_id) where parent_run_id is not null and finished_at is null;
CREATE INDEX agent_run_tool_calls_of_children on agent_run_tool_calls (child_run_id) where child_run_id is not null and status = 'called';
CREATE INDEX agent_runs_steering on agent_runs (conversation_id, position) where steers and status = 'queued';
CREATE INDEX agent_run_approvals_of_top on agent_run_approvals (top_run_id) where top_run_id is not null;
CREATE TABLE model_profiles (
    id smallint primary key check (id = 1),
    document text not null,
    origin text not null,
    updated_at text not null
);
CREATE TABLE agent_plans (
    id blob primary key,
    run_id blob not null references agent_runs (id) on delete cascade,
    conversation_id blob not null,
    call_id text not null,
    user_message text not null,
    strategy text not null,
    execution_mode text not null,
    status text not null,
    metadata text not null,
    created_at text not null,
    updated_at text not null
);
CREATE INDEX agent_plans_of_run on agent_plans (run_id, id);
CREATE INDEX agent_plans_of_conversation on agent_plans (conversation_id, id);
CREATE TABLE agent_plan_steps (
    plan_id blob not null references agent_plans (id) on delete cascade,
    step_number integer not null,
    description text not null,
    tools text not null,
    executor_required boolean not null,
    depends_on text not null,
    status text not null,
    result text,
    error text,
    child_run_id blob,
    updated_at text not null,
    primary key (plan_id, step_number)
);
CREATE TABLE agent_agents (
    id blob primary key,
    run_id blob not null references agent_runs (id) on delete cascade,
    role text not null,
    profile text,
    model text,
    token_budget integer not null,
    permissions text,
    created_at text not null
);
CREATE UNIQUE INDEX agent_agents_of_run on agent_agents (run_id);
CREATE INDEX agent_plan_steps_of_children on agent_plan_steps (child_run_id) where child_run_id is not null;
CREATE TABLE user_profiles (
    owner_id text primary key,
    profile text not null,
    updated_at text not null
, time_zone text);
CREATE TABLE agent_plan_edits (
    plan_id blob not null references agent_plans (id) on delete cascade,
    number integer not null,
    edit text not null,
    created_at text not null,
    primary key (plan_id, number)
);
CREATE TABLE onto_owners (
    owner_id text primary key,
    entities integer not null,
    bytes integer not null
);
CREATE TABLE onto_projects (
    id blob primary key,
    owner_id text not null,
    name text not null,
    description text,
    type_key text,
    state text not null,
    start_at text,
    end_at text,
    props text not null,
    version integer not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text
, folded text not null default '');
CREATE INDEX onto_projects_deleted on onto_projects (owner_id, deleted_at) where deleted_at is not null;
CREATE TABLE onto_tasks (
    id blob primary key,
    owner_id text not null,
    project_id blob not null,
    title text not null,
    description text,
    state text not null,
    priority integer,
    due_at text,
    plan_id blob,
    goal_id blob,
    props text not null,
    version integer not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text
, folded text not null default '');
CREATE INDEX onto_tasks_deleted on onto_tasks (owner_id, deleted_at) where deleted_at is not null;
CREATE INDEX onto_tasks_of_project on onto_tasks (project_id, id);
CREATE TABLE onto_plans (
    id blob primary key,
    owner_id text not null,
    project_id blob not null,
    name text not null,
    description text,
    state text not null,
    start_at text,
    end_at text,
    props text not null,
    version integer not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text
, folded text not null default '');
CREATE INDEX onto_plans_deleted on onto_plans (owner_id, deleted_at) where deleted_at is not null;
CREATE INDEX onto_plans_of_project on onto_plans (project_id, id);
CREATE TABLE onto_goals (
    id blob primary key,
    owner_id text not null,
    project_id blob not null,
    name text not null,
    description text,
    state text not null,
    target_date text,
    props text not null,
    version integer not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text
, folded text not null default '');
CREATE INDEX onto_goals_deleted on onto_goals (owner_id, deleted_at) where deleted_at is not null;
CREATE INDEX onto_goals_of_project on onto_goals (project_id, id);
CREATE TABLE onto_documents (
    id blob primary key,
    owner_id text not null,
    project_id blob not null,
    title text not null,
    body text,
    type text,
    state text not null,
    props text not null,
    version integer not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text
, folded text not null default '');
CREATE INDEX onto_documents_deleted on onto_documents (owner_id, deleted_at) where deleted_at is not null;
CREATE INDEX onto_documents_of_project on onto_documents (project_id, id);
CREATE TABLE onto_outputs (
    id blob primary key,
    owner_id text not null,
    project_id blob not null,
    name text not null,
    kind text,
    body text,
    state text not null,
    props text not null,
    version integer not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text
, folded text not null default '');
CREATE INDEX onto_outputs_deleted on onto_outputs (owner_id, deleted_at) where deleted_at is not null;
CREATE INDEX onto_outputs_of_project on onto_outputs (project_id, id);
CREATE TABLE onto_changes (
    id blob primary key,
    owner_id text not null,
    change_set_id blob not null,
    kind text not null,
    entity_id blob not null,
    action text not null,
    before text,
    after text,
    bytes integer not null,
    user_id text not null,
    undoes blob,
    created_at text not null
, run_id blob, call_id text, number integer, size integer);
CREATE INDEX onto_changes_of_owner on onto_changes (owner_id, id);
CREATE INDEX onto_changes_of_entity on onto_changes (entity_id, id);
CREATE INDEX onto_changes_of_set on onto_changes (change_set_id, id);
CREATE INDEX onto_changes_that_undo on onto_changes (undoes) where undoes is not null;
CREATE INDEX onto_changes_by_age on onto_changes (owner_id, created_at);
CREATE UNIQUE INDEX onto_changes_of_call on onto_changes (run_id, call_id, number) where run_id is not null;
CREATE INDEX agent_runs_of_parent on agent_runs (parent_run_id) where parent_run_id is not null;
CREATE TABLE onto_edges (
    id blob primary key,
    owner_id text not null,
    project_id blob not null,
    from_kind text not null,
    from_id blob not null,
    relation text not null,
    to_kind text not null,
    to_id blob not null,
    folded text not null default '',
    props text not null,
    version integer not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text
);
CREATE INDEX onto_edges_of_owner on onto_edges (owner_id, id) where deleted_at is null;
CREATE INDEX onto_edges_deleted on onto_edges (owner_id, deleted_at) where deleted_at is not null;
CREATE INDEX onto_edges_of_project on onto_edges (project_id, id);
CREATE INDEX onto_edges_from on onto_edges (from_id, id);
CREATE INDEX onto_edges_to on onto_edges (to_id, id);
CREATE TABLE onto_templates (
    id blob primary key,
    owner_id text not null,
    name text not null,
    key text,
    kind text,
    description text,
    body text,
    state text not null,
    folded text not null default '',
    props text not null,
    version integer not null,
    created_at text not null,
    updated_at text not null,
    deleted_at text
);
CREATE INDEX onto_templates_of_owner on onto_templates (owner_id, id) where deleted_at is null;
CREATE INDEX onto_templates_deleted on onto_templates (owner_id, deleted_at) where deleted_at is not null;
CREATE INDEX onto_templates_by_state on onto_templates (state, id) where deleted_at is null;
CREATE INDEX onto_projects_of_owner on onto_projects (owner_id, id, folded, state) where deleted_at is null;
CREATE INDEX onto_tasks_of_owner on onto_tasks (owner_id, id, folded, project_id, state) where deleted_at is null;
CREATE INDEX onto_plans_of_owner on onto_plans (owner_id, id, folded, project_id, state) where deleted_at is null;
CREATE INDEX onto_goals_of_owner on onto_goals (owner_id, id, folded, project_id, state) where deleted_at is null;
CREATE INDEX onto_documents_of_owner on onto_documents (owner_id, id, folded, project_id, state) where deleted_at is null;
CREATE INDEX onto_outputs_of_owner on onto_outputs (owner_id, id, folded, project_id, state) where deleted_at is null;
CREATE TABLE files (
    id blob primary key,
    owner_id text not null,
    name text not null,
    media_type text not null,
    -- While the upload lasts, the most that it can bring.
    bytes integer not null,
    -- Null while the upload lasts.
    sha256 text,
    -- Equal contents of one owner are stored once.
    content_id blob not null,
    -- The request that brings bytes; the fence of its writes.
    writer blob not null,
    -- The bytes of the parts that an upload has stored.
    received integer not null,
    idempotency_key text,
    idempotency_fingerprint text,
    created_at text not null,
    -- The last step of the upload, or the last time when something was found to name the file.
    touched_at text not null
);
CREATE INDEX files_of_owner on files (owner_id, id);
CREATE INDEX files_of_contents on files (content_id);
CREATE INDEX files_by_touch on files (touched_at);
CREATE UNIQUE INDEX files_by_idempotency_key on files (owner_id, idempotency_key) where idempotency_key is not null;
CREATE TABLE file_parts (
    content_id blob not null,
    number integer not null,
    body blob not null,
    primary key (content_id, number)
);
CREATE TABLE file_uses (
    file_id blob not null references files (id) on delete cascade,
    conversation_id blob not null references chat_conversations (id) on delete cascade,
    primary key (file_id, conversation_id)
);
CREATE INDEX file_uses_of_conversation on file_uses (conversation_id);
CREATE TABLE file_removals (
    content_id blob primary key,
    -- Rises with each note, so that a note during a removal is not forgotten with it.
    version integer not null,
    tried_at text not null
);
CREATE INDEX file_removals_by_try on file_removals (tried_at);
CREATE TABLE run_files (
    file_id blob not null,
    run_id blob not null references agent_runs (id) on delete cascade,
    primary key (file_id, run_id)
);
CREATE INDEX run_files_of_run on run_files (run_id);
CREATE TABLE memories (
    id blob primary key,
    owner_id text not null,
    -- The name of the agent that wrote it.
    agent text not null,
    -- `agent`: that agent alone recalls it; `user`: all agents of the owner do.
    scope text not null check (scope in ('agent', 'user')),
    text text not null,
    -- Counts the writes, from 1.
    version integer not null,
    -- The last writer.
    writer text not null check (writer in ('agent', 'user')),
    -- The call that wrote it first. No foreign key: the memory outlives the run.
    run_id blob not null,
    call_id text not null,
    -- The user's message that the run, or the run above it, has answered.
    message_id blob not null,
    created_at text not null,
    updated_at text not null,
    expires_at text
);
CREATE INDEX memories_of_owner on memories (owner_id, created_at, id);
CREATE INDEX memories_to_expire on memories (expires_at) where expires_at is not null;
CREATE TABLE memory_versions (
    memory_id blob not null references memories (id) on delete cascade,
    version integer not null,
    text text not null,
    expires_at text,
    writer text not null check (writer in ('agent', 'user')),
    -- The run that wrote it, if an agent did.
    run_id blob,
    written_at text not null,
    primary key (memory_id, version)
);
CREATE TABLE memory_removals (
    run_id blob not null,
    call_id text not null,
    noted_at text not null,
    primary key (run_id, call_id)
);
CREATE INDEX memory_removals_by_time on memory_removals (noted_at);
CREATE TABLE collections (
    -- Begins each word of the collection in the search, so that no search reads the words of another collection.
    number integer primary key autoincrement,
    id blob not null unique,
    owner_id text not null,
    name text not null,
    description text,
    -- 'owner' or 'everyone'
    readable_by text not null,
    -- The words that many passages have, with the share of passages, from a sample.
    common_words text,
    -- The number of passages at the time of the sample.
    sampled_passages integer not null default 0,
    created_at text not null,
    deleted_at text
);
CREATE INDEX collections_of_owner on collections (owner_id, id);
CREATE INDEX collections_to_remove on collections (deleted_at) where deleted_at is not null;
CREATE TABLE documents (
    id blob primary key,
    collection_id blob not null references collections (id) on delete cascade,
    owner_id text not null,
    -- The hidden conversation of the document's runs.
    conversation_id blob not null unique,
    -- The newest of these runs.
    run_id blob not null,
    file_id blob not null,
    title text not null,
    media_type text not null,
    bytes integer not null,
    -- Of the text, once it is extracted.
    chars integer,
    passages integer not null default 0,
    extracted_at text,
    -- The search finds the document from then on.
    indexed_at text,
    created_at text not null,
    deleted_at text
, text_bytes integer not null default 0, vectors_model text, embedded integer not null default 0, vectors_at text, vectors_of text not null default '', vectors_tries integer not null default 0, vectors_retry_at text, vectors_failed_at text, vectors_error text, words_version integer not null default 0);
CREATE INDEX documents_of_collection on documents (collection_id, id);
CREATE INDEX documents_of_owner on documents (owner_id);
CREATE INDEX documents_of_file on documents (file_id);
CREATE INDEX documents_to_remove on documents (deleted_at) where deleted_at is not null;
CREATE TABLE document_texts (
    document_id blob not null references documents (id) on delete cascade,
    number integer not null,
    body text not null,
    primary key (document_id, number)
);
CREATE TABLE passages (
    id integer primary key,
    document_id blob not null references documents (id) on delete cascade,
    number integer not null,
    -- In characters of the extracted text.
    start_at integer not null,
    end_at integer not null,
    page integer,
    heading text,
    words text,
    unique (document_id, number)
);
CREATE VIRTUAL TABLE passage_words using fts5 (
    words, content = 'passages', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'"
);
CREATE VIRTUAL TABLE passage_terms using fts5vocab ('passage_words', 'row');
CREATE TRIGGER passages_find_words after update of words on passages begin
    insert into passage_words (passage_words, rowid, words)
    select 'delete', old.id, old.words where old.words is not null;
    insert into passage_words (rowid, words) select new.id, new.words where new.words is not null;
end;
CREATE TRIGGER passages_lose_words after delete on passages when old.words is not null begin
    insert into passage_words (passage_words, rowid, words) values ('delete', old.id, old.words);
end;
CREATE TABLE passage_vectors (
    document_id blob not null references documents (id) on delete cascade,
    number integer not null,
    model text not null,
    vector blob,
    primary key (document_id, model, number)
);
CREATE TABLE run_passages (
    run_id blob not null references agent_runs (id) on delete cascade,
    number integer not null,
    document_id blob not null,
    passage integer not null,
    score real not null, call_id text,
    primary key (run_id, number)
);
CREATE INDEX documents_by_vectors on documents (vectors_of, id)
where indexed_at is not null and deleted_at is null;
CREATE INDEX documents_retried on documents (id) where vectors_tries > 0;
CREATE INDEX documents_without_vectors on documents (vectors_failed_at)
where vectors_failed_at is not null;
CREATE INDEX agent_runs_queue_of_documents on agent_runs (priority desc, queue_round, id) where status = 'queued' and needs = 5;
CREATE INDEX chat_conversations_expiring on chat_conversations (activity_at) where expires and deleted_at is null;
CREATE INDEX agent_runs_delayed on agent_runs (priority, not_before) where status = 'queued' and priority = -2;
CREATE TABLE pause_names (
    run_id blob not null,
    -- The event of the pause.
    paused_at integer not null,
    conversation_id blob not null references chat_conversations (id) on delete cascade,
    name text not null,
    primary key (run_id, paused_at)
);
CREATE INDEX pause_names_by_name on pause_names (name);
CREATE INDEX pause_names_by_conversation on pause_names (conversation_id);
CREATE TABLE event_removals (
    run_id blob primary key references agent_runs (id) on delete cascade
);
CREATE TABLE anonymous_data (
    id integer primary key check (id = 1),
    bytes integer not null,
    -- Counts the measurements.
    number integer not null default 0,
    -- The last sweep that began to measure.
    begun_at text not null
);
CREATE INDEX agent_runs_unfinished_by_group on agent_runs (caller_group, status, queue_round)
    where finished_at is null and caller_group is not null;
CREATE INDEX agent_runs_of_top on agent_runs (top_run_id) where top_run_id is not null;
CREATE TABLE due_summaries (
    run_id blob primary key references agent_runs (id) on delete cascade,
    conversation_id blob not null,
    -- The newest turn that the summary is to cover.
    up_to integer not null,
    -- Most tokens of the summary.
    tokens integer not null,
    -- A worker makes the summary until then; later, another one may.
    lease_until text not null,
    tries integer not null default 0
);
CREATE INDEX due_summaries_by_lease on due_summaries (lease_until);
CREATE INDEX due_summaries_by_conversation on due_summaries (conversation_id);
CREATE INDEX documents_by_words on documents (words_version, id)
where indexed_at is not null and deleted_at is null;
insert into passage_words (passage_words, rank) values ('secure-delete', 1);
