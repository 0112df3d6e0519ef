//! The users of one connection: runs that hold it between their calls, and requests under way. A connection without users
//! is idle.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Instant,
};

use tokio::sync::Notify;

pub struct Uses {
    state: Mutex<UseState>,
    /// Woken up when a connection becomes idle.
    freed: Arc<Notify>,
}

struct UseState {
    users: usize,
    /// When the last user began or ended.
    last: Instant,
}

/// One user of a connection. The pool does not end the connection before this is dropped.
pub struct ConnectionHold(Arc<Uses>);

impl Uses {
    pub fn new(freed: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(UseState { users: 0, last: Instant::now() }), freed })
    }

    pub fn begin(self: &Arc<Self>) -> ConnectionHold {
        let mut state = self.state();
        state.users += 1;
        state.last = Instant::now();
        ConnectionHold(Arc::clone(self))
    }

    /// Returns since when the connection is idle; `None` while it has users.
    pub fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.users == 0).then_some(state.last)
    }

    fn state(&self) -> MutexGuard<'_, UseState> {
        self.state.lock().expect("no thread panics with this lock")
    }
}

impl Drop for ConnectionHold {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.users -= 1;
        state.last = Instant::now();
        if state.users == 0 {
            self.0.freed.notify_waiters();
        }
    }
}
