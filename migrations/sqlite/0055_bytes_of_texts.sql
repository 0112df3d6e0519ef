-- The bytes of the extracted text with the headings of its passages, from before the text is stored.
alter table documents add column text_bytes integer not null default 0;
update documents
set text_bytes = (
    select coalesce(sum(octet_length(t.body)), 0)
    from document_texts t
    where t.document_id = documents.id
) + (
    select coalesce(sum(octet_length(p.heading)), 0)
    from passages p
    where p.document_id = documents.id
);
