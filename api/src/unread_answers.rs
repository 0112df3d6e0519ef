//! Answers that clients have not read yet: the bytes that this process keeps for them are counted, and each answer has a
//! longest time. Streams have limits of their own (`streams`).

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

/// The connection itself may buffer as much as this, so shorter answers are not counted.
const UNCOUNTED: usize = 16 * 1024;

pub struct UnreadAnswers {
    in_flight: InFlight,
    longest: Duration,
}

/// An answer in the memory of this process. The connection drops it with the last byte that the client's socket takes.
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

    /// Lets a caller have an answer that several reads of the database make, before the first of them. The bytes count for
    /// the caller until the guard is dropped; the answer itself counts from then on.
    pub fn assemble(&self, caller: &Caller, bytes: usize) -> Result<InFlightGuard, Problem> {
        self.in_flight.count_for_caller(caller, bytes).map_err(refusal)
    }

    /// The body of an answer, counted until the client has read it, and given up after the longest time.
    fn body(&self, bytes: Bytes, guard: InFlightGuard, hang_up: Option<HangUp>) -> Body {
        let longest = self.longest;
        let deadline = hang_up.map(|hang_up| {
            AbortOnDropHandle::new(tokio::spawn(async move {
                tokio::time::sleep(longest).await;
                hang_up.now();
            }))
        });
        Body::from(Bytes::from_owner(UnreadAnswer { bytes, _guard: guard, _deadline: deadline }))
    }
}

/// Counts the bytes of each answer that is no stream. A caller who leaves too many unread is refused before the work is done.
pub async fn count(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let caller = auth::caller_of(&request).filter(|_| !PROBE_PATHS.contains(&request.uri().path())).cloned();
    let Some(caller) = caller else { return next.run(request).await };
    let unread = app.unread_answers();
    let has_body = !request.body().is_end_stream();
    // A cancel has no body and always takes effect; only its answer may have no room.
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
        // A request with a body has changed something by now, and the limit on bodies bounds how many there are.
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
