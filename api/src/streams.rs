//! Limits on streams: how many one user and one address may hold open in this process, and for how long.

use std::{net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use holdfast_shared::config::HolderLimits;
use tokio::time::Instant;

use crate::{
    auth::{Caller, one_client},
    counts::{CountGuard, Counts},
    problem::Problem,
    wire::{TOKEN_EXPIRED, reconnect_hint},
};

pub struct Streams {
    limits: HolderLimits,
    life: Duration,
    users: Arc<Counts<String>>,
    addresses: Arc<Counts<IpAddr>>,
}

/// A permit for one open stream; it counts until it is dropped.
pub struct OpenStream {
    _of_user: Option<CountGuard<String>>,
    _of_address: Option<CountGuard<IpAddr>>,
    life_ends_at: Instant,
    token_expires_at: Option<Instant>,
}

impl Streams {
    pub fn new(limits: HolderLimits, life: Duration) -> Self {
        Self { limits, life, users: Arc::default(), addresses: Arc::default() }
    }

    /// Admits one more stream of the caller. Fails with `too_many_streams` beyond a limit.
    pub fn open(&self, caller: &Caller) -> Result<OpenStream, Problem> {
        let of_user = match self.limits.streams_per_user {
            None => None,
            Some(most) => {
                let guard = self.users.take(caller.owner.clone(), 1, most);
                Some(guard.ok_or_else(|| Problem::too_many_streams("One user", most))?)
            }
        };
        let of_address = match self.limits.streams_per_address {
            None => None,
            Some(most) => {
                let guard = self.addresses.take(one_client(caller.address), 1, most);
                Some(guard.ok_or_else(|| Problem::too_many_streams("One address", most))?)
            }
        };
        let (life_ends_at, token_expires_at) = (Instant::now() + self.life, caller.expires_at);
        Ok(OpenStream { _of_user: of_user, _of_address: of_address, life_ends_at, token_expires_at })
    }
}

impl OpenStream {
    /// Returns when the server truncates the stream without its final chunk, so that the client reconnects. The
    /// lifetime limit applies only to wires whose usual clients reconnect by themselves. An expired token ends a stream
    /// on every wire.
    pub fn ends_at(&self, reconnects: bool) -> Option<Instant> {
        let life_ends_at = reconnects.then_some(self.life_ends_at);
        life_ends_at.into_iter().chain(self.token_expires_at).min()
    }

    /// Returns the last bytes of a truncated stream.
    pub fn last_words(&self) -> Bytes {
        if self.token_expires_at.is_some_and(|end| Instant::now() >= end) {
            Bytes::from_static(TOKEN_EXPIRED)
        } else {
            reconnect_hint()
        }
    }
}
