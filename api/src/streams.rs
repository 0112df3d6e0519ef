//! The limits of streams: how many connections one user, and one address, may hold open in this process, and how long.

use std::{net::IpAddr, sync::Arc, time::Duration};

use holdfast_shared::config::HolderLimits;
use tokio::time::Instant;

use crate::{
    auth::{Caller, one_client},
    held::{Counts, Held},
    problem::Problem,
    wire::Wire,
};

pub struct Streams {
    limits: HolderLimits,
    life: Duration,
    users: Arc<Counts<String>>,
    addresses: Arc<Counts<IpAddr>>,
}

/// One client's right to hold a connection open, until it is dropped.
pub struct OpenStream {
    _of_user: Option<Held<String>>,
    _of_address: Option<Held<IpAddr>>,
    life_ends_at: Instant,
}

impl Streams {
    pub fn new(limits: HolderLimits, life: Duration) -> Self {
        Self { limits, life, users: Arc::default(), addresses: Arc::default() }
    }

    /// Lets a caller hold one more connection open.
    pub fn open(&self, caller: &Caller) -> Result<OpenStream, Problem> {
        let of_user = match self.limits.streams_per_user {
            None => None,
            Some(most) => {
                let taken = self.users.take(caller.owner.clone(), 1, most);
                Some(taken.ok_or_else(|| Problem::too_many_streams("One user", most))?)
            }
        };
        let of_address = match self.limits.streams_per_address {
            None => None,
            Some(most) => {
                let taken = self.addresses.take(one_client(caller.address), 1, most);
                Some(taken.ok_or_else(|| Problem::too_many_streams("One address", most))?)
            }
        };
        Ok(OpenStream { _of_user: of_user, _of_address: of_address, life_ends_at: Instant::now() + self.life })
    }
}

impl OpenStream {
    /// When the stream is cut without its final chunk, so that its client comes back. The life of a stream does not end it
    /// on a wire whose usual clients do not come back by themselves.
    pub fn ends_at(&self, wire: Wire) -> Option<Instant> {
        wire.comes_back().then_some(self.life_ends_at)
    }
}
