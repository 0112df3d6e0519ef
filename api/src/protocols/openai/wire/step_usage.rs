//! The tokens of a part of a run: those of its steps, each counted in the part in which the model has answered.

use holdfast_shared::{
    event::{Event, EventBody, EventKind},
    usage::Usage,
};

/// The tokens of the steps so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepUsage {
    complete: Usage,
    /// Tokens of a step that waits for the client.
    open: Usage,
    /// Tokens of the open step that the part before has counted.
    counted: Usage,
}

impl StepUsage {
    /// Applies an event of this part, or of an earlier one.
    pub fn apply(&mut self, event: &Event, is_earlier: bool) {
        if !matches!(event.kind(), EventKind::StepCompleted | EventKind::AgentState) {
            return;
        }
        match event.body() {
            EventBody::StepCompleted(step) => {
                if !is_earlier {
                    self.complete += step.usage.beyond(self.counted);
                }
                (self.open, self.counted) = (Usage::default(), Usage::default());
            }
            EventBody::AgentState(changed) => match changed.usage {
                Some(usage) if is_earlier => self.counted = usage,
                Some(usage) => self.open = usage.beyond(self.counted),
                None => {}
            },
            _ => {}
        }
    }

    /// Returns the tokens of this part.
    pub fn total(&self) -> Usage {
        [self.complete, self.open].into_iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use holdfast_shared::{
        event::{AgentState, AgentStateChanged, StepCompleted},
        event_id::EventId,
        finish_reason::FinishReason,
    };

    use super::*;

    fn usage(output_tokens: u64) -> Usage {
        Usage { output_tokens, ..Usage::default() }
    }

    fn completed(output_tokens: u64) -> EventBody<'static> {
        let (usage, finish_reason) = (usage(output_tokens), FinishReason::Stop);
        EventBody::StepCompleted(StepCompleted { step: 1, tool_calls: 0, usage, finish_reason, model: None })
    }

    fn waiting(output_tokens: Option<u64>) -> EventBody<'static> {
        let usage = output_tokens.map(usage);
        EventBody::AgentState(AgentStateChanged { state: AgentState::WaitingOnUser, usage })
    }

    #[test]
    fn each_step_counts_once_where_its_model_has_answered() {
        let log = [completed(1), waiting(Some(20)), waiting(None), completed(20), completed(300), waiting(Some(4000))];
        // The log of an earlier version has no tokens of a waiting step.
        let earlier_version = [completed(1), waiting(None), completed(20), completed(300)];
        for (log, pause, parts) in [(&log[..], 3, [21, 4300]), (&earlier_version[..], 2, [1, 320])] {
            let (mut first, mut second) = (StepUsage::default(), StepUsage::default());
            for (n, body) in (0..).zip(log) {
                let event = Event::new(EventId::new(1, n + 1), DateTime::UNIX_EPOCH, body);
                if n < pause {
                    first.apply(&event, false);
                }
                second.apply(&event, n < pause);
            }
            assert_eq!([first, second].map(|part| part.total().output_tokens), parts);
        }
    }
}
