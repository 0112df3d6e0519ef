//! Limits of a run: some are reported to the model, and others end the run.

use std::time::Duration;

use holdfast_shared::{agent, run::RunError, usage::Usage};

/// The limits that apply to one run.
#[derive(Debug, Clone, Copy)]
pub struct RunLimits {
    pub tool_calls: u32,
    pub steps: u32,
    /// Longest time of the run as a whole.
    pub duration: Duration,
    /// Longest time without a sign of life.
    pub silence: Option<Duration>,
    output_tokens: u64,
    total_tokens: u64,
}

impl RunLimits {
    pub fn of(limits: agent::Limits, silence: Option<Duration>) -> Self {
        Self {
            tool_calls: limits.max_tool_calls.unwrap_or(u32::MAX),
            steps: limits.max_steps.unwrap_or(u32::MAX),
            duration: limits.max_duration_ms.map_or(Duration::MAX, Duration::from_millis),
            silence,
            output_tokens: limits.max_output_tokens.unwrap_or(u64::MAX),
            total_tokens: limits.max_total_tokens.unwrap_or(u64::MAX),
        }
    }

    /// Returns the limit because of which the model must answer without tools in this step, if there is one.
    pub fn reached_limit(&self, step: u32, calls_made: u32) -> Option<String> {
        if step >= self.steps {
            return Some(format!("the run has reached the last of its {} steps (max_steps)", self.steps));
        }
        (calls_made >= self.tool_calls)
            .then(|| format!("the run has made all of its {} tool calls (max_tool_calls)", self.tool_calls))
    }

    /// Fails if the run has used more tokens than it may.
    pub fn check(&self, usage: Usage) -> Result<(), RunError> {
        let total = usage.input_tokens.saturating_add(usage.output_tokens);
        if usage.output_tokens > self.output_tokens {
            let (used, most) = (usage.output_tokens, self.output_tokens);
            return Err(limit_exceeded(format!("the model has written {used} tokens; max_output_tokens is {most}")));
        }
        if total > self.total_tokens {
            let most = self.total_tokens;
            return Err(limit_exceeded(format!(
                "the model has read and written {total} tokens; max_total_tokens is {most}"
            )));
        }
        Ok(())
    }

    pub fn duration_exceeded(&self) -> RunError {
        let most = self.duration.as_millis();
        limit_exceeded(format!("the run took longer than {most} ms (max_duration_ms); its text so far is kept"))
    }

    pub fn silence_exceeded(&self) -> RunError {
        let most = self.silence.unwrap_or_default().as_millis();
        limit_exceeded(format!("the run gave no sign of life for {most} ms; its text so far is kept"))
    }
}

fn limit_exceeded(message: String) -> RunError {
    RunError::new("limit_exceeded", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_apply_at_their_boundaries() {
        let limits = agent::Limits {
            max_tool_calls: Some(2),
            max_steps: Some(3),
            max_duration_ms: Some(1),
            max_output_tokens: Some(10),
            max_total_tokens: Some(20),
        };
        let limits = RunLimits::of(limits, None);
        assert_eq!(limits.reached_limit(2, 1), None);
        assert!(limits.reached_limit(2, 2).unwrap().contains("max_tool_calls"));
        assert!(limits.reached_limit(3, 0).unwrap().contains("max_steps"));
        let used = |input_tokens, output_tokens| Usage { input_tokens, output_tokens, ..Usage::default() };
        assert!(limits.check(used(10, 10)).is_ok());
        assert!(limits.check(used(0, 11)).unwrap_err().message.contains("max_output_tokens"));
        assert!(limits.check(used(11, 10)).unwrap_err().message.contains("max_total_tokens"));
    }
}
