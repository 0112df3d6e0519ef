//! The limits on request bodies in flight: bytes that this process reads at a time, per caller and in all. Uploads have the
//! same limits for themselves.

use axum::http::{HeaderMap, header};

use crate::{
    auth::Caller,
    in_flight::{InFlight, InFlightGuard, LimitExceeded},
    problem::Problem,
};

pub struct Bodies {
    in_flight: InFlight,
    uploads: InFlight,
}

impl Bodies {
    pub fn new(most: usize, most_per_caller: usize) -> Self {
        Self { in_flight: InFlight::new(most, most_per_caller), uploads: InFlight::new(most, most_per_caller) }
    }

    /// Admits a body whose bytes count as they arrive, because a client may promise bytes that it never sends. Fails beyond
    /// a limit.
    pub fn begin(&self, caller: &Caller) -> Result<InFlightGuard, Problem> {
        self.in_flight.expect_room(caller).and_then(|()| self.in_flight.count(caller, 0)).map_err(refused)
    }

    /// Counts bytes that have arrived. Fails beyond a limit; a body that is alone is always read.
    pub fn arrived(&self, body: &mut InFlightGuard, bytes: usize) -> Result<(), Problem> {
        self.in_flight.count_more(body, bytes).map_err(refused)
    }

    /// Admits an upload, of which at most `most` bytes are in memory, until the guard is dropped. One without a length counts
    /// as the longest possible one. Fails beyond a limit.
    pub fn begin_upload(&self, caller: &Caller, headers: &HeaderMap, most: usize) -> Result<InFlightGuard, Problem> {
        let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let bytes = length.unwrap_or(most).min(most);
        self.uploads.count(caller, bytes).map_err(refused)
    }
}

fn refused(exceeded: LimitExceeded) -> Problem {
    match exceeded {
        LimitExceeded::OfCaller { most } => Problem::too_many_bodies(most),
        LimitExceeded::OfAll => Problem::bodies_busy(),
    }
}
