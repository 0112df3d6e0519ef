//! The removal of what owners have deleted, piece by piece.

use holdfast_shared::database::{Error, Sql, args};
use uuid::Uuid;

use super::Knowledge;

holdfast_shared::statements! {
    /// Removes some passages of deleted documents.
    REMOVE_PASSAGES = "
        delete from passages
        where id in (
            select p.id
            from documents d
            join passages p on p.document_id = d.id
            where d.deleted_at is not null
            limit $1
        )
    ",
    /// Returns the collections with a sample that may have words of deleted documents.
    SAMPLED_WITH_DELETED = "
        select distinct c.id
        from documents d
        join collections c on c.id = d.collection_id
        where d.deleted_at is not null
          and c.deleted_at is null
          and c.sampled_passages > 0
    ",
    /// Removes some vectors of deleted documents.
    REMOVE_VECTORS = "
        delete from passage_vectors
        where (document_id, model, number) in (
            select v.document_id, v.model, v.number
            from documents d
            join passage_vectors v on v.document_id = d.id
            where d.deleted_at is not null
            limit $1
        )
    ",
    /// Removes some pieces of the texts of deleted documents.
    REMOVE_TEXTS = "
        delete from document_texts
        where (document_id, number) in (
            select t.document_id, t.number
            from documents d
            join document_texts t on t.document_id = d.id
            where d.deleted_at is not null
            limit $1
        )
    ",
    /// Deletes the hidden conversations of some deleted documents.
    HIDE_CONVERSATIONS = "
        update chat_conversations
        set deleted_at = {now}
        where id in (
            select c.id
            from documents d
            join chat_conversations c on c.id = d.conversation_id
            where d.deleted_at is not null and c.deleted_at is null
            limit $1
        )
    ",
    /// Removes some deleted documents, whose parts are gone, after their conversations.
    REMOVE_DOCUMENTS = "
        delete from documents
        where id in (
            select d.id
            from documents d
            where d.deleted_at is not null
              and not exists (select 1 from passages p where p.document_id = d.id)
              and not exists (select 1 from passage_vectors v where v.document_id = d.id)
              and not exists (select 1 from document_texts t where t.document_id = d.id)
              and not exists (
                  select 1
                  from chat_conversations c
                  where c.id = d.conversation_id and c.deleted_at is null
              )
            limit $1
        )
    ",
    /// Removes some deleted collections that have no document any more.
    REMOVE_COLLECTIONS = "
        delete from collections
        where id in (
            select c.id
            from collections c
            where c.deleted_at is not null
              and not exists (select 1 from documents d where d.collection_id = c.id)
            limit $1
        )
    ",
}

/// The parts of documents, which go before them.
const PARTS: [Sql; 4] = [REMOVE_PASSAGES, REMOVE_VECTORS, REMOVE_TEXTS, HIDE_CONVERSATIONS];

/// The documents and collections, which go after the samples of their words.
const DOCUMENTS: [Sql; 2] = [REMOVE_DOCUMENTS, REMOVE_COLLECTIONS];

impl Knowledge {
    /// Removes a piece of the parts of deleted documents or, without any, the documents. Returns whether there may be more.
    pub async fn remove_deleted(&self) -> Result<bool, Error> {
        const DOING: &str = "remove deleted documents";
        if self.database.write_piece_of(DOING, &PARTS, args![]).await? {
            return Ok(true);
        }
        // Order matters: a sample without these passages replaces the old one while a document says that it must.
        for (collection,) in self.database.fetch_all::<(Uuid,)>(DOING, SAMPLED_WITH_DELETED, args![]).await? {
            self.sample_again(collection).await?;
        }
        let mut has_removed = false;
        while self.database.write_piece_of(DOING, &DOCUMENTS, args![]).await? {
            has_removed = true;
        }
        Ok(has_removed)
    }
}
