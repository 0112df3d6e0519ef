//! All metrics, with their names and the roles that report them. Each starts at zero, so that its first increase counts
//! and a query for an event that has not happened yet returns a value.

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

/// The role of a process; also its label in `holdfast_build_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ProcessRole {
    Api,
    Worker,
    /// Both in one process.
    Both,
}

impl ProcessRole {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[derive(Debug, Clone, Copy)]
pub enum MetricKind {
    Counter,
    Gauge,
    /// A histogram in seconds, with these buckets.
    Histogram(&'static [f64]),
}

pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    made_by: &'static [ProcessRole],
    /// The label sets that exist from the start. A metric with unpredictable labels has none, or one that surely
    /// occurs.
    series: &'static [&'static [(&'static str, &'static str)]],
    help: &'static str,
}

impl Metric {
    pub fn is_made_by(&self, role: ProcessRole) -> bool {
        role == ProcessRole::Both || self.made_by.contains(&role)
    }

    /// Describes the metric and creates its series.
    pub fn register(&self) {
        match self.kind {
            MetricKind::Counter => describe_counter!(self.name, Unit::Count, self.help),
            MetricKind::Gauge => describe_gauge!(self.name, self.help),
            MetricKind::Histogram(_) => describe_histogram!(self.name, Unit::Seconds, self.help),
        }
        for labels in self.series {
            match self.kind {
                MetricKind::Counter => drop(counter!(self.name, *labels)),
                MetricKind::Gauge => drop(gauge!(self.name, *labels)),
                MetricKind::Histogram(_) => drop(histogram!(self.name, *labels)),
            }
        }
    }
}

const LATENCY: MetricKind =
    MetricKind::Histogram(&[0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0]);
const RUN: MetricKind =
    MetricKind::Histogram(&[0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0]);
/// A run may wait all night for the first worker.
const WAIT: MetricKind =
    MetricKind::Histogram(&[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0]);
/// These are fewer buckets, because there are many routes.
const REQUEST: MetricKind = MetricKind::Histogram(&[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0]);

const API: &[ProcessRole] = &[ProcessRole::Api];
const WORKER: &[ProcessRole] = &[ProcessRole::Worker];
const EVERY: &[ProcessRole] = &[ProcessRole::Api, ProcessRole::Worker];

/// One series, without labels.
const UNLABELED: &[&[(&str, &str)]] = &[&[]];

/// Makes a series for each value of a label.
macro_rules! each {
    ($label:literal: $($value:literal),+ $(,)?) => { &[$(&[($label, $value)]),+] };
}

macro_rules! catalogue {
    ($($name:literal, $kind:expr, $made_by:expr, $series:expr, $help:literal;)*) => {
        pub const CATALOGUE: &[Metric] =
            &[$(Metric { name: $name, kind: $kind, made_by: $made_by, series: $series, help: $help }),*];
    };
}

use MetricKind::{Counter, Gauge};

catalogue! {
    "holdfast_build_info", Gauge, EVERY, &[], "What this process is; always 1.";
    "holdfast_draining", Gauge, EVERY, UNLABELED, "Whether this process has received a signal to end.";
    "holdfast_reachable", Gauge, API, each!("place": "database", "redis"),
        "Whether database and Redis answered a ping of this scrape.";

    "holdfast_first_token_seconds", LATENCY, WORKER, UNLABELED, "From a message's commit to the model's first delta.";
    "holdfast_queue_wait_seconds", WAIT, WORKER, UNLABELED, "From a message's commit to the first claim of its run.";
    "holdfast_run_seconds", RUN, WORKER, UNLABELED, "From a message's commit to the end of its run.";
    "holdfast_tool_call_seconds", LATENCY, WORKER, UNLABELED, "Duration of tool calls, successful or not.";
    "holdfast_http_request_seconds", REQUEST, API, &[&[("method", "GET"), ("route", "/metrics"), ("status", "200")]],
        "From a request to the head of its answer; a stream continues after it.";

    "holdfast_runs", Gauge, API, each!("status": "queued", "running", "waiting"),
        "Unfinished runs of the whole deployment, by status.";
    "holdfast_oldest_queued_run_seconds", Gauge, API, UNLABELED,
        "Longest time in the deployment that the first unfinished run of a conversation has waited for its first claim.";
    "holdfast_runs_executing", Gauge, WORKER, UNLABELED, "Runs that this process executes.";
    "holdfast_worker_slots", Gauge, WORKER, UNLABELED, "Runs that this process may execute at a time.";
    "holdfast_streams_open", Gauge, API, UNLABELED, "Open streams of events, and waiting long polls.";

    "holdfast_runs_ended_total", Counter, EVERY, each!("status": "completed", "failed", "cancelled"),
        "Runs that this process has ended, by status.";
    "holdfast_run_failures_total", Counter, WORKER, each!("code":
            "model_timeout", "model_rate_limited", "model_unavailable", "model_unreachable", "model_not_found",
            "model_key_refused", "model_no_credit", "model_region_refused", "model_context_exceeded", "model_refused",
            "file_refused", "model_broken_stream", "model_failed", "scripted_failure", "answer_too_long", "limit_exceeded",
            "model_not_configured", "agent_gone", "state_not_stored", "state_unreadable", "answer_not_stored",
            "max_attempts"),
        "Runs that this process has ended as failed, by the code of their error.";
    "holdfast_model_failures_total", Counter, WORKER, each!("code":
            "model_timeout", "model_rate_limited", "model_unavailable", "model_unreachable", "model_not_found",
            "model_key_refused", "model_no_credit", "model_region_refused", "model_context_exceeded", "model_refused",
            "file_refused", "model_broken_stream", "model_failed"),
        "Failed model requests, retried ones included, by code.";
    "holdfast_model_fallbacks_total", Counter, WORKER, each!("provider":
            "gemini", "vertex", "anthropic", "openai", "ollama", "scripted"),
        "Calls to models of a fallback, instead of one that did not answer, by provider.";
    "holdfast_takeovers_total", Counter, WORKER, UNLABELED, "Runs taken over from a worker whose lease has expired.";
    "holdfast_streams_resumed_total", Counter, API, UNLABELED, "Streams that clients have resumed after an event.";
    "holdfast_connections_stalled_total", Counter, API, UNLABELED,
        "Connections closed because the client read nothing for too long.";

    "holdfast_events_appended_total", Counter, WORKER, UNLABELED, "Events written to run logs.";
    "holdfast_append_failures_total", Counter, WORKER, UNLABELED,
        "Failed appends to run logs; clients receive these events from the archive.";
    "holdfast_events_relayed_total", Counter, API, UNLABELED, "Events written to clients' streams.";
    "holdfast_flush_seconds", LATENCY, WORKER, UNLABELED,
        "From the first attempt to archive events of a run to their commit; the end of a run does not count.";
    "holdfast_flush_failures_total", Counter, WORKER, UNLABELED, "Failed attempts to archive events of a run.";
    "holdfast_anonymous_bytes", Gauge, API, UNLABELED,
        "Bytes of all anonymous users of the deployment, as the last sweep has measured them.";
    "holdfast_anonymous_bytes_max", Gauge, API, UNLABELED,
        "Bytes that all anonymous users together may keep; 0 for no limit.";
    "holdfast_database_connections", Gauge, EVERY, each!("state": "used", "idle"),
        "Connections to the database that this process has open.";
    "holdfast_database_connections_max", Gauge, EVERY, UNLABELED, "Connections to the database that this process may open.";
}
