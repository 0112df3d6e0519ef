//! The calls that a stream has shown.

use std::sync::Arc;

use holdfast_shared::event_id::EventId;

/// The calls, in their order. Clones share them until one changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ShownCalls(Arc<Vec<ShownCall>>);

#[derive(Debug, Clone, PartialEq)]
struct ShownCall {
    id: String,
    /// The event with which the stream began to show it.
    since: EventId,
    state: ShownCallState,
}

/// The state of a shown call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownCallState {
    /// Its arguments are incomplete.
    Open,
    /// A worker executes it, or it waits for a human.
    Shown,
    /// The front end executes it.
    OfClient,
    Ended,
}

impl ShownCalls {
    /// Adds a call whose arguments follow.
    pub fn begin(&mut self, id: &str, since: EventId) {
        let call = ShownCall { id: id.to_owned(), since, state: ShownCallState::Open };
        Arc::make_mut(&mut self.0).push(call);
    }

    pub fn state_of(&self, id: &str) -> Option<ShownCallState> {
        self.0.iter().rev().find(|call| call.id == id).map(|call| call.state)
    }

    pub fn set(&mut self, id: &str, state: ShownCallState) {
        let calls = Arc::make_mut(&mut self.0).iter_mut();
        calls.filter(|call| call.id == id).for_each(|call| call.state = state);
    }

    /// Ends the arguments of all calls, and returns the ids of those that were open.
    pub fn close(&mut self) -> Vec<String> {
        let is_open = |call: &ShownCall| call.state == ShownCallState::Open;
        let open: Vec<String> = self.0.iter().filter(|call| is_open(call)).map(|call| call.id.clone()).collect();
        open.iter().for_each(|id| self.set(id, ShownCallState::Shown));
        open
    }

    /// Returns the ids of the calls whose results the front end owes.
    pub fn of_client(&self) -> Vec<String> {
        let of_client = self.0.iter().filter(|call| call.state == ShownCallState::OfClient);
        of_client.map(|call| call.id.clone()).collect()
    }

    /// Returns whether the front end owed the result of a call at a pause.
    pub fn waited_at(&self, id: &str, pause: EventId) -> bool {
        let of_client = |call: &&ShownCall| call.id == id && call.state == ShownCallState::OfClient;
        self.0.iter().find(of_client).is_some_and(|call| call.since <= pause)
    }
}
