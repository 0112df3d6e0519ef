//! The MCP servers of an agent, as one run uses them: which have their tools ready, and which are still starting.

use std::{sync::Arc, time::Duration};

use holdfast_shared::agent::McpServer;
use tokio::time::{Instant, timeout, timeout_at};

use super::mcp::{ConnectionHold, Error, Mcp, ServerListing, ServerUser};

/// The connections of one run; cheap to clone.
#[derive(Clone)]
pub struct RunServers {
    pub(super) mcp: Arc<Mcp>,
    pub(super) user: Arc<ServerUser>,
    /// Longest time that the first model call waits for a server.
    wait: Duration,
}

/// A server's tools, or why it has none now.
pub enum ServerState {
    Ready(Arc<ServerListing>),
    Starting,
    Unavailable(Error),
}

impl RunServers {
    pub fn new(mcp: &Arc<Mcp>, user: ServerUser, wait: Duration) -> Self {
        Self { mcp: Arc::clone(mcp), user: Arc::new(user), wait }
    }

    /// Starts a server if it is not connected, and waits shortly for its tools. The run keeps the connection until it drops the
    /// hold.
    pub async fn begin(&self, server: &McpServer) -> (Option<ConnectionHold>, ServerState) {
        let deadline = Instant::now() + self.wait;
        let hold = match self.mcp.hold(server, &self.user).await {
            Ok(hold) => hold,
            Err(error) => return (None, ServerState::Unavailable(error)),
        };
        let tools = timeout_at(deadline, self.mcp.tools(server, &self.user)).await;
        (Some(hold), tools.map_or(ServerState::Starting, ServerState::of))
    }

    /// Returns the state of a server that has ended its start, well or not; `None` while it starts.
    pub async fn started(&self, server: &McpServer) -> Option<ServerState> {
        match self.mcp.start_of(server, &self.user)? {
            Ok(()) => timeout(self.wait, self.mcp.tools(server, &self.user)).await.ok().map(ServerState::of),
            Err(error) => Some(ServerState::Unavailable(error)),
        }
    }

    /// Returns the list that a connected server has announced after `known`.
    pub async fn announced(&self, server: &McpServer, known: &Arc<ServerListing>) -> Option<Arc<ServerListing>> {
        self.mcp.announced(server, &self.user, known).await
    }

    /// Waits for a server that a call needs, at most as long as its start may take.
    pub async fn wait_for(&self, server: &McpServer) -> ServerState {
        let tools = timeout(self.mcp.start_limit(server), self.mcp.tools(server, &self.user)).await;
        tools.map_or(ServerState::Starting, ServerState::of)
    }
}

impl ServerState {
    fn of(listing: Result<Arc<ServerListing>, Error>) -> Self {
        listing.map_or_else(Self::Unavailable, Self::Ready)
    }
}
