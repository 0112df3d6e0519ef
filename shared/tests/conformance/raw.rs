//! A direct connection to the database: rows that no use case creates, statements, and a search in all tables.

use std::path::Path;

use sqlx::{
    AssertSqlSafe, Connection, Either, Executor, PgConnection, SqlSafeStr, SqlStr, SqliteConnection, Statement,
    TypeInfo, postgres::PgTypeInfo,
};

pub enum Raw {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

impl Raw {
    pub async fn postgres(url: &str) -> Self {
        let mut connection = PgConnection::connect(url).await.unwrap();
        sqlx::query("set search_path to kb").execute(&mut connection).await.unwrap();
        Self::Postgres(connection)
    }

    pub async fn sqlite(folder: &Path) -> Self {
        let url = format!("sqlite:{}/holdfast.db", folder.display());
        Self::Sqlite(SqliteConnection::connect(&url).await.unwrap())
    }

    /// Executes the text of the database's own dialect.
    pub async fn execute(&mut self, postgres: &str, sqlite: &str) {
        match self {
            Self::Postgres(connection) => {
                sqlx::query(AssertSqlSafe(postgres.to_owned())).execute(connection).await.unwrap();
            }
            Self::Sqlite(connection) => {
                sqlx::query(AssertSqlSafe(sqlite.to_owned())).execute(connection).await.unwrap();
            }
        }
    }

    /// Returns the number that a text selects.
    pub async fn number(&mut self, text: &str) -> i64 {
        match self {
            Self::Postgres(connection) => {
                sqlx::query_scalar(AssertSqlSafe(text.to_owned())).fetch_one(connection).await.unwrap()
            }
            Self::Sqlite(connection) => {
                sqlx::query_scalar(AssertSqlSafe(text.to_owned())).fetch_one(connection).await.unwrap()
            }
        }
    }

    /// Prepares a text without executing it.
    pub async fn prepare(&mut self, text: &str) -> Result<(), sqlx::Error> {
        match self {
            Self::Postgres(connection) => {
                let types = inferred_types(connection, text).await?;
                connection.prepare_with(sql(text), &types).await.map(drop)
            }
            Self::Sqlite(connection) => connection.prepare(sql(text)).await.map(drop),
        }
    }

    /// Returns the lines of PostgreSQL's plan for a text whose parameters are unknown, with new statistics of the runs.
    pub async fn generic_plan(&mut self, text: &str) -> Vec<String> {
        let Self::Postgres(connection) = self else { panic!("SQLite makes no such plan") };
        let types = inferred_types(connection, text).await.unwrap();
        let names = types.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
        let nulls = vec!["null"; types.len()].join(", ");
        let prepare = format!(
            "analyze agent_runs; set plan_cache_mode = force_generic_plan; set enable_seqscan = off; \
             set enable_bitmapscan = off; prepare planned ({names}) as {text}"
        );
        sqlx::raw_sql(AssertSqlSafe(prepare)).execute(&mut *connection).await.unwrap();
        let explain = format!("explain (costs off) execute planned ({nulls})");
        let plan: Vec<String> = sqlx::query_scalar(AssertSqlSafe(explain)).fetch_all(&mut *connection).await.unwrap();
        (&mut *connection).execute("deallocate planned").await.unwrap();
        plan
    }

    /// Returns the tables that contain this text, as text or as bytes.
    pub async fn tables_with(&mut self, text: &str) -> Vec<String> {
        let bytes: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        let mut found = Vec::new();
        for table in self.tables().await {
            let rows = self.rows(&table).await.to_lowercase();
            if rows.contains(&text.to_lowercase()) || rows.contains(&bytes) {
                found.push(table);
            }
        }
        found
    }

    async fn tables(&mut self) -> Vec<String> {
        match self {
            Self::Postgres(connection) => {
                let sql = "select tablename::text from pg_tables where schemaname = 'kb' order by 1";
                sqlx::query_scalar(sql).fetch_all(connection).await.unwrap()
            }
            Self::Sqlite(connection) => {
                let sql = "select name from sqlite_master where type = 'table' order by 1";
                sqlx::query_scalar(sql).fetch_all(connection).await.unwrap()
            }
        }
    }

    async fn rows(&mut self, table: &str) -> String {
        let rows: Vec<String> = match self {
            Self::Postgres(connection) => {
                let sql = format!("select t::text from kb.{table} t");
                sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(connection).await.unwrap()
            }
            Self::Sqlite(connection) => {
                let sql = format!(
                    "select group_concat('quote(\"' || name || '\")', ' || ') from pragma_table_info('{table}')"
                );
                let columns: String = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut *connection).await.unwrap();
                let sql = format!("select {columns} from {table}");
                sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(connection).await.unwrap()
            }
        };
        rows.join("\n")
    }
}

/// Returns the types of the parameters of a text. The driver sends them to PostgreSQL, which infers them here; `$1 is null`
/// prevents that.
async fn inferred_types(connection: &mut PgConnection, text: &str) -> Result<Vec<PgTypeInfo>, sqlx::Error> {
    let null_test = |n: usize| format!("${n} is null");
    let inferable = (1..100).fold(text.to_owned(), |text, n| text.replace(&null_test(n), "true"));
    let inferred = connection.prepare(sql(&inferable)).await?;
    Ok(match inferred.parameters() {
        Some(Either::Left(types)) => types.to_vec(),
        _ => Vec::new(),
    })
}

fn sql(text: &str) -> SqlStr {
    AssertSqlSafe(text.to_owned()).into_sql_str()
}
