//! Runs that begin at a later time.

use std::time::Duration;

use holdfast_shared::{
    ending::Ending,
    event::EventBody,
    run::{Run, RunStatus, SubmitMode},
    storage::{Answer, Release, ReleaseOutcome, SubmitOutcome, Target},
};
use uuid::Uuid;

use crate::{
    backends::{NO_QUOTAS, TestBackends, new_run},
    on_each_backend,
};

on_each_backend!(
    a_delayed_run_begins_at_its_time,
    a_delayed_run_waits_for_the_run_before_it_too,
    later_runs_wait_for_a_delayed_one,
    an_interrupt_ends_a_delayed_run,
    a_delayed_run_is_not_late,
    a_delayed_run_takes_its_turn_when_its_time_has_come,
    a_run_that_is_put_off_is_claimed_after_its_pause_and_counts_no_crash,
);

const NEW: Target = Target::New { agent_id: None };
const HOUR: Duration = Duration::from_secs(3600);

async fn submit_delayed(backends: &TestBackends, target: Target) -> Run {
    let mut new = new_run(target, "later");
    new.options.delay = Some(HOUR);
    let outcome = backends.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap();
    let SubmitOutcome::Accepted(committed) = outcome else { panic!("the message was not accepted") };
    committed.run
}

/// Lets the time of all delayed runs come. Returns how many of them a worker may claim; `None` if the backend has no raw SQL.
async fn end_delays(backends: &TestBackends) -> Option<usize> {
    let sql = "update agent_runs set not_before = created_at where not_before is not null";
    backends.raw().await?.execute(sql, sql).await;
    Some(backends.storage.end_delays(HOUR).await.unwrap())
}

async fn claimed(backends: &TestBackends) -> Vec<Uuid> {
    backends.claim(10).await.iter().map(|claim| claim.run_id).collect()
}

async fn end(backends: &TestBackends, run: Uuid) {
    backends.storage.end_run(run, &Ending::Cancelled).await.unwrap().unwrap();
}

async fn a_delayed_run_begins_at_its_time(backends: TestBackends) {
    let run = submit_delayed(&backends, NEW).await;
    assert_eq!(run.status, RunStatus::Queued);
    assert_eq!(backends.storage.end_delays(HOUR).await.unwrap(), 0);
    assert!(claimed(&backends).await.is_empty());
    let Some(ready) = end_delays(&backends).await else { return };
    assert_eq!(ready, 1);
    assert_eq!(claimed(&backends).await, [run.id]);
    assert_eq!(backends.storage.end_delays(HOUR).await.unwrap(), 0);
}

async fn a_delayed_run_waits_for_the_run_before_it_too(backends: TestBackends) {
    let (first, conversation) = backends.submit(NEW, "hi").await;
    let early = submit_delayed(&backends, Target::Existing(conversation)).await;
    assert_eq!(claimed(&backends).await, [first]);
    end(&backends, first).await;
    assert!(claimed(&backends).await.is_empty(), "the end of a run does not end the delay of the next");
    let (other, conversation) = backends.submit(NEW, "hi").await;
    let late = submit_delayed(&backends, Target::Existing(conversation)).await;
    assert_eq!(claimed(&backends).await, [other]);
    let Some(ready) = end_delays(&backends).await else { return };
    assert_eq!(ready, 1);
    assert_eq!(claimed(&backends).await, [early.id]);
    end(&backends, other).await;
    assert_eq!(claimed(&backends).await, [late.id]);
}

async fn later_runs_wait_for_a_delayed_one(backends: TestBackends) {
    let delayed = submit_delayed(&backends, NEW).await;
    let (next, _) = backends.submit(Target::Existing(delayed.conversation_id), "hi").await;
    assert!(claimed(&backends).await.is_empty());
    let Some(ready) = end_delays(&backends).await else { return };
    assert_eq!(ready, 1);
    let claim = backends.claim(10).await.pop().unwrap();
    assert_eq!(claim.run_id, delayed.id);
    let ending = Ending::Completed;
    backends.storage.finish(&claim, None, claim.started.id, &Answer::default(), &ending).await.unwrap();
    assert_eq!(claimed(&backends).await, [next]);
}

async fn an_interrupt_ends_a_delayed_run(backends: TestBackends) {
    let delayed = submit_delayed(&backends, NEW).await;
    let mut new = new_run(Target::Existing(delayed.conversation_id), "now");
    new.mode = SubmitMode::Interrupt;
    let outcome = backends.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap();
    let SubmitOutcome::Accepted(committed) = outcome else { panic!("the message was not accepted") };
    assert_eq!(committed.ended.iter().map(|ended| ended.run_id).collect::<Vec<_>>(), [delayed.id]);
    assert_eq!(claimed(&backends).await, [committed.run.id]);
}

async fn a_delayed_run_is_not_late(backends: TestBackends) {
    submit_delayed(&backends, NEW).await;
    if let Some(mut raw) = backends.raw().await {
        let sql = "update agent_runs set created_at = '2026-01-01T00:00:00.000+00:00'";
        raw.execute(sql, sql).await;
    }
    let backlog = backends.storage.backlog().await.unwrap();
    assert_eq!((backlog.queued, backlog.oldest_queued_seconds), (1.0, 0.0));
}

async fn a_delayed_run_takes_its_turn_when_its_time_has_come(backends: TestBackends) {
    for _ in 0..3 {
        submit_delayed(&backends, NEW).await;
    }
    let mut own = Vec::new();
    for _ in 0..3 {
        own.push(backends.submit(NEW, "now").await.0);
    }
    let of_bob = new_run(NEW, "now");
    let outcome = backends.storage.submit("bob", &NO_QUOTAS, &of_bob).await.unwrap();
    assert!(matches!(outcome, SubmitOutcome::Accepted(_)));
    let Some(ready) = end_delays(&backends).await else { return };
    assert_eq!(ready, 3);
    let mut first: Vec<Uuid> = Vec::new();
    for _ in 0..2 {
        first.extend(backends.claim(2).await.iter().map(|claim| claim.run_id));
    }
    own.push(of_bob.run_id);
    first.sort_unstable();
    own.sort_unstable();
    assert_eq!(first, own, "delayed runs stand behind the owner's others");
}

async fn a_run_that_is_put_off_is_claimed_after_its_pause_and_counts_no_crash(backends: TestBackends) {
    let (run, _) = backends.submit(NEW, "slow").await;
    let claim = backends.claim(1).await.remove(0);
    let released = backends.storage.release(&claim, None, claim.started.id, Release::Later(HOUR)).await.unwrap();
    assert!(matches!(released, ReleaseOutcome::Released { queued: false, .. }), "{released:?}");
    assert_eq!(backends.storage.end_delays(HOUR).await.unwrap(), 0);
    assert!(claimed(&backends).await.is_empty());
    backends.submit(Target::Existing(claim.conversation_id), "next").await;
    assert!(claimed(&backends).await.is_empty(), "the next run of the conversation waits for it");
    let Some(ready) = end_delays(&backends).await else { return };
    assert_eq!(ready, 1);
    let claim = backends.claim(10).await.remove(0);
    assert_eq!((claim.run_id, claim.attempt), (run, 2));
    let EventBody::AttemptStarted(start) = claim.started.body() else { panic!("{:?}", claim.started) };
    assert_eq!(start.crashes, 0);
    // The pause was this release's, and the next one has none.
    backends.storage.release(&claim, None, claim.started.id, Release::Queued).await.unwrap();
    assert_eq!(claimed(&backends).await, [run]);
}
