//! The slots of workers: how many of them one owner gets, and which are for newcomers.

use holdfast_shared::{
    ending::Ending,
    storage::{Answer, Claim, NewRun, SubmitOutcome, Target},
};

use crate::{
    backends::{NO_QUOTAS, TestBackends, new_run},
    on_each_backend,
};

on_each_backend!(
    the_last_slots_are_for_owners_without_a_run_at_work,
    greedy_owners_share_all_slots_but_the_last,
    an_owner_below_its_quarter_goes_before_one_beyond_it,
    anonymous_callers_of_one_address_are_one_owner,
    a_newcomer_gets_a_slot_before_many_owners_that_wait,
    a_run_keeps_its_group_until_its_end,
);

const NEW: Target = Target::New { agent_id: None };

/// Slots of the worker of these tests, and those that are for newcomers.
const SLOTS: usize = 32;
const RESERVED: usize = SLOTS / 8;

async fn queue(backends: &TestBackends, owner: &str, runs: usize) {
    for _ in 0..runs {
        backends.submit_as(owner, NEW, "hi").await;
    }
}

/// Submits a message of an anonymous caller.
async fn queue_in_group(backends: &TestBackends, owner: &str, group: &str) {
    let new = NewRun { caller_group: Some(group.to_owned()), ..new_run(NEW, "hi") };
    let submitted = backends.storage.submit(owner, &NO_QUOTAS, &new).await.unwrap();
    assert!(matches!(submitted, SubmitOutcome::Accepted(_)));
}

/// A worker that claims as long as it finds something.
struct GreedyWorker<'a> {
    backends: &'a TestBackends,
    held: Vec<Claim>,
}

impl<'a> GreedyWorker<'a> {
    const fn new(backends: &'a TestBackends) -> Self {
        Self { backends, held: Vec::new() }
    }

    /// Claims until nothing more fits. Returns how many runs the claims have found.
    async fn claim(&mut self) -> usize {
        let before = self.held.len();
        while self.held.len() < SLOTS {
            let claims = self.backends.claim_with_reserve(SLOTS - self.held.len(), RESERVED).await;
            if claims.is_empty() {
                break;
            }
            self.held.extend(claims);
        }
        self.held.len() - before
    }

    fn count(&self, owner: &str) -> usize {
        self.held.iter().filter(|claim| claim.owner_id == owner).count()
    }

    /// Ends runs of an owner.
    async fn end(&mut self, owner: &str, runs: usize) {
        for _ in 0..runs {
            let index = self.held.iter().position(|claim| claim.owner_id == owner).unwrap();
            finish(self.backends, &self.held.remove(index)).await;
        }
    }
}

async fn finish(backends: &TestBackends, claim: &Claim) {
    let ended = backends.storage.finish(claim, None, claim.started.id, &Answer::default(), &Ending::Completed).await;
    ended.unwrap();
}

async fn the_last_slots_are_for_owners_without_a_run_at_work(backends: TestBackends) {
    let mut worker = GreedyWorker::new(&backends);
    queue(&backends, "ann", SLOTS + 8).await;
    worker.claim().await;
    assert_eq!(worker.count("ann"), SLOTS - RESERVED, "one owner alone has nearly all slots");
    queue(&backends, "bob", 3).await;
    assert_eq!((worker.claim().await, worker.count("bob")), (1, 1), "one run of a newcomer begins at once");
    for (index, newcomer) in ["cid", "dan", "eve"].into_iter().enumerate() {
        queue(&backends, newcomer, 1).await;
        assert_eq!((worker.claim().await, worker.count(newcomer)), (1, 1), "newcomer {index}");
    }
    queue(&backends, "fay", 1).await;
    assert_eq!(worker.claim().await, 0, "all slots are taken");
    // A slot of the last eighth is for a newcomer again, also if it becomes free by a run of another owner.
    worker.end("ann", 1).await;
    assert_eq!((worker.claim().await, worker.count("fay")), (1, 1));
    worker.end("ann", RESERVED).await;
    assert_eq!(worker.claim().await, 0, "these are the last eighth");
    worker.end("ann", 1).await;
    assert_eq!((worker.claim().await, worker.count("bob")), (1, 2), "of the waiting owners, the one with fewer runs");
}

async fn greedy_owners_share_all_slots_but_the_last(backends: TestBackends) {
    for owners in [1, 3, 12] {
        let mut worker = GreedyWorker::new(&backends);
        let name = |owner: usize| format!("greedy_{owner}");
        for owner in 0..owners {
            queue(&backends, &name(owner), SLOTS).await;
        }
        worker.claim().await;
        let counts: Vec<usize> = (0..owners).map(|owner| worker.count(&name(owner))).collect();
        assert_eq!(counts.iter().sum::<usize>(), SLOTS - RESERVED, "{counts:?}");
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(most - least <= 1, "{counts:?}");
        for _ in 0..3 {
            queue(&backends, "bystander", 1).await;
            worker.claim().await;
            assert_eq!(worker.count("bystander"), 1, "beside {owners} greedy owners");
            worker.end("bystander", 1).await;
        }
        while !worker.held.is_empty() {
            finish(&backends, &worker.held.remove(0)).await;
            worker.held.extend(backends.claim(SLOTS).await);
        }
    }
}

async fn an_owner_below_its_quarter_goes_before_one_beyond_it(backends: TestBackends) {
    let mut worker = GreedyWorker::new(&backends);
    queue(&backends, "ann", SLOTS).await;
    worker.claim().await;
    queue(&backends, "bob", SLOTS).await;
    worker.claim().await;
    // Runs of ann end, and she has more that wait.
    for _ in 0..SLOTS {
        if worker.count("bob") == SLOTS / 4 {
            break;
        }
        worker.end("ann", 1).await;
        let (ann, bob) = (worker.count("ann"), worker.count("bob"));
        worker.claim().await;
        assert!(worker.count("ann") == ann && worker.count("bob") <= bob + 1);
    }
    assert_eq!(worker.count("bob"), SLOTS / 4, "it has its quarter, while ann waits");
    assert!(worker.held.len() <= SLOTS - RESERVED + 1);
}

async fn anonymous_callers_of_one_address_are_one_owner(backends: TestBackends) {
    let mut worker = GreedyWorker::new(&backends);
    for caller in 0..SLOTS + 4 {
        queue_in_group(&backends, &format!("anonymous_{caller}"), "home").await;
    }
    worker.claim().await;
    assert_eq!(worker.held.len(), SLOTS - RESERVED, "none of them is a newcomer");
    for (owner, group) in [("anonymous_x", "home"), ("anonymous_y", "away"), ("anonymous_z", "away")] {
        queue_in_group(&backends, owner, group).await;
    }
    queue(&backends, "bob", 1).await;
    worker.claim().await;
    let of_newcomers = worker.count("anonymous_y") + worker.count("anonymous_z");
    assert_eq!((worker.count("anonymous_x"), of_newcomers, worker.count("bob")), (0, 1, 1));
    // They also have one place in each round of the queue.
    let after = worker.held.len();
    queue(&backends, "cid", 2).await;
    worker.end("bob", 1).await;
    worker.claim().await;
    assert_eq!((worker.count("cid"), worker.held.len()), (1, after));
}

async fn a_newcomer_gets_a_slot_before_many_owners_that_wait(backends: TestBackends) {
    let owners: Vec<String> = (0..100).map(|owner| format!("owner_{owner}")).collect();
    for owner in &owners {
        queue(&backends, owner, 1).await;
    }
    assert_eq!(backends.claim(100).await.len(), 100);
    for owner in &owners {
        queue(&backends, owner, 1).await;
    }
    queue(&backends, "bystander", 1).await;
    let claims = backends.claim_with_reserve(1, 1).await;
    assert_eq!(claims.iter().map(|claim| claim.owner_id.as_str()).collect::<Vec<_>>(), ["bystander"]);
}

async fn a_run_keeps_its_group_until_its_end(backends: TestBackends) {
    let Some(mut raw) = backends.raw().await else { return };
    queue_in_group(&backends, "anonymous_1", "home").await;
    queue_in_group(&backends, "anonymous_2", "home").await;
    let claims = backends.claim(1).await;
    assert_eq!(claims[0].caller_group.as_deref(), Some("home"));
    let grouped = "select count(*) from agent_runs where caller_group = 'home'";
    assert_eq!(raw.number(grouped).await, 2);
    finish(&backends, &claims[0]).await;
    assert_eq!(raw.number(grouped).await, 1);
    let waiting = backends.claim(1).await.remove(0);
    backends.storage.request_cancel(&waiting.owner_id, waiting.run_id).await.unwrap();
    let answer = Answer { text: "so far".into(), ..Answer::default() };
    backends.storage.finish(&waiting, None, waiting.started.id, &answer, &Ending::Cancelled).await.unwrap();
    assert_eq!(raw.number(grouped).await, 0);
}
