//! SQL for two databases: connections, dialects, transactions, and writes that depend on one row.
//!
//! Each function takes the name of its action, so that its error says what the caller was doing. Nothing else in
//! `storage` sees an error of the driver.

mod batch;
mod database;
mod dialect;
mod error;
mod fenced_texts;
mod lanes;
mod outages;
mod pgvector;
mod pieces;
mod pool;
mod pooler;
mod schema;
mod servers;
mod statement;
mod transaction;
mod value;
mod writer;

pub use self::{
    batch::{FencedWrites, Spare, Statement},
    database::Database,
    error::Error,
    fenced_texts::FencedTexts,
    outages::within as was_away_within,
    pgvector::{Pgvector, find_pgvector},
    pieces::Piece,
    pool::{ACQUIRE, Connections, PostgresPool},
    pooler::shares_connections,
    schema::{check, is_empty, migrate},
    servers::Servers,
    statement::Sql,
    transaction::{Commit, RollBack, Settle, Tx},
    value::{Value, id_text, optional_id_text},
    writer::{SqliteWriter, closing_unsettled},
};
pub use sqlx::types::Json;
pub use statement::statements;
pub use value::args;

/// The statements of each file.
pub const STATEMENTS: &[&[Sql]] = &[batch::STATEMENTS, database::STATEMENTS, pgvector::STATEMENTS, schema::STATEMENTS];
