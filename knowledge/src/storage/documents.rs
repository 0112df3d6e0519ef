//! Documents of a collection.

use chrono::{DateTime, Utc};
use holdfast_shared::{
    database::{Error, Json, args},
    page::{Page, PageSize},
};
use sqlx::FromRow;
use uuid::Uuid;

use super::{Knowledge, may_read};
use crate::document::{Document, DocumentError, DocumentStatus, VectorCoverage};

#[derive(FromRow)]
struct DocumentRow {
    id: Uuid,
    collection_id: Uuid,
    title: String,
    file_id: Uuid,
    media_type: String,
    bytes: i64,
    run_id: Uuid,
    run_status: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
    chars: Option<i64>,
    passages: i64,
    embedded: i64,
    vectors_model: Option<String>,
    vectors_of: String,
    vectors_error: Option<Json<DocumentError>>,
    created_at: DateTime<Utc>,
    indexed_at: Option<DateTime<Utc>>,
    is_own: bool,
}

impl From<DocumentRow> for Document {
    fn from(row: DocumentRow) -> Self {
        let status = DocumentStatus::of(row.indexed_at.is_some(), row.run_status.as_deref());
        let error = match (row.error_code, row.error_message) {
            (Some(code), Some(message)) => DocumentError { code, message },
            _ => {
                DocumentError { code: "run_gone".to_owned(), message: "the run of the document was removed".to_owned() }
            }
        };
        let refused = (row.vectors_model.as_ref() == Some(&row.vectors_of)).then(|| row.passages - row.embedded);
        let vectors_error = row.vectors_error.map(|error| error.0).or_else(|| refusals(refused.unwrap_or_default()));
        Self {
            id: row.id,
            collection_id: row.collection_id,
            title: row.title,
            file_id: row.is_own.then_some(row.file_id),
            media_type: row.media_type,
            bytes: row.bytes as u64,
            status,
            error: (row.is_own && status == DocumentStatus::Failed).then_some(error),
            run_id: row.is_own.then_some(row.run_id),
            chars: row.chars.map(|chars| chars as u64),
            passages: row.passages as u64,
            vectors: VectorCoverage::of(row.passages as u64, row.embedded as u64),
            vectors_model: row.vectors_model.filter(|_| row.embedded > 0),
            vectors_error: vectors_error.filter(|_| row.is_own),
            created_at: row.created_at,
            indexed_at: row.indexed_at,
        }
    }
}

/// Returns the error of a document of whose passages the provider of vectors has refused so many.
fn refusals(refused: i64) -> Option<DocumentError> {
    (refused > 0).then(|| DocumentError {
        code: "passages_refused".to_owned(),
        message: format!("the provider of vectors refused {refused} of the passages"),
    })
}

/// The columns of `DocumentRow` for the owner of this parameter.
macro_rules! documents {
    ($owner:literal) => {
        concat!(
            "
        select d.id, d.collection_id, d.title, d.file_id, d.media_type, d.bytes, d.run_id,
            r.status as run_status, r.error_code, r.error_message, d.chars, d.passages,
            d.embedded, d.vectors_model, d.vectors_of, d.vectors_error, d.created_at, d.indexed_at,
            d.owner_id = ",
            $owner,
            " as is_own
        from documents d
        join collections c on c.id = d.collection_id
        left join agent_runs r on r.id = d.run_id
        where d.deleted_at is null
          and ",
            may_read!($owner)
        )
    };
}

holdfast_shared::statements! {
    /// Returns a document that an owner may read.
    DOCUMENT = concat!(documents!("$2"), "
          and d.id = $1
    "),
    /// Lists the documents of a collection that an owner may read, newest first.
    DOCUMENTS = concat!(documents!("$2"), "
          and d.collection_id = $1
          and (cast($3 as uuid) is null or d.id < $3)
        order by d.id desc
        limit $4
    "),
    /// Marks a document of an owner as deleted, and returns its conversation.
    DELETE = "
        update documents
        set deleted_at = {now}
        where id = $1 and owner_id = $2 and deleted_at is null
        returning conversation_id
    ",
    /// Returns the conversation, the file and the title of an owner's document.
    SOURCE = "
        select conversation_id, file_id, title
        from documents
        where id = $1 and owner_id = $2 and deleted_at is null
    ",
    /// Returns the document of a conversation.
    OF_CONVERSATION = "
        select id
        from documents
        where conversation_id = $1
    ",
}

impl Knowledge {
    /// Returns a document that the owner may read.
    pub async fn document(&self, owner: &str, id: Uuid) -> Result<Option<Document>, Error> {
        let row = self.database.fetch_optional::<DocumentRow>("read a document", DOCUMENT, args![id, owner]);
        Ok(row.await?.map(Document::from))
    }

    /// Returns a page of the documents of a collection, newest first. `None` for an unknown cursor.
    pub async fn documents(
        &self,
        owner: &str,
        collection_id: Uuid,
        size: PageSize,
        cursor: Option<&str>,
    ) -> Result<Option<Page<Document>>, Error> {
        let Ok(before) = cursor.map(str::parse::<Uuid>).transpose() else { return Ok(None) };
        let args = args![collection_id, owner, before, size.items + 1];
        let rows = self.database.fetch_all::<DocumentRow>("list documents", DOCUMENTS, args).await?;
        let documents = rows.into_iter().map(Document::from).collect();
        Ok(Some(Page::of(documents, size.items, |last: &Document| last.id.to_string())))
    }

    /// Deletes a document of the owner, and returns its hidden conversation. The sweeper removes the rows.
    pub async fn delete_document(&self, owner: &str, id: Uuid) -> Result<Option<Uuid>, Error> {
        let rows = self.database.write::<(Uuid,)>("delete a document", DELETE, args![id, owner]).await?;
        Ok(rows.into_iter().next().map(|row| row.0))
    }

    /// Returns the hidden conversation, the file and the title of the owner's document.
    pub async fn document_source(&self, owner: &str, id: Uuid) -> Result<Option<(Uuid, Uuid, String)>, Error> {
        self.database.fetch_optional("read the source of a document", SOURCE, args![id, owner]).await
    }

    /// Returns the document of a hidden conversation.
    pub async fn document_of_conversation(&self, conversation_id: Uuid) -> Result<Option<Uuid>, Error> {
        let row = self.database.fetch_optional::<(Uuid,)>("find a document", OF_CONVERSATION, args![conversation_id]);
        Ok(row.await?.map(|row| row.0))
    }
}
