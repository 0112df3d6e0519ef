//! The places of connections: how many of an owner and of this process there are, and which one goes for another.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::{BoxFuture, Shared};
use holdfast_shared::config::ToolsConfig;
use tokio::task::AbortHandle;

use super::{
    connection::Connection,
    error::Error,
    target::{ServerTarget, SlotKey},
    uses::{ConnectionHold, Uses},
};

/// Time in which a failed server is not tried again, so that not every run waits for the complete time-out.
const FAILURE_MEMORY: Duration = Duration::from_secs(3);

/// An attempt to connect, which ends once and has one result for all its users.
pub type ConnectAttempt = Shared<BoxFuture<'static, Result<Arc<Connection>, ConnectFailure>>>;

#[derive(Clone)]
pub struct ConnectFailure {
    pub error: Error,
    pub at: Instant,
}

/// The connections of this process.
pub struct Slots {
    slots: HashMap<SlotKey, Slot>,
    most: usize,
    most_processes: usize,
    most_of_owner: usize,
}

/// The place of one connection.
pub struct Slot {
    pub attempt: ConnectAttempt,
    pub task: AbortHandle,
    pub uses: Arc<Uses>,
    /// The owner whose limit counts the connection; `None` for one that all owners share.
    owner: Option<Arc<str>>,
    is_process: bool,
}

impl Slots {
    pub fn new(config: &ToolsConfig) -> Self {
        Self {
            slots: HashMap::new(),
            most: config.mcp_connections,
            most_processes: config.mcp_processes,
            most_of_owner: config.mcp_owner_connections,
        }
    }

    pub fn get(&self, target: &ServerTarget) -> Option<&Slot> {
        self.slots.get(&target.slot())
    }

    /// Adds the attempt of a target, whose slot keeps its users.
    pub fn insert(&mut self, target: &ServerTarget, attempt: ConnectAttempt, task: AbortHandle, uses: Arc<Uses>) {
        let slot = Slot { attempt, task, uses, owner: target.counted_owner.clone(), is_process: target.is_process() };
        self.slots.insert(target.slot(), slot);
    }

    /// Makes room for a connection to the target. Returns the slots that must go, idle ones of the longest time first, or `None`
    /// if all are in use.
    pub fn make_room(&mut self, target: &ServerTarget) -> Option<Vec<Slot>> {
        self.slots.retain(|_, slot| slot.is_good(None) || slot.uses.idle_since().is_none());
        let mut leaving = Vec::new();
        let owner = target.counted_owner.as_ref();
        if owner.is_some() {
            self.make_room_among(self.most_of_owner, |slot| slot.owner.as_ref() == owner, &mut leaving)?;
        }
        if target.is_process() {
            self.make_room_among(self.most_processes, |slot| slot.is_process, &mut leaving)?;
        }
        self.make_room_among(self.most, |_| true, &mut leaving)?;
        let leaving = leaving.iter().filter_map(|key| self.slots.remove(key));
        Some(leaving.collect())
    }

    /// Adds to `leaving` the key of the connection that must go so that one more fits among these, if one must.
    fn make_room_among(
        &self,
        most: usize,
        is_counted: impl Fn(&Slot) -> bool,
        leaving: &mut Vec<SlotKey>,
    ) -> Option<()> {
        let is_counted =
            |(key, slot): &(&SlotKey, &Slot)| !leaving.contains(key) && slot.is_living() && is_counted(slot);
        let counted: Vec<_> = self.slots.iter().filter(is_counted).collect();
        if counted.len() < most {
            return Some(());
        }
        let idle = counted.into_iter().filter_map(|(key, slot)| Some((slot.uses.idle_since()?, key)));
        let (_, oldest) = idle.min_by_key(|(since, _)| *since)?;
        leaving.push(oldest.clone());
        Some(())
    }

    pub fn into_slots(self) -> impl Iterator<Item = Slot> {
        self.slots.into_values()
    }
}

impl Slot {
    /// Returns the attempt for one more user.
    pub fn begin(&self) -> (ConnectAttempt, ConnectionHold) {
        (self.attempt.clone(), self.uses.begin())
    }

    /// Returns whether callers should wait for the attempt or take its result. A failure before `since` does not count.
    pub fn is_good(&self, since: Option<Instant>) -> bool {
        match self.attempt.peek() {
            Some(Err(failure)) => {
                failure.at.elapsed() < FAILURE_MEMORY && since.is_none_or(|since| failure.at >= since)
            }
            _ => self.is_living(),
        }
    }

    /// Returns whether there is a connection, or a start that may bring one.
    fn is_living(&self) -> bool {
        match self.attempt.peek() {
            None => true,
            Some(Ok(connection)) => connection.is_usable(),
            Some(Err(_)) => false,
        }
    }

    /// Ends the connection or its start.
    pub async fn end(self) {
        self.task.abort();
        if let Ok(connection) = self.attempt.await {
            connection.close().await;
        }
    }
}
