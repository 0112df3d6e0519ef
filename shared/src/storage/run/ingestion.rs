//! INGEST: a document and the run that makes it ready for searches, committed together.
//!
//! Each document has a hidden conversation, whose message names the document's file, so that the file stays. A later run of
//! that conversation tries again.

use std::time::Duration;

use uuid::Uuid;

use super::{NewRun, SubmitOutcome, submit};
use crate::{
    quotas::Quotas,
    storage::{
        Error, Storage,
        quota::LOCK_OWNER,
        sql::{Commit, RollBack, Sql, Tx, Value, args, statements},
    },
};

/// A document before its ingestion.
#[derive(Debug, Clone)]
pub struct NewDocument {
    /// UUIDv7.
    pub id: Uuid,
    /// A collection of the owner.
    pub collection_id: Uuid,
    /// The file of which it is made.
    pub file_id: Uuid,
    /// Its name for people.
    pub title: String,
    /// The media type of the file.
    pub media_type: String,
    /// Bytes of the file.
    pub bytes: u64,
}

/// The outcome of the submission of a document.
pub enum IngestOutcome {
    /// The document is stored, or an earlier request with this key has stored it; its run is that of the outcome.
    Submitted(SubmitOutcome),
    /// The owner has no such collection.
    CollectionNotFound,
    /// The owner has this number of documents already.
    TooManyDocuments(usize),
    /// The owner has no such document, or it is under way, or it is ready with all vectors that it can have.
    NothingToRetry,
}

statements! {
    /// Keeps a collection from its deletion, and from a move to another owner, until the transaction ends.
    LOCK_COLLECTION = "
        select id
        from collections
        where id = $1 and owner_id = $2
        {for share}
    ",
    /// Counts an owner's documents, with those that are to be removed.
    COUNT_DOCUMENTS = "
        select count(*)
        from documents
        where owner_id = $1
    ",
    /// Stores a document in a collection of its owner.
    INSERT_DOCUMENT = "
        insert into documents (
            id, collection_id, owner_id, conversation_id, run_id, file_id, title, media_type, bytes,
            created_at
        )
        select $2, id, owner_id, $3, $4, $5, $6, $7, $8, {now}
        from collections
        where id = $1 and owner_id = $9 and deleted_at is null
        returning id
    ",
    /// Hides the conversation of a document from lists.
    HIDE = "
        update chat_conversations
        set hidden = true
        where id = $1
    ",
    /// Gives a document a new run that is not ready, or lacks vectors of the deployment's model.
    RETRY = "
        update documents
        set run_id = $3
        where id = $1
          and owner_id = $2
          and deleted_at is null
          and (
              indexed_at is null
              or exists (
                  select 1
                  from deployment_model m
                  where m.embedding_model <> documents.vectors_of
              )
          )
          and not exists (
              select 1
              from agent_runs r
              where r.id = documents.run_id and r.finished_at is null
          )
        returning id
    ",
    /// Gives a ready document a new run for its vectors, and puts off the one after it.
    EMBED = "
        update documents
        set run_id = $2,
            vectors_tries = vectors_tries + 1,
            vectors_retry_at = {after:$4}
        where id = $1
          and indexed_at is not null
          and deleted_at is null
          and vectors_of <> $3
          and not exists (
              select 1
              from agent_runs r
              where r.id = documents.run_id and r.finished_at is null
          )
        returning id
    ",
}

impl Storage {
    /// Commits a document with its run, or returns the refusal. `most` is the number of documents that the owner may have.
    pub async fn submit_document(
        &self,
        owner: &str,
        (quotas, most): (&Quotas, Option<usize>),
        document: &NewDocument,
        run: &NewRun,
    ) -> Result<IngestOutcome, Error> {
        let quotas = &self.quotas_to_check(owner, *quotas, run.bytes()).await?;
        let store = async |tx: &mut Tx| {
            // Order matters: a claim also locks the collection before the owner, and each other lock comes after the
            // owner's.
            tx.execute(LOCK_COLLECTION, args![document.collection_id, owner]).await?;
            tx.execute(LOCK_OWNER, args![owner]).await?;
            let (documents,) = tx.fetch_one::<(i64,)>(COUNT_DOCUMENTS, args![owner]).await?;
            let outcome = submit::store(tx, owner, quotas, run).await?;
            let SubmitOutcome::Accepted(accepted) = &outcome else {
                return Ok(RollBack(IngestOutcome::Submitted(outcome)));
            };
            if let Some(most) = most.filter(|most| documents as usize >= *most) {
                return Ok(RollBack(IngestOutcome::TooManyDocuments(most)));
            }
            let conversation = accepted.conversation.id;
            let NewDocument { id, collection_id, file_id, title, media_type, bytes } = document;
            let args = args![
                *collection_id,
                *id,
                conversation,
                run.run_id,
                *file_id,
                title.as_str(),
                media_type.as_str(),
                *bytes as i64,
                owner
            ];
            if tx.fetch_optional::<(Uuid,)>(INSERT_DOCUMENT, args).await?.is_none() {
                return Ok(RollBack(IngestOutcome::CollectionNotFound));
            }
            tx.execute(HIDE, args![conversation]).await?;
            Ok(Commit(IngestOutcome::Submitted(outcome)))
        };
        self.database.transact("store a document", store).await
    }

    /// Commits another run of a document that is not ready, or lacks vectors.
    pub async fn retry_document(
        &self,
        owner: &str,
        quotas: &Quotas,
        document_id: Uuid,
        run: &NewRun,
    ) -> Result<IngestOutcome, Error> {
        self.run_again(owner, quotas, run, (RETRY, args![document_id, owner, run.run_id])).await
    }

    /// Commits a run for the vectors of a model that a ready document lacks. A further one comes after `pause` at the earliest.
    pub async fn embed_document(
        &self,
        owner: &str,
        quotas: &Quotas,
        (document_id, model, pause): (Uuid, &str, Duration),
        run: &NewRun,
    ) -> Result<IngestOutcome, Error> {
        self.run_again(owner, quotas, run, (EMBED, args![document_id, run.run_id, model, pause])).await
    }

    /// Commits another run of a document, which the statement gives it.
    async fn run_again(
        &self,
        owner: &str,
        quotas: &Quotas,
        run: &NewRun,
        (give, args): (Sql, Vec<Value>),
    ) -> Result<IngestOutcome, Error> {
        let quotas = &self.quotas_to_check(owner, *quotas, run.bytes()).await?;
        let store = async |tx: &mut Tx| {
            let outcome = submit::store(tx, owner, quotas, run).await?;
            if !matches!(outcome, SubmitOutcome::Accepted(_)) {
                return Ok(RollBack(IngestOutcome::Submitted(outcome)));
            }
            if tx.fetch_optional::<(Uuid,)>(give, args.clone()).await?.is_none() {
                return Ok(RollBack(IngestOutcome::NothingToRetry));
            }
            Ok(Commit(IngestOutcome::Submitted(outcome)))
        };
        self.database.transact("try a document again", store).await
    }
}
