//! Background writes in pieces: each piece is one transaction, which writes rows of one kind, and lets other writers go first.
//!
//! The name of a statement is the kind of its rows. The time of a piece, with its commit, decides about the next one of that
//! kind ([`PieceSize`]).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use super::{
    Database, Error,
    statement::Sql,
    transaction::{Settle, Tx},
    value::{Value, args},
};
use crate::piece::PieceSize;

/// The sizes of the next pieces, by the names of their statements; cheap to clone.
#[derive(Clone, Default)]
pub struct PieceSizes(Arc<Mutex<HashMap<&'static str, PieceSize>>>);

/// A piece of a background write.
pub struct Piece {
    sizes: PieceSizes,
    /// The rows that it has written: their statement, number and bytes.
    written: Option<(Sql, usize, usize)>,
}

impl PieceSizes {
    fn of(&self, sql: Sql) -> PieceSize {
        self.lock().get(sql.name()).copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, PieceSize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Piece {
    /// Returns what a statement may write in this piece.
    pub fn size(&self, sql: Sql) -> PieceSize {
        self.sizes.of(sql)
    }

    /// Notes what a statement has written. The piece ends with it.
    pub fn note(&mut self, sql: Sql, rows: usize, bytes: usize) {
        if rows > 0 {
            self.written = Some((sql, rows, bytes));
        }
    }

    /// Executes a statement whose last parameter is the number of rows that it writes at most. Returns whether it has written
    /// any: then the piece ends.
    pub async fn write(&mut self, tx: &mut Tx, sql: Sql, mut args: Vec<Value>) -> Result<bool, Error> {
        args.extend(args![self.size(sql).rows()]);
        let rows = tx.execute(sql, args).await?;
        self.note(sql, rows as usize, 0);
        Ok(rows > 0)
    }

    /// Executes such a statement with a further parameter: the bytes after which it takes no further row. It returns the bytes
    /// of each row.
    pub async fn write_bytes(&mut self, tx: &mut Tx, sql: Sql, mut args: Vec<Value>) -> Result<bool, Error> {
        let size = self.size(sql);
        args.extend(args![size.rows(), size.bytes()]);
        let rows = tx.fetch_all::<(i64,)>(sql, args).await?;
        self.note(sql, rows.len(), rows.iter().map(|(bytes,)| *bytes as usize).sum());
        Ok(!rows.is_empty())
    }
}

impl Database {
    /// Returns what a statement may write in its next piece.
    pub fn piece_size(&self, sql: Sql) -> PieceSize {
        self.sizes().of(sql)
    }

    /// Writes one piece: runs `body` in a transaction, like `transact`, after all writers that wait.
    pub async fn write_piece<T>(
        &self,
        doing: &'static str,
        body: impl AsyncFnOnce(&mut Tx, &mut Piece) -> Result<Settle<T>, Error>,
    ) -> Result<T, Error> {
        let mut piece = Piece { sizes: self.sizes().clone(), written: None };
        let mut began = None;
        let write = async |tx: &mut Tx| {
            began = Some(Instant::now());
            body(tx, &mut piece).await
        };
        let written = self.in_background().transact(doing, write).await?;
        if let (Some(began), Some((sql, rows, bytes))) = (began, piece.written) {
            let next = piece.sizes.of(sql).after(rows, bytes, began.elapsed());
            piece.sizes.lock().insert(sql.name(), next);
        }
        Ok(written)
    }

    /// Writes one piece of the first of these statements that has rows to write. The last parameter of each is the number of
    /// rows that it writes at most. Returns whether there was one.
    pub async fn write_piece_of(
        &self,
        doing: &'static str,
        statements: &[Sql],
        args: Vec<Value>,
    ) -> Result<bool, Error> {
        let write = async |tx: &mut Tx, piece: &mut Piece| {
            for sql in statements {
                if piece.write(tx, *sql, args.clone()).await? {
                    return Ok(Settle::Commit(true));
                }
            }
            Ok(Settle::RollBack(false))
        };
        self.write_piece(doing, write).await
    }
}
