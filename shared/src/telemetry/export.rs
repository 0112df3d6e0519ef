//! The exporter: set up once per process, as OpenTelemetry's own variables say.
//!
//! Spans are sent in batches by a thread of their own. When its queue is full, further ones are dropped: nothing waits for
//! a collector, neither a run nor, for long, the end of the process.

use std::{env, sync::OnceLock, time::Duration};

use opentelemetry::{Key, KeyValue, trace::TracerProvider};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
use opentelemetry_sdk::{
    Resource,
    trace::{SdkTracer, SdkTracerProvider},
};
use uuid::Uuid;

use super::collector::LoggingExporter;

/// Either of them turns it on.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// Time that the end of the process gives to the last batch.
const LAST_BATCH: Duration = Duration::from_secs(2);

static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// The exporter cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("OTEL_EXPORTER_OTLP_ENDPOINT, or another OTEL_ variable: traces cannot be exported as it says")]
pub struct Error(#[from] ExporterBuildError);

/// What is to be finished before the process ends.
pub struct ExporterGuard(SdkTracerProvider);

/// Begins to record and export, if an endpoint is set.
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

/// Whether spans are recorded in this process.
pub fn is_on() -> bool {
    TRACER.get().is_some()
}

pub(super) fn tracer() -> Option<&'static SdkTracer> {
    TRACER.get()
}

impl ExporterGuard {
    /// Sends what is left. Blocks, though not for long: a collector that does not take it does not get it.
    pub fn finish(self) {
        if let Err(error) = self.0.shutdown_with_timeout(LAST_BATCH) {
            tracing::warn!(%error, "the last spans were not exported");
        }
    }
}

fn is_wanted() -> bool {
    let disabled = env::var("OTEL_SDK_DISABLED").is_ok_and(|text| text.eq_ignore_ascii_case("true"));
    !disabled && ENDPOINTS.iter().any(|variable| env::var(variable).is_ok_and(|url| !url.is_empty()))
}

/// Who exports. What `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say goes before it.
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
