//! The notifications and requests of a server that the worker accepts: only changes of its tools.

use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::{
    ClientHandler, RoleClient,
    model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion},
    service::NotificationContext,
};

/// Offers no capability: no sampling, no roots, no elicitation.
#[derive(Default)]
pub struct NotificationListener {
    changes: AtomicU64,
}

impl NotificationListener {
    /// Returns how often the tools have changed on this connection.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }
}

impl ClientHandler for NotificationListener {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("holdfast", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
