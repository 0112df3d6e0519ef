-- What an owner keeps here, roughly: questions, answers and what a run's steps have said. A conversation counts from its
-- creation, and so does an empty one; what was said before this migration does not count.
alter table chat_conversations add column bytes bigint not null default 256;
alter table briefings add column bytes bigint not null default 0;
-- A briefing is stored once per key of its author, who may be another user than its owner.
alter table briefings add column author_id text;
alter table briefings add column idempotency_key text;
alter table briefings add column idempotency_fingerprint text;
create unique index briefings_by_idempotency_key on briefings (author_id, idempotency_key) where idempotency_key is not null;
