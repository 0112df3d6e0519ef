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

    /// Whether the database cannot be reached, so that the same call may succeed later.
    pub fn is_away(&self) -> bool {
        use sqlx::Error as Cause;
        match self {
            Self::TooSlow { .. } => true,
            Self::Database { source, .. } => {
                matches!(source, Cause::Io(_) | Cause::PoolTimedOut | Cause::PoolClosed | Cause::WorkerCrashed)
                // 57P: the server is shutting down or starting up.
                || matches!(source, Cause::Database(error) if error.code().is_some_and(|code| code.starts_with("57P")))
            }
            _ => false,
        }
    }

    /// Whether another transaction has already written a row with the same unique key.
    pub(super) fn is_unique_violation(&self) -> bool {
        matches!(self, Self::Database { source: sqlx::Error::Database(error), .. } if error.is_unique_violation())
    }
}
