//! What can go wrong with the database.

use std::path::Path;

use sqlx::migrate::MigrateError;

use crate::quotas::QuotaExceeded;

/// A call to the database failed; nothing of it was committed, unless the answer to a commit was lost.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("could not {doing}")]
    Database { doing: &'static str, source: sqlx::Error },

    #[error("could not {doing}: the database takes too long")]
    TooSlow { doing: &'static str },

    #[error(
        "the database's schema is older than this program: run `holdfast migrate` with the same settings (it keeps the data; make a backup first)"
    )]
    OldSchema,

    #[error("could not bring the schema up to date")]
    Migrate(#[from] MigrateError),

    #[error("could not use the data folder {folder}: set HOLDFAST_DATA_DIR to a folder that can be written")]
    Folder { folder: String, source: std::io::Error },

    #[error(
        "could not use the database file {file}: make room for it, restore it from a backup, or set HOLDFAST_DATA_DIR to another folder"
    )]
    File { file: String, source: Box<Error> },

    #[error(
        "the data folder {folder} is in use by another Holdfast: stop that one, or set HOLDFAST_DATA_DIR to another folder"
    )]
    FolderInUse { folder: String },

    #[error(
        "the database ignores search_path = kb, which each connection asks for; a pooler may drop it: set it on the role (`alter role … in database … set search_path = kb`), or connect directly"
    )]
    NoSearchPath,

    /// A write that the owner's quota refuses.
    #[error("could not {doing}: {exceeded}")]
    Quota { doing: &'static str, exceeded: QuotaExceeded },

    #[error("the archive of run {run_id} cannot be read")]
    Damaged { run_id: uuid::Uuid, source: crate::event::Damaged },
}

impl Error {
    /// For `map_err`: names what was being done, as in "could not <doing>".
    pub(super) fn doing(doing: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self::Database { doing, source }
    }

    /// Whether the database cannot answer now, so that the same call may succeed later.
    pub fn is_away(&self) -> bool {
        use sqlx::Error as Cause;
        match (self, self.cause()) {
            (Self::TooSlow { .. }, _) => true,
            // A certificate that one side refuses, it will refuse again.
            (_, Some(Cause::Io(error))) if error.kind() == std::io::ErrorKind::InvalidData => false,
            // A proxy that accepts a connection and hangs up speaks no PostgreSQL.
            (_, Some(Cause::Protocol(_))) => true,
            (_, Some(Cause::Io(_) | Cause::PoolTimedOut | Cause::PoolClosed | Cause::WorkerCrashed)) => true,
            _ => self.code().is_some_and(|code| retry_advice(&code) == RetryAdvice::Later),
        }
    }

    /// Whether there is no database to be had: the folder or the file under it is out of reach, damaged, or without room. It
    /// is not, where a database was found that must not be used: another process has it, or its schema is old.
    pub fn is_unusable(&self) -> bool {
        matches!(self, Self::Folder { .. } | Self::File { .. })
    }

    /// Names the file, if it is the file that fails.
    pub(super) fn of_file(self, file: &Path) -> Self {
        match self.code().is_some_and(|code| blames_the_file(&code)) {
            true => Self::File { file: file.display().to_string(), source: Box::new(self) },
            false => self,
        }
    }

    /// Whether the database will never take what it was given.
    pub fn refuses_data(&self) -> bool {
        self.code().is_some_and(|code| retry_advice(&code) == RetryAdvice::Never)
    }

    fn code(&self) -> Option<String> {
        match self.cause()? {
            sqlx::Error::Database(error) => error.code().map(|code| code.into_owned()),
            _ => None,
        }
    }

    fn cause(&self) -> Option<&sqlx::Error> {
        match self {
            Self::Database { source, .. }
            | Self::Migrate(MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _)) => Some(source),
            _ => None,
        }
    }

    /// Whether PostgreSQL ended the transaction for the sake of another one, so that the same transaction may succeed at once.
    pub(super) fn is_conflict(&self) -> bool {
        self.code().is_some_and(|code| matches!(code.as_str(), "40001" | "40P01"))
    }

    /// Whether another transaction has already written a row with the same unique key.
    pub(super) fn is_unique_violation(&self) -> bool {
        matches!(self, Self::Database { source: sqlx::Error::Database(error), .. } if error.is_unique_violation())
    }
}

/// Whether the database is there and refuses what a statement would write: by a rule of its own, or for what it is.
pub(super) fn refuses_row(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => error.code().is_some_and(|code| is_refusal(&code)),
        _ => false,
    }
}

fn is_refusal(code: &str) -> bool {
    match code.len() {
        // Data, constraints, privileges and unknown names, check options, limits, triggers.
        5 => matches!(&code[..2], "22" | "23" | "42" | "44" | "54" | "P0"),
        // SQLite, perhaps extended: an error of the statement, too big, a constraint or a trigger, the wrong type.
        _ => code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 1 | 18 | 19 | 20)),
    }
}

/// PostgreSQL's code for a write to a server, or in a session, that is read-only.
pub(super) const READ_ONLY: &str = "25006";

/// What an error code of PostgreSQL (SQLSTATE) or SQLite says about trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetryAdvice {
    Later,
    Never,
    Unknown,
}

fn retry_advice(code: &str) -> RetryAdvice {
    match code {
        // Locks and idle transactions that took too long; a server that is read-only, as a demoted one; SQLite: busy, locked.
        "55P03" | "25P03" | READ_ONLY | "5" | "6" | "261" | "517" => RetryAdvice::Later,
        // SQLite: too big.
        "18" => RetryAdvice::Never,
        // SQLite: no permission, read-only, an I/O error, the disk is full, cannot be opened. The disk may have room again.
        _ if code.len() != 5 => match code.parse::<u32>().map(|code| code & 0xff) {
            Ok(3 | 8 | 10 | 13 | 14) => RetryAdvice::Later,
            _ => RetryAdvice::Unknown,
        },
        _ => match &code[..2] {
            // Connections, conflicts with other transactions, resources, an operator's hand or a time limit.
            "08" | "40" | "53" | "57" => RetryAdvice::Later,
            // Data that cannot be kept, or is beyond a limit.
            "22" | "54" => RetryAdvice::Never,
            _ => RetryAdvice::Unknown,
        },
    }
}

/// Whether it is SQLite's file that has failed.
pub(super) fn is_of_the_file(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.code().is_some_and(|code| blames_the_file(&code)))
}

/// Whether SQLite's code, perhaps an extended one, means that the file itself cannot be read or written.
fn blames_the_file(code: &str) -> bool {
    // No permission, read-only, an I/O error, damaged, the disk is full, cannot be opened, no database.
    code.parse::<u32>().is_ok_and(|code| code < 10_000 && matches!(code & 0xff, 3 | 8 | 10 | 11 | 13 | 14 | 26))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_or_a_time_limit_passes_and_bad_data_does_not() {
        let check = |codes: &[&str], expected| {
            for code in codes {
                assert_eq!(retry_advice(code), expected, "{code}");
            }
        };
        check(
            &["55P03", "57014", "57P01", "57P03", "40P01", "40001", "53300", "08006", "25P03", "25006", "5"],
            RetryAdvice::Later,
        );
        check(&["13", "10", "778", "8", "14"], RetryAdvice::Later);
        check(&["22021", "22001", "54000", "18"], RetryAdvice::Never);
        check(&["23505", "42601", "28P01", "3D000", "2067", "1"], RetryAdvice::Unknown);
    }

    #[test]
    fn a_rule_of_the_database_refuses_a_row_and_a_lock_or_a_full_disk_does_not() {
        for (codes, expected) in [
            (&["22021", "23514", "23505", "42501", "54000", "P0001", "1", "18", "19", "1811", "275", "20"][..], true),
            (&["08006", "40001", "53100", "55P03", "57014", "25006", "25P02", "58030", "5", "10", "13", "517"], false),
        ] {
            for code in codes {
                assert_eq!(is_refusal(code), expected, "{code}");
            }
        }
    }

    #[test]
    fn a_file_that_is_damaged_or_has_no_room_is_to_blame_and_a_lock_is_not() {
        let check = |codes: &[&str], expected| {
            for code in codes {
                assert_eq!(blames_the_file(code), expected, "{code}");
            }
        };
        check(&["8", "10", "778", "11", "13", "14", "26"], true);
        check(&["1", "5", "261", "517", "2067", "57014", "3D000"], false);
    }
}
