//! The subagents that a stream has shown.

use std::sync::Arc;

use holdfast_shared::{
    event::{SubagentCompleted, SubagentStarted},
    run::RunStatus,
};
use uuid::Uuid;

use super::event::{AgUiEvent, SubagentOutcome};

/// The subagents, in their order. Clones share them until one changes. Clients refuse a subagent that begins twice, or that has
/// not ended when its run does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ShownSubagents(Arc<Vec<ShownSubagent>>);

#[derive(Debug, Clone, PartialEq)]
struct ShownSubagent {
    run_id: Uuid,
    name: String,
    /// The call in the stream; absent for a step of a plan.
    call_id: Option<String>,
    is_open: bool,
}

impl ShownSubagents {
    /// Begins a subagent, unless the stream has shown it.
    pub fn begin(&mut self, started: &SubagentStarted<'_>, is_of_call: bool) -> Option<AgUiEvent<'static>> {
        if self.0.iter().any(|subagent| subagent.run_id == started.child_run_id) {
            return None;
        }
        let subagent = ShownSubagent {
            run_id: started.child_run_id,
            name: started.agent.to_string(),
            call_id: is_of_call.then(|| started.call_id.to_string()),
            is_open: true,
        };
        let event = subagent.started();
        Arc::make_mut(&mut self.0).push(subagent);
        Some(event)
    }

    /// Ends a subagent that is open.
    pub fn end(&mut self, completed: &SubagentCompleted<'_>) -> Option<AgUiEvent<'static>> {
        let subagent_run_id = completed.child_run_id;
        let is_it = |subagent: &&mut ShownSubagent| subagent.is_open && subagent.run_id == subagent_run_id;
        Arc::make_mut(&mut self.0).iter_mut().find(is_it)?.is_open = false;
        if completed.status == RunStatus::Completed {
            let result = completed.output.as_ref().map(ToString::to_string);
            return Some(AgUiEvent::SubagentFinished { subagent_run_id, result, outcome: None });
        }
        let message = completed.error.as_ref().map_or_else(String::new, |error| error.message.clone());
        Some(AgUiEvent::SubagentError { subagent_run_id, message, code: completed.status.as_str() })
    }

    /// Ends all that are open, because their run has ended.
    pub fn close(&mut self) -> Vec<AgUiEvent<'static>> {
        let error = |subagent: &ShownSubagent| AgUiEvent::SubagentError {
            subagent_run_id: subagent.run_id,
            message: "The run has ended.".to_owned(),
            code: RunStatus::Cancelled.as_str(),
        };
        let events = self.open().map(error).collect();
        self.0 = Arc::default();
        events
    }

    /// Returns the events that begin those that are open, for the stream after a pause.
    pub fn begun(&self) -> Vec<AgUiEvent<'static>> {
        self.open().map(ShownSubagent::started).collect()
    }

    /// Returns the events that end those that are open, for the stream before a pause.
    pub fn suspended(&self) -> Vec<AgUiEvent<'static>> {
        let outcome = Some(SubagentOutcome::Suspended);
        let event = |subagent: &ShownSubagent| AgUiEvent::SubagentFinished {
            subagent_run_id: subagent.run_id,
            result: None,
            outcome,
        };
        self.open().map(event).collect()
    }

    fn open(&self) -> impl Iterator<Item = &ShownSubagent> {
        self.0.iter().filter(|subagent| subagent.is_open)
    }
}

impl ShownSubagent {
    fn started(&self) -> AgUiEvent<'static> {
        AgUiEvent::SubagentStarted {
            subagent_run_id: self.run_id,
            name: self.name.clone(),
            parent_tool_call_id: self.call_id.clone(),
        }
    }
}
