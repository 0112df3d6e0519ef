//! Telemetry: spans for OpenTelemetry, exported by OTLP. Off unless `OTEL_EXPORTER_OTLP_ENDPOINT` is set; nothing is then
//! recorded, stored or sent.
//!
//! `export` sets it up, `traceparent` is how a trace goes on in another process, `span` is one piece of work. Which spans
//! there are, and what they are called, say `api/src/spans.rs` and `worker/src/spans.rs`. Only numbers, names and ids go
//! into spans, never what anybody has said.

mod collector;
mod export;
mod span;
mod traceparent;

pub use export::{Error, ExporterGuard, is_on, start};
pub use span::{Span, SpanKind};
pub use traceparent::Traceparent;
