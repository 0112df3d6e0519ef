-- Collections of documents, the texts that were extracted from them, and their passages with the words of the search.
create table collections (
    id uuid primary key,
    -- Begins each word of the collection in the search, so that no search reads the words of another collection.
    number bigint generated always as identity unique,
    owner_id text not null,
    name text not null,
    description text,
    -- 'owner' or 'everyone'
    readable_by text not null,
    -- The words that many passages have, with the share of passages, from a sample.
    common_words jsonb,
    -- The number of passages at the time of the sample.
    sampled_passages bigint not null default 0,
    created_at timestamptz not null,
    deleted_at timestamptz
);
create index collections_of_owner on collections (owner_id, id);
create index collections_to_remove on collections (deleted_at) where deleted_at is not null;
create table documents (
    id uuid primary key,
    collection_id uuid not null references collections (id) on delete cascade,
    owner_id text not null,
    -- The hidden conversation of the document's runs.
    conversation_id uuid not null unique,
    -- The newest of these runs.
    run_id uuid not null,
    file_id uuid not null,
    title text not null,
    media_type text not null,
    bytes bigint not null,
    -- Of the text, once it is extracted.
    chars bigint,
    passages bigint not null default 0,
    extracted_at timestamptz,
    -- The search finds the document from then on.
    indexed_at timestamptz,
    created_at timestamptz not null,
    deleted_at timestamptz
);
create index documents_of_collection on documents (collection_id, id);
create index documents_of_owner on documents (owner_id);
create index documents_of_file on documents (file_id);
create index documents_to_remove on documents (deleted_at) where deleted_at is not null;
-- The extracted text, in pieces of 8,192 characters.
create table document_texts (
    document_id uuid not null references documents (id) on delete cascade,
    number bigint not null,
    body text not null,
    primary key (document_id, number)
);
create table passages (
    id bigint generated always as identity primary key,
    document_id uuid not null references documents (id) on delete cascade,
    number bigint not null,
    -- In characters of the extracted text.
    start_at bigint not null,
    end_at bigint not null,
    page bigint,
    heading text,
    words tsvector,
    unique (document_id, number)
);
create index passages_by_word on passages using gin (words) with (fastupdate = off);
-- A null vector: the provider refused the passage.
create table passage_vectors (
    document_id uuid not null references documents (id) on delete cascade,
    number bigint not null,
    model text not null,
    vector bytea,
    primary key (document_id, model, number)
);
-- The passages that a run was told, by the numbers of its citations.
create table run_passages (
    run_id uuid not null references agent_runs (id) on delete cascade,
    number bigint not null,
    document_id uuid not null,
    passage bigint not null,
    score double precision not null,
    primary key (run_id, number)
);
alter table chat_conversations add column hidden boolean not null default false;
alter table chat_conversations add column knowledge jsonb;
-- The collections of the conversation at the time of the run's submission.
alter table agent_runs add column knowledge jsonb;
