//! The log: to standard error, as text or JSON.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::cli::{LogFormat, Settings};

/// Begins to log. A filter that cannot be read is replaced by the default, and the log says so.
pub fn start(settings: &Settings) {
    let config = &settings.logging;
    let (filter, refused) = match EnvFilter::try_new(with_quiet_libraries(&config.log)) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(with_quiet_libraries("info")), Some(error)),
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Text => builder.with_target(false).with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    if let Some(error) = refused {
        tracing::warn!(%error, "HOLDFAST_LOG (or --log) cannot be read; using info");
    }
}

/// The model client logs what providers send, which is the users' text.
fn with_quiet_libraries(filter: &str) -> String {
    format!("{filter},genai=off,rmcp=warn,sqlx=warn")
}
