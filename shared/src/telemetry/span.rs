//! One span: a piece of work with its duration, attributes and outcome. It is empty if this process records nothing.

use std::{borrow::Cow, time::SystemTime};

use opentelemetry::{
    Context, KeyValue, Value,
    trace::{
        Link, Span as _, SpanBuilder, SpanContext, SpanId, SpanKind as OtelKind, Status, TraceContextExt, TraceFlags,
        TraceId, TraceState, Tracer,
    },
};
use opentelemetry_sdk::trace::Span as SdkSpan;

use super::{Traceparent, export};

/// The role of a span in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// This process answers a request.
    Server,
    /// This process sends a request to another one.
    Client,
    /// Work inside this process.
    Internal,
}

/// A span of current work. Dropping it ends it. Boxed, because most runs and requests are not recorded.
#[derive(Default)]
pub struct Span(Option<Box<SdkSpan>>);

impl Span {
    /// Begins a span under `parent`. The span is empty if the parent is not recorded.
    pub fn begin(parent: Option<Traceparent>, kind: SpanKind, name: impl Into<Cow<'static, str>>) -> Self {
        match parent.filter(|parent| parent.is_sampled()) {
            Some(parent) => Self::build(Some(parent), kind, name.into(), None),
            None => Self::default(),
        }
    }

    /// Begins a span under `parent` for work that began at `since`.
    pub fn begin_since(
        parent: Option<Traceparent>,
        kind: SpanKind,
        name: impl Into<Cow<'static, str>>,
        since: SystemTime,
    ) -> Self {
        match parent.filter(|parent| parent.is_sampled()) {
            Some(parent) => Self::build(Some(parent), kind, name.into(), Some(since)),
            None => Self::default(),
        }
    }

    /// Begins a trace, or continues the caller's. The sampler decides whether it is recorded.
    pub fn begin_trace(caller: Option<Traceparent>, name: impl Into<Cow<'static, str>>) -> Self {
        Self::build(caller, SpanKind::Server, name.into(), None)
    }

    fn build(parent: Option<Traceparent>, kind: SpanKind, name: Cow<'static, str>, since: Option<SystemTime>) -> Self {
        let Some(tracer) = export::tracer() else { return Self::default() };
        let mut builder = SpanBuilder::from_name(name).with_kind(match kind {
            SpanKind::Server => OtelKind::Server,
            SpanKind::Client => OtelKind::Client,
            SpanKind::Internal => OtelKind::Internal,
        });
        builder.start_time = since;
        let within = match parent {
            Some(parent) => Context::new().with_remote_span_context(parent.into()),
            None => Context::new(),
        };
        Self(Some(Box::new(tracer.build_with_context(builder, &within))))
    }

    /// Returns the parent for other spans, in this process or another.
    pub fn traceparent(&self) -> Option<Traceparent> {
        self.0.as_ref().map(|span| span.span_context().into())
    }

    /// Returns whether the span will be exported.
    pub fn is_recorded(&self) -> bool {
        self.0.as_deref().is_some_and(SdkSpan::is_recording)
    }

    /// Sets an attribute.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new(key, value));
        }
    }

    /// Replaces the name.
    pub fn rename(&mut self, name: impl Into<Cow<'static, str>>) {
        if let Some(span) = &mut self.0 {
            span.update_name(name.into());
        }
    }

    /// Marks the span as failed, with a code. A message could quote a user's text.
    pub fn fail(&mut self, code: &str) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new("error.type", code.to_owned()));
            span.set_status(Status::error(code.to_owned()));
        }
    }

    /// Links the span of another trace that caused this one.
    pub fn link(&mut self, to: Option<Traceparent>) {
        if let (Some(span), Some(to)) = (&mut self.0, to) {
            let Link { span_context, attributes, .. } = Link::with_context(to.into());
            span.add_link(span_context, attributes);
        }
    }

    /// Ends the span at a past time.
    pub fn end_at(mut self, at: SystemTime) {
        if let Some(span) = &mut self.0 {
            span.end_with_timestamp(at);
        }
    }
}

impl From<&SpanContext> for Traceparent {
    fn from(context: &SpanContext) -> Self {
        Self {
            trace_id: u128::from_be_bytes(context.trace_id().to_bytes()),
            span_id: u64::from_be_bytes(context.span_id().to_bytes()),
            sampled: context.is_sampled(),
        }
    }
}

impl From<Traceparent> for SpanContext {
    fn from(parent: Traceparent) -> Self {
        let flags = TraceFlags::default().with_sampled(parent.sampled);
        let (trace_id, span_id) = (TraceId::from(parent.trace_id), SpanId::from(parent.span_id));
        Self::new(trace_id, span_id, flags, true, TraceState::default())
    }
}
