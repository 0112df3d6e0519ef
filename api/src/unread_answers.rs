//! Answers that clients have not read yet. The API counts the bytes that it keeps for each caller, and each answer has
//! a deadline. Streams have their own limits (`streams`).

use std::{sync::Arc, time::Duration};

use axum::{
    body::{self, Body, Bytes, HttpBody},
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    app::App,
    auth::{self, Caller},
    hang_up::HangUp,
    in_flight::{InFlight, InFlightGuard, LimitExceeded},
    problem::Problem,
    reserve::PROBE_PATHS,
};

/// The connection itself may buffer this many bytes, so shorter answers do not count.
const UNCOUNTED: usize = 16 * 1024;

pub struct UnreadAnswers {
    in_flight: InFlight,
    longest: Duration,
}

/// An answer in the memory of this process. The connection drops it once the client's socket has accepted its last
/// byte.
struct UnreadAnswer {
    bytes: Bytes,
    _guard: InFlightGuard,
    _deadline: Option<AbortOnDropHandle<()>>,
}

impl AsRef<[u8]> for UnreadAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl UnreadAnswers {
    pub fn new(most: usize, most_per_caller: usize, longest: Duration) -> Self {
        Self { in_flight: InFlight::new(most, most_per_caller), longest }
    }

    /// Admits an answer that the handler assembles from several reads of the database; handlers call it before the
    /// first read. The bytes count for the caller until the guard is dropped, and the finished answer counts after
    /// that.
    pub fn assemble(&self, caller: &Caller, bytes: usize) -> Result<InFlightGuard, Problem> {
        self.in_flight.count_for_caller(caller, bytes).map_err(refusal)
    }

    /// Admits an answer that is read from a store while the client reads it. The bytes that it has in memory at a time count
    /// until the guard is dropped.
    pub fn hold(&self, caller: &Caller, bytes: usize) -> Result<InFlightGuard, Problem> {
        self.in_flight.count(caller, bytes).map_err(refusal)
    }

    /// Returns a body that counts until the client has read it, and closes the connection at the answer's deadline.
    fn body(&self, bytes: Bytes, guard: InFlightGuard, hang_up: Option<HangUp>) -> Body {
        let longest = self.longest;
        let deadline = hang_up.map(|hang_up| hang_up.after(longest));
        Body::from(Bytes::from_owner(UnreadAnswer { bytes, _guard: guard, _deadline: deadline }))
    }
}

/// Counts the bytes of each answer that is no stream. Refuses a caller with too many unread bytes before the handler
/// runs.
pub async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let caller = auth::caller_of(&request).filter(|_| !PROBE_PATHS.contains(&request.uri().path())).cloned();
    let Some(caller) = caller else { return next.run(request).await };
    let unread = app.unread_answers();
    let has_body = !request.body().is_end_stream();
    // A cancel has no body and always takes effect. Only its answer may exceed the limit.
    if (has_body || request.method().is_safe())
        && let Err(exceeded) = unread.in_flight.expect_room(&caller)
    {
        return refusal(exceeded).into_response();
    }
    let hang_up = request.extensions().get::<HangUp>().cloned();
    let (head, body) = next.run(request).await.into_parts();
    let bytes = match body.size_hint().exact() {
        Some(bytes) if bytes > UNCOUNTED as u64 => bytes as usize,
        _ => return Response::from_parts(head, body),
    };
    let guard = match unread.in_flight.count(&caller, bytes) {
        Ok(guard) => guard,
        // A request with a body has already changed something. The limit on bodies bounds the number of such answers.
        Err(_) if has_body => unread.in_flight.count_beyond_limits(&caller, bytes),
        Err(exceeded) => return refusal(exceeded).into_response(),
    };
    match body::to_bytes(body, bytes).await {
        Ok(bytes) => Response::from_parts(head, unread.body(bytes, guard, hang_up)),
        Err(error) => {
            tracing::error!(%error, "failed to count the bytes of an answer");
            Problem::internal().into_response()
        }
    }
}

fn refusal(exceeded: LimitExceeded) -> Problem {
    match exceeded {
        LimitExceeded::OfCaller { most } => Problem::too_many_answers(most),
        LimitExceeded::OfAll => Problem::answers_busy(),
    }
}
