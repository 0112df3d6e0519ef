//! The limit on concurrent searches. A search reads all messages of its owner, so only few searches may hold a pooled
//! connection at a time.
//!
//! A caller's second search waits for the first. The API does not refuse it at once, because a page sends a new search
//! for each key that its user types.

use std::time::Duration;

use holdfast_shared::turns::{NoTurn, TurnPermit, Turns};

use crate::{auth::Caller, in_flight::LimitKey, problem::Problem};

/// Time-out of a search that waits for other searches.
const TURN_TIMEOUT: Duration = Duration::from_secs(5);

pub struct SearchLimit(Turns);

impl SearchLimit {
    pub fn new(most: usize) -> Self {
        Self(Turns::new(most))
    }

    /// Admits one more search until the caller drops the permit. Fails if no permit becomes free within the time-out.
    pub async fn begin(&self, caller: &Caller) -> Result<TurnPermit, Problem> {
        self.0.take(&LimitKey::of(caller).to_string(), TURN_TIMEOUT).await.map_err(|no_turn| match no_turn {
            NoTurn::OfCaller => Problem::too_many_searches(),
            NoTurn::OfAll => Problem::search_busy(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_search_beyond_a_limit_waits_and_then_fails() {
        let searches = SearchLimit::new(2);
        let [ann, bob, carl] = ["ann", "bob", "carl"].map(Caller::test);
        let first = searches.begin(&ann).await.unwrap();
        assert_eq!(searches.begin(&ann).await.unwrap_err().code, "too_many_searches");
        let _second = searches.begin(&bob).await.unwrap();
        assert_eq!(searches.begin(&carl).await.unwrap_err().code, "search_busy");
        drop(first);
        assert!(searches.begin(&carl).await.is_ok());
    }
}
