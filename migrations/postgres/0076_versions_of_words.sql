-- The version of the words by which searches find a document. A sweep makes those of an earlier version again.
alter table documents add column words_version bigint not null default 0;
create index documents_by_words on documents (words_version, id)
where indexed_at is not null and deleted_at is null;
