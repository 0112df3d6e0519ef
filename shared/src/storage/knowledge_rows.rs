//! The rows of owners' collections, which go and move with their owners, and the quotas of them. The crate of knowledge
//! has all else about them.

use super::{
    Error,
    quota::LOCK_OWNER,
    sql::{Piece, Sql, Tx, args, statements},
};
use crate::quotas::{KnowledgeQuotas, QuotaExceeded};

statements! {
    /// Removes some passages of an owner's documents.
    ERASE_PASSAGES = "
        delete from passages
        where id in (
            select p.id
            from documents d
            join passages p on p.document_id = d.id
            where d.owner_id = $1
            limit $2
        )
    ",
    /// Removes some vectors of an owner's documents.
    ERASE_VECTORS = "
        delete from passage_vectors
        where (document_id, model, number) in (
            select v.document_id, v.model, v.number
            from documents d
            join passage_vectors v on v.document_id = d.id
            where d.owner_id = $1
            limit $2
        )
    ",
    /// Removes some pieces of the texts of an owner's documents.
    ERASE_TEXTS = "
        delete from document_texts
        where (document_id, number) in (
            select t.document_id, t.number
            from documents d
            join document_texts t on t.document_id = d.id
            where d.owner_id = $1
            limit $2
        )
    ",
    /// Removes some documents of an owner.
    ERASE_DOCUMENTS = "
        delete from documents
        where id in (select id from documents where owner_id = $1 limit $2)
    ",
    /// Removes some collections of an owner.
    ERASE_COLLECTIONS = "
        delete from collections
        where id in (select id from collections where owner_id = $1 limit $2)
    ",
    /// Returns an owner's number of collections and of documents, and the bytes of their texts.
    USED = "
        select count(*), cast(coalesce(sum(text_bytes), 0) as bigint),
            (
                select count(*)
                from collections
                where owner_id = $1 and deleted_at is null
            )
        from documents
        where owner_id = $1
    ",
    /// Moves the collections of an owner.
    MOVE_COLLECTIONS = "
        update collections
        set owner_id = $2
        where owner_id = $1
    ",
    /// Moves the documents of an owner.
    MOVE_DOCUMENTS = "
        update documents
        set owner_id = $2
        where owner_id = $1
    ",
}

/// The collections and documents of an owner.
struct KnowledgeUsage {
    documents: usize,
    text_bytes: u64,
    collections: usize,
}

/// Order matters: parts that are left would go with their document, in one statement of any length.
const ERASE: [Sql; 5] = [ERASE_PASSAGES, ERASE_VECTORS, ERASE_TEXTS, ERASE_DOCUMENTS, ERASE_COLLECTIONS];

/// Removes a piece of an owner's knowledge, and returns whether there was any.
pub async fn delete_some_knowledge(tx: &mut Tx, piece: &mut Piece, owner: &str) -> Result<bool, Error> {
    for sql in ERASE {
        if piece.write(tx, sql, args![owner]).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Moves the knowledge of one owner to another. Fails if the other one's quotas refuse it.
pub async fn move_knowledge(tx: &mut Tx, from: &str, to: &str, quotas: KnowledgeQuotas) -> Result<(), Error> {
    // Order matters: a document that is added meanwhile holds its collection, so it is committed before the second
    // statement.
    let collections = tx.execute(MOVE_COLLECTIONS, args![from, to]).await?;
    let documents = tx.execute(MOVE_DOCUMENTS, args![from, to]).await?;
    if collections + documents == 0 {
        return Ok(());
    }
    tx.execute(LOCK_OWNER, args![from]).await?;
    tx.execute(LOCK_OWNER, args![to]).await?;
    let used = used(tx, to).await?;
    let quotas_of_collections = quotas.collections.filter(|_| collections > 0);
    let quotas_of_documents = Some(quotas).filter(|_| documents > 0).unwrap_or_default();
    let exceeded = [
        quotas_of_collections.filter(|most| used.collections > *most).map(QuotaExceeded::Collections),
        quotas_of_documents.documents.filter(|most| used.documents > *most).map(QuotaExceeded::Documents),
        quotas_of_documents.text_bytes.filter(|most| used.text_bytes > *most).map(QuotaExceeded::TextBytes),
    ];
    match exceeded.into_iter().flatten().next() {
        Some(exceeded) => Err(tx.refused_by(exceeded)),
        None => Ok(()),
    }
}

/// Returns whether the texts of an owner have more than `most` bytes with this transaction's writes. It locks the owner
/// until the transaction ends, so texts of one owner are checked one by one.
///
/// Order matters: this is the last step before the commit, so the holder of the lock waits for no document.
pub async fn texts_exceed(tx: &mut Tx, owner: &str, most: u64) -> Result<bool, Error> {
    tx.execute(LOCK_OWNER, args![owner]).await?;
    Ok(used(tx, owner).await?.text_bytes > most)
}

/// Returns whether an owner has more than `most` collections with this transaction's writes. It locks the owner as
/// `texts_exceed` does.
pub async fn collections_exceed(tx: &mut Tx, owner: &str, most: usize) -> Result<bool, Error> {
    tx.execute(LOCK_OWNER, args![owner]).await?;
    Ok(used(tx, owner).await?.collections > most)
}

async fn used(tx: &mut Tx, owner: &str) -> Result<KnowledgeUsage, Error> {
    let (documents, text_bytes, collections) = tx.fetch_one::<(i64, i64, i64)>(USED, args![owner]).await?;
    Ok(KnowledgeUsage {
        documents: documents as usize,
        text_bytes: text_bytes as u64,
        collections: collections as usize,
    })
}
