//! A database behind the storage's back: rows that no use case makes, and a look at all that is stored.

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
}
