//! The conformance suite: what storage, run log, queue and rate limit promise, held against every back end.
#![allow(clippy::unwrap_used)]

mod briefings;
mod conversations;
mod erasure;
mod given_up;
mod owners;
mod pages;
mod places;
mod queue;
mod quotas;
mod races;
mod rate_limit;
mod raw;
mod refusals;
mod run_log;
mod schema;
mod storage;
mod suspects;
mod versions;
mod waiting;

/// Makes a test per back end of an async function that takes the meeting places.
#[macro_export]
macro_rules! on_each_backend {
    ($($fact:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::places::Places::embedded().await).await;
            })+
        }

        mod in_memory {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::places::Places::in_memory().await).await;
            })+
        }

        mod scaled_out {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::places::Places::scaled_out().await).await;
            })+
        }
    };
}
