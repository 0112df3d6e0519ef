//! The one idea of shutdown: SIGTERM or Ctrl-C cancels a token; a second one ends the process at once.

use std::process;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit status of a process that was interrupted twice, as shells have it.
const INTERRUPTED: i32 = 130;

/// A token that is cancelled at the first signal.
pub fn on_signals() -> CancellationToken {
    let token = CancellationToken::new();
    let mut interrupt = listen(SignalKind::interrupt());
    let mut terminate = listen(SignalKind::terminate());
    let cancelled = token.clone();
    tokio::spawn(async move {
        next(&mut interrupt, &mut terminate).await;
        tracing::info!("shutting down; a second Ctrl-C ends it at once");
        cancelled.cancel();
        next(&mut interrupt, &mut terminate).await;
        process::exit(INTERRUPTED);
    });
    token
}

fn listen(kind: SignalKind) -> Signal {
    signal(kind).expect("a signal handler can be installed at the start of the process")
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
