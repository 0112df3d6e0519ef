//! The log on standard error, as text or JSON. Text of others in a field can neither forge a line nor control a terminal.

use std::{
    fmt,
    io::{self, IsTerminal},
};

use holdfast_shared::hidden::{visible, visible_json};
use tracing_subscriber::{
    EnvFilter,
    field::RecordFields,
    fmt::{
        FormatFields,
        format::{DefaultFields, Writer},
    },
};

use crate::cli::{LogFormat, ServerSettings};

/// Starts the log. Replaces a filter that cannot be parsed by `info`, and logs a warning.
pub fn start(settings: &ServerSettings) {
    let config = &settings.logging;
    let (filter, refused) = match EnvFilter::try_new(with_quiet_libraries(&config.log)) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(with_quiet_libraries("info")), Some(error)),
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter);
    match config.log_format {
        LogFormat::Text => {
            let builder = builder.with_writer(io::stderr).with_target(false).with_ansi(io::stderr().is_terminal());
            builder.fmt_fields(VisibleFields).init();
        }
        LogFormat::Json => builder.with_writer(|| VisibleLines(io::stderr())).json().flatten_event(true).init(),
    }
    if let Some(error) = refused {
        tracing::warn!(%error, "failed to parse HOLDFAST_LOG (or --log); using info");
    }
}

/// Adds levels for libraries. rmcp warns of each bad request of a stranger.
fn with_quiet_libraries(filter: &str) -> String {
    format!("{filter},rmcp=warn,rmcp::service=error,sqlx=warn")
}

/// Formats fields as the default does, and escapes their hidden characters. Only level and time keep their colours.
struct VisibleFields;

impl<'writer> FormatFields<'writer> for VisibleFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut text = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut text), fields)?;
        writer.write_str(&visible(&text))
    }
}

/// Writes lines of JSON, and escapes the hidden characters that JSON allows in a string.
struct VisibleLines<W>(W);

impl<W: io::Write> io::Write for VisibleLines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(line) {
            Ok(text) => self.0.write_all(visible_json(text).as_bytes())?,
            Err(_) => self.0.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        sync::{Arc, Mutex},
    };

    use holdfast_shared::hidden::is_hidden;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for LogBuffer {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    impl LogBuffer {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    const FORGED: &str = "a\n2026-01-01T00:00:00Z ERROR forged\r\u{1b}[2J\u{9b}1A\u{202e}b";

    /// Logs the forged text in each position of a log line.
    fn log_it(log: impl tracing::Subscriber + Send + Sync + 'static) {
        tracing::subscriber::with_default(log, || {
            let error = io::Error::other(FORGED);
            let span = tracing::info_span!("request", uri = %FORGED);
            let _entered = span.enter();
            tracing::info!(shown = %FORGED, debugged = ?FORGED, plain = FORGED, error = &error as &dyn std::error::Error, "{FORGED}");
        });
    }

    fn expect_one_visible_line(text: &str) {
        let line = text.strip_suffix('\n').expect("a line ends");
        assert!(!line.contains(is_hidden), "{line:?}");
        assert!(line.matches("forged").count() >= 6, "{line}");
    }

    #[test]
    fn a_field_forges_no_line_and_moves_no_terminal() {
        let buffer = LogBuffer::default();
        log_it(
            tracing_subscriber::fmt().fmt_fields(VisibleFields).with_ansi(false).with_writer(buffer.clone()).finish(),
        );
        expect_one_visible_line(&buffer.text());
    }

    #[test]
    fn a_line_of_json_hides_nothing_and_means_the_same() {
        let buffer = LogBuffer::default();
        let lines = buffer.clone();
        let log = tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || VisibleLines(lines.clone()));
        log_it(log.finish());
        expect_one_visible_line(&buffer.text());
        let line: serde_json::Value = serde_json::from_str(&buffer.text()).unwrap();
        assert_eq!(line["plain"], FORGED);
    }
}
