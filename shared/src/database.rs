//! The database for another crate: its transactions, and the macros that declare statements and their parameters.

pub use crate::storage::{
    Error,
    sql::{Commit, Database, Json, Piece, RollBack, Settle, Sql, Tx, Value, args, statements},
};
