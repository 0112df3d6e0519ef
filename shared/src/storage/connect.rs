//! Opens the database of the settings.

use std::{
    io,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use secrecy::{ExposeSecret, SecretString};
use sqlx::{
    AssertSqlSafe, Connection as _, Row as _, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{
    Caution, Error, Storage, data_folder,
    roomy_owners::RoomyOwners,
    run,
    sql::{self, ACQUIRE, Database, Pgvector, PostgresPool, Servers, SqliteWriter},
};
use crate::config::{Stores, StoresConfig};

/// Connects to the database. It creates the schema of a new SQLite file, and fails for an older schema. If the file
/// cannot be used, `CHAT_MEMORY_FALLBACK` replaces it by memory, with a caution.
pub async fn connect(stores: &Stores, config: &StoresConfig) -> Result<Storage, Error> {
    match prepare(stores, config, &SERVER_LIMITS).await.map_err(|error| of_file(error, stores)) {
        Err(unusable) if config.memory_fallback && unusable.is_unusable() => {
            let in_memory = prepare(&Stores::EmbeddedInMemory, config, &SERVER_LIMITS).await?;
            Ok(Storage { caution: Some(Caution::kept_in_memory(unusable)), ..in_memory })
        }
        connected => connected,
    }
}

/// Connects for a process that is a worker only. PostgreSQL plans each of a worker's few statements once, because they
/// find rows by id. An API's lists have optional conditions, and one plan for all of them would be slow.
pub async fn connect_worker(stores: &Stores, config: &StoresConfig) -> Result<Storage, Error> {
    let plan_once = ("plan_cache_mode", "force_generic_plan");
    prepare(stores, config, &[&SERVER_LIMITS[..], &[plan_once]].concat()).await
}

/// The database's schema, compared with this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaState {
    /// The database has each migration of this program.
    UpToDate,
    /// The database lacks a migration, or all of them.
    Older,
    /// There is no file yet. The first start creates it.
    Missing,
}

/// Connects as a process would, and checks the schema. It changes nothing.
pub async fn inspect(stores: &Stores, config: &StoresConfig) -> Result<SchemaState, Error> {
    if matches!(stores, Stores::Embedded { data_dir } if !file_in(data_dir).exists()) {
        return Ok(SchemaState::Missing);
    }
    let inspected = async {
        let storage = open(stores, config, &SERVER_LIMITS).await?;
        match sql::check(&storage.database).await {
            Ok(()) => Ok(SchemaState::UpToDate),
            Err(Error::OldSchema) if matches!(stores, Stores::EmbeddedInMemory) => Ok(SchemaState::Missing),
            Err(Error::OldSchema) => Ok(SchemaState::Older),
            Err(error) => Err(error),
        }
    };
    inspected.await.map_err(|error| of_file(error, stores))
}

/// Applies all missing migrations.
pub async fn migrate(stores: &Stores, config: &StoresConfig) -> Result<(), Error> {
    let migrated = async {
        // One connection has the lock, and another one migrates.
        let config = StoresConfig { database_pool: config.database_pool.max(2), ..config.clone() };
        let storage = open(stores, &config, &SERVER_LIMITS[..1]).await?;
        sql::migrate(&storage.database).await
    };
    migrated.await.map_err(|error| of_file(error, stores))
}

async fn prepare(stores: &Stores, config: &StoresConfig, settings: &[(&str, &str)]) -> Result<Storage, Error> {
    let mut storage = open(stores, config, settings).await?;
    let fresh_file = !matches!(stores, Stores::ScaledOut { .. }) && sql::is_empty(&storage.database).await?;
    if fresh_file {
        sql::migrate(&storage.database).await?;
    }
    sql::check(&storage.database).await?;
    storage.pgvector = sql::find_pgvector(&storage.database).await?;
    if !matches!(stores, Stores::ScaledOut { .. }) {
        storage.void_leases().await?;
    }
    Ok(storage)
}

/// Refuses the file of a build before version 0.1, and changes nothing in its folder. `prepare` refuses a file whose schema is still
/// in its write-ahead log, and reports what else is wrong with a file.
async fn expect_released(file: &Path) -> Result<(), Error> {
    let options = SqliteConnectOptions::new().filename(file).read_only(true).immutable(true);
    let Ok(reader) = sqlite(options, 1).await else { return Ok(()) };
    let database = Database::Sqlite { writer: SqliteWriter::new(reader.clone()), reader: reader.clone() };
    let checked = sql::check(&database).await;
    reader.close().await;
    match checked {
        Err(Error::UnreleasedSchema) => Err(Error::UnreleasedSchema),
        _ => Ok(()),
    }
}

async fn open(stores: &Stores, config: &StoresConfig, settings: &[(&str, &str)]) -> Result<Storage, Error> {
    match stores {
        Stores::ScaledOut { database_url, .. } => {
            let servers = postgres(database_url, settings).await?;
            let is_shared = sql::shares_connections(&servers).await?;
            let with_settings = servers.clone().with_settings(&GROUP_SETTINGS);
            let has_settings = setting(&with_settings, "enable_hashjoin").await? == "off";
            let grouped = if has_settings {
                PostgresPool::new(with_settings, GROUP_POOL)
            } else {
                PostgresPool::new(servers.clone(), GROUP_POOL).behind_pooler(BEGIN_GROUP)
            };
            let pool = PostgresPool::new(servers, config.database_pool);
            let pool = if is_shared { pool.behind_pooler(BEGIN) } else { pool };
            Ok(Storage {
                database: Database::Postgres(pool),
                _folder: None,
                _keeper: None,
                caution: None,
                groups: Some(run::Groups::start(Database::Postgres(grouped))),
                roomy_owners: RoomyOwners::default(),
                pgvector: Pgvector::Missing,
            })
        }
        Stores::Embedded { data_dir } => {
            // Order matters: the next line writes into the folder.
            expect_released(&file_in(data_dir)).await?;
            let folder = data_folder::take(data_dir, &file_in(data_dir))?;
            let options = SqliteConnectOptions::new().filename(file_in(data_dir)).create_if_missing(true);
            let options = options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
            // A deleted row leaves zeros, and no text of it in the pages that the file keeps.
            let options = options.foreign_keys(true).busy_timeout(ACQUIRE).pragma("secure_delete", "on");
            let writer = sqlite(options.clone(), 1).await?;
            let reader = sqlite(options, READERS).await?;
            Ok(Storage {
                database: Database::Sqlite { writer: SqliteWriter::new(writer), reader },
                _folder: Some(Arc::new(folder)),
                _keeper: None,
                caution: None,
                groups: None,
                roomy_owners: RoomyOwners::default(),
                pgvector: Pgvector::Missing,
            })
        }
        Stores::EmbeddedInMemory => {
            let options =
                SqliteConnectOptions::from_str("sqlite::memory:").expect("a constant URL is valid").foreign_keys(true);
            let keeper = sqlite(options.clone(), 1).await?;
            let only = sqlite(options, 1).await?;
            Ok(Storage {
                database: Database::Sqlite { writer: SqliteWriter::new(only.clone()), reader: only },
                _folder: None,
                _keeper: Some(keeper),
                caution: None,
                groups: None,
                roomy_owners: RoomyOwners::default(),
                pgvector: Pgvector::Missing,
            })
        }
    }
}

/// Limits that free the locks of a lost process. The server ends statements, waits and transactions that take too long,
/// and detects dead connections. No statement is worth a compilation, which takes 0.8 s, and none reads a whole table that
/// has an index for it. PostgreSQL would, while the table is small by its statistics, and would keep that plan for a table that
/// has grown. Migrations use the first entry only.
const SERVER_LIMITS: [(&str, &str); 10] = [
    ("search_path", "kb"),
    ("jit", "off"),
    ("enable_seqscan", "off"),
    ("statement_timeout", "10s"),
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "10s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "15s"),
];

/// Settings of the connection for groups. Its statements find each member's rows by their ids. PostgreSQL plans them once,
/// perhaps when the tables are still small, and would read whole tables from then on.
const GROUP_SETTINGS: [(&str, &str); 5] = [
    ("jit", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
];

/// Begins a transaction with those settings, for a pooler that drops the settings of a connection.
const BEGIN_GROUP: &str = "begin; set local jit = off; set local plan_cache_mode = force_generic_plan; set local enable_seqscan = off; \
     set local enable_hashjoin = off; set local enable_mergejoin = off";
const BEGIN: &str = "begin";

/// Connections that read the SQLite file. The two long reads that `HOLDFAST_READS` admits use three each and two searches one
/// each, and other reads find a free one.
const READERS: u32 = 12;

/// Connections for groups: an API has a group of opening messages and a lone one, a worker a group of ends and one of
/// flushes. A process with both roles shares them.
const GROUP_POOL: usize = 2;

/// Returns the servers, with the settings of each connection. Fails if the server refuses a connection.
async fn postgres(url: &SecretString, settings: &[(&str, &str)]) -> Result<Servers, Error> {
    let servers = Servers::read(url.expose_secret()).map_err(Error::doing("read DATABASE_URL"))?;
    let servers = servers.with_name("holdfast").with_settings(settings);
    let path = setting(&servers, "search_path").await?;
    // Without the search path, PostgreSQL would use tables in `public`.
    match path.split(',').next().map(str::trim) {
        Some("kb") => Ok(servers),
        _ => Err(Error::NoSearchPath),
    }
}

/// Connects once, and returns a setting of that connection. A pool would retry and hide its error.
async fn setting(servers: &Servers, name: &'static str) -> Result<String, Error> {
    let connection = async {
        let mut connection = servers.connect().await?;
        let setting = sqlx::raw_sql(AssertSqlSafe(format!("show {name}"))).fetch_one(&mut connection).await?;
        connection.close().await?;
        setting.try_get(0)
    };
    let setting = match tokio::time::timeout(ACQUIRE, connection).await {
        Ok(setting) => setting,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time").into()),
    };
    setting.map_err(Error::doing("connect to the database that DATABASE_URL names"))
}

async fn sqlite(options: SqliteConnectOptions, connections: u32) -> Result<SqlitePool, Error> {
    // A database in memory ends with its last connection, so no connection ends for its age.
    let pool =
        SqlitePoolOptions::new().max_connections(connections).min_connections(1).idle_timeout(None).max_lifetime(None);
    sql::closing_unsettled(pool).connect_with(options).await.map_err(Error::doing("open the SQLite database"))
}

fn file_in(folder: &Path) -> PathBuf {
    folder.join("holdfast.db")
}

fn of_file(error: Error, stores: &Stores) -> Error {
    match stores {
        Stores::Embedded { data_dir } => error.of_file(&file_in(data_dir)),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_the_same_settings_by_its_connection_or_its_transaction() {
        let settings = GROUP_SETTINGS.map(|(name, value)| format!("; set local {name} = {value}"));
        assert_eq!(BEGIN_GROUP, format!("{BEGIN}{}", settings.concat()));
    }
}
