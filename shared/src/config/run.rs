//! The worker's settings: claims, leases, flushes and the context of a run.

use std::{net::SocketAddr, time::Duration};

use super::{api::address, bytes, count, milliseconds};

/// Settings of the worker process.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Worker")]
pub struct RunConfig {
    /// Runs that one worker process executes at the same time.
    #[arg(long, env = "HOLDFAST_WORKER_CONCURRENCY", default_value = "256", value_parser = count)]
    pub worker_concurrency: usize,

    /// Slots of a worker that only owners without a run at work get; by default an eighth of its slots, and 0 for none.
    #[arg(long, env = "HOLDFAST_RESERVED_SLOTS", value_parser = slots)]
    pub reserved_slots: Option<usize>,

    /// Address of the worker's own /metrics and /healthz; none unless set.
    #[arg(long, env = "HOLDFAST_METRICS_ADDR", value_parser = address)]
    pub metrics_addr: Option<SocketAddr>,

    /// Time after which other workers take over the runs of a silent worker, in ms. A worker renews its leases three
    /// times in it.
    #[arg(long = "lease-ms", env = "HOLDFAST_LEASE_MS", default_value = "15000", value_parser = milliseconds)]
    pub lease: Duration,

    /// Interval at which workers look for expired leases, in ms.
    #[arg(long = "sweep-ms", env = "HOLDFAST_SWEEP_MS", default_value = "5000", value_parser = milliseconds)]
    pub sweep: Duration,

    /// Interval at which a worker polls for queued runs without a wake-up, in ms.
    #[arg(long = "poll-ms", env = "HOLDFAST_POLL_MS", default_value = "1000", value_parser = milliseconds)]
    pub poll: Duration,

    /// Workers that a run may take down before it fails with max_attempts.
    #[arg(long, env = "HOLDFAST_MAX_CRASHES", default_value = "3", value_parser = count)]
    pub max_crashes: usize,

    /// Longest time before a run's events reach the archive, in ms.
    #[arg(long = "flush-ms", env = "HOLDFAST_FLUSH_MS", default_value = "2000", value_parser = milliseconds)]
    pub flush: Duration,

    /// Bytes of events at which a worker archives them before the flush time.
    #[arg(long, env = "HOLDFAST_FLUSH_BYTES", default_value = "65536", value_parser = bytes)]
    pub flush_bytes: usize,

    /// Bytes of events that a worker keeps in memory while the database is away; then it pauses reading the model.
    #[arg(long, env = "HOLDFAST_TAIL_BYTES", default_value = "8388608", value_parser = bytes)]
    pub tail_bytes: usize,

    /// Longest answer of a run, reasoning included, in bytes; a longer one fails the run with answer_too_long.
    #[arg(long, env = "HOLDFAST_MAX_ANSWER_BYTES", default_value = "4194304", value_parser = bytes)]
    pub max_answer_bytes: usize,

    /// Bytes of messages that may join one run; a further message waits for its turn.
    #[arg(long, env = "HOLDFAST_MAX_STEERING_BYTES", default_value = "262144", value_parser = bytes)]
    pub max_steering_bytes: usize,

    /// Time after SIGTERM before a worker hands its running runs over, in ms.
    #[arg(long = "drain-ms", env = "HOLDFAST_DRAIN_MS", default_value = "25000", value_parser = milliseconds)]
    pub drain: Duration,

    /// Newest messages of a standing conversation that the model of an agent reads word by word, with the question.
    #[arg(long = "chat-standing-history-limit", env = "CHAT_STANDING_HISTORY_LIMIT", default_value = "20", value_parser = history_limit)]
    pub standing_history_limit: usize,

    /// Tokens that a conversation may have for the model, roughly; by default 5000 for planners, and else half of the model's
    /// context window.
    #[arg(long = "context-tokens", env = "HOLDFAST_CONTEXT_TOKENS", value_parser = context_tokens)]
    pub context_tokens: Option<u32>,

    /// Characters of each tool input and each tool result of earlier runs that the model reads; 0 for none.
    #[arg(long = "earlier-result-chars", env = "HOLDFAST_EARLIER_RESULT_CHARS", default_value = "1000", value_parser = characters)]
    pub earlier_result_chars: usize,

    /// Newest earlier messages of a conversation that the model reads word by word; by default 10 for agents, and for plain
    /// conversations and planners as many as the budget holds.
    #[arg(long = "chat-history-limit", env = "CHAT_HISTORY_LIMIT", value_parser = history_limit)]
    pub history_limit: Option<usize>,
}

impl RunConfig {
    /// Returns the slots that only owners without a run at work get. At least one slot is for each owner.
    pub fn reserved_slots(&self) -> usize {
        let slots = self.worker_concurrency;
        self.reserved_slots.unwrap_or(slots / 8).min(slots.saturating_sub(1))
    }
}

fn slots(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("a number of slots such as 32, or 0 for none, not {text:?}"))
}

pub(super) fn context_tokens(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(tokens) if tokens >= 100 => Ok(tokens),
        _ => Err(format!("a number of tokens from 100, not {text:?}")),
    }
}

fn characters(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(characters) if characters <= 100_000 => Ok(characters),
        _ => Err(format!("a number of characters from 0 to 100000, not {text:?}")),
    }
}

fn history_limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(limit) if limit <= 1000 => Ok(limit),
        _ => Err(format!("a number of messages from 0 to 1000, not {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct RunArgs {
        #[command(flatten)]
        run: RunConfig,
    }

    #[test]
    fn a_worker_reserves_an_eighth_of_its_slots_unless_a_setting_says_more_or_less() {
        let check = |slots: &str, reserved: Option<&str>, expected: usize| {
            let reserved = reserved.into_iter().flat_map(|slots| ["--reserved-slots", slots]);
            let args = ["holdfast", "--worker-concurrency", slots].into_iter().chain(reserved);
            assert_eq!(RunArgs::parse_from(args).run.reserved_slots(), expected, "{slots}");
        };
        check("256", None, 32);
        check("8", None, 1);
        check("7", None, 0);
        check("1", None, 0);
        check("8", Some("0"), 0);
        check("8", Some("3"), 3);
        check("8", Some("9"), 7);
    }
}
