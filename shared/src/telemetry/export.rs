//! The exporter of spans: one per process, configured by OpenTelemetry's own variables.
//!
//! A separate thread sends the spans in batches, and drops spans when its queue is full. No run waits for a collector,
//! and the end of the process waits only briefly.

use std::{env, sync::OnceLock, time::Duration};

use opentelemetry::{Key, KeyValue, trace::TracerProvider};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
use opentelemetry_sdk::{
    Resource,
    trace::{SdkTracer, SdkTracerProvider},
};
use uuid::Uuid;

use super::collector::LoggingExporter;

/// Either variable turns the export on.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// Time-out of the last batch at the end of the process.
const LAST_BATCH: Duration = Duration::from_secs(2);

static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// The exporter cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("OTEL_EXPORTER_OTLP_ENDPOINT, or another OTEL_ variable: traces cannot be exported as it says")]
pub struct Error(#[from] ExporterBuildError);

/// The running exporter. The process calls `finish` at its end.
pub struct ExporterGuard(SdkTracerProvider);

/// Starts to record and export, if an endpoint is set. Fails for unusable OTEL_ variables.
pub fn start(role: &'static str, version: &'static str) -> Result<Option<ExporterGuard>, Error> {
    if !is_wanted() {
        return Ok(None);
    }
    let exporter = SpanExporter::builder().with_http().build()?;
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(LoggingExporter::new(exporter))
        .with_resource(resource(role, version))
        .build();
    let _ = TRACER.set(provider.tracer("holdfast"));
    Ok(Some(ExporterGuard(provider)))
}

/// Returns whether this process records spans.
pub fn is_on() -> bool {
    TRACER.get().is_some()
}

pub(super) fn tracer() -> Option<&'static SdkTracer> {
    TRACER.get()
}

impl ExporterGuard {
    /// Sends the remaining spans. It blocks for a short time, and then drops them.
    pub fn finish(self) {
        if let Err(error) = self.0.shutdown_with_timeout(LAST_BATCH) {
            tracing::warn!(%error, "failed to export the last spans");
        }
    }
}

fn is_wanted() -> bool {
    let disabled = env::var("OTEL_SDK_DISABLED").is_ok_and(|text| text.eq_ignore_ascii_case("true"));
    !disabled && ENDPOINTS.iter().any(|variable| env::var(variable).is_ok_and(|url| !url.is_empty()))
}

/// Returns the attributes of this process. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` have priority.
fn resource(role: &'static str, version: &'static str) -> Resource {
    let ours = [
        KeyValue::new("service.name", "holdfast"),
        KeyValue::new("service.version", version),
        KeyValue::new("service.instance.id", Uuid::now_v7().to_string()),
        KeyValue::new("holdfast.role", role),
    ];
    let environment = Resource::builder().build();
    let is_unset = |key: &Key| match environment.get(key) {
        None => true,
        Some(value) => key.as_str() == "service.name" && value.as_str().starts_with("unknown_service"),
    };
    Resource::builder().with_attributes(ours.into_iter().filter(|ours| is_unset(&ours.key))).build()
}
