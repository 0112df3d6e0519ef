//! Probation by halves: suspects, the deaths that separate them, and the death that fails a run.

use std::{collections::BTreeSet, time::Duration};

use holdfast_shared::{
    ending::Ending,
    event_id::EventId,
    run::RunStatus,
    storage::{
        Answer, ArchiveChunk, BeginResult, Claim, ClaimTerms, Holder, Progress, Release, ReleaseOutcome, Room,
        Suspects, Target,
    },
};
use uuid::Uuid;

use crate::{
    backends::{ALL, LEASE, TestBackends, terms},
    on_each_backend,
};

on_each_backend!(
    a_death_halves_the_suspects_that_may_be_executed_together,
    a_suspect_that_dies_alone_is_failed,
    a_failed_suspect_that_its_holder_releases_later_still_ends,
    a_suspect_that_died_beside_another_run_needs_a_worker_alone,
    of_busy_workers_the_least_busy_makes_room,
    halvings_find_one_poisonous_run,
    two_deaths_are_settled_separately,
    a_worker_that_dies_without_suspects_narrows_none,
    a_completed_step_ends_probation,
    a_hand_over_keeps_a_suspect,
    suspects_at_work_do_not_delay_one_that_needs_a_worker_alone,
    no_suspect_waits_for_a_worker_that_stopped_renewing,
    the_least_busy_worker_hands_its_runs_over_for_a_waiting_suspect,
);

const NEW: Target = Target::New { agent_id: None };

/// A worker, as the database sees it.
struct TestWorker<'a> {
    backends: &'a TestBackends,
    holder: Holder,
}

impl<'a> TestWorker<'a> {
    fn new(backends: &'a TestBackends) -> Self {
        Self { backends, holder: Holder::new() }
    }

    async fn begin(&self, claims: Vec<Claim>) -> Vec<Claim> {
        for claim in &claims {
            let result = self.backends.storage.begin(claim, ALL).await.unwrap();
            assert!(matches!(result, BeginResult::Executing(_)));
        }
        claims
    }

    /// Claims queued runs and those of dead workers, without suspects.
    async fn takes_others(&self) -> Vec<Claim> {
        let mut claims = self.backends.storage.claim_expired(&terms(&self.holder), 100).await.unwrap();
        claims.extend(self.backends.storage.claim_queued(&terms(&self.holder), 100).await.unwrap());
        self.begin(claims).await
    }

    async fn takes_suspects(&self) -> Suspects {
        let suspects = self.backends.storage.claim_suspects(&terms(&self.holder), 100).await.unwrap();
        Suspects { claims: self.begin(suspects.claims).await, room: suspects.room }
    }

    async fn dies(self) {
        self.backends.storage.renew(&self.holder, Duration::ZERO).await.unwrap();
        // The lease ends with the next tick of the database's clock.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Settles deaths as another worker's sweeper does, and returns the runs that it ended.
async fn sweep(backends: &TestBackends) -> BTreeSet<Uuid> {
    let ended = backends.storage.end_expired(&terms(&Holder::new())).await.unwrap();
    ended.into_iter().inspect(|run| assert_eq!(run.status, RunStatus::Failed)).map(|run| run.run_id).collect()
}

/// Submits runs whose workers die twice, so that the runs are suspects.
async fn suspects(backends: &TestBackends, runs: usize) -> Vec<Uuid> {
    let mut submitted = Vec::new();
    for _ in 0..runs {
        submitted.push(backends.submit(NEW, "hi").await.0);
    }
    for _ in 0..2 {
        let worker = TestWorker::new(backends);
        assert_eq!(worker.takes_others().await.len(), runs);
        worker.dies().await;
    }
    assert!(sweep(backends).await.is_empty());
    submitted
}

async fn complete(backends: &TestBackends, claim: &Claim) {
    let ended = backends.storage.finish(claim, None, claim.started.id, &Answer::default(), &Ending::Completed).await;
    ended.unwrap();
}

fn ids(claims: &[Claim]) -> BTreeSet<Uuid> {
    claims.iter().map(|claim| claim.run_id).collect()
}

async fn status(backends: &TestBackends, run_id: Uuid) -> RunStatus {
    backends.storage.run("ann", run_id).await.unwrap().unwrap().status
}

async fn a_death_halves_the_suspects_that_may_be_executed_together(backends: TestBackends) {
    suspects(&backends, 9).await;
    for (expected, room) in [(9, Room::Enough), (5, Room::Scarce)] {
        let worker = TestWorker::new(&backends);
        assert!(worker.takes_others().await.is_empty(), "a suspect was claimed like any other run");
        let claimed = worker.takes_suspects().await;
        assert_eq!((claimed.claims.len(), claimed.room), (expected, room));
        worker.dies().await;
    }
    sweep(&backends).await;
    // Four suspects have the width 5 and go first. The others have the width 3.
    let worker = TestWorker::new(&backends);
    let first = worker.takes_suspects().await.claims;
    assert_eq!(first.len(), 4);
    assert!(worker.takes_suspects().await.claims.is_empty());
    // An end makes room for another suspect. The narrowest one at work limits the worker.
    complete(&backends, &first[0]).await;
    assert!(worker.takes_suspects().await.claims.is_empty());
    complete(&backends, &first[1]).await;
    assert_eq!(worker.takes_suspects().await.claims.len(), 1);
    for claim in &first[2..] {
        complete(&backends, claim).await;
    }
    assert_eq!(worker.takes_suspects().await.claims.len(), 2);
    assert!(worker.takes_suspects().await.claims.is_empty());
}

async fn a_suspect_that_dies_alone_is_failed(backends: TestBackends) {
    let run_id = suspects(&backends, 1).await[0];
    let worker = TestWorker::new(&backends);
    assert_eq!(worker.takes_suspects().await.claims.len(), 1);
    worker.dies().await;
    assert_eq!(sweep(&backends).await, BTreeSet::from([run_id]));
}

async fn a_failed_suspect_that_its_holder_releases_later_still_ends(backends: TestBackends) {
    let submitted = suspects(&backends, 1).await;
    let worker = TestWorker::new(&backends);
    let claim = worker.takes_suspects().await.claims.remove(0);
    worker.dies().await;
    assert!(TestWorker::new(&backends).takes_others().await.is_empty(), "the death is settled, and the run is charged");
    // The holder was only frozen.
    let released = backends.storage.release(&claim, None, claim.started.id, Release::Queued).await.unwrap();
    assert!(matches!(released, ReleaseOutcome::Released { .. }), "{released:?}");
    assert_eq!(sweep(&backends).await, submitted.into_iter().collect());
}

async fn a_suspect_that_died_beside_another_run_needs_a_worker_alone(backends: TestBackends) {
    let run_id = suspects(&backends, 1).await[0];
    let (other, _) = backends.submit(NEW, "hi").await;
    let worker = TestWorker::new(&backends);
    assert_eq!(worker.takes_suspects().await.claims.len(), 1);
    assert_eq!(worker.takes_others().await.len(), 1);
    worker.dies().await;
    // Either run may be to blame.
    let worker = TestWorker::new(&backends);
    assert_eq!(ids(&worker.takes_others().await), BTreeSet::from([other]));
    assert_eq!(status(&backends, run_id).await, RunStatus::Running);
    let claimed = worker.takes_suspects().await;
    assert_eq!((claimed.claims.len(), claimed.room), (0, Room::Clearing));
    let idle = TestWorker::new(&backends);
    let claimed = idle.takes_suspects().await;
    assert_eq!((ids(&claimed.claims), claimed.room), (BTreeSet::from([run_id]), Room::Alone));
    idle.dies().await;
    assert_eq!(sweep(&backends).await, BTreeSet::from([run_id]));
    assert_eq!(status(&backends, other).await, RunStatus::Running);
}

async fn of_busy_workers_the_least_busy_makes_room(backends: TestBackends) {
    suspects(&backends, 1).await;
    backends.submit(NEW, "hi").await;
    let worker = TestWorker::new(&backends);
    worker.takes_suspects().await;
    assert_eq!(worker.takes_others().await.len(), 1);
    worker.dies().await;
    let (busier, busy) = (TestWorker::new(&backends), TestWorker::new(&backends));
    for _ in 0..2 {
        backends.submit(NEW, "hi").await;
    }
    assert_eq!(busier.takes_others().await.len(), 3);
    assert_eq!(busier.takes_suspects().await.room, Room::Clearing, "the other worker has no lease yet");
    backends.submit(NEW, "hi").await;
    let claimed = busy.takes_others().await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(busier.takes_suspects().await.room, Room::Scarce);
    assert_eq!(busy.takes_suspects().await.room, Room::Clearing);
    complete(&backends, &claimed[0]).await;
    let claimed = busy.takes_suspects().await;
    assert_eq!((claimed.claims.len(), claimed.room), (1, Room::Alone));
}

/// Returns a suspect that needs a worker alone, because it ran beside another run when its worker died. The other run
/// completes.
async fn a_narrow_suspect(backends: &TestBackends) -> Uuid {
    let run_id = suspects(backends, 1).await[0];
    let (other, _) = backends.submit(NEW, "hi").await;
    let worker = TestWorker::new(backends);
    worker.takes_suspects().await;
    assert_eq!(worker.takes_others().await.len(), 1);
    worker.dies().await;
    let worker = TestWorker::new(backends);
    let claimed = worker.takes_others().await;
    assert_eq!(ids(&claimed), BTreeSet::from([other]));
    complete(backends, &claimed[0]).await;
    run_id
}

async fn suspects_at_work_do_not_delay_one_that_needs_a_worker_alone(backends: TestBackends) {
    let wide = suspects(&backends, 2).await;
    let worker = TestWorker::new(&backends);
    assert_eq!(ids(&worker.takes_suspects().await.claims), wide.into_iter().collect());
    let narrow = a_narrow_suspect(&backends).await;
    let claimed = worker.takes_suspects().await;
    assert_eq!((claimed.claims.len(), claimed.room), (0, Room::Clearing));
    // An idle worker claims it at once.
    let idle = TestWorker::new(&backends);
    let claimed = idle.takes_suspects().await;
    assert_eq!((ids(&claimed.claims), claimed.room), (BTreeSet::from([narrow]), Room::Alone));
    assert_eq!(worker.takes_suspects().await.room, Room::Enough);
}

async fn no_suspect_waits_for_a_worker_that_stopped_renewing(backends: TestBackends) {
    let narrow = a_narrow_suspect(&backends).await;
    let (busy, stopped) = (TestWorker::new(&backends), TestWorker::new(&backends));
    for _ in 0..2 {
        backends.submit(NEW, "hi").await;
    }
    assert_eq!(busy.takes_others().await.len(), 2);
    backends.submit(NEW, "hi").await;
    let claims = stopped.takes_others().await;
    assert_eq!(claims.len(), 1);
    assert_eq!(busy.takes_suspects().await.room, Room::Scarce, "the other worker executes fewer");
    // Its lease has not expired, so no worker has claimed its run yet.
    backends.storage.renew(&stopped.holder, LEASE / 3).await.unwrap();
    assert_eq!(busy.takes_suspects().await.room, Room::Clearing);
    assert_eq!(status(&backends, narrow).await, RunStatus::Running);
}

async fn the_least_busy_worker_hands_its_runs_over_for_a_waiting_suspect(backends: TestBackends) {
    let narrow = a_narrow_suspect(&backends).await;
    backends.submit(NEW, "hi").await;
    let busy = TestWorker::new(&backends);
    let claims = busy.takes_others().await;
    assert_eq!(claims.len(), 1);
    assert_eq!(busy.takes_suspects().await.room, Room::Clearing, "an idle worker may take it");
    // With this short lease, each idle worker has polled for it already.
    let soon = ClaimTerms { lease: Duration::from_millis(3), ..terms(&busy.holder) };
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(backends.storage.claim_suspects(&soon, 100).await.unwrap().room, Room::Cleared);
    let left = backends.storage.release(&claims[0], None, claims[0].started.id, Release::Queued).await.unwrap();
    assert!(matches!(left, ReleaseOutcome::Released { .. }), "{left:?}");
    let claimed = busy.takes_suspects().await;
    assert_eq!((ids(&claimed.claims), claimed.room), (BTreeSet::from([narrow]), Room::Alone));
    // Another worker resumes the released run, and no worker makes room again.
    let other = TestWorker::new(&backends);
    assert_eq!(ids(&other.takes_others().await), ids(&claims));
    assert_eq!(other.takes_suspects().await.room, Room::Enough);
}

async fn halvings_find_one_poisonous_run(backends: TestBackends) {
    for place in [0, 16, 32] {
        let runs = suspects(&backends, 33).await;
        let poison = runs[place];
        let mut deaths = 0;
        while sweep(&backends).await.is_empty() {
            let worker = TestWorker::new(&backends);
            let claims = worker.takes_suspects().await.claims;
            assert!(!claims.is_empty());
            if ids(&claims).contains(&poison) {
                worker.dies().await;
                deaths += 1;
            } else {
                for claim in &claims {
                    complete(&backends, claim).await;
                }
            }
        }
        assert!(deaths <= 7, "33, 17, 9, 5, 3 and 2 at once, and then alone, but not {deaths} deaths");
        let worker = TestWorker::new(&backends);
        for claim in worker.takes_suspects().await.claims {
            complete(&backends, &claim).await;
        }
        for run_id in runs {
            let expected = if run_id == poison { RunStatus::Failed } else { RunStatus::Completed };
            assert_eq!(status(&backends, run_id).await, expected);
        }
    }
}

async fn two_deaths_are_settled_separately(backends: TestBackends) {
    suspects(&backends, 4).await;
    let (one, two) = (TestWorker::new(&backends), TestWorker::new(&backends));
    let first = backends.storage.claim_suspects(&terms(&one.holder), 3).await.unwrap().claims;
    one.begin(first).await;
    let last = ids(&two.takes_suspects().await.claims);
    assert_eq!(last.len(), 1);
    one.dies().await;
    two.dies().await;
    let (left, right) = tokio::join!(sweep(&backends), sweep(&backends));
    let failed: BTreeSet<Uuid> = left.into_iter().chain(right).chain(sweep(&backends).await).collect();
    assert_eq!(failed, last, "the three runs of one worker are not charged");
    assert_eq!(TestWorker::new(&backends).takes_suspects().await.claims.len(), 2);
}

async fn a_worker_that_dies_without_suspects_narrows_none(backends: TestBackends) {
    suspects(&backends, 4).await;
    for _ in 0..3 {
        backends.submit(NEW, "hi").await;
    }
    let worker = TestWorker::new(&backends);
    assert_eq!(worker.takes_others().await.len(), 3);
    worker.dies().await;
    sweep(&backends).await;
    assert_eq!(TestWorker::new(&backends).takes_suspects().await.claims.len(), 4);
}

async fn a_completed_step_ends_probation(backends: TestBackends) {
    suspects(&backends, 2).await;
    let worker = TestWorker::new(&backends);
    assert_eq!(worker.takes_suspects().await.claims.len(), 2);
    worker.dies().await;
    sweep(&backends).await;
    let worker = TestWorker::new(&backends);
    let claimed = worker.takes_suspects().await;
    assert_eq!((claimed.claims.len(), claimed.room), (1, Room::Scarce));
    let claim = &claimed.claims[0];
    let progress = Progress { step_completed: true, ..Progress::default() };
    let chunk = ArchiveChunk { last: EventId::new(claim.attempt, 2), body: Default::default(), progress };
    backends.storage.flush(claim, &chunk, LEASE).await.unwrap();
    assert_eq!(worker.takes_suspects().await.claims.len(), 1, "a run with a completed step is no suspect");
}

async fn a_hand_over_keeps_a_suspect(backends: TestBackends) {
    let run_id = suspects(&backends, 1).await[0];
    let worker = TestWorker::new(&backends);
    let claim = worker.takes_suspects().await.claims.remove(0);
    assert!(matches!(
        backends.storage.release(&claim, None, claim.started.id, Release::Queued).await.unwrap(),
        ReleaseOutcome::Released { .. }
    ));
    let next = TestWorker::new(&backends);
    assert!(next.takes_others().await.is_empty());
    assert_eq!(ids(&next.takes_suspects().await.claims), BTreeSet::from([run_id]));
}
