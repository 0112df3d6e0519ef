-- The vectors of passages as pgvector compares them. `holdfast migrate` executes this whenever the extension is there and
-- the column `embedding` is not: the operator may create the extension at any time, and `drop extension … cascade` takes
-- the column. PostgreSQL alone has it, so it has no number.
begin;
-- The extension may be in any schema. The bodies of the functions keep what they found there, so no connection needs it in
-- its search path.
select set_config('search_path', 'kb, ' || quote_ident(n.nspname), true)
from pg_extension e
join pg_namespace n on n.oid = e.extnamespace
where e.extname = 'vector';

create or replace function embedding_of(numbers text) returns vector
language sql immutable parallel safe
return cast(numbers as vector);

-- The scalar product.
create or replace function embedding_product(one vector, other vector) returns double precision
language sql immutable parallel safe
return -(one <#> other);

-- A copy of each vector that is not null.
drop table if exists passage_embeddings;
create table passage_embeddings (
    document_id uuid not null,
    model text not null,
    number bigint not null,
    dimensions integer generated always as (vector_dims(embedding)) stored,
    embedding vector not null,
    primary key (document_id, model, number),
    foreign key (document_id, model, number)
        references passage_vectors (document_id, model, number) on delete cascade
);
-- A search reads all vectors of a collection. Outside of their rows, they cost it twice the time.
alter table passage_embeddings alter column embedding set storage main;

-- The `vectors_at` whose vectors have their copies.
alter table documents drop column if exists embeddings_at;
alter table documents add column embeddings_at timestamptz;
create index documents_without_embeddings on documents (id)
where embedded > 0 and deleted_at is null and embeddings_at is distinct from vectors_at;
commit;
