//! What can go wrong with the database.

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
    Migrate(#[from] sqlx::migrate::MigrateError),

    #[error("could not use the data folder {folder}: set HOLDFAST_DATA_DIR to a folder that can be written")]
    Folder { folder: String, source: std::io::Error },

    #[error(
        "the data folder {folder} is in use by another Holdfast: stop that one, or set HOLDFAST_DATA_DIR to another folder"
    )]
    FolderInUse { folder: String },

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
        match self {
            Self::TooSlow { .. } => true,
            Self::Database { source, .. } => {
                matches!(source, Cause::Io(_) | Cause::PoolTimedOut | Cause::PoolClosed | Cause::WorkerCrashed)
                    || self.code().is_some_and(|code| verdict(&code) == Verdict::Later)
            }
            _ => false,
        }
    }

    /// Whether the database will never take what it was given.
    pub fn refuses_data(&self) -> bool {
        self.code().is_some_and(|code| verdict(&code) == Verdict::Never)
    }

    fn code(&self) -> Option<String> {
        match self {
            Self::Database { source: sqlx::Error::Database(error), .. } => error.code().map(|code| code.into_owned()),
            _ => None,
        }
    }

    /// Whether another transaction has already written a row with the same unique key.
    pub(super) fn is_unique_violation(&self) -> bool {
        matches!(self, Self::Database { source: sqlx::Error::Database(error), .. } if error.is_unique_violation())
    }
}

/// What an error code of PostgreSQL (SQLSTATE) or SQLite says about trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Later,
    Never,
    Unknown,
}

fn verdict(code: &str) -> Verdict {
    match code {
        // Locks and idle transactions that took too long; SQLite: busy, locked.
        "55P03" | "25P03" | "5" | "6" | "261" | "517" => Verdict::Later,
        // SQLite: too big.
        "18" => Verdict::Never,
        _ if code.len() != 5 => Verdict::Unknown,
        _ => match &code[..2] {
            // Connections, conflicts with other transactions, resources, an operator's hand or a time limit.
            "08" | "40" | "53" | "57" => Verdict::Later,
            // Data that cannot be kept, or is beyond a limit.
            "22" | "54" => Verdict::Never,
            _ => Verdict::Unknown,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_or_a_time_limit_passes_and_bad_data_does_not() {
        let check = |codes: &[&str], expected| {
            for code in codes {
                assert_eq!(verdict(code), expected, "{code}");
            }
        };
        check(&["55P03", "57014", "57P01", "40P01", "40001", "53300", "08006", "25P03", "5"], Verdict::Later);
        check(&["22021", "22001", "54000", "18"], Verdict::Never);
        check(&["23505", "42601", "2067", "1"], Verdict::Unknown);
    }
}
