//! Settings of planners and of the children that work for their plans.

use std::time::Duration;

use super::{count, milliseconds, run::context_tokens};

/// Settings of plans.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Plans")]
pub struct PlannerConfig {
    /// Steps of one plan that are executed at the same time.
    #[arg(long, env = "HOLDFAST_PLAN_CONCURRENCY", default_value = "3", value_parser = count)]
    pub plan_concurrency: usize,

    /// Longest time without a sign of life of one run of a planner, an executor or a reviewer in ms, where the agent sets no
    /// time for the whole run.
    #[arg(long = "planner-max-duration-ms", env = "HOLDFAST_PLANNER_MAX_DURATION_MS", default_value = "90000", value_parser = milliseconds)]
    pub planner_silence: Duration,

    /// Tokens that the conversation of an executor may have for the model, roughly.
    #[arg(long, env = "HOLDFAST_EXECUTOR_CONTEXT_TOKENS", default_value = "1500", value_parser = context_tokens)]
    pub executor_context_tokens: u32,

    /// Tokens that the conversation of a reviewer may have for the model, roughly.
    #[arg(long, env = "HOLDFAST_REVIEWER_CONTEXT_TOKENS", default_value = "2000", value_parser = context_tokens)]
    pub reviewer_context_tokens: u32,
}
