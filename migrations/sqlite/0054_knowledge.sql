-- Collections of documents, the texts that were extracted from them, and their passages with the words of the search.
create table collections (
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
create index collections_of_owner on collections (owner_id, id);
create index collections_to_remove on collections (deleted_at) where deleted_at is not null;
create table documents (
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
);
create index documents_of_collection on documents (collection_id, id);
create index documents_of_owner on documents (owner_id);
create index documents_of_file on documents (file_id);
create index documents_to_remove on documents (deleted_at) where deleted_at is not null;
-- The extracted text, in pieces of 8,192 characters.
create table document_texts (
    document_id blob not null references documents (id) on delete cascade,
    number integer not null,
    body text not null,
    primary key (document_id, number)
);
create table passages (
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
create virtual table passage_words using fts5 (
    words, content = 'passages', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'"
);
-- Deleted words leave the file at once.
insert into passage_words (passage_words, rank) values ('secure-delete', 1);
create virtual table passage_terms using fts5vocab ('passage_words', 'row');
create trigger passages_find_words after update of words on passages begin
    insert into passage_words (passage_words, rowid, words)
    select 'delete', old.id, old.words where old.words is not null;
    insert into passage_words (rowid, words) select new.id, new.words where new.words is not null;
end;
create trigger passages_lose_words after delete on passages when old.words is not null begin
    insert into passage_words (passage_words, rowid, words) values ('delete', old.id, old.words);
end;
-- A null vector: the provider refused the passage.
create table passage_vectors (
    document_id blob not null references documents (id) on delete cascade,
    number integer not null,
    model text not null,
    vector blob,
    primary key (document_id, model, number)
);
-- The passages that a run was told, by the numbers of its citations.
create table run_passages (
    run_id blob not null references agent_runs (id) on delete cascade,
    number integer not null,
    document_id blob not null,
    passage integer not null,
    score real not null,
    primary key (run_id, number)
);
alter table chat_conversations add column hidden boolean not null default false;
alter table chat_conversations add column knowledge text;
-- The collections of the conversation at the time of the run's submission.
alter table agent_runs add column knowledge text;
