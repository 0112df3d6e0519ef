//! Collections of an owner.

use chrono::{DateTime, Utc};
use holdfast_shared::{
    database::{Commit, Error, RollBack, Tx, args},
    page::{Page, PageSize},
    storage::collections_exceed,
};
use uuid::Uuid;

use super::{Knowledge, may_read};
use crate::collection::{Collection, NewCollection, Readers};

/// A row: id, name, description, readers, time of creation.
type CollectionRow = (Uuid, String, Option<String>, String, DateTime<Utc>);

macro_rules! collection_columns {
    () => {
        "c.id, c.name, c.description, c.readable_by, c.created_at"
    };
}

holdfast_shared::statements! {
    /// Stores a collection.
    INSERT = "
        insert into collections (id, owner_id, name, description, readable_by, created_at)
        values ($1, $2, $3, $4, $5, {now})
        returning id, name, description, readable_by, created_at
    ",
    /// Returns a collection that an owner may read.
    COLLECTION = concat!("
        select ", collection_columns!(), "
        from collections c
        where c.id = $1
          and ", may_read!("$2")),
    /// Returns the names of those of the collections that an owner may read.
    NAMES = concat!("
        select c.id, c.name
        from collections c
        where c.id {in:$2}
          and ", may_read!("$1"), "
        order by c.id
    "),
    /// Lists an owner's collections, newest first.
    COLLECTIONS = concat!("
        select ", collection_columns!(), "
        from collections c
        where c.owner_id = $1
          and c.deleted_at is null
          and (cast($2 as uuid) is null or c.id < $2)
        order by c.id desc
        limit $3
    "),
    /// Marks a collection of an owner as deleted.
    DELETE = "
        update collections
        set deleted_at = {now}
        where id = $1 and owner_id = $2 and deleted_at is null
        returning id
    ",
    /// Marks the documents of a collection as deleted. Returns their conversations, and whether a run of theirs is unfinished.
    DELETE_DOCUMENTS = "
        update documents
        set deleted_at = {now}
        where collection_id = $1 and deleted_at is null
        returning conversation_id,
            exists (
                select 1
                from agent_runs r
                where r.id = documents.run_id and r.finished_at is null
            )
    ",
}

fn collection((id, name, description, readers, created_at): CollectionRow) -> Collection {
    Collection { id, name, description, readable_by: Readers::of(&readers), created_at }
}

impl Knowledge {
    /// Stores a collection. `None` if the owner has `most` already.
    pub async fn create_collection(
        &self,
        owner: &str,
        new: NewCollection,
        most: Option<usize>,
    ) -> Result<Option<Collection>, Error> {
        let NewCollection { name, description, readable_by } = new;
        let id = Uuid::now_v7();
        let create = async |tx: &mut Tx| {
            let args = args![id, owner, name.as_str(), description.clone(), readable_by.as_str()];
            let row = tx.fetch_one::<CollectionRow>(INSERT, args).await?;
            match most {
                Some(most) if collections_exceed(tx, owner, most).await? => Ok(RollBack(None)),
                _ => Ok(Commit(Some(collection(row)))),
            }
        };
        self.database.transact("create a collection", create).await
    }

    /// Returns a collection that the owner may read.
    pub async fn collection(&self, owner: &str, id: Uuid) -> Result<Option<Collection>, Error> {
        let row = self.database.fetch_optional::<CollectionRow>("read a collection", COLLECTION, args![id, owner]);
        Ok(row.await?.map(collection))
    }

    /// Returns the ids and names of those of the collections that the owner may read.
    pub async fn collection_names(&self, owner: &str, ids: Vec<Uuid>) -> Result<Vec<(Uuid, String)>, Error> {
        self.database.fetch_all("read the names of collections", NAMES, args![owner, ids]).await
    }

    /// Returns a page of the owner's collections, newest first. `None` for an unknown cursor.
    pub async fn collections(
        &self,
        owner: &str,
        size: PageSize,
        cursor: Option<&str>,
    ) -> Result<Option<Page<Collection>>, Error> {
        let Ok(before) = cursor.map(str::parse::<Uuid>).transpose() else { return Ok(None) };
        let args = args![owner, before, size.items + 1];
        let rows = self.database.fetch_all::<CollectionRow>("list collections", COLLECTIONS, args).await?;
        let collections = rows.into_iter().map(collection).collect();
        Ok(Some(Page::of(collections, size.items, |last: &Collection| last.id.to_string())))
    }

    /// Deletes a collection of the owner with its documents. Returns the hidden conversations with unfinished runs; `None`
    /// without such a collection. The sweeper removes the rows and hides the other conversations.
    pub async fn delete_collection(&self, owner: &str, id: Uuid) -> Result<Option<Vec<Uuid>>, Error> {
        let delete = async |tx: &mut Tx| {
            if tx.fetch_optional::<(Uuid,)>(DELETE, args![id, owner]).await?.is_none() {
                return Ok(RollBack(None));
            }
            let rows = tx.fetch_all::<(Uuid, bool)>(DELETE_DOCUMENTS, args![id]).await?;
            Ok(Commit(Some(rows.into_iter().filter(|row| row.1).map(|row| row.0).collect())))
        };
        self.database.transact("delete a collection", delete).await
    }
}
