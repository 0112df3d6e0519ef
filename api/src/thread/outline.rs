//! An outline of a run's log: its pauses, its superseded ranges, and where it may lack events. It is short, however
//! long the log is.

use holdfast_shared::{
    event::{Event, EventBody, EventKind, ExecutedBy},
    event_id::EventId,
};
use uuid::Uuid;

use crate::{app::App, auth::Caller, problem::Problem, wire::is_taken_over};

/// The part of a log that a stream shows.
#[derive(Debug, Clone, Default)]
pub struct LogFilter {
    /// Events to skip: those after the first and before the second of each pair.
    pub left_out: Vec<(EventId, EventId)>,
    /// The pause at which the stream ends, if the run has continued after it.
    pub until: Option<EventId>,
}

impl LogFilter {
    /// Returns whether the filter leaves out the event.
    pub fn leaves_out(&self, id: EventId) -> bool {
        self.left_out.iter().any(|(base, until)| id > *base && id < *until)
    }

    /// Returns the event after which the filter passes all others.
    pub fn end(&self) -> EventId {
        let left_out = self.left_out.iter().map(|(_, until)| *until).max();
        left_out.max(self.until).unwrap_or(EventId::ORIGIN)
    }
}

/// A question of a run.
#[derive(Debug)]
struct AskedQuestion {
    id: String,
    pauses_before: usize,
    is_call: bool,
}

/// The facts of a log that the routes of front ends need before they stream it.
#[derive(Debug, Default)]
pub struct Outline {
    /// The events after which the run waited, or waits.
    pub pauses: Vec<EventId>,
    /// The ids of approvals and client calls that the run has asked for, each with the number of pauses before it, and whether it
    /// is a call.
    questions: Vec<AskedQuestion>,
    /// The superseded events: those after the first and before the second of each pair.
    pub superseded: Vec<(EventId, EventId)>,
    /// The events after which another worker took the run over. The lost worker may have shown more events than the log
    /// has.
    pub takeovers: Vec<EventId>,
    /// The last event that the outline includes.
    pub last: EventId,
    pub has_ended: bool,
}

impl Outline {
    /// Reads a run's log up to its newest event.
    pub async fn read(app: &App, run_id: Uuid) -> Result<Self, Problem> {
        let (mut outline, mut log) = (Self::default(), app.relay().pages(run_id, EventId::ORIGIN));
        while let Some(events) = log.next().await? {
            events.iter().for_each(|event| outline.push(event));
        }
        Ok(outline)
    }

    /// Reads it in the caller's turn of long reads, for a read whose path takes none.
    pub async fn read_in_turn(app: &App, caller: &Caller, run_id: Uuid) -> Result<Self, Problem> {
        let _turn = app.read_limit().begin(caller).await?;
        Self::read(app, run_id).await
    }

    /// Returns the filter that leaves out superseded events.
    pub fn filter(&self) -> LogFilter {
        LogFilter { left_out: self.superseded.clone(), until: None }
    }

    /// Returns the number of pauses up to the newest one at which the run asked any of the questions.
    pub fn pauses_up_to(&self, questions: &[String]) -> Option<usize> {
        let asked_question = self.questions.iter().rev().find(|question| questions.contains(&question.id));
        asked_question.map(|question| question.pauses_before + 1).filter(|pauses| *pauses <= self.pauses.len())
    }

    /// Returns the calls of the client that the run asked for before the pause of this number, from 1, and after the one before.
    pub fn calls_at(&self, pause: usize) -> Vec<&str> {
        let asked = self.questions.iter().filter(|asked| asked.is_call && asked.pauses_before + 1 == pause);
        asked.map(|asked| asked.id.as_str()).collect()
    }

    /// Returns the pauses at which the client owed the result of a call.
    pub fn pauses_of_client(&self) -> Vec<EventId> {
        let has_call = |at: usize| self.questions.iter().any(|asked| asked.is_call && asked.pauses_before == at);
        self.pauses.iter().enumerate().filter(|(at, _)| has_call(*at)).map(|(_, pause)| *pause).collect()
    }

    fn push(&mut self, event: &Event) {
        let pauses_before = self.pauses.len();
        let is_call = event.kind() == EventKind::ToolCallStarted;
        self.questions.extend(question_of(event).map(|id| AskedQuestion { id, pauses_before, is_call }));
        if let Some(base) = event.base.filter(|base| *base < self.last) {
            self.superseded.push((base, event.id));
        }
        if is_taken_over(event) {
            self.takeovers.push(self.last);
        }
        if event.is_wait() {
            self.pauses.push(event.id);
        }
        self.last = event.id;
        self.has_ended = event.is_terminal();
    }
}

/// Returns the question of an event: the id of an approval, or of a call that the client executes.
fn question_of(event: &Event) -> Option<String> {
    // Parse only these two payloads.
    if !matches!(event.kind(), EventKind::ApprovalRequested | EventKind::ToolCallStarted) {
        return None;
    }
    match event.body() {
        EventBody::ApprovalRequested(request) => Some(request.approval_id.to_string()),
        EventBody::ToolCallStarted(call) if call.by == ExecutedBy::Client => Some(call.call_id.into_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use holdfast_shared::event::{
        AgentState, AgentStateChanged, AttemptReason, AttemptStarted, RunQueued, StepStarted,
    };
    use uuid::Uuid;

    use super::*;

    fn event(attempt: u32, n: u32, body: &EventBody<'_>) -> Event {
        Event::new(EventId::new(attempt, n), DateTime::UNIX_EPOCH, body)
    }

    fn queued() -> Event {
        let [conversation_id, input_message_id, message_id] = [Uuid::nil(); 3];
        let base = EventId::ORIGIN;
        event(
            0,
            1,
            &EventBody::RunQueued(RunQueued { base, conversation_id, input_message_id, message_id, agent_id: None }),
        )
    }

    fn attempt_started(attempt: u32, base: EventId, reason: AttemptReason) -> Event {
        event(
            attempt,
            1,
            &EventBody::AttemptStarted(AttemptStarted { attempt, base, reason, crashes: 1, max_crashes: 3 }),
        )
    }

    #[test]
    fn the_outline_leaves_out_only_superseded_events() {
        let delta = |attempt, n| event(attempt, n, &EventBody::StepStarted(StepStarted { step: 1 }));
        let wait =
            event(2, 3, &EventBody::AgentState(AgentStateChanged { state: AgentState::WaitingOnUser, usage: None }));
        let events = [
            queued(),
            attempt_started(1, EventId::first_of(0), AttemptReason::Claimed),
            delta(1, 2),
            delta(1, 3),
            attempt_started(2, EventId::new(1, 1), AttemptReason::LeaseExpired),
            delta(2, 2),
            wait,
            attempt_started(3, EventId::new(2, 3), AttemptReason::Resumed),
        ];
        let mut outline = Outline::default();
        events.iter().for_each(|event| outline.push(event));
        let left: Vec<String> = events
            .iter()
            .filter(|event| outline.filter().leaves_out(event.id))
            .map(|event| event.id.to_string())
            .collect();
        assert_eq!(left, ["1-2", "1-3"]);
        assert_eq!(outline.pauses, [EventId::new(2, 3)]);
        assert_eq!(outline.takeovers, [EventId::new(1, 3)]);
    }
}
