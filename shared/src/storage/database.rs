//! One SQL text for two databases: pool, transaction, values, and the words in which the dialects differ.
//!
//! A text may contain these words:
//! - `{now}`: the time of the statement, by the database's clock, in whole milliseconds
//! - `{after:$n}`, `{before:$n}`: that time plus or minus `$n` milliseconds
//! - `{in:$n}`: membership in a list of ids, bound as `Value::Uuids`
//! - `{ms since:column}`: milliseconds from that time to the statement's
//! - `{each:$n}`: a table of one column, `value`, with the elements of a JSON array; fields are `value->>'name'`
//! - `{objects:'name', expression, …}`: the JSON array of an object for each row
//! - `{uuid:expression}`, `{time:expression}`, `{bytes:expression}`: the id, the time or the bytes of a text
//! - `{fenced}`: whether the fence let the write pass ([`super::fenced`])
//! - `{fence:table where condition}`: the row of the fence, or none; SQLite finds it by the condition
//! - `{locked:table where condition}`: the row that was locked before the fence, or none
//! - `{unsynced}`: a value without meaning; PostgreSQL does not sync a statement that returns it, and a crash may undo
//!   it
//! - `{lock name:$n}`: a lock on that name until the transaction ends; SQLite needs none
//! - `{for update}`, `{skip locked}`: row locks; SQLite needs none, because its transactions run alone

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use futures::future::BoxFuture;
use sqlx::{
    AssertSqlSafe, FromRow, SqlitePool,
    postgres::{PgArguments, PgRow},
    sqlite::{SqliteArguments, SqliteRow},
};
use uuid::Uuid;

use super::{
    outages,
    pool::{Connections, PooledConnection, PostgresPool},
    writer::{self, SqliteWriter},
};

/// Time-out of one answer, which may be lost with its connection.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);

/// Waits for an answer, in a box. A query has tens of KiB of state, which a run must not hold while it lives.
pub(super) fn within<'a, T: 'a>(
    answer: impl Future<Output = Result<T, sqlx::Error>> + Send + 'a,
) -> BoxFuture<'a, Result<T, sqlx::Error>> {
    Box::pin(async move {
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, answer).await.unwrap_or_else(|_| {
            Err(sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "the database does not answer")))
        });
        answer.inspect_err(outages::note)
    })
}

/// A pool of connections to either database.
#[derive(Clone)]
pub(super) enum Database {
    Postgres(PostgresPool),
    /// SQLite has one writer. Readers do not wait for it.
    Sqlite {
        writer: SqliteWriter,
        reader: SqlitePool,
    },
}

/// A transaction. Dropping it rolls it back, sooner or later.
pub(super) enum Tx {
    Postgres(PooledConnection),
    Sqlite(writer::SqliteTransaction),
}

/// A type that can be read from a row of either database.
pub(super) trait Row: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin {}

impl<T: for<'r> FromRow<'r, PgRow> + for<'r> FromRow<'r, SqliteRow> + Send + Unpin> Row for T {}

/// A parameter of a statement.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Uuid(Option<Uuid>),
    Uuids(Vec<Uuid>),
    Text(Option<String>),
    Int(Option<i64>),
    Bool(bool),
    Bytes(Vec<u8>),
    Time(Option<DateTime<Utc>>),
    Json(Option<serde_json::Value>),
}

/// The parameters of a statement, in order.
macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::storage::database::Value::from($value)),*] };
}
pub(super) use args;

macro_rules! value_from {
    ($($from:ty => $variant:ident, $convert:expr;)*) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(($convert)(value))
            }
        })*
    };
}

value_from! {
    Uuid => Uuid, Some;
    Option<Uuid> => Uuid, std::convert::identity;
    Vec<Uuid> => Uuids, std::convert::identity;
    &str => Text, |text: &str| Some(text.to_owned());
    String => Text, Some;
    Option<String> => Text, std::convert::identity;
    i64 => Int, Some;
    u32 => Int, |number: u32| Some(i64::from(number));
    usize => Int, |number: usize| Some(number as i64);
    Option<i64> => Int, std::convert::identity;
    crate::event_id::EventId => Int, |id: crate::event_id::EventId| Some(id.packed());
    std::time::Duration => Int, |duration: std::time::Duration| Some(duration.as_millis() as i64);
    Vec<u8> => Bytes, std::convert::identity;
    Option<DateTime<Utc>> => Time, std::convert::identity;
    bool => Bool, std::convert::identity;
    serde_json::Value => Json, Some;
    Option<serde_json::Value> => Json, std::convert::identity;
}

const SQLITE_TIME: &str = "'%Y-%m-%dT%H:%M:%f+00:00'";
const POSTGRES_NOW: &str = "date_trunc('milliseconds', statement_timestamp())";

impl Database {
    pub(super) fn connections(&self) -> Connections {
        match self {
            Self::Postgres(pool) => pool.connections(),
            Self::Sqlite { writer, reader } => {
                let (writer, reader) = (connections(writer.pool()), connections(reader));
                Connections {
                    used: writer.used + reader.used,
                    idle: writer.idle + reader.idle,
                    max: writer.max + reader.max,
                }
            }
        }
    }

    /// Begins a transaction that may write.
    pub(super) async fn begin(&self) -> Result<Tx, sqlx::Error> {
        match self {
            Self::Postgres(pool) => {
                within(async {
                    let mut connection = pool.acquire().await?;
                    sqlx::raw_sql("begin").execute(connection.connection()).await?;
                    Ok(Tx::Postgres(connection))
                })
                .await
            }
            Self::Sqlite { writer, .. } => Ok(Tx::Sqlite(writer.begin().await?)),
        }
    }

    /// Reads rows outside any transaction.
    pub(super) async fn fetch_all<T: Row>(&self, sql: &'static str, args: Vec<Value>) -> Result<Vec<T>, sqlx::Error> {
        match self {
            Self::Postgres(pool) => {
                within(pool.fetch_all(sqlx::query_as_with(AssertSqlSafe(postgres(sql)), postgres_args(args)))).await
            }
            Self::Sqlite { reader, .. } => {
                within(sqlx::query_as_with(AssertSqlSafe(sqlite(sql)), sqlite_args(args)).fetch_all(reader)).await
            }
        }
    }

    /// Reads at most one row outside any transaction.
    pub(super) async fn fetch_optional<T: Row>(
        &self,
        sql: &'static str,
        args: Vec<Value>,
    ) -> Result<Option<T>, sqlx::Error> {
        Ok(self.fetch_all(sql, args).await?.into_iter().next())
    }

    /// Writes with one statement, and returns the rows that it touched.
    pub(super) async fn write<T: Row>(&self, sql: &'static str, args: Vec<Value>) -> Result<Vec<T>, sqlx::Error> {
        match self {
            Self::Postgres(_) => self.fetch_all(sql, args).await,
            Self::Sqlite { writer, .. } => {
                let query = sqlx::query_as_with(AssertSqlSafe(sqlite(sql)), sqlite_args(args));
                writer.note(within(query.fetch_all(writer.pool())).await)
            }
        }
    }

    /// Returns when writes can succeed. A file that refused the last write must accept one.
    pub(super) async fn ping(&self) -> Result<(), sqlx::Error> {
        let is_read_only = match self {
            Self::Postgres(_) => "select current_setting('transaction_read_only') = 'on'",
            Self::Sqlite { writer, .. } if writer.is_failing() => return writer.probe().await,
            Self::Sqlite { .. } => "select false",
        };
        match self.fetch_optional::<(bool,)>(is_read_only, vec![]).await? {
            Some((true,)) => Err(outages::read_only()),
            _ => Ok(()),
        }
    }
}

impl Tx {
    /// Executes a statement, and returns the number of rows that it touched.
    pub(super) async fn execute(&mut self, sql: &'static str, args: Vec<Value>) -> Result<u64, sqlx::Error> {
        match self {
            Self::Postgres(tx) => {
                Ok(within(sqlx::query_with(AssertSqlSafe(postgres(sql)), postgres_args(args)).execute(tx.connection()))
                    .await?
                    .rows_affected())
            }
            Self::Sqlite(tx) => {
                let query = sqlx::query_with(AssertSqlSafe(sqlite(sql)), sqlite_args(args));
                let executed = within(query.execute(tx.connection())).await;
                Ok(tx.note(executed)?.rows_affected())
            }
        }
    }

    pub(super) async fn fetch_all<T: Row>(
        &mut self,
        sql: &'static str,
        args: Vec<Value>,
    ) -> Result<Vec<T>, sqlx::Error> {
        match self {
            Self::Postgres(tx) => {
                within(
                    sqlx::query_as_with(AssertSqlSafe(postgres(sql)), postgres_args(args)).fetch_all(tx.connection()),
                )
                .await
            }
            Self::Sqlite(tx) => {
                let query = sqlx::query_as_with(AssertSqlSafe(sqlite(sql)), sqlite_args(args));
                let rows = within(query.fetch_all(tx.connection())).await;
                tx.note(rows)
            }
        }
    }

    pub(super) async fn fetch_optional<T: Row>(
        &mut self,
        sql: &'static str,
        args: Vec<Value>,
    ) -> Result<Option<T>, sqlx::Error> {
        match self {
            Self::Postgres(tx) => {
                within(
                    sqlx::query_as_with(AssertSqlSafe(postgres(sql)), postgres_args(args))
                        .fetch_optional(tx.connection()),
                )
                .await
            }
            Self::Sqlite(tx) => {
                let query = sqlx::query_as_with(AssertSqlSafe(sqlite(sql)), sqlite_args(args));
                let row = within(query.fetch_optional(tx.connection())).await;
                tx.note(row)
            }
        }
    }

    pub(super) async fn fetch_one<T: Row>(&mut self, sql: &'static str, args: Vec<Value>) -> Result<T, sqlx::Error> {
        self.fetch_optional(sql, args).await?.ok_or(sqlx::Error::RowNotFound)
    }

    /// Rolls back and releases the locks at once. A dropped transaction keeps them until the next use of its
    /// connection.
    pub(super) async fn rollback(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres(tx) => settle(tx, "rollback").await,
            Self::Sqlite(tx) => tx.rollback().await,
        }
    }

    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres(tx) => settle(tx, "commit").await,
            Self::Sqlite(tx) => tx.commit().await,
        }
    }
}

/// Ends the transaction of a connection.
async fn settle(mut tx: PooledConnection, how: &'static str) -> Result<(), sqlx::Error> {
    within(async {
        let settled = sqlx::raw_sql(how).execute(tx.connection()).await.map(drop);
        tx.release(settled)
    })
    .await
}

fn connections(pool: &SqlitePool) -> Connections {
    // The pool may count below zero while a connection changes its user.
    let (open, idle) = (pool.size(), u32::try_from(pool.num_idle()).unwrap_or(0));
    Connections { used: open.saturating_sub(idle), idle, max: pool.options().get_max_connections() }
}

pub(super) fn postgres(sql: &'static str) -> String {
    translate(sql, |word, parameter| match word {
        "now" => POSTGRES_NOW.to_owned(),
        "after" => format!("({POSTGRES_NOW} + {parameter} * interval '1 millisecond')"),
        "before" => format!("({POSTGRES_NOW} - {parameter} * interval '1 millisecond')"),
        "in" => format!("= any({parameter})"),
        "ms since" => format!("cast(extract(epoch from ({POSTGRES_NOW} - {parameter})) * 1000 as bigint)"),
        "each" => format!("jsonb_array_elements({parameter}) as each(value)"),
        "objects" => format!("jsonb_agg(jsonb_build_object({parameter}))"),
        "uuid" => format!("cast({parameter} as uuid)"),
        "time" => format!("cast({parameter} as timestamptz)"),
        "bytes" => format!("convert_to({parameter}, 'utf8')"),
        "fenced" => "exists (select 1 from fence)".to_owned(),
        "fence" | "locked" => word.to_owned(),
        "unsynced" => "set_config('synchronous_commit', 'off', true)".to_owned(),
        "lock name" => format!("pg_advisory_xact_lock(hashtextextended({parameter}, 0))"),
        "for update" => "for update".to_owned(),
        "skip locked" => "for update skip locked".to_owned(),
        _ => panic!("unknown word {{{word}}} in SQL"),
    })
}

fn sqlite(sql: &'static str) -> String {
    translate(sql, |word, parameter| match word {
        "now" => format!("strftime({SQLITE_TIME}, 'now')"),
        "after" => format!("strftime({SQLITE_TIME}, 'now', ({parameter} / 1000.0) || ' seconds')"),
        "before" => format!("strftime({SQLITE_TIME}, 'now', (-{parameter} / 1000.0) || ' seconds')"),
        "in" => format!("in (select unhex(value) from json_each({parameter}))"),
        "ms since" => format!("cast(round((julianday('now') - julianday({parameter})) * 86400000) as integer)"),
        "each" => format!("json_each({parameter}) as each"),
        "objects" => format!("json_group_array(json_object({parameter}))"),
        "uuid" => format!("unhex({parameter})"),
        "time" => parameter.to_owned(),
        "bytes" => format!("cast({parameter} as blob)"),
        "fenced" => "true".to_owned(),
        "fence" | "locked" => parameter.to_owned(),
        "unsynced" => "null".to_owned(),
        // SQLite refuses a parameter that no text names.
        "lock name" => format!("length({parameter})"),
        "for update" | "skip locked" => String::new(),
        _ => panic!("unknown word {{{word}}} in SQL"),
    })
}

/// Replaces each `{word}` or `{word:parameter}`.
fn translate(sql: &'static str, word: impl Fn(&str, &str) -> String) -> String {
    let mut text = String::with_capacity(sql.len() + 128);
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, after) = after.split_once('}').expect("a brace in SQL is closed");
        let (name, parameter) = inside.split_once(':').unwrap_or((inside, ""));
        text.push_str(before);
        text.push_str(&word(name, parameter));
        rest = after;
    }
    text.push_str(rest);
    text
}

pub(super) fn postgres_args(values: Vec<Value>) -> PgArguments {
    use sqlx::Arguments as _;
    let mut args = PgArguments::default();
    for value in values {
        let added = match value {
            Value::Uuid(value) => args.add(value),
            Value::Uuids(value) => args.add(value),
            Value::Text(value) => args.add(value),
            Value::Int(value) => args.add(value),
            Value::Bool(value) => args.add(value),
            Value::Bytes(value) => args.add(value),
            Value::Time(value) => args.add(value),
            Value::Json(value) => args.add(value),
        };
        added.expect("every kind of value can be encoded");
    }
    args
}

fn sqlite_args(values: Vec<Value>) -> SqliteArguments {
    use sqlx::Arguments as _;
    let mut args = SqliteArguments::default();
    for value in values {
        let added = match value {
            Value::Uuid(value) => args.add(value),
            Value::Uuids(value) => args
                .add(serde_json::json!(value.iter().map(|id| id.simple().to_string()).collect::<Vec<_>>()).to_string()),
            Value::Text(value) => args.add(value),
            Value::Int(value) => args.add(value),
            Value::Bool(value) => args.add(value),
            Value::Bytes(value) => args.add(value),
            Value::Time(value) => args.add(value.map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, false))),
            Value::Json(value) => args.add(value.map(|json| json.to_string())),
        };
        added.expect("every kind of value can be encoded");
    }
    args
}
