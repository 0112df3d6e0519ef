//! Memories: agents write and recall them, and their user lists, edits and deletes them.
//!
//! Order matters: a write locks the run before the owner, as the end of a run does.

use chrono::{DateTime, Utc};
use sqlx::FromRow;
use uuid::Uuid;

use super::{
    Error, Storage,
    memory_rows::{MemoryRow, count_memories, delete_memories, delete_memories_of, memory_columns},
    newest_first::NewestFirst,
    pages::{PageRow, page_of, page_query},
    quota::LOCK_OWNER,
    run::status,
    sql::{Commit, RollBack, Tx, args, statements},
};
use crate::{
    memory::{MemoryReference, MemoryScope, MemoryText, MemoryVersion, MemoryWriter, StoredMemory},
    page::{Page, PageSize},
    quotas::MemoryLimits,
};

/// A call of an agent that writes a memory.
#[derive(Debug, Clone, Copy)]
pub struct MemoryCall<'a> {
    /// The run.
    pub run_id: Uuid,
    /// The attempt that holds the run.
    pub attempt: u32,
    /// The call, which writes one memory however often it is made.
    pub call_id: &'a str,
    /// The name of the agent.
    pub agent: &'a str,
}

/// A memory before it is stored.
#[derive(Debug, Clone)]
pub struct NewMemory {
    /// The text.
    pub text: String,
    /// The agents that recall it.
    pub scope: MemoryScope,
    /// The end of the memory.
    pub expires_at: Option<DateTime<Utc>>,
}

/// The outcome of a call that writes a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remembered {
    /// The memory is stored, by this call or by an earlier one under its id.
    Stored(MemoryReference),
    /// The owner has this number of memories already.
    Full(usize),
    /// The expiry is not in the future.
    Past,
    /// Another attempt holds the run, or the run has ended.
    Fenced,
}

/// A change of a memory by its user. A field that is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct MemoryChange {
    /// The new text.
    pub text: Option<String>,
    /// The new expiry; `Some(None)` for never.
    pub expires_at: Option<Option<DateTime<Utc>>>,
    /// The version that the user has seen.
    pub version: Option<u32>,
}

/// The outcome of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryChanged {
    /// The memory as it is now.
    Changed(StoredMemory),
    /// The owner has no such memory.
    NotFound,
    /// The memory has this version already.
    Conflict(u32),
    /// The expiry is not in the future.
    Past,
}

/// Kept versions of a memory; older ones are removed.
const MAX_VERSIONS: i64 = 20;

#[derive(FromRow)]
struct MemoryVersionRow {
    memory_id: Uuid,
    version: i64,
    text: String,
    expires_at: Option<DateTime<Utc>>,
    #[sqlx(try_from = "String")]
    writer: MemoryWriter,
    run_id: Option<Uuid>,
    written_at: DateTime<Utc>,
}

#[derive(FromRow)]
struct MemoryTextRow {
    id: Uuid,
    version: i64,
    text: String,
    written_at: DateTime<Utc>,
}

impl From<MemoryVersionRow> for MemoryVersion {
    fn from(row: MemoryVersionRow) -> Self {
        let MemoryVersionRow { version, text, expires_at, writer, run_id, written_at, .. } = row;
        Self { version: version as u32, text, expires_at, writer, run_id, written_at }
    }
}

impl From<MemoryTextRow> for MemoryText {
    fn from(row: MemoryTextRow) -> Self {
        let MemoryTextRow { id, version, text, written_at } = row;
        Self { reference: MemoryReference { id, version: version as u32 }, text, written_at }
    }
}

/// The condition that the memory `m` has not expired.
macro_rules! is_live {
    () => {
        "(m.expires_at is null or m.expires_at > {now})"
    };
}

statements! {
    /// Locks a run that an attempt holds. Returns its owner, the user's message, and whether an expiry is in the future.
    HOLD = concat!("
        select r.owner_id,
            (
                select t.input_message_id
                from agent_runs t
                where t.id = coalesce(r.top_run_id, r.id)
            ) as message_id,
            $3 is null or $3 > {now} as is_future
        from agent_runs r
        where r.id = $1 and r.attempt = $2 and ", status!("r."), " = 'running'
        {for update}
    "),
    /// Returns the version of a memory that a call has written.
    BY_CALL = "
        select version
        from memories
        where id = $1
    ",
    /// Returns whether the memory of a call was deleted.
    REMOVED = "
        select run_id
        from memory_removals
        where run_id = $1 and call_id = $2
    ",
    /// Stores a memory.
    INSERT = "
        insert into memories (
            id, owner_id, agent, scope, text, version, writer, run_id, call_id, message_id,
            created_at, updated_at, expires_at
        )
        values ($1, $2, $3, $4, $5, 1, 'agent', $6, $7, $8, {now}, {now}, $9)
    ",
    /// Keeps the newest version of a memory.
    KEEP_VERSION = "
        insert into memory_versions (
            memory_id, version, text, expires_at, writer, run_id, written_at
        )
        select m.id, m.version, m.text, m.expires_at, m.writer,
            case when m.writer = 'agent' then m.run_id end, m.updated_at
        from memories m
        where m.id = $1
    ",
    /// Removes the versions of a memory but the newest ones.
    DROP_VERSIONS = "
        delete from memory_versions
        where memory_id = $1 and version <= $2
    ",
    /// Locks a memory of an owner.
    LOCK = concat!("
        select ", memory_columns!(), "
        from memories m
        where m.id = $1 and m.owner_id = $2 and ", is_live!(), "
        {for update}
    "),
    /// Locks a memory that an agent can recall.
    LOCK_RECALLABLE = concat!("
        select m.id
        from memories m
        where m.id = $1
          and m.owner_id = $2
          and (m.scope = 'user' or m.agent = $3)
          and ", is_live!(), "
        {for update}
    "),
    /// Writes a version as the user.
    CHANGE = "
        update memories
        set text = $2,
            expires_at = $3,
            version = version + 1,
            writer = 'user',
            updated_at = {now}
        where id = $1 and ($3 is null or $3 > {now})
    ",
    /// Returns a memory of an owner.
    MEMORY = concat!("
        select ", memory_columns!(), "
        from memories m
        where m.id = $1 and m.owner_id = $2 and ", is_live!(), "
    "),
    /// Lists an owner's memories, newest first.
    MEMORIES = page_query!(
        concat!("
            select ", memory_columns!(), ",
                octet_length(m.text) + octet_length(m.agent) + 500 as page_bytes
            from memories m
            where m.owner_id = $1
              and ($2 is null or m.agent = $2)
              and ($3 is null or (m.created_at, m.id) < ($3, $4))
              and ", is_live!(), "
            order by m.created_at desc, m.id desc
            limit $5
        "),
        "created_at desc, id desc",
        "$6",
    ),
    /// Returns the versions of memories of an owner, oldest first.
    VERSIONS = concat!("
        select v.memory_id, v.version, v.text, v.expires_at, v.writer, v.run_id, v.written_at
        from memory_versions v
        join memories m on m.id = v.memory_id
        where m.owner_id = $1 and m.id {in:$2} and ", is_live!(), "
        order by v.memory_id, v.version
    "),
    /// Returns the memories that an agent can recall, the newest first.
    RECALLABLE = concat!("
        select m.id, m.version, m.text, m.updated_at as written_at
        from memories m
        where m.owner_id = $1
          and (m.scope = 'user' or m.agent = $2)
          and ", is_live!(), "
        order by m.updated_at desc, m.id desc
        limit $3
    "),
}

impl Storage {
    /// Stores a memory of the run's owner, once for each call.
    pub async fn remember(
        &self,
        call: MemoryCall<'_>,
        new: &NewMemory,
        limits: MemoryLimits,
    ) -> Result<Remembered, Error> {
        let MemoryCall { run_id, attempt, call_id, agent } = call;
        let id = Uuid::new_v5(&run_id, call_id.as_bytes());
        let remember = async |tx: &mut Tx| {
            let held = tx.fetch_optional::<(String, Uuid, bool)>(HOLD, args![run_id, attempt, new.expires_at]).await?;
            let Some((owner, message_id, is_future)) = held else { return Ok(RollBack(Remembered::Fenced)) };
            tx.execute(LOCK_OWNER, args![owner.as_str()]).await?;
            if let Some((version,)) = tx.fetch_optional::<(i64,)>(BY_CALL, args![id]).await? {
                return Ok(RollBack(Remembered::Stored(MemoryReference { id, version: version as u32 })));
            }
            let first = Remembered::Stored(MemoryReference { id, version: 1 });
            if tx.fetch_optional::<(Uuid,)>(REMOVED, args![run_id, call_id]).await?.is_some() {
                return Ok(RollBack(first));
            }
            if !is_future {
                return Ok(RollBack(Remembered::Past));
            }
            let most = limits.of(&owner);
            if count_memories(tx, &owner).await? >= most {
                return Ok(RollBack(Remembered::Full(most)));
            }
            let (scope, text) = (new.scope.as_str(), new.text.as_str());
            let args = args![id, owner, agent, scope, text, run_id, call_id, message_id, new.expires_at];
            tx.execute(INSERT, args).await?;
            tx.execute(KEEP_VERSION, args![id]).await?;
            Ok(Commit(first))
        };
        self.database.transact("remember something of a user", remember).await
    }

    /// Returns the memories of the owner that an agent can recall, the newest first, at most `most`.
    pub async fn recallable(&self, owner: &str, agent: &str, most: usize) -> Result<Vec<MemoryText>, Error> {
        let args = args![owner, agent, most];
        let rows = self.database.fetch_all::<MemoryTextRow>("read what an agent remembers", RECALLABLE, args).await?;
        Ok(rows.into_iter().map(MemoryText::from).collect())
    }

    /// Deletes a memory of the owner that an agent can recall, and returns whether there was one.
    pub async fn forget_memory(&self, owner: &str, agent: &str, id: Uuid) -> Result<bool, Error> {
        let forget = async |tx: &mut Tx| {
            let found = tx.fetch_optional::<(Uuid,)>(LOCK_RECALLABLE, args![id, owner, agent]).await?;
            delete_memories(tx, found.iter().map(|row| row.0).collect()).await?;
            Ok(Commit(found.is_some()))
        };
        self.database.transact("forget something of a user", forget).await
    }

    /// Returns the owner's memory of this id.
    pub async fn memory(&self, owner: &str, id: Uuid) -> Result<Option<StoredMemory>, Error> {
        let row = self.database.fetch_optional::<MemoryRow>("read a memory", MEMORY, args![id, owner]).await?;
        Ok(row.map(StoredMemory::from))
    }

    /// Returns the versions of the owner's memories of these ids, oldest first, each with its memory.
    pub async fn memory_versions(&self, owner: &str, ids: Vec<Uuid>) -> Result<Vec<(Uuid, MemoryVersion)>, Error> {
        let doing = "read the versions of memories";
        let rows = self.database.fetch_all::<MemoryVersionRow>(doing, VERSIONS, args![owner, ids]).await?;
        Ok(rows.into_iter().map(|row| (row.memory_id, row.into())).collect())
    }

    /// Returns a page of the owner's memories, or of those that one agent wrote, newest first. `None` for an unknown cursor.
    pub async fn memories(
        &self,
        owner: &str,
        agent: Option<&str>,
        size: PageSize,
        cursor: Option<&str>,
    ) -> Result<Option<Page<StoredMemory>>, Error> {
        let Ok(before) = NewestFirst::parse(cursor) else { return Ok(None) };
        let agent = agent.map(str::to_owned);
        let args = args![owner, agent, before.at(), before.id(), size.items + 1, size.bytes];
        let rows = self.database.fetch_all::<PageRow<MemoryRow>>("list memories", MEMORIES, args).await?;
        Ok(Some(page_of(rows, size, |last| NewestFirst::cursor_after(last.created_at, last.id))))
    }

    /// Changes a memory as its owner, unless it has another version than the owner has seen.
    pub async fn change_memory(&self, owner: &str, id: Uuid, change: &MemoryChange) -> Result<MemoryChanged, Error> {
        let write = async |tx: &mut Tx| {
            let Some(row) = tx.fetch_optional::<MemoryRow>(LOCK, args![id, owner]).await? else {
                return Ok(RollBack(MemoryChanged::NotFound));
            };
            let memory = StoredMemory::from(row);
            if change.version.is_some_and(|version| version != memory.version) {
                return Ok(RollBack(MemoryChanged::Conflict(memory.version)));
            }
            let text = change.text.clone().unwrap_or_else(|| memory.text.clone());
            let expires_at = change.expires_at.unwrap_or(memory.expires_at);
            if text == memory.text && expires_at == memory.expires_at {
                return Ok(RollBack(MemoryChanged::Changed(memory)));
            }
            if tx.execute(CHANGE, args![id, text, expires_at]).await? == 0 {
                return Ok(RollBack(MemoryChanged::Past));
            }
            tx.execute(KEEP_VERSION, args![id]).await?;
            tx.execute(DROP_VERSIONS, args![id, i64::from(memory.version) + 1 - MAX_VERSIONS]).await?;
            let changed = tx.fetch_one::<MemoryRow>(MEMORY, args![id, owner]).await?;
            Ok(Commit(MemoryChanged::Changed(changed.into())))
        };
        self.database.transact("change a memory", write).await
    }

    /// Deletes the owner's memory of this id with its versions, and returns whether there was one.
    pub async fn delete_memory(&self, owner: &str, id: Uuid) -> Result<bool, Error> {
        let delete = async |tx: &mut Tx| {
            let found = tx.fetch_optional::<MemoryRow>(LOCK, args![id, owner]).await?;
            delete_memories(tx, found.iter().map(|row| row.id).collect()).await?;
            Ok(Commit(found.is_some()))
        };
        self.database.transact("delete a memory", delete).await
    }

    /// Deletes all memories of the owner with their versions.
    pub async fn delete_all_memories(&self, owner: &str) -> Result<(), Error> {
        let delete = async |tx: &mut Tx| delete_memories_of(tx, owner).await.map(Commit);
        self.database.transact("delete all memories of a user", delete).await
    }
}
