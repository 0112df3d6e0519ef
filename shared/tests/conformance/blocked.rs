//! Runs behind an unfinished one of their conversation.

use holdfast_shared::{
    ending::Ending,
    run::SubmitMode,
    storage::{Answer, Claim, Release, ReleaseOutcome, SubmitOutcome, Target},
};
use uuid::Uuid;

use crate::{
    backends::{NO_QUOTAS, TestBackends, new_run},
    on_each_backend,
};

on_each_backend!(
    each_end_unblocks_the_next_run,
    the_end_of_a_blocked_run_unblocks_none,
    an_interrupt_blocks_its_run_until_the_end_of_the_interrupted_one,
    a_handed_over_run_is_claimed_before_those_behind_it,
    a_worker_leaves_a_run_that_needs_more_than_it_can,
    concurrent_ends_and_submissions_leave_no_run_blocked,
);

const NEW: Target = Target::New { agent_id: None };

async fn submit_all(backends: &TestBackends, runs: usize) -> (Uuid, Vec<Uuid>) {
    let (first, conversation) = backends.submit(NEW, "hi").await;
    let mut submitted = vec![first];
    for _ in 1..runs {
        submitted.push(backends.submit(Target::Existing(conversation), "hi").await.0);
    }
    (conversation, submitted)
}

async fn claimed(backends: &TestBackends) -> Option<Claim> {
    let mut claims = backends.claim(10).await;
    assert!(claims.len() < 2, "a conversation has one live run: {claims:?}");
    claims.pop()
}

async fn finish(backends: &TestBackends, claim: &Claim) {
    let ending = Ending::Completed;
    backends.storage.finish(claim, None, claim.started.id, &Answer::default(), &ending).await.unwrap();
}

async fn each_end_unblocks_the_next_run(backends: TestBackends) {
    let (_, runs) = submit_all(&backends, 4).await;
    for (n, run) in runs.iter().enumerate() {
        let claim = claimed(&backends).await.unwrap();
        assert_eq!(claim.run_id, *run);
        // By its worker or by somebody else.
        if n % 2 == 0 {
            finish(&backends, &claim).await;
        } else {
            backends.storage.end_run(*run, &Ending::Cancelled).await.unwrap().unwrap();
        }
    }
    assert!(claimed(&backends).await.is_none());
}

async fn the_end_of_a_blocked_run_unblocks_none(backends: TestBackends) {
    let (_, runs) = submit_all(&backends, 3).await;
    let claim = claimed(&backends).await.unwrap();
    backends.storage.end_run(runs[1], &Ending::Cancelled).await.unwrap().unwrap();
    assert!(claimed(&backends).await.is_none());
    finish(&backends, &claim).await;
    assert_eq!(claimed(&backends).await.unwrap().run_id, runs[2]);
}

async fn an_interrupt_blocks_its_run_until_the_end_of_the_interrupted_one(backends: TestBackends) {
    let (conversation, _) = submit_all(&backends, 3).await;
    let claim = claimed(&backends).await.unwrap();
    let mut new = new_run(Target::Existing(conversation), "stop");
    new.mode = SubmitMode::Interrupt;
    let outcome = backends.storage.submit("ann", &NO_QUOTAS, &new).await.unwrap();
    let SubmitOutcome::Accepted(committed) = outcome else { panic!("the message was not accepted") };
    assert!(claimed(&backends).await.is_none());
    finish(&backends, &claim).await;
    assert_eq!(claimed(&backends).await.unwrap().run_id, committed.run.id);
}

async fn a_handed_over_run_is_claimed_before_those_behind_it(backends: TestBackends) {
    let (_, runs) = submit_all(&backends, 2).await;
    let claim = claimed(&backends).await.unwrap();
    let released = backends.storage.release(&claim, None, claim.started.id, Release::Queued).await.unwrap();
    assert!(matches!(released, ReleaseOutcome::Released { .. }), "{released:?}");
    assert_eq!(claimed(&backends).await.unwrap().run_id, runs[0]);
}

async fn a_worker_leaves_a_run_that_needs_more_than_it_can(backends: TestBackends) {
    let Some(mut raw) = backends.raw().await else { return };
    backends.submit(Target::New { agent_id: None }, "for a later version").await;
    let sql = "update agent_runs set needs = 1";
    raw.execute(sql, sql).await;
    let (run, _) = backends.submit(Target::New { agent_id: None }, "for this version").await;
    assert_eq!(claimed(&backends).await.unwrap().run_id, run);
    assert!(claimed(&backends).await.is_none());
}

async fn concurrent_ends_and_submissions_leave_no_run_blocked(backends: TestBackends) {
    for _ in 0..20 {
        let (conversation, _) = submit_all(&backends, 1).await;
        let claim = claimed(&backends).await.unwrap();
        let next = async { backends.submit(Target::Existing(conversation), "hi").await.0 };
        let ((), next) = futures::join!(finish(&backends, &claim), next);
        let claim = claimed(&backends).await.unwrap();
        assert_eq!(claim.run_id, next);
        finish(&backends, &claim).await;
    }
}
