//! Wake-ups, cancel signals and checks.

use std::time::{Duration, Instant};

use holdfast_shared::agent::{AgentCheck, AgentDefinition, CheckProblem, CheckRequest};
use serde_json::json;
use uuid::Uuid;

use crate::{backends::TestBackends, on_each_backend};

on_each_backend!(
    a_wake_up_before_the_wait_is_not_lost,
    a_wake_up_ends_a_wait,
    every_listener_receives_a_cancel,
    a_check_reaches_a_worker_and_its_report_the_process_that_waits,
    a_check_without_a_worker_ends_with_its_patience,
);

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

async fn a_check_reaches_a_worker_and_its_report_the_process_that_waits(backends: TestBackends) {
    let definition: AgentDefinition = serde_json::from_value(json!({"name": "a", "mcp_servers": [
        {"name": "kb", "transport": "rpc", "url": "http://127.0.0.1:9/", "auth": {"bearer": "hunter2"}}
    ]}))
    .unwrap();
    let workers = [backends.queue.checks().await.unwrap(), backends.queue.checks().await.unwrap()];
    let report = AgentCheck::new(vec![CheckProblem {
        field: "model".to_owned(),
        code: "model_unreachable".to_owned(),
        message: "no".to_owned(),
    }]);
    let workers = workers.map(|mut checks| {
        let (expected, report) = (definition.clone(), report.clone());
        async move {
            while let Some(check) = checks.recv().await {
                assert!(*check.request.definition == expected, "it arrives with its secrets");
                if check.take().await.unwrap() {
                    check.report(report.clone()).await.unwrap();
                }
            }
        }
    });
    let request = CheckRequest { id: Uuid::now_v7(), definition: Box::new(definition) };
    tokio::select! {
        answer = backends.queue.check(request, LONG) => assert_eq!(answer.unwrap(), Some(report)),
        _ = futures::future::join_all(workers) => panic!("a worker has stopped"),
    }
}

async fn a_check_without_a_worker_ends_with_its_patience(backends: TestBackends) {
    let request = CheckRequest { id: Uuid::now_v7(), definition: Box::default() };
    assert_eq!(backends.queue.check(request, Duration::from_millis(50)).await.unwrap(), None);
}
