//! The limits on request bodies in flight: bytes that this process reads at a time, per caller and in all. Uploads have the
//! same limits for themselves.

use axum::body::Bytes;
use futures::{Stream, StreamExt as _};
use holdfast_shared::file::PART_BYTES;

use crate::{
    auth::Caller,
    in_flight::{InFlight, InFlightGuard, LimitExceeded},
    problem::Problem,
};

/// Bytes of a body that count for its caller alone: most bodies have fewer, and others' large ones must not refuse them.
const FREE: usize = 16 * 1024;

pub struct Bodies {
    in_flight: InFlight,
    uploads: InFlight,
}

impl Bodies {
    pub fn new(most: usize, most_per_caller: usize) -> Self {
        let limit = || InFlight::new(most, most_per_caller).with_free(FREE);
        Self { in_flight: limit(), uploads: limit() }
    }

    /// Admits a body whose bytes count as they arrive, because a client may promise bytes that it never sends. Fails beyond
    /// a limit.
    pub fn begin(&self, caller: &Caller) -> Result<InFlightGuard, Problem> {
        begin(&self.in_flight, caller)
    }

    /// Counts bytes that have arrived. Fails beyond a limit; a body that is alone is always read.
    pub fn arrived(&self, body: &mut InFlightGuard, bytes: usize) -> Result<(), Problem> {
        self.in_flight.count_more(body, bytes).map_err(refused)
    }

    /// Admits an upload. Its bytes count as they arrive, up to a part, because earlier parts are stored. Fails beyond a limit.
    pub fn begin_upload(&self, caller: &Caller) -> Result<UploadInFlight, Problem> {
        Ok(UploadInFlight { guard: begin(&self.uploads, caller)?, uncounted: PART_BYTES as usize })
    }

    /// Counts the bytes of an upload as they arrive.
    pub fn counted(
        &self,
        mut upload: UploadInFlight,
        pieces: impl Stream<Item = Result<Bytes, Problem>> + Send + 'static,
    ) -> impl Stream<Item = Result<Bytes, Problem>> + Send + 'static {
        let uploads = self.uploads.clone();
        pieces.map(move |piece| {
            let piece = piece?;
            let bytes = piece.len().min(upload.uncounted);
            upload.uncounted -= bytes;
            uploads.count_more(&mut upload.guard, bytes).map_err(refused)?;
            Ok(piece)
        })
    }
}

/// An upload in flight.
pub struct UploadInFlight {
    guard: InFlightGuard,
    /// Bytes of a part that have not arrived.
    uncounted: usize,
}

fn begin(in_flight: &InFlight, caller: &Caller) -> Result<InFlightGuard, Problem> {
    in_flight.expect_room_of_caller(caller).and_then(|()| in_flight.count(caller, 0)).map_err(refused)
}

fn refused(exceeded: LimitExceeded) -> Problem {
    match exceeded {
        LimitExceeded::OfCaller { most } => Problem::too_many_bodies(most),
        LimitExceeded::OfAll => Problem::bodies_busy(),
    }
}
