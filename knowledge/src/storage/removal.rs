//! The removal of what owners have deleted, some rows at a time.

use holdfast_shared::database::{Error, args};
use uuid::Uuid;

use super::Knowledge;

/// Rows that one statement removes, so that it never holds locks for long.
const PASSAGES: usize = 500;
const VECTORS: usize = 500;
const PIECES: usize = 100;
const DOCUMENTS: usize = 20;

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
        returning id
    ",
    /// Returns collections with a sample that may have words of deleted documents.
    SAMPLED_WITH_DELETED = "
        select distinct c.id
        from documents d
        join collections c on c.id = d.collection_id
        where d.deleted_at is not null
          and c.deleted_at is null
          and c.sampled_passages > 0
        limit $1
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
        returning number
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
        returning number
    ",
    /// Deletes the hidden conversations of some deleted documents.
    HIDE_CONVERSATIONS = "
        update chat_conversations
        set deleted_at = {now}
        where deleted_at is null
          and id in (
              select d.conversation_id
              from documents d
              where d.deleted_at is not null
              limit $1
          )
        returning id
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
        returning id
    ",
    /// Removes deleted collections that have no document any more.
    REMOVE_COLLECTIONS = "
        delete from collections
        where deleted_at is not null
          and not exists (select 1 from documents d where d.collection_id = collections.id)
        returning id
    ",
}

impl Knowledge {
    /// Removes some of what owners have deleted. Returns whether there may be more.
    pub async fn remove_deleted(&self) -> Result<bool, Error> {
        const DOING: &str = "remove deleted documents";
        let parts = [(REMOVE_PASSAGES, PASSAGES), (REMOVE_VECTORS, VECTORS), (REMOVE_TEXTS, PIECES)];
        for (remove, most) in parts {
            if self.database.write::<(i64,)>(DOING, remove, args![most]).await?.len() == most {
                return Ok(true);
            }
        }
        // Order matters: a sample without these passages replaces the old one while a document says that it must.
        let sampled = self.database.fetch_all::<(Uuid,)>(DOING, SAMPLED_WITH_DELETED, args![DOCUMENTS]).await?;
        for (collection,) in sampled {
            self.sample_again(collection).await?;
        }
        self.database.write::<(Uuid,)>(DOING, HIDE_CONVERSATIONS, args![DOCUMENTS]).await?;
        let documents = self.database.write::<(Uuid,)>(DOING, REMOVE_DOCUMENTS, args![DOCUMENTS]).await?;
        if documents.len() == DOCUMENTS {
            return Ok(true);
        }
        self.database.write::<(Uuid,)>(DOING, REMOVE_COLLECTIONS, args![]).await?;
        Ok(false)
    }
}
