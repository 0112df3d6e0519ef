//! Shutdown: SIGTERM or Ctrl-C cancels a token, and a second signal ends the process at once.

use std::process;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit status of a process that was interrupted twice, by the convention of shells.
const INTERRUPTED: i32 = 130;

/// Returns a token that the first signal cancels.
pub fn on_signals() -> CancellationToken {
    let token = CancellationToken::new();
    let mut interrupt = listen(SignalKind::interrupt());
    let mut terminate = listen(SignalKind::terminate());
    let cancelled = token.clone();
    tokio::spawn(async move {
        next(&mut interrupt, &mut terminate).await;
        tracing::info!("shutting down; a second Ctrl-C ends the process at once");
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
