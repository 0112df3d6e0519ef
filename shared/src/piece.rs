//! The size of the next piece of a background write, which follows the time of the piece before.
//!
//! SQLite has one writer, and each piece holds it from its first statement to its commit. Rows of one kind cost about the same
//! at one time, but a passage in the index costs far more than a row of a plain table.

use std::time::Duration;

/// The time that a piece should take.
const AIM: Duration = Duration::from_millis(50);

/// The first piece, while no piece has shown the cost of a row. So many passages of random words take the time of the aim.
const FIRST: usize = 4;

/// The largest piece.
const MOST: usize = 500;

/// The bytes of a row that count as another row.
const ROW_BYTES: usize = 4096;

/// Rows that a piece may write. Each 4 KiB of a row count as another row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceSize(usize);

impl Default for PieceSize {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl PieceSize {
    /// Most rows of the piece.
    pub const fn rows(self) -> usize {
        self.0
    }

    /// The bytes after which the piece takes no further row.
    pub const fn bytes(self) -> usize {
        self.0 * ROW_BYTES
    }

    /// Returns the size after a piece of this size, which has written so many rows and bytes and has taken so long.
    ///
    /// A size at most doubles, because a long piece does harm and a short one costs little. A piece that was not full shows
    /// only that a size is too large.
    pub fn after(self, rows: usize, bytes: usize, took: Duration) -> Self {
        let written = rows.max(bytes.div_ceil(ROW_BYTES));
        if written == 0 {
            return self;
        }
        let fitting = written as u128 * AIM.as_micros() / took.as_micros().max(1);
        let fitting = usize::try_from(fitting).unwrap_or(MOST).clamp(1, MOST);
        let most = if written >= self.0 { self.0 * 2 } else { self.0 };
        let least = if took <= AIM { self.0 } else { 1 };
        Self(fitting.max(least).min(most).min(MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(size: usize, (rows, bytes): (usize, usize), took_ms: u64, expected: usize) {
        let next = PieceSize(size).after(rows, bytes, Duration::from_millis(took_ms));
        assert_eq!(next.rows(), expected, "{rows} of {size} rows with {bytes} bytes in {took_ms} ms");
    }

    #[test]
    fn the_next_piece_follows_the_time_of_the_one_before() {
        // A full piece in time: at most twice as many.
        check(4, (4, 0), 0, 8);
        check(4, (4, 0), 2, 8);
        check(100, (100, 0), 40, 125);
        check(100, (100, 0), 50, 100);
        check(400, (400, 0), 1, MOST);
        // A piece that took too long.
        check(100, (100, 0), 200, 25);
        check(25, (25, 0), 140, 8);
        check(500, (500, 0), 2400, 10);
        check(4, (4, 0), 60_000, 1);
        check(1, (1, 0), 60_000, 1);
        // The rest of a table: no larger, and smaller only if it took too long.
        check(100, (10, 0), 1, 100);
        check(100, (1, 0), 49, 100);
        check(100, (10, 0), 100, 5);
        check(100, (0, 0), 1000, 100);
    }

    #[test]
    fn bytes_count_as_rows() {
        // One row of 64 KiB fills a piece of 16 rows.
        check(16, (1, 1 << 16), 5, 32);
        check(16, (1, 1 << 16), 100, 8);
        check(100, (1, 1 << 16), 5, 100);
        // A row of 4 MiB is written alone, however small the piece is.
        check(1, (1, 4 << 20), 40, 2);
        assert_eq!(PieceSize::default().bytes(), FIRST * ROW_BYTES);
    }
}
