//! Shared parts of the tests: the real executable on a free port, private servers, and a client that sees every byte.

mod blocks;
mod client;
mod collector;
mod deployment;
mod gate;
mod holdfast;
mod programs;
pub mod providers;
mod proxy;
mod script_gate;
mod shared;
mod sse;
pub mod tokens;
pub mod tools;
pub mod upstream;

pub use blocks::{BlockStream, StreamBlock};
pub use client::{Client, ErrorResponse, answer};
pub use collector::{ExportedSpan, TestCollector};
pub use deployment::{Deployment, agent, frames_of, of_kind, stream_of};
pub use gate::{Gate, GateMode};
pub use holdfast::{Embedded, Holdfast, ScaledOut, migrate, own_user, refusal};
pub use programs::{ClientProgram, SharedProgram};
pub use proxy::Proxy;
pub use script_gate::ScriptGate;
pub use shared::{SharedMode, SharedStory};
pub use sse::{EventFrame, EventStream, UncleanEnd, fold, without_superseded};

use std::{future::Future, time::Duration};

/// Longest wait for something that must happen. It is far longer than any step takes.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Polls until `ask` returns a value, and returns it. Fails the test after the time-out.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, asking).await.unwrap_or_else(|_| panic!("timed out until {what}"))
}
