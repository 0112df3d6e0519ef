//! A pooler between this program and PostgreSQL, such as PgBouncer. In transaction mode, each transaction may run on
//! another of the server's connections, so settings of a connection do not last, and names of prepared statements collide
//! unless the pooler replaces them.
//!
//! Only connections tell, because a pooler looks like a server. The probes use the simple protocol, which prepares
//! nothing.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use uuid::Uuid;

use super::{Error, database::within, servers::Servers};

const PROBE: &str = "look for a pooler before the database";

/// Times that each of two connections is asked. Other clients may use the server's connections in between.
const ROUNDS: usize = 5;

/// Returns whether a pooler shares the server's connections between transactions. Fails if that pooler leaves the names of
/// prepared statements as they are.
pub async fn shares_connections(servers: &Servers) -> Result<bool, Error> {
    let probe = async {
        let (mut one, mut other) = (servers.connect().await?, servers.connect().await?);
        let is_shared = is_shared(&mut one, &mut other).await?;
        let confuses = is_shared && !replaces_names(&mut one).await?;
        one.close().await?;
        other.close().await?;
        Ok((is_shared, confuses))
    };
    let (is_shared, confuses) = within(probe).await.map_err(Error::doing(PROBE))?;
    if confuses { Err(Error::SharedStatements) } else { Ok(is_shared) }
}

/// A server gives each connection a process of its own, so two connections with one process share it.
async fn is_shared(one: &mut PgConnection, other: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let own = process(one).await?;
    for _ in 0..ROUNDS {
        if process(other).await? == own || process(one).await? != own {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn process(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    sqlx::raw_sql("select pg_backend_pid()").fetch_one(connection).await?.try_get(0)
}

/// Returns whether the server knows a prepared statement by another name than the driver does.
async fn replaces_names(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::raw_sql("begin").execute(&mut *connection).await?;
    // The server may keep statements of earlier clients, so this one's text is unique.
    let text = format!("select 'holdfast looks for a pooler {}'", Uuid::now_v7());
    let prepared = sqlx::query(AssertSqlSafe(text.clone())).execute(&mut *connection).await;
    let replaces_names = match prepared {
        Ok(_) => {
            let by_its_name = format!(
                "select exists (select from pg_prepared_statements where name like 'sqlx%' and statement = $${text}$$)"
            );
            !sqlx::raw_sql(AssertSqlSafe(by_its_name)).fetch_one(&mut *connection).await?.try_get::<bool, _>(0)?
        }
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(DUPLICATE_STATEMENT) => false,
        Err(error) => return Err(error),
    };
    sqlx::raw_sql("rollback").execute(connection).await?;
    Ok(replaces_names)
}

/// PostgreSQL's code for a second prepared statement of one name.
const DUPLICATE_STATEMENT: &str = "42P05";
