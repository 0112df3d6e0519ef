//! Cancels a request at its server when the caller has dropped it.

use std::time::Duration;

use rmcp::{
    RoleClient,
    model::{CancelledNotification, CancelledNotificationParam, RequestId},
    service::Peer,
};
use tokio::runtime::Handle;

/// Longest time for sending the cancellation, in the background.
const LIMIT: Duration = Duration::from_secs(5);

/// Sends `notifications/cancelled` for a request when dropped, unless it was disarmed.
pub struct CancelGuard {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl CancelGuard {
    pub fn new(peer: Peer<RoleClient>, id: RequestId) -> Self {
        Self { peer, id: Some(id) }
    }

    pub fn disarm(&mut self) {
        self.id = None;
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), Handle::try_current()) else {
            return;
        };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = Some("the client no longer waits for the answer".to_owned());
            let cancelled = CancelledNotification::new(CancelledNotificationParam::new(Some(id), reason));
            let _ = tokio::time::timeout(LIMIT, peer.send_notification(cancelled.into())).await;
        });
    }
}
