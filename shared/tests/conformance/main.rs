//! The conformance suite: it checks the promises of storage, run log, queue and rate limit on each back end.
#![allow(clippy::unwrap_used)]

mod added_messages;
mod anonymous_data;
mod backends;
mod blocked;
mod briefings;
mod conversations;
mod dates;
mod delayed;
mod dropped_requests;
mod erasure;
mod files;
mod forwarded;
mod groups;
mod history;
mod kept_results;
mod memories;
mod overrides;
mod owners;
mod pages;
mod pieces;
mod plan_edits;
mod query_plans;
mod queue;
mod quotas;
mod races;
mod rate_limit;
mod raw;
mod refusals;
mod run_log;
mod schema;
mod slots;
mod statements;
mod steering;
mod storage;
mod subagents;
mod summaries;
mod suspects;
mod trees;
mod versions;
mod waiting;

/// Makes a test per back end of an async function that takes `TestBackends`.
#[macro_export]
macro_rules! on_each_backend {
    ($($fact:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::backends::TestBackends::embedded().await).await;
            })+
        }

        mod in_memory {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::backends::TestBackends::in_memory().await).await;
            })+
        }

        mod scaled_out {
            $(#[tokio::test]
            async fn $fact() {
                super::$fact($crate::backends::TestBackends::scaled_out().await).await;
            })+
        }
    };
}
