-- Documents are ready with their words alone, and get their vectors later.
-- The model whose vectors searches use.
alter table documents add column vectors_model text;
-- The number of passages with a vector of that model.
alter table documents add column embedded bigint not null default 0;
-- The time of the newest change of these two.
alter table documents add column vectors_at timestamptz;
-- The model that has answered for all passages, by a vector or a refusal; empty before that.
alter table documents add column vectors_of text not null default '';
-- The tries in the background since then, and the time before which there is no further one.
alter table documents add column vectors_tries bigint not null default 0;
alter table documents add column vectors_retry_at timestamptz;
-- When the newest try failed, and why: {code, message}.
alter table documents add column vectors_failed_at timestamptz;
alter table documents add column vectors_error jsonb;
update documents
set vectors_model = (select max(v.model) from passage_vectors v where v.document_id = documents.id),
    vectors_of = (select max(v.model) from passage_vectors v where v.document_id = documents.id),
    embedded = passages,
    vectors_at = indexed_at
where indexed_at is not null
  and exists (select 1 from passage_vectors v where v.document_id = documents.id);
create index documents_by_vectors on documents (vectors_of, id)
where indexed_at is not null and deleted_at is null;
create index documents_retried on documents (id) where vectors_tries > 0;
create index documents_without_vectors on documents (vectors_failed_at)
where vectors_failed_at is not null;
-- The model of vectors, as the worker that started last noted it.
alter table deployment_model add column embedding_model text;
