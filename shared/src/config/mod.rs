//! All settings, one file per concern: environment variables with flags of equal meaning.
//!
//! Each group is a plain `clap::Args`. The executable (`src/`) composes the groups per role, and names the variable of
//! a wrong value. Durations are whole milliseconds, and sizes are bytes.

mod api;
mod context_windows;
mod egress;
mod embedding;
mod files;
mod knowledge;
mod model;
mod model_files;
mod planner;
mod quotas;
mod run;
mod secret_file;
mod stores;
mod tools;
mod users;
mod vertex;
mod web_search;

pub use api::{ApiConfig, OnDisconnect, PageComposer};
pub use context_windows::ContextWindows;
pub use egress::{AllowedHost, EgressConfig};
pub use embedding::EmbeddingConfig;
pub use files::FilesConfig;
pub use knowledge::KnowledgeConfig;
pub use model::{ModelChoice, ModelConfig, Provider};
pub use model_files::ModelFileKind;
pub use planner::PlannerConfig;
pub use quotas::QuotasConfig;
pub use run::RunConfig;
pub use secret_file::{SECRET_FILE_SUFFIX, read_secret_file};
pub use stores::{MemoryBackend, Stores, StoresConfig};
pub use tools::ToolsConfig;
pub use users::{ANONYMOUS_PREFIX, HolderLimits, Issuer, RateLimitSetting, UsersConfig, begins_with, counted_owner};
pub use vertex::{VertexAccess, VertexConfig};
pub use web_search::WebSearchConfig;

use std::time::Duration;

/// Settings that are valid one by one but contradict one another.
#[derive(Debug, thiserror::Error)]
#[error("{variable}: {problem}")]
pub struct Error {
    /// The variable to change, or the setting of an agent.
    pub variable: &'static str,
    /// The problem and its remedy, as a phrase after the variable's name.
    pub problem: String,
}

impl Error {
    /// Returns an error about this variable.
    pub fn new(variable: &'static str, problem: impl Into<String>) -> Self {
        Self { variable, problem: problem.into() }
    }
}

/// Parses a duration in whole milliseconds.
fn milliseconds(text: &str) -> Result<Duration, String> {
    let expected = || format!("a duration in whole milliseconds above 0, such as 15000, not {text:?}");
    match text.parse() {
        Ok(ms) if ms > 0 => Ok(Duration::from_millis(ms)),
        _ => Err(expected()),
    }
}

/// Parses the longest delay of a run in milliseconds, up to a year.
fn delay(text: &str) -> Result<Duration, String> {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    let longest = milliseconds(text)?;
    if longest > YEAR {
        return Err(format!("at most a year, which is {} ms, not {text:?}", YEAR.as_millis()));
    }
    Ok(longest)
}

/// Parses a size in bytes.
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

/// Parses a number of retries.
fn retries(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(retries) if retries <= 100 => Ok(retries),
        _ => Err(format!("a number of tries from 0 to 100, not {text:?}")),
    }
}
