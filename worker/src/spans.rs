//! The spans of a run in this process. All names and attributes are here; they follow OpenTelemetry's conventions for
//! generative AI where these have one.
//!
//! An attempt is a child of the request that submitted the run, in whatever process; all other spans are children of
//! the attempt. No token has its own span: one span covers all appends between two flushes.

use std::time::{Duration, SystemTime};

use holdfast_shared::{
    agent::AgentDefinition,
    config::{ModelChoice, Provider},
    event::AttemptReason,
    storage::{self, ArchiveChunk, Claim, DueSummary, Release},
    telemetry::{self, Span, SpanKind, Traceparent},
    usage::Usage,
};
use uuid::Uuid;

use crate::{model::ChosenModel, recorder::RecorderOutcome};

/// Parent of new spans, with the attributes that all spans of an attempt have.
#[derive(Clone, Copy)]
pub struct Spans {
    parent: Option<Traceparent>,
    run_id: Uuid,
    conversation_id: Uuid,
    attempt: u32,
}

/// Statistics of consecutive appends to the run log.
#[derive(Debug, Clone, Copy)]
pub struct AppendStats {
    pub since: SystemTime,
    pub until: SystemTime,
    pub appends: i64,
    pub events: i64,
    pub failed: i64,
    pub longest: Duration,
}

impl Spans {
    /// Returns spans under the request that submitted the run.
    pub fn of(claim: &Claim) -> Self {
        let Claim { traceparent, run_id, conversation_id, attempt, .. } = *claim;
        Self { parent: traceparent.filter(|_| telemetry::is_on()), run_id, conversation_id, attempt }
    }

    /// Returns spans beside the attempts of an ended run.
    pub fn after(due: &DueSummary) -> Self {
        let DueSummary { traceparent, attempt, scope, .. } = *due;
        let (run_id, conversation_id) = (scope.run_id, scope.conversation_id);
        Self { parent: traceparent.filter(|_| telemetry::is_on()), run_id, conversation_id, attempt }
    }

    /// Returns spans under another span of this run.
    pub fn under(self, span: &Span) -> Self {
        Self { parent: span.traceparent(), ..self }
    }

    /// Returns the id of the run's trace, if the trace is recorded.
    pub fn trace_id(self) -> Option<String> {
        self.parent?.trace_id()
    }

    /// Starts the span of one attempt, dated back to the poll that claimed the run.
    pub fn attempt(self, claim: &Claim) -> Span {
        let mut span = self.begin_at(SpanKind::Internal, "invoke_agent", claim.asked_at);
        span.set("gen_ai.operation.name", "invoke_agent");
        span.set(
            "run.attempt.reason",
            match claim.reason {
                AttemptReason::Claimed => "claimed",
                AttemptReason::Resumed => "resumed",
                AttemptReason::Drain => "drain",
                AttemptReason::LeaseExpired => "lease_expired",
            },
        );
        span
    }

    /// Starts the span of the claim itself, which ends when a task has the run.
    pub fn claim(self, claim: &Claim) -> Span {
        self.begin_at(SpanKind::Internal, "claim", claim.asked_at)
    }

    /// Starts the span of a step: a model call and its tool calls.
    pub fn step(self, step: u32) -> Span {
        let mut span = self.begin(SpanKind::Internal, "step");
        span.set("run.step", i64::from(step));
        span
    }

    /// Records how a planner has decided to take a turn, and how sure the analysis was, from 0 to 1.
    pub fn strategy(self, name: &'static str, confidence: Option<f64>) {
        let mut span = self.begin(SpanKind::Internal, "strategy");
        span.set("agent.strategy", name);
        if let Some(confidence) = confidence {
            span.set("agent.strategy.confidence", confidence);
        }
    }

    /// Starts the span of one model call, with its retries.
    pub fn chat(self, chosen_model: &ChosenModel) -> Span {
        if !self.are_recorded() {
            return Span::default();
        }
        let mut span = self.begin(SpanKind::Client, format!("chat {}", chosen_model.choice().name));
        span.set("gen_ai.operation.name", "chat");
        set_model(&mut span, chosen_model);
        span
    }

    /// Starts the span of one tool call, with its retries.
    pub fn tool(self, name: &str, call_id: &str) -> Span {
        if !self.are_recorded() {
            return Span::default();
        }
        let mut span = self.begin(SpanKind::Internal, format!("execute_tool {name}"));
        span.set("gen_ai.operation.name", "execute_tool");
        span.set("gen_ai.tool.name", name.to_owned());
        span.set("gen_ai.tool.call.id", call_id.to_owned());
        span.set("gen_ai.tool.type", "function");
        span
    }

    /// Starts the span of a transaction of events: `flush`, `finish` or `leave`.
    pub fn commit(self, name: &'static str, chunk: Option<&ArchiveChunk>) -> Span {
        let mut span = self.begin(SpanKind::Internal, name);
        if let Some(chunk) = chunk.filter(|_| self.are_recorded()) {
            span.set("run.events.to", chunk.last.to_string());
            span.set("run.events.bytes", chunk.body.len() as i64);
        }
        span
    }

    /// Records the appends to the run log between two flushes.
    pub fn append(self, stats: AppendStats) {
        let mut span = self.begin_at(SpanKind::Internal, "append", stats.since);
        span.set("run.appends", stats.appends);
        span.set("run.appends.failed", stats.failed);
        span.set("run.appends.longest_ms", stats.longest.as_secs_f64() * 1000.0);
        span.set("run.events", stats.events);
        if stats.failed > 0 {
            span.fail("log_away");
        }
        span.end_at(stats.until);
    }

    /// Returns whether spans are recorded. Callers check it before work that only a recorded span needs.
    pub fn are_recorded(self) -> bool {
        self.parent.is_some_and(Traceparent::is_sampled)
    }

    fn begin(self, kind: SpanKind, name: impl Into<std::borrow::Cow<'static, str>>) -> Span {
        self.about(Span::begin(self.parent, kind, name))
    }

    fn begin_at(self, kind: SpanKind, name: &'static str, since: SystemTime) -> Span {
        self.about(Span::begin_since(self.parent, kind, name, since))
    }

    fn about(self, mut span: Span) -> Span {
        if span.is_recorded() {
            span.set("run.id", self.run_id.to_string());
            span.set("run.attempt", i64::from(self.attempt));
            span.set("gen_ai.conversation.id", self.conversation_id.to_string());
        }
        span
    }
}

/// Sets the agent and the model of this attempt.
pub fn set_agent(span: &mut Span, claim: &Claim, definition: &AgentDefinition, chosen_model: &ChosenModel) {
    if !span.is_recorded() {
        return;
    }
    if let Some((id, version)) = claim.agent {
        span.rename(format!("invoke_agent {}", definition.name));
        span.set("gen_ai.agent.id", id.to_string());
        span.set("gen_ai.agent.name", definition.name.clone());
        span.set("gen_ai.agent.version", version.to_string());
    }
    set_model(span, chosen_model);
}

fn set_model(span: &mut Span, chosen_model: &ChosenModel) {
    let provider = match chosen_model.choice().provider {
        Provider::Gemini => "gcp.gemini",
        Provider::Vertex => "gcp.vertex_ai",
        Provider::Anthropic => "anthropic",
        Provider::OpenAi => "openai",
        Provider::Ollama => "ollama",
        Provider::Scripted => "scripted",
    };
    span.set("gen_ai.provider.name", provider);
    span.set("gen_ai.request.model", chosen_model.choice().name.clone());
}

/// Sets the model that has answered a call.
pub fn set_answered_by(span: &mut Span, model: &ModelChoice) {
    if span.is_recorded() {
        span.set("gen_ai.response.model", model.name.clone());
    }
}

/// Sets the token usage of a model call.
pub fn set_usage(span: &mut Span, usage: Usage) {
    let tokens = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    span.set("gen_ai.usage.input_tokens", tokens(usage.input_tokens));
    span.set("gen_ai.usage.output_tokens", tokens(usage.output_tokens));
    span.set("gen_ai.usage.cache_read.input_tokens", tokens(usage.cached_tokens));
    span.set("gen_ai.usage.reasoning.output_tokens", tokens(usage.reasoning_tokens));
}

/// Sets the outcome of this attempt.
pub fn set_end(span: &mut Span, outcome: &RecorderOutcome) {
    span.set(
        "run.status",
        match outcome {
            RecorderOutcome::Finished { status, .. } => status.as_str(),
            RecorderOutcome::Released { release: Release::Queued | Release::Later(_), .. } => "queued",
            RecorderOutcome::Released { .. } => "waiting",
            RecorderOutcome::Fenced => "fenced",
        },
    );
}

/// Marks the span of a transaction that failed.
pub fn fail_commit(span: &mut Span, error: &storage::Error) {
    span.fail(if error.is_away() { "database_away" } else { "database_refused" });
}
