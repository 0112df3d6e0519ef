//! The errors of the database.

use std::path::Path;

use sqlx::migrate::MigrateError;

use crate::quotas::QuotaExceeded;

/// A call to the database failed. Nothing of it was committed, unless the answer to a commit was lost.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A statement or a connection failed.
    #[error("could not {doing}")]
    Database {
        /// The action, as in "could not <doing>".
        doing: &'static str,
        /// The driver's error.
        source: sqlx::Error,
    },

    /// The caller's own time-out passed.
    #[error("could not {doing}: the database takes too long")]
    TooSlow {
        /// The action, as in "could not <doing>".
        doing: &'static str,
    },

    /// The database lacks a migration of this program.
    #[error(
        "the database's schema is older than this program: run `holdfast migrate` with the same settings (it keeps the data; make a backup first)"
    )]
    OldSchema,

    /// A build before version 0.1 has made the database.
    #[error(
        "a build of Holdfast before version 0.1 has made the database, and this version cannot read it: use an empty database or data folder (nothing in this one was changed)"
    )]
    UnreleasedSchema,

    /// A migration failed.
    #[error("could not bring the schema up to date")]
    Migrate(#[from] MigrateError),

    /// The data folder cannot be created, locked or made private.
    #[error("could not use the data folder {folder}: set HOLDFAST_DATA_DIR to a folder that can be written")]
    Folder {
        /// Path of the folder.
        folder: String,
        /// The system's error.
        source: std::io::Error,
    },

    /// The SQLite file is damaged, unreadable, or has no room.
    #[error(
        "could not use the database file {file}: make room for it, restore it from a backup, or set HOLDFAST_DATA_DIR to another folder"
    )]
    File {
        /// Path of the file.
        file: String,
        /// The error of the statement.
        source: Box<Error>,
    },

    /// Another process has locked the data folder.
    #[error(
        "the data folder {folder} is in use by another Holdfast: stop that one, or set HOLDFAST_DATA_DIR to another folder"
    )]
    FolderInUse {
        /// Path of the folder.
        folder: String,
    },

    /// The server does not apply the search path of the connection.
    #[error(
        "the database ignores search_path = kb, which each connection asks for; a pooler may drop it: set it on the role (`alter role … in database … set search_path = kb`), or connect directly"
    )]
    NoSearchPath,

    /// A pooler shares connections between transactions, and leaves the names of prepared statements as they are.
    #[error(
        "the pooler before the database confuses the prepared statements of its clients: use PgBouncer 1.21 or later with max_prepared_statements above 0, set pool_mode = session, or connect directly"
    )]
    SharedStatements,

    /// The owner's quota refused a write.
    #[error("could not {doing}: {exceeded}")]
    Quota {
        /// The action, as in "could not <doing>".
        doing: &'static str,
        /// The quota, with its limit.
        exceeded: QuotaExceeded,
    },

    /// An archived line is no event.
    #[error("the archive of run {run_id} cannot be read")]
    Damaged {
        /// The run of the archive.
        run_id: uuid::Uuid,
        /// The parser's error.
        source: crate::event::DamagedEvent,
    },
}

impl Error {
    /// For `map_err`: names the failed action, as in "could not <doing>".
    pub fn doing(doing: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self::Database { doing, source }
    }

    /// Returns whether the database is away, so that a later call may succeed.
    pub fn is_away(&self) -> bool {
        use sqlx::Error as Cause;
        match (self, self.cause()) {
            (Self::TooSlow { .. }, _) => true,
            // A refused certificate will be refused again.
            (_, Some(Cause::Io(error))) if error.kind() == std::io::ErrorKind::InvalidData => false,
            // A proxy that accepts a connection and closes it speaks no PostgreSQL.
            (_, Some(Cause::Protocol(_))) => true,
            (_, Some(Cause::Io(_) | Cause::PoolTimedOut | Cause::PoolClosed | Cause::WorkerCrashed)) => true,
            _ => self.code().is_some_and(|code| retry_advice(&code) == RetryAdvice::Later),
        }
    }

    /// Returns whether the folder or its file is out of reach, damaged, or without room. A database that another
    /// process uses, or that has an older schema, does not count.
    pub fn is_unusable(&self) -> bool {
        matches!(self, Self::Folder { .. } | Self::File { .. })
    }

    /// Adds the file's path, if the file is the cause.
    pub fn of_file(self, file: &Path) -> Self {
        if self.code().is_some_and(|code| blames_the_file(&code)) {
            Self::File { file: file.display().to_string(), source: Box::new(self) }
        } else {
            self
        }
    }

    /// Returns whether the database will never accept this data.
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

    /// Returns whether the server refused the statement, so nothing of it was committed.
    pub fn is_rolled_back(&self) -> bool {
        // Lost connections and an operator's end of one leave a commit uncertain.
        self.code().is_some_and(|code| !code.starts_with("57P") && !code.starts_with("08"))
    }

    /// Returns the same failure for another caller whose write was in the statement.
    pub fn for_another_caller(&self) -> Self {
        let (doing, cause) = match self {
            Self::Database { doing, source } => (*doing, source),
            _ => return Self::TooSlow { doing: "write with others" },
        };
        let kind = match cause {
            sqlx::Error::Io(error) => error.kind(),
            _ => std::io::ErrorKind::Other,
        };
        Self::Database { doing, source: sqlx::Error::Io(std::io::Error::new(kind, cause.to_string())) }
    }

    /// Returns whether the database works and will refuse the same write again. A missing table or privilege, which an
    /// operator can bring back, does not count.
    pub fn refuses_write(&self) -> bool {
        let is_of_schema = |code: &str| code.starts_with("42") || code == "1";
        self.refuses_data() || self.code().is_some_and(|code| is_refusal(&code) && !is_of_schema(&code))
    }

    /// Returns whether a row has a value that no version of this program writes.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
            || matches!(self.cause(), Some(sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)))
    }

    /// Returns whether the database works but refuses a row, by a constraint, a trigger, or the row's data.
    pub fn refuses_row(&self) -> bool {
        self.code().is_some_and(|code| is_refusal(&code))
    }

    /// Returns whether PostgreSQL ended this transaction in favour of another. The caller may repeat it at once.
    pub fn is_conflict(&self) -> bool {
        self.code().is_some_and(|code| matches!(code.as_str(), "40001" | "40P01"))
    }

    /// Returns whether another transaction has already written a row with this unique key.
    pub fn is_unique_violation(&self) -> bool {
        matches!(self, Self::Database { source: sqlx::Error::Database(error), .. } if error.is_unique_violation())
    }
}

fn is_refusal(code: &str) -> bool {
    match code.len() {
        // PostgreSQL's classes: data, constraints, privileges and unknown names, check options, limits, triggers.
        5 => matches!(&code[..2], "22" | "23" | "42" | "44" | "54" | "P0"),
        // SQLite, perhaps with extended codes: a wrong statement, too big, a constraint or a trigger, a wrong type.
        _ => code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 1 | 18 | 19 | 20)),
    }
}

/// PostgreSQL's code for a write on a read-only server or in a read-only session.
pub const READ_ONLY: &str = "25006";

/// Whether a retry can help, by an error code of PostgreSQL (SQLSTATE) or SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetryAdvice {
    Later,
    Never,
    Unknown,
}

fn retry_advice(code: &str) -> RetryAdvice {
    match code {
        // Locks and idle transactions that took too long, and a read-only server, such as a demoted one. SQLite: busy,
        // locked.
        "55P03" | "25P03" | READ_ONLY | "5" | "6" | "261" | "517" => RetryAdvice::Later,
        // SQLite: too big.
        "18" => RetryAdvice::Never,
        // SQLite: no permission, read-only, an I/O error, a full disk, cannot be opened. The disk may have room again.
        _ if code.len() != 5 => match code.parse::<u32>().map(|code| code & 0xff) {
            Ok(3 | 8 | 10 | 13 | 14) => RetryAdvice::Later,
            _ => RetryAdvice::Unknown,
        },
        _ => match &code[..2] {
            // Connections, conflicts with other transactions, resources, an operator's action or a time limit.
            "08" | "40" | "53" | "57" => RetryAdvice::Later,
            // Data that cannot be stored, or is beyond a limit.
            "22" | "54" => RetryAdvice::Never,
            _ => RetryAdvice::Unknown,
        },
    }
}

/// Returns whether SQLite's file has failed.
pub fn is_of_the_file(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.code().is_some_and(|code| blames_the_file(&code)))
}

/// Returns whether SQLite's code, perhaps an extended one, means that the file cannot be read or written.
fn blames_the_file(code: &str) -> bool {
    // No permission, read-only, an I/O error, damaged, a full disk, cannot be opened, no database.
    code.parse::<u32>().is_ok_and(|code| code < 10_000 && matches!(code & 0xff, 3 | 8 | 10 | 11 | 13 | 14 | 26))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_helps_after_a_lock_or_a_time_limit_and_not_with_bad_data() {
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
