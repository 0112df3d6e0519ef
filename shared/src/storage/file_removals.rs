//! The use of files by their owners, and their end: those that an owner or a sweep deletes, and contents that no file has any
//! more.
//!
//! Order matters: each transaction here locks the owner, as those of `files` do.

use std::time::Duration;

use uuid::Uuid;

use super::{
    Error, Storage,
    quota::LOCK_OWNER,
    sql::{Commit, Piece, Tx, args, statements},
};
use crate::quotas::{FileQuotas, QuotaExceeded};

/// Contents that are to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removal {
    /// The contents.
    pub content_id: Uuid,
    /// How often they were noted.
    version: i64,
}

/// The condition that a message of a conversation, or a run in it, names the file `f`.
macro_rules! is_named {
    () => {
        "(
            exists (
                select 1
                from file_uses u
                join chat_conversations c on c.id = u.conversation_id
                where u.file_id = f.id and c.deleted_at is null
            )
            or exists (
                select 1
                from run_files u
                join agent_runs r on r.id = u.run_id
                join chat_conversations c on c.id = r.conversation_id
                where u.file_id = f.id and c.deleted_at is null
            )
        )"
    };
}

/// Notes contents, or notes them again.
macro_rules! note_removals {
    ($contents:literal) => {
        concat!(
            "
        insert into file_removals (content_id, version, tried_at)
        select distinct n.content_id, 1, {before:3600000}
        from (",
            $contents,
            ") n
        where not exists (select 1 from files f where f.content_id = n.content_id)
        on conflict (content_id) do update
        set version = file_removals.version + 1,
            tried_at = excluded.tried_at
    "
        )
    };
}

statements! {
    /// Returns an owner's number of files and their bytes. An upload that has made no step for `$2` milliseconds counts what
    /// has arrived.
    USED = "
        select count(*),
            cast(
                coalesce(
                    sum(
                        case
                            when sha256 is null and touched_at <= {before:$2} then received
                            else bytes
                        end
                    ),
                    0
                )
                as bigint
            )
        from files
        where owner_id = $1
    ",
    /// Returns the ids of some files of an owner.
    SOME_OF_OWNER = "
        select id
        from files
        where owner_id = $1
        limit $2
    ",
    /// Returns the contents of files.
    CONTENTS = "
        select distinct content_id
        from files
        where id {in:$1}
    ",
    /// Removes files.
    DELETE = "
        delete from files
        where id {in:$1}
    ",
    /// Notes those of the contents that no file has.
    REMOVE_CONTENTS {
        postgres = note_removals!("select unnest(cast($1 as uuid[])) as content_id"),
        sqlite = note_removals!("select unhex(value) as content_id from json_each($1)"),
    },
    /// Returns files that nothing has touched for `$1` milliseconds, the oldest first, and whether something names them. An
    /// upload names itself for as long.
    UNTOUCHED = concat!("
        select f.id, f.owner_id, f.sha256 is not null and ", is_named!(), " as is_named
        from files f
        where f.touched_at <= {before:$1}
        order by f.touched_at
        limit $2
    "),
    /// Notes that something names files.
    TOUCH = "
        update files
        set touched_at = {now}
        where id {in:$1}
        returning id
    ",
    /// Returns a file of an owner that nothing has touched or named still.
    STILL_UNNAMED = concat!("
        select f.id
        from files f
        where f.id = $1
          and f.owner_id = $2
          and f.touched_at <= {before:$3}
          and not (f.sha256 is not null and ", is_named!(), ")
    "),
    /// Takes contents to remove, those first whose last try is the oldest. For `$2` milliseconds no other process
    /// takes them.
    TAKE_REMOVALS = "
        update file_removals
        set tried_at = {now}
        where content_id in (
            select content_id
            from file_removals
            where tried_at <= {before:$2}
            order by tried_at
            limit $1
            {skip locked}
        )
        returning content_id, version
    ",
    /// Forgets contents that are removed, unless they were noted again meanwhile.
    FORGET_REMOVAL = "
        delete from file_removals
        where content_id = $1 and version = $2
        returning content_id
    ",
    /// Moves files to another owner, except for the keys that the other one has used.
    MOVE = "
        update files
        set owner_id = $2,
            idempotency_key = case
                when exists (
                    select 1
                    from files own
                    where own.owner_id = $2 and own.idempotency_key = files.idempotency_key
                )
                then null
                else idempotency_key
            end
        where owner_id = $1
    ",
}

/// Files of one erasure or of one sweep.
const BATCH: usize = 100;

/// Time for which an upload reserves all that it may bring after each of its steps. An upload at the least rate makes a step
/// in less. Later it reserves it again, if there is room.
const RESERVED: Duration = Duration::from_secs(10 * 60);

/// Contents that one process removes at a time.
const REMOVALS: usize = 10;

/// Tries of a transaction that PostgreSQL ends in favour of another.
const TRIES: usize = 5;

impl Storage {
    /// Deletes files that nothing has named for this time, and uploads that were left for as long. Returns how many, and whether
    /// there may be more.
    pub async fn delete_unnamed_files(&self, grace: Duration) -> Result<(usize, bool), Error> {
        let doing = "look for files that nothing names";
        let rows = self.database.fetch_all::<(Uuid, String, bool)>(doing, UNTOUCHED, args![grace, BATCH]).await?;
        let has_more = rows.len() == BATCH;
        let (named, unnamed): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, _, is_named)| *is_named);
        let named: Vec<Uuid> = named.into_iter().map(|row| row.0).collect();
        if !named.is_empty() {
            self.database
                .in_background()
                .write::<(Uuid,)>("note files that something names", TOUCH, args![named])
                .await?;
        }
        let mut deleted = 0;
        for (id, owner, _) in unnamed {
            deleted += retried(|| self.try_delete_unnamed(&owner, id, grace)).await?;
        }
        Ok((deleted, has_more))
    }

    async fn try_delete_unnamed(&self, owner: &str, id: Uuid, grace: Duration) -> Result<usize, Error> {
        let delete = async |tx: &mut Tx| {
            tx.execute(LOCK_OWNER, args![owner]).await?;
            let still = tx.fetch_optional::<(Uuid,)>(STILL_UNNAMED, args![id, owner, grace]).await?;
            if still.is_some() {
                delete_files(tx, vec![id]).await?;
            }
            Ok(Commit(usize::from(still.is_some())))
        };
        self.database.in_background().transact("delete a file that nothing names", delete).await
    }

    /// Takes some contents to remove. For the time of `alone`, no other process takes them.
    pub async fn take_removals(&self, alone: Duration) -> Result<Vec<Removal>, Error> {
        let args = args![REMOVALS, alone];
        let rows = self
            .database
            .in_background()
            .write::<(Uuid, i64)>("look for contents to remove", TAKE_REMOVALS, args)
            .await?;
        Ok(rows.into_iter().map(|(content_id, version)| Removal { content_id, version }).collect())
    }

    /// Forgets contents that are removed.
    pub async fn forget_removal(&self, removal: Removal) -> Result<(), Error> {
        let args = args![removal.content_id, removal.version];
        self.database.in_background().write::<(Uuid,)>("forget removed contents", FORGET_REMOVAL, args).await.map(drop)
    }

    /// Notes the contents of an upload whose file was deleted while its bytes arrived.
    pub async fn discard_contents(&self, content_id: Uuid) -> Result<(), Error> {
        let discard = async |tx: &mut Tx| remove_contents(tx, content_id).await.map(Commit);
        self.database.transact("discard an upload", discard).await
    }
}

/// Deletes files, and notes the contents that go with them.
pub async fn delete_files(tx: &mut Tx, ids: Vec<Uuid>) -> Result<(), Error> {
    let contents = tx.fetch_all::<(Uuid,)>(CONTENTS, args![ids.clone()]).await?;
    tx.execute(DELETE, args![ids]).await?;
    let contents: Vec<Uuid> = contents.into_iter().map(|row| row.0).collect();
    tx.execute(REMOVE_CONTENTS, args![contents]).await.map(drop)
}

/// Notes contents that no file has.
pub async fn remove_contents(tx: &mut Tx, content_id: Uuid) -> Result<(), Error> {
    tx.execute(REMOVE_CONTENTS, args![vec![content_id]]).await.map(drop)
}

/// Deletes a piece of an owner's files, and returns whether there were any.
pub async fn delete_some_files(tx: &mut Tx, piece: &mut Piece, owner: &str) -> Result<bool, Error> {
    tx.execute(LOCK_OWNER, args![owner]).await?;
    let ids = tx.fetch_all::<(Uuid,)>(SOME_OF_OWNER, args![owner, piece.size(DELETE).rows()]).await?;
    let files = ids.len();
    delete_files(tx, ids.into_iter().map(|row| row.0).collect()).await?;
    piece.note(DELETE, files, 0);
    Ok(files > 0)
}

/// Moves the files of one owner to another. Fails if the other one's quotas refuse them.
pub async fn move_files(tx: &mut Tx, from: &str, to: &str, quotas: FileQuotas) -> Result<(), Error> {
    tx.execute(LOCK_OWNER, args![from]).await?;
    tx.execute(LOCK_OWNER, args![to]).await?;
    let (moved, _) = used(tx, from).await?;
    if moved == 0 {
        return Ok(());
    }
    tx.execute(MOVE, args![from, to]).await?;
    let (files, bytes) = used(tx, to).await?;
    if let Some(most) = quotas.files.filter(|most| files > *most) {
        return Err(tx.refused_by(QuotaExceeded::Files(most)));
    }
    if let Some(most) = quotas.bytes.filter(|most| bytes > *most) {
        return Err(tx.refused_by(QuotaExceeded::FileBytes(most as usize)));
    }
    Ok(())
}

/// Tries a transaction again that PostgreSQL has ended in favour of another.
pub async fn retried<T, F: Future<Output = Result<T, Error>>>(attempt: impl Fn() -> F) -> Result<T, Error> {
    for _ in 1..TRIES {
        match attempt().await {
            Err(error) if error.is_conflict() => {}
            done => return done,
        }
    }
    attempt().await
}

impl Storage {
    /// Returns the number of an owner's files and their bytes. Uploads of the same moment do not count.
    pub async fn kept_files(&self, owner: &str) -> Result<(usize, u64), Error> {
        let args = args![owner, RESERVED];
        let row = self.database.fetch_optional::<(i64, i64)>("count the files of an owner", USED, args).await?;
        Ok(row.map_or((0, 0), |(files, bytes)| (files as usize, bytes as u64)))
    }
}

/// Returns an owner's number of files and their bytes.
pub async fn used(tx: &mut Tx, owner: &str) -> Result<(usize, u64), Error> {
    let (files, bytes) = tx.fetch_one::<(i64, i64)>(USED, args![owner, RESERVED]).await?;
    Ok((files as usize, bytes as u64))
}
