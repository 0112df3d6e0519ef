//! The limit on searches: a search reads all that its owner has said, so few of them hold a database connection at a time.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// Longest wait for the end of other searches.
const PATIENCE: Duration = Duration::from_secs(5);

pub struct Searches(Arc<Semaphore>);

impl Searches {
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most)))
    }

    /// Lets one more search run until the permit is dropped.
    pub async fn begin(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let permit = tokio::time::timeout(PATIENCE, Arc::clone(&self.0).acquire_owned()).await;
        permit.ok().and_then(Result::ok).ok_or_else(Problem::search_busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_search_beyond_the_limit_waits_and_is_refused() {
        let searches = Searches::new(2);
        let first = searches.begin().await.unwrap();
        let _second = searches.begin().await.unwrap();
        assert_eq!(searches.begin().await.unwrap_err().code, "search_busy");
        drop(first);
        assert!(searches.begin().await.is_ok());
    }
}
