//! Everything that can be configured, a file per concern: environment variables with flags that mirror them.
//!
//! The groups here are plain `clap::Args`; the executable (`src/`) composes them per role and turns a wrong value
//! into a sentence that names the variable. Durations are whole milliseconds, sizes are bytes.

mod api;
mod model;
mod quotas;
mod run;
mod secret_file;
mod stores;
mod tools;
mod users;

pub use api::ApiConfig;
pub use model::{ModelChoice, ModelConfig, Provider};
pub use quotas::QuotasConfig;
pub use run::RunConfig;
pub use secret_file::{SECRET_FILE_SUFFIX, read_secret_file};
pub use stores::{MemoryBackend, Stores, StoresConfig};
pub use tools::ToolsConfig;
pub use users::{ANONYMOUS_PREFIX, HolderLimits, Issuer, RateLimitSetting, UsersConfig, begins_with};

use std::time::Duration;

/// Settings that are each valid but contradict one another.
#[derive(Debug, thiserror::Error)]
#[error("{variable}: {problem}")]
pub struct Error {
    /// The variable to change, or the setting of an agent.
    pub variable: &'static str,
    /// What is wrong, and what to do about it.
    pub problem: String,
}

impl Error {
    pub fn new(variable: &'static str, problem: impl Into<String>) -> Self {
        Self { variable, problem: problem.into() }
    }
}

/// Parses a duration given in whole milliseconds.
fn milliseconds(text: &str) -> Result<Duration, String> {
    let expected = || format!("a duration in whole milliseconds above 0, such as 15000, not {text:?}");
    match text.parse() {
        Ok(ms) if ms > 0 => Ok(Duration::from_millis(ms)),
        _ => Err(expected()),
    }
}

/// Parses a size given in bytes.
fn bytes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(size) if size > 0 => Ok(size),
        _ => Err(format!("a size in bytes above 0, such as 65536, not {text:?}")),
    }
}

/// Parses a count of at least one.
fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(format!("a whole number above 0, not {text:?}")),
    }
}

/// Parses a number of further tries.
fn retries(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(retries) if retries <= 100 => Ok(retries),
        _ => Err(format!("a number of tries from 0 to 100, not {text:?}")),
    }
}
