//! The database and Redis: the choice between embedded and scaled out.

use std::{path::PathBuf, time::Duration};

use secrecy::{ExposeSecret, SecretString};

use super::{Error, count, milliseconds};

/// Settings of the stores that API and workers share.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Stores")]
pub struct StoresConfig {
    /// Folder of the embedded database.
    #[arg(long, env = "HOLDFAST_DATA_DIR", default_value = "./holdfast-data")]
    pub data_dir: PathBuf,

    /// PostgreSQL of the scaled-out mode, as postgres://user:password@host:port/database; needs REDIS_URL too.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<SecretString>,

    /// Another name for DATABASE_URL.
    #[arg(long, env = "SESSION_SERVICE_URI", hide_env_values = true)]
    pub session_service_uri: Option<SecretString>,

    /// Refused, because no back end can use it.
    #[arg(long, env = "MONGO_URI", hide = true, hide_env_values = true)]
    pub mongo_uri: Option<SecretString>,

    /// Redis of the scaled-out mode, as redis://host:port, redis-sentinel://host,host#master or redis-cluster://host,host; needs DATABASE_URL too.
    #[arg(long, env = "REDIS_URL", hide_env_values = true)]
    pub redis_url: Option<SecretString>,

    /// Back end of the conversations; the one of DATABASE_URL by default.
    #[arg(long = "chat-memory-backend", env = "CHAT_MEMORY_BACKEND", value_enum)]
    pub memory_backend: Option<MemoryBackend>,

    /// Whether the process keeps data in memory, and loses it at its end, if the embedded database cannot be used at
    /// start.
    #[arg(
        long = "chat-memory-fallback",
        env = "CHAT_MEMORY_FALLBACK",
        default_value = "false",
        action = clap::ArgAction::Set
    )]
    pub memory_fallback: bool,

    /// Time for which the start waits for a database and a Redis that are away, in ms.
    #[arg(long = "start-patience-ms", env = "HOLDFAST_START_PATIENCE_MS", default_value = "30000", value_parser = milliseconds)]
    pub start_patience: Duration,

    /// Connections that one process keeps to PostgreSQL.
    #[arg(long, env = "HOLDFAST_DATABASE_POOL", default_value = "16", value_parser = count)]
    pub database_pool: usize,

    /// Time for which Redis keeps a run's hot log after its last event, in ms.
    #[arg(long = "log-ttl-ms", env = "HOLDFAST_LOG_TTL_MS", default_value = "3600000", value_parser = milliseconds)]
    pub log_ttl: Duration,

    /// Time after a run's end in which clients can replay its events, in ms; later requests get 410.
    #[arg(long = "archive-retention-ms", env = "HOLDFAST_ARCHIVE_RETENTION_MS", default_value = "604800000", value_parser = milliseconds)]
    pub archive_retention: Duration,
}

/// The values of `CHAT_MEMORY_BACKEND`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MemoryBackend {
    /// PostgreSQL at `DATABASE_URL`.
    Postgres,
    /// A SQLite file in the data folder.
    Sqlite,
    /// SQLite without a file. The end of the process loses all data.
    Memory,
}

/// The mode that results from the settings.
#[derive(Debug, Clone)]
pub enum Stores {
    /// One process with a SQLite file.
    Embedded {
        /// Folder of the file `holdfast.db`.
        data_dir: PathBuf,
    },
    /// One process with all data in memory.
    EmbeddedInMemory,
    /// Any number of processes, which share PostgreSQL and Redis.
    ScaledOut {
        /// Begins with `postgres://` or `postgresql://`.
        database_url: SecretString,
        /// Begins with one of `REDIS_SCHEMES`.
        redis_url: SecretString,
    },
}

impl StoresConfig {
    /// Returns the mode; no other code decides it. Fails for settings that contradict one another.
    pub fn stores(&self) -> Result<Stores, Error> {
        if self.mongo_uri.as_ref().is_some_and(|uri| !uri.expose_secret().is_empty()) {
            return Err(Error::new(
                "MONGO_URI",
                "cannot be used, because conversations are kept in PostgreSQL or SQLite; unset it, and set DATABASE_URL and REDIS_URL, or neither to keep them in a SQLite file under HOLDFAST_DATA_DIR",
            ));
        }
        let (variable, database_url, redis_url) = match (self.database()?, &self.redis_url) {
            (None, None) => return self.embedded(),
            (Some((variable, database_url)), Some(redis_url)) => (variable, database_url, redis_url),
            (Some((variable, _)), None) => {
                return Err(Error::new(
                    "REDIS_URL",
                    format!(
                        "is needed beside {variable}, such as redis://127.0.0.1:6379; or unset both to run embedded"
                    ),
                ));
            }
            (None, Some(_)) => {
                return Err(Error::new(
                    "DATABASE_URL",
                    "is needed beside REDIS_URL, such as postgres://user@127.0.0.1/holdfast; or unset both to run embedded",
                ));
            }
        };
        expect_scheme(variable, database_url, &["postgres://", "postgresql://"])?;
        expect_scheme("REDIS_URL", redis_url, &REDIS_SCHEMES)?;
        if !matches!(self.memory_backend, None | Some(MemoryBackend::Postgres)) {
            return Err(Error::new(
                "CHAT_MEMORY_BACKEND",
                format!("contradicts {variable}, which names PostgreSQL; unset one of them"),
            ));
        }
        if self.memory_fallback {
            return Err(Error::new(
                "CHAT_MEMORY_FALLBACK",
                format!(
                    "contradicts {variable}: other processes would not see what this one keeps in memory; unset one of them"
                ),
            ));
        }
        Ok(Stores::ScaledOut { database_url: database_url.clone(), redis_url: redis_url.clone() })
    }

    /// Returns the database's URL, and the variable that has it.
    fn database(&self) -> Result<Option<(&'static str, &SecretString)>, Error> {
        match (&self.database_url, &self.session_service_uri) {
            (Some(url), Some(other)) if url.expose_secret() != other.expose_secret() => Err(Error::new(
                "SESSION_SERVICE_URI",
                "is another name for DATABASE_URL, and names another database; unset one of them",
            )),
            (Some(url), _) => Ok(Some(("DATABASE_URL", url))),
            (None, Some(url)) => Ok(Some(("SESSION_SERVICE_URI", url))),
            (None, None) => Ok(None),
        }
    }

    fn embedded(&self) -> Result<Stores, Error> {
        match self.memory_backend {
            None | Some(MemoryBackend::Sqlite) => Ok(Stores::Embedded { data_dir: self.data_dir.clone() }),
            Some(MemoryBackend::Memory) => Ok(Stores::EmbeddedInMemory),
            Some(MemoryBackend::Postgres) => {
                Err(Error::new("CHAT_MEMORY_BACKEND", "is postgres, so DATABASE_URL and REDIS_URL are needed"))
            }
        }
    }
}

/// One server, the master that Sentinels name, or a Cluster.
const REDIS_SCHEMES: [&str; 7] = [
    "redis://",
    "rediss://",
    "unix://",
    "redis-sentinel://",
    "rediss-sentinel://",
    "redis-cluster://",
    "rediss-cluster://",
];

fn expect_scheme(variable: &'static str, url: &SecretString, schemes: &[&str]) -> Result<(), Error> {
    if schemes.iter().any(|scheme| url.expose_secret().starts_with(scheme)) {
        return Ok(());
    }
    Err(Error::new(variable, format!("expected a URL that begins with {}", schemes.join(" or "))))
}
