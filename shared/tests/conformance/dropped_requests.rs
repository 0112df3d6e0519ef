//! Requests whose client disconnected: the server drops their futures at any await.

use std::{future::poll_fn, pin::pin, task::Poll};

use holdfast_shared::storage::{BeginResult, Target};

use crate::{
    backends::{ALL, NO_QUOTAS, TestBackends, new_run},
    on_each_backend,
};

on_each_backend!(a_dropped_request_holds_no_lock_and_no_connection);

/// Polls the request this many times and then drops it, as for a client that disconnects.
async fn give_up_after<T>(mut polls: usize, request: impl Future<Output = T>) {
    let mut request = pin!(request);
    poll_fn(|context| match request.as_mut().poll(context) {
        Poll::Pending if polls > 0 => {
            polls -= 1;
            Poll::Pending
        }
        _ => Poll::Ready(()),
    })
    .await;
}

async fn a_dropped_request_holds_no_lock_and_no_connection(backends: TestBackends) {
    let (run, conversation) = backends.submit(Target::New { agent_id: None }, "hi").await;
    let target = || Target::Existing(conversation);
    // More rounds than there are connections.
    for polls in 0..40 {
        let new = new_run(target(), "never mind");
        give_up_after(polls, backends.storage.submit("ann", &NO_QUOTAS, &new)).await;
        // The next user of a connection must not be the one that ends its transaction.
        let (read, _) = tokio::join!(backends.storage.run("ann", run), backends.submit(target(), "still there?"));
        assert!(read.unwrap().is_some());
    }
    let claim = backends.claim(1).await.remove(0);
    for polls in 0..10 {
        give_up_after(polls, backends.storage.begin(&claim, ALL)).await;
    }
    assert!(matches!(backends.storage.begin(&claim, ALL).await.unwrap(), BeginResult::Executing(_)));
}
