//! The states of a thread, as the protocol has them.

use holdfast_shared::{
    conversation::Conversation,
    message::Role,
    run::{Run, RunStatus},
    timestamp,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    assistants::{GRAPH, id_of_agent},
    history::{ThreadEntry, ThreadState},
};
use crate::protocols::langgraph::wire::LangMessage;

/// Returns the values of a thread: its messages, and the questions that wait.
pub fn values_of(state: &ThreadState) -> Value {
    let mut values = values(&state.entries);
    if !state.interrupts.is_empty() {
        values["__interrupt__"] = json!(state.interrupts);
    }
    values
}

fn values(entries: &[ThreadEntry]) -> Value {
    let messages = entries.iter().flat_map(|entry| &entry.messages);
    json!({"messages": messages.map(LangMessage::to_value).collect::<Vec<_>>()})
}

/// A state of a thread: after its newest message, or after an earlier one.
pub struct StateView<'a> {
    pub thread: &'a Conversation,
    /// The client's name for the thread.
    pub thread_id: &'a str,
    pub state: &'a ThreadState,
}

impl StateView<'_> {
    /// Returns the state of the thread now.
    pub fn newest(&self) -> Value {
        let entries = &self.state.entries;
        let mut newest = self.after(entries.len());
        // Messages that were added without a run come after the runs that have ended.
        let is_last = |run: &&Run| !run.status.is_terminal() || !entries.last().is_some_and(|entry| entry.is_added);
        if let Some(run) = self.state.run.as_ref().filter(is_last) {
            newest["next"] = json!(next_of(run.status));
            newest["tasks"] = self.tasks(run);
        }
        newest["interrupts"] = json!(self.state.interrupts);
        newest
    }

    /// Returns the state after the first `count` entries. Before all of them, it is empty.
    pub fn after(&self, count: usize) -> Value {
        let entries = &self.state.entries[..count];
        let last = entries.last();
        let is_input = last.is_none_or(|last| last.role == Role::User);
        let source = match last {
            Some(last) if last.is_added => "update",
            _ if is_input => "input",
            _ => "loop",
        };
        let parent = (count > 0).then(|| self.checkpoint(self.id_after(count - 1)));
        json!({
            "values": values(entries),
            "next": if count > 0 && is_input { json!(["agent"]) } else { json!([]) },
            "tasks": [], "interrupts": [],
            "checkpoint": self.checkpoint(self.id_after(count)),
            "parent_checkpoint": parent,
            "metadata": {
                "source": source, "step": count as i64 - 1, "thread_id": self.thread_id,
                "graph_id": GRAPH, "assistant_id": id_of_agent(self.thread.agent_id),
            },
            "created_at": timestamp::text(last.map_or(self.thread.created_at, |last| last.created_at)),
        })
    }

    /// Returns the newest states, newest first: at most `limit`, and those before a checkpoint if it is given.
    pub fn history(&self, limit: usize, before: Option<Uuid>, max_bytes: usize) -> Vec<Value> {
        let count = self.state.entries.len();
        if count == 0 && self.state.run.is_none() {
            return Vec::new();
        }
        let end = before.and_then(|id| self.count_at(id)).map_or(count + 1, |place| place);
        let (mut states, mut bytes) = (Vec::new(), 0);
        for place in (0..end).rev().take(limit) {
            let state = if place == count { self.newest() } else { self.after(place) };
            bytes += state.to_string().len();
            if bytes > max_bytes && !states.is_empty() {
                break;
            }
            states.push(state);
        }
        states
    }

    /// Returns the number of entries at a checkpoint.
    pub fn count_at(&self, id: Uuid) -> Option<usize> {
        (0..=self.state.entries.len()).find(|count| self.id_after(*count) == id)
    }

    /// Returns the id of the checkpoint after so many entries: the message's, or the conversation's before all of them.
    fn id_after(&self, count: usize) -> Uuid {
        count.checked_sub(1).map_or(self.thread.id, |last| self.state.entries[last].id)
    }

    fn checkpoint(&self, id: Uuid) -> Value {
        json!({"thread_id": self.thread_id, "checkpoint_ns": "", "checkpoint_id": id, "checkpoint_map": null})
    }

    fn tasks(&self, run: &Run) -> Value {
        let task = |name: &str, error: Option<&str>| {
            json!([{
                "id": run.id, "name": name, "path": ["__pregel_pull", name], "error": error, "interrupts": self.state.interrupts,
                "checkpoint": null, "state": null, "result": null,
            }])
        };
        match (run.status, &run.error) {
            (RunStatus::Waiting, _) => task("tools", None),
            (RunStatus::Queued | RunStatus::Running, _) => task("agent", None),
            (RunStatus::Failed, Some(error)) => task("agent", Some(&error.message)),
            _ => json!([]),
        }
    }
}

/// Returns the nodes that a thread continues with after this run.
const fn next_of(run: RunStatus) -> &'static [&'static str] {
    match run {
        RunStatus::Waiting => &["tools"],
        RunStatus::Queued | RunStatus::Running | RunStatus::Failed => &["agent"],
        RunStatus::Completed | RunStatus::Cancelled => &[],
    }
}

/// Returns the status of a thread as the protocol names it, by the status of its run.
pub const fn thread_status(run: Option<RunStatus>) -> &'static str {
    match run {
        Some(RunStatus::Queued | RunStatus::Running) => "busy",
        Some(RunStatus::Waiting) => "interrupted",
        Some(RunStatus::Failed) => "error",
        Some(RunStatus::Completed | RunStatus::Cancelled) | None => "idle",
    }
}

/// Returns a thread as the protocol has it. `state` is absent in lists.
pub fn thread_json(
    thread: &Conversation,
    thread_id: &str,
    metadata: Map<String, Value>,
    run: Option<RunStatus>,
    state: Option<&ThreadState>,
) -> Value {
    let updated_at = timestamp::text(thread.last_message_at.unwrap_or(thread.created_at));
    let mut all = json!({"graph_id": GRAPH, "assistant_id": id_of_agent(thread.agent_id)});
    all.as_object_mut().expect("it is an object").extend(metadata);
    let interrupts = state.filter(|state| !state.interrupts.is_empty());
    json!({
        "thread_id": thread_id, "created_at": timestamp::text(thread.created_at), "updated_at": updated_at,
        "state_updated_at": updated_at, "metadata": all, "status": thread_status(run), "config": {}, "error": null,
        "values": state.map(|state| values(&state.entries)),
        "interrupts": interrupts.map_or(json!({}), |state| match &state.run {
            Some(run) => json!({run.id.to_string(): state.interrupts}),
            None => json!({}),
        }),
    })
}
