//! Wake-ups and cancel signals.

use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::{on_each_backend, places::Places};

on_each_backend!(a_wake_up_before_the_wait_is_not_lost, a_wake_up_ends_a_wait, every_listener_hears_a_cancel);

const LONG: Duration = Duration::from_secs(30);

async fn a_wake_up_before_the_wait_is_not_lost(places: Places) {
    places.queue.wake().await.unwrap();
    let asked = Instant::now();
    places.queue.woken(LONG).await.unwrap();
    assert!(asked.elapsed() < LONG);
}

async fn a_wake_up_ends_a_wait(places: Places) {
    let asked = Instant::now();
    let (woken, waker) = (places.queue.clone(), places.queue.clone());
    let wait = tokio::spawn(async move { woken.woken(LONG).await });
    waker.wake().await.unwrap();
    wait.await.unwrap().unwrap();
    assert!(asked.elapsed() < LONG);
    // Patience ends a wait as well.
    places.queue.woken(Duration::from_millis(20)).await.unwrap();
}

async fn every_listener_hears_a_cancel(places: Places) {
    let (mut one, mut two) = (places.queue.cancels().await.unwrap(), places.queue.cancels().await.unwrap());
    let run = Uuid::now_v7();
    places.queue.signal_cancel(run).await.unwrap();
    assert_eq!((one.recv().await, two.recv().await), (Some(run), Some(run)));
}
