//! Wake-ups and cancel signals.

use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::{backends::TestBackends, on_each_backend};

on_each_backend!(a_wake_up_before_the_wait_is_not_lost, a_wake_up_ends_a_wait, every_listener_receives_a_cancel);

const LONG: Duration = Duration::from_secs(30);

async fn a_wake_up_before_the_wait_is_not_lost(backends: TestBackends) {
    backends.queue.wake().await.unwrap();
    let start = Instant::now();
    backends.queue.wait_for_wake_up(LONG).await.unwrap();
    assert!(start.elapsed() < LONG);
}

async fn a_wake_up_ends_a_wait(backends: TestBackends) {
    let start = Instant::now();
    let (woken, waker) = (backends.queue.clone(), backends.queue.clone());
    let wait = tokio::spawn(async move { woken.wait_for_wake_up(LONG).await });
    waker.wake().await.unwrap();
    wait.await.unwrap().unwrap();
    assert!(start.elapsed() < LONG);
    // The time-out ends a wait as well.
    backends.queue.wait_for_wake_up(Duration::from_millis(20)).await.unwrap();
}

async fn every_listener_receives_a_cancel(backends: TestBackends) {
    let (mut one, mut two) = (backends.queue.cancels().await.unwrap(), backends.queue.cancels().await.unwrap());
    let run = Uuid::now_v7();
    backends.queue.signal_cancel(run).await.unwrap();
    assert_eq!((one.recv().await, two.recv().await), (Some(run), Some(run)));
}
