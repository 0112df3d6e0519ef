//! The sweep of words that an earlier version has made.

use std::{error::Error, time::Instant};

use crate::WorkerState;

/// Makes the words of documents again until none is left, or until this moment.
pub async fn sweep(shared: &WorkerState, until: Instant) {
    let mut documents = 0;
    loop {
        match shared.documents.refresh_words().await {
            Ok(true) => documents += 1,
            Ok(false) => break,
            Err(error) => {
                tracing::warn!(error = &error as &dyn Error, "failed to make the words of documents again");
                break;
            }
        }
        if Instant::now() >= until {
            break;
        }
    }
    if documents > 0 {
        tracing::info!(documents, "made the words of documents again");
    }
}
