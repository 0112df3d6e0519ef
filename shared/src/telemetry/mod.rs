//! Telemetry: OpenTelemetry spans, exported by OTLP. Without `OTEL_EXPORTER_OTLP_ENDPOINT`, no process records, stores
//! or sends a span.
//! recorded, stored or sent.
//! `export` sets the exporter up, `traceparent` continues a trace in another process, and `span` is one piece of work.
//! `api/src/spans.rs` and `worker/src/spans.rs` define and name the spans. Spans have numbers, names and ids, and never
//! the text of a message.

mod collector;
mod export;
mod span;
mod traceparent;

pub use export::{Error, ExporterGuard, is_on, start};
pub use span::{Span, SpanKind};
pub use traceparent::Traceparent;
