-- Files of owners, the messages that have them, and contents that are to be removed. Contents are parts of 1 MiB, here or in an
-- object store.
create table files (
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
create index files_of_owner on files (owner_id, id);
create index files_of_contents on files (content_id);
create index files_by_touch on files (touched_at);
create unique index files_by_idempotency_key on files (owner_id, idempotency_key) where idempotency_key is not null;
create table file_parts (
    content_id blob not null,
    number integer not null,
    body blob not null,
    primary key (content_id, number)
);
create table file_uses (
    file_id blob not null references files (id) on delete cascade,
    conversation_id blob not null references chat_conversations (id) on delete cascade,
    primary key (file_id, conversation_id)
);
create index file_uses_of_conversation on file_uses (conversation_id);
create table file_removals (
    content_id blob primary key,
    -- Rises with each note, so that a note during a removal is not forgotten with it.
    version integer not null,
    tried_at text not null
);
create index file_removals_by_try on file_removals (tried_at);
alter table chat_messages add column attachments text;
