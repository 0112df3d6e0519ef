//! A direct connection to the database: rows that no use case creates, and a search in all tables.

use std::path::Path;

use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

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
