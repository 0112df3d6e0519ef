//! The vectors of passages: which ones a document lacks, and how its own run stores them.
//!
//! A document is found by its words before it has vectors. Until it has those of a new model, searches use the ones before.

use std::time::Duration;

use holdfast_shared::database::{Commit, Error, Piece, RollBack, Tx, args};
use serde_json::json;
use uuid::Uuid;

use super::{Hold, Knowledge, StoreOutcome, ingestion::held_by};
use crate::document::DocumentError;

/// The number of passages of the document `$1` that have a vector of the model `$2`.
macro_rules! embedded {
    () => {
        "(
                select count(*)
                from passage_vectors v
                where v.document_id = $1 and v.model = $2 and v.vector is not null
            )"
    };
}

holdfast_shared::statements! {
    /// Returns passages of a document for which a model was not asked, with their places and headings.
    UNEMBEDDED = "
        select p.number, p.start_at, p.end_at, p.heading
        from passages p
        where p.document_id = $1
          and not exists (
              select 1
              from passage_vectors v
              where v.document_id = p.document_id and v.model = $2 and v.number = p.number
          )
        order by p.number
        limit $3
    ",
    /// Stores vectors of passages; a null vector is a refused passage.
    INSERT_VECTORS {
        postgres = "
            insert into passage_vectors (document_id, number, model, vector)
            select $1, cast(value->>'number' as bigint), $2, decode(value->>'vector', 'hex')
            from {each:$3}
            on conflict (document_id, model, number) do nothing
        ",
        sqlite = "
            insert into passage_vectors (document_id, number, model, vector)
            select $1, cast(value->>'number' as bigint), $2, unhex(value->>'vector')
            from {each:$3}
            where true
            on conflict (document_id, model, number) do nothing
        ",
    },
    /// Lets searches use the vectors of a model, which has answered for all passages.
    NOTE_VECTORS = concat!("
        update documents
        set vectors_model = $2,
            vectors_of = $2,
            embedded = ", embedded!(), ",
            vectors_at = {now},
            vectors_tries = 0,
            vectors_retry_at = null,
            vectors_failed_at = null,
            vectors_error = null
        where id = $1
    "),
    /// Lets searches use the vectors that there are, unless those of another model are complete, and notes why there are no
    /// more.
    NOTE_MISSING = concat!("
        update documents
        set vectors_model = case when vectors_of = '' then $2 else vectors_model end,
            embedded = case
                when vectors_of = ''
                then ", embedded!(), "
                else embedded
            end,
            vectors_at = case when vectors_of = '' then {now} else vectors_at end,
            vectors_tries = case when vectors_tries = 0 then 1 else vectors_tries end,
            vectors_retry_at = case
                when vectors_retry_at > {after:$4} then vectors_retry_at
                else {after:$4}
            end,
            vectors_failed_at = {now},
            vectors_error = $3
        where id = $1
    "),
    /// Removes some vectors of other models.
    REMOVE_OTHER_VECTORS = "
        delete from passage_vectors
        where (document_id, model, number) in (
            select document_id, model, number
            from passage_vectors
            where document_id = $1 and model <> $2
            limit $3
        )
    ",
    /// Returns documents whose vectors are not those of a model, and whose next try is due. A cancelled one is not tried again.
    LACKING = "
        select id, owner_id, conversation_id, title, vectors_tries
        from (
            select *
            from (
                select d.id, d.owner_id, d.conversation_id, d.title, d.vectors_tries
                from documents d
                where d.indexed_at is not null
                  and d.deleted_at is null
                  and d.vectors_of < $1
                  and (d.vectors_retry_at is null or d.vectors_retry_at <= {now})
                  and not exists (
                      select 1
                      from agent_runs r
                      where r.id = d.run_id
                        and (r.finished_at is null or r.status = 'cancelled')
                  )
                order by d.vectors_of, d.id
                limit $2
            ) before
            union all
            select *
            from (
                select d.id, d.owner_id, d.conversation_id, d.title, d.vectors_tries
                from documents d
                where d.indexed_at is not null
                  and d.deleted_at is null
                  and d.vectors_of > $1
                  and (d.vectors_retry_at is null or d.vectors_retry_at <= {now})
                  and not exists (
                      select 1
                      from agent_runs r
                      where r.id = d.run_id
                        and (r.finished_at is null or r.status = 'cancelled')
                  )
                order by d.vectors_of, d.id
                limit $2
            ) after
        ) lacking
        limit $2
    ",
    /// Returns the number of unfinished tries in the background, and whether a try failed lately.
    TRIES = "
        select (
                select count(*)
                from documents d
                join agent_runs r on r.id = d.run_id
                where d.vectors_tries > 0 and r.finished_at is null
            ),
            exists (
                select 1
                from documents
                where vectors_failed_at > {before:$1}
            )
    ",
    /// Puts off the next try of a document.
    POSTPONE = "
        update documents
        set vectors_retry_at = {after:$2}
        where id = $1
        returning id
    ",
}

/// A passage without a vector, with the text that the vector is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnembeddedPassage {
    /// Its number in the document.
    pub number: u64,
    /// Its headings and its text.
    pub text: String,
}

/// A document that searches find, and that lacks vectors of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnembeddedDocument {
    /// The document.
    pub id: Uuid,
    /// Its owner.
    pub owner_id: String,
    /// Its hidden conversation.
    pub conversation_id: Uuid,
    /// Its name for people.
    pub title: String,
    /// Tries in the background so far.
    pub tries: u32,
}

impl Knowledge {
    /// Returns the next passages of a document for which the model was not asked.
    pub async fn unembedded(&self, hold: Hold, model: &str, limit: usize) -> Result<Vec<UnembeddedPassage>, Error> {
        type Row = (i64, i64, i64, Option<String>);
        let args = args![hold.document_id, model, limit];
        let rows = self.database.fetch_all::<Row>("read passages without vectors", UNEMBEDDED, args).await?;
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(Vec::new()) };
        let text = self.own_text(hold.document_id, first.1 as u64..last.2 as u64).await?;
        let passage = |(number, start, end, heading): &Row| {
            let part = text.part(*start as u64..*end as u64);
            let text = heading.as_ref().map_or_else(|| part.clone(), |heading| format!("{heading}\n{part}"));
            UnembeddedPassage { number: *number as u64, text }
        };
        Ok(rows.iter().map(passage).collect())
    }

    /// Stores the model's answers for passages: a vector, or `None` for a refusal.
    pub async fn store_vectors(
        &self,
        hold: Hold,
        model: &str,
        answers: &[(u64, Option<Vec<f32>>)],
    ) -> Result<StoreOutcome, Error> {
        let hex_of = |vector: &Vec<f32>| hex::encode(vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
        let row = |(number, vector): &(u64, Option<Vec<f32>>)| {
            let bytes = vector.as_ref().map_or(0, |vector| vector.len() * size_of::<f32>());
            (json!({"number": number, "vector": vector.as_ref().map(hex_of)}), bytes)
        };
        let rows = Box::new(answers.iter().map(row));
        self.store_rows("store vectors", hold, (INSERT_VECTORS, Some(model)), rows).await
    }

    /// Lets searches use the vectors of the model, which has answered for all passages.
    pub async fn note_vectors(&self, hold: Hold, model: &str) -> Result<StoreOutcome, Error> {
        let writes = vec![(NOTE_VECTORS, args![hold.document_id, model])];
        self.step("let searches use vectors", hold, writes).await
    }

    /// Notes why passages lack vectors of the model. No worker tries again by itself before `pause` has passed. Until then,
    /// searches use the vectors that there are.
    pub async fn note_missing_vectors(
        &self,
        hold: Hold,
        model: &str,
        reason: &DocumentError,
        pause: Duration,
    ) -> Result<StoreOutcome, Error> {
        let writes = vec![(NOTE_MISSING, args![hold.document_id, model, json!(reason), pause])];
        self.step("note that vectors are missing", hold, writes).await
    }

    /// Removes a piece of the vectors of other models than this one. Returns whether there may be more; `None` if the attempt is
    /// fenced.
    pub async fn remove_other_vectors(&self, hold: Hold, model: &str) -> Result<Option<bool>, Error> {
        let remove = async |tx: &mut Tx, piece: &mut Piece| {
            if held_by(tx, hold).await?.is_none() {
                return Ok(RollBack(None));
            }
            let args = args![hold.document_id, model];
            Ok(Commit(Some(piece.write(tx, REMOVE_OTHER_VECTORS, args).await?)))
        };
        self.database.write_piece("remove earlier vectors", remove).await
    }

    /// Returns some documents that searches find, whose vectors are not those of the model, and whose next try is due.
    pub async fn unembedded_documents(&self, model: &str, limit: usize) -> Result<Vec<UnembeddedDocument>, Error> {
        type Row = (Uuid, String, Uuid, String, i64);
        let rows = self.database.fetch_all::<Row>("find documents without vectors", LACKING, args![model, limit]);
        let document = |(id, owner_id, conversation_id, title, tries): Row| UnembeddedDocument {
            id,
            owner_id,
            conversation_id,
            title,
            tries: tries as u32,
        };
        Ok(rows.await?.into_iter().map(document).collect())
    }

    /// Returns the number of unfinished tries in the background, and whether a try has failed within this time.
    pub async fn tries_for_vectors(&self, lately: Duration) -> Result<(usize, bool), Error> {
        let row = self.database.fetch_optional::<(i64, bool)>("count tries for vectors", TRIES, args![lately]);
        Ok(row.await?.map_or((0, false), |(unfinished, has_failed)| (unfinished as usize, has_failed)))
    }

    /// Puts off the next try of a document in the background.
    pub async fn postpone_vectors(&self, document_id: Uuid, pause: Duration) -> Result<(), Error> {
        let args = args![document_id, pause];
        self.database.write::<(Uuid,)>("put off a try for vectors", POSTPONE, args).await.map(drop)
    }
}
