//! An exporter that logs a failing collector once, and not for each batch.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use opentelemetry_otlp::SpanExporter as Otlp;
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};

/// Time after which the exporter repeats the warning.
const REMINDER: Duration = Duration::from_secs(600);

/// An OTLP exporter that logs its failures.
#[derive(Debug)]
pub struct LoggingExporter {
    otlp: Otlp,
    /// Time of the last warning about lost spans; `None` while the collector accepts spans.
    last_warning: Mutex<Option<Instant>>,
}

impl LoggingExporter {
    pub fn new(otlp: Otlp) -> Self {
        Self { otlp, last_warning: Mutex::new(None) }
    }

    fn note(&self, exported: &OTelSdkResult, spans: usize) {
        let mut last_warning = self.last_warning.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match exported {
            Ok(()) if last_warning.take().is_some() => tracing::info!("the collector takes spans again"),
            Ok(()) => {}
            Err(_) if last_warning.is_some_and(|last| last.elapsed() < REMINDER) => {}
            Err(error) => {
                *last_warning = Some(Instant::now());
                tracing::warn!(%error, spans, "spans are lost: the collector does not take them");
            }
        }
    }
}

impl SpanExporter for LoggingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let exported = self.otlp.export(batch).await;
        self.note(&exported, spans);
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.otlp.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.otlp.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.otlp.set_resource(resource);
    }
}
