//! Several owners: the order of their runs in the queue, and the quotas of each.

use std::time::{Duration, Instant};

use holdfast_shared::{
    ending::Ending,
    idempotency::IdempotencyKey,
    quotas::Quotas,
    run::SubmitMode,
    storage::{Answer, Claim, NewRun, Release, SubmitOutcome, Target},
};
use uuid::Uuid;

use crate::{
    backends::{ROWS, TestBackends, new_run},
    on_each_backend,
};

on_each_backend!(
    owners_take_turns,
    an_owner_who_holds_fewer_running_runs_goes_first,
    an_owner_with_a_full_queue_gets_every_second_turn,
    priority_goes_before_turns,
    a_claim_does_not_read_a_long_queue_of_one_owner,
    a_quota_limits_an_owners_unfinished_runs,
    a_quota_of_runs_is_exact_for_concurrent_messages,
    a_quota_limits_an_owners_bytes,
    a_deleted_conversation_frees_its_key_at_once,
);

const NEW: Target = Target::New { agent_id: None };

async fn queue(backends: &TestBackends, owners: &[&str]) {
    for owner in owners {
        backends.submit_as(owner, NEW, "hi").await;
    }
}

fn owners(claims: &[Claim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.owner_id.as_str()).collect()
}

async fn one_by_one(backends: &TestBackends, times: usize) -> Vec<String> {
    let mut claimed = Vec::new();
    for _ in 0..times {
        claimed.push(backends.claim(1).await.remove(0).owner_id);
    }
    claimed
}

async fn finish(backends: &TestBackends, claim: &Claim) {
    let ended = backends.storage.finish(claim, None, claim.started.id, &Answer::default(), &Ending::Completed).await;
    ended.unwrap();
}

async fn owners_take_turns(backends: TestBackends) {
    let queued = ["ann", "ann", "ann", "ann", "bob", "bob", "cid"];
    queue(&backends, &queued).await;
    assert_eq!(one_by_one(&backends, 7).await, ["ann", "bob", "cid", "ann", "bob", "ann", "ann"]);
    queue(&backends, &["dan", "dan", "dan", "eve"]).await;
    let mut together = owners(&backends.claim(3).await).join(" ");
    // Storage promises no order within one claim.
    if together == "eve dan dan" || together == "dan eve dan" {
        together = "dan dan eve".to_owned();
    }
    assert_eq!(together, "dan dan eve");
}

async fn an_owner_who_holds_fewer_running_runs_goes_first(backends: TestBackends) {
    queue(&backends, &["ann", "ann"]).await;
    assert_eq!(backends.claim(2).await.len(), 2);
    queue(&backends, &["ann", "ann", "bob"]).await;
    assert_eq!(one_by_one(&backends, 3).await, ["bob", "ann", "ann"]);
}

async fn an_owner_with_a_full_queue_gets_every_second_turn(backends: TestBackends) {
    queue(&backends, &["ann", "ann", "ann", "ann", "ann"]).await;
    let mut claimed = Vec::new();
    for _ in 0..8 {
        queue(&backends, &["bob"]).await;
        let claim = backends.claim(1).await.remove(0);
        finish(&backends, &claim).await;
        claimed.push(claim.owner_id);
    }
    // No run of either owner is running, so only the rounds decide about the turn.
    let of_ann = claimed.iter().filter(|owner| *owner == "ann").count();
    assert!((3..=5).contains(&of_ann), "{claimed:?}");
}

async fn priority_goes_before_turns(backends: TestBackends) {
    queue(&backends, &["ann", "ann", "bob"]).await;
    let Some(mut raw) = backends.raw().await else { return };
    let urgent = "update agent_runs set priority = 1 where owner_id = 'ann' and queue_round = 1";
    raw.execute(urgent, urgent).await;
    assert_eq!(one_by_one(&backends, 3).await, ["ann", "bob", "ann"]);
}

/// Prints the duration of a claim. `QUEUED_RUNS=100000` makes the queue as long as the documentation says.
async fn a_claim_does_not_read_a_long_queue_of_one_owner(backends: TestBackends) {
    let Some(mut raw) = backends.raw().await else { return };
    let runs = std::env::var("QUEUED_RUNS").map_or(2_000, |runs| runs.parse().unwrap());
    queue(&backends, &["cid"]).await;
    let short = time_to_claim(&backends, "cid").await;
    let conversations = "insert into chat_conversations (id, owner_id, created_at, activity_at)";
    let queued = "insert into agent_runs (id, owner_id, conversation_id, position, status, input_message_id, output_message_id, \
                  archived_to, checkpoint, created_at, queue_round)";
    let columns = "'ann', id, 1, 'queued', id, id, 1, 1, created_at, row_number() over () from chat_conversations where owner_id = 'ann'";
    raw.execute(
        &format!("{conversations} select gen_random_uuid(), 'ann', now(), now() from generate_series(1, {runs})"),
        &format!(
            "{conversations} with recursive n(i) as (select 1 union all select i + 1 from n where i < {runs}) \
             select randomblob(16), 'ann', '2026-01-01T00:00:00.000+00:00', '2026-01-01T00:00:00.000+00:00' from n"
        ),
    )
    .await;
    raw.execute(
        // The first of these runs and bob's have one round, so their ids decide. These runs get the later ids.
        &format!("{queued} select overlay(gen_random_uuid()::text placing 'ff' from 1 for 2)::uuid, {columns}"),
        &format!("{queued} select cast(x'ff' || randomblob(15) as blob), {columns}"),
    )
    .await;
    queue(&backends, &["bob"]).await;
    let long = time_to_claim(&backends, "bob").await;
    println!("a claim takes {short:?} from a queue of one run, {long:?} from one of {runs}");
}

/// Claims a run of this owner and releases it, several times. Returns the median duration of a claim.
async fn time_to_claim(backends: &TestBackends, owner: &str) -> Duration {
    let mut times = Vec::new();
    for _ in 0..10 {
        let began = Instant::now();
        let claims = backends.claim(1).await;
        times.push(began.elapsed());
        assert_eq!(owners(&claims), [owner]);
        backends.storage.release(&claims[0], None, claims[0].started.id, Release::Queued).await.unwrap();
    }
    times.sort();
    // The run must not be in the way of other claims.
    let last = backends.claim(1).await.remove(0);
    finish(backends, &last).await;
    times[5]
}

const THREE: Quotas = Quotas { runs: Some(3), bytes: None };

async fn a_quota_limits_an_owners_unfinished_runs(backends: TestBackends) {
    let submit = async |owner: &str, new: NewRun| backends.storage.submit(owner, &THREE, &new).await.unwrap();
    let keyed =
        |content: &str| NewRun { key: Some(IdempotencyKey::new("k".into(), &[content])), ..new_run(NEW, content) };
    let accepted = async |owner: &str, new: NewRun| match submit(owner, new).await {
        SubmitOutcome::Accepted(accepted) => (accepted.run.id, accepted.conversation.id),
        _ => panic!("it was refused"),
    };
    accepted("ann", keyed("one")).await;
    let waiting = backends.claim(1).await.remove(0);
    backends.storage.release(&waiting, None, waiting.started.id, Release::Waiting).await.unwrap();
    let (_, conversation) = accepted("ann", new_run(NEW, "two")).await;
    let running = backends.claim(1).await.remove(0);
    accepted("ann", new_run(NEW, "three")).await;

    let named = Target::Named { handle: holdfast_shared::conversation::Handle::Session("s".into()), agent_id: None };
    for target in [NEW, Target::Existing(conversation), named] {
        assert!(matches!(submit("ann", new_run(target, "four")).await, SubmitOutcome::TooManyRuns(3)));
    }
    let unknown = Target::New { agent_id: Some(Uuid::nil()) };
    assert!(matches!(submit("ann", new_run(unknown, "four")).await, SubmitOutcome::AgentNotFound));
    let listed = backends.storage.conversations("ann", 10, None, None).await.unwrap().unwrap();
    assert_eq!(listed.items.len(), 3, "a refused message leaves no conversation");
    assert!(matches!(submit("ann", keyed("one")).await, SubmitOutcome::Repeated(_)));
    accepted("bob", new_run(NEW, "one")).await;

    let mode = SubmitMode::Interrupt;
    let instead = NewRun { mode, ..new_run(Target::Existing(conversation), "instead of two") };
    accepted("ann", instead).await;
    finish(&backends, &running).await;
    assert!(matches!(submit("ann", new_run(NEW, "four")).await, SubmitOutcome::TooManyRuns(3)));
    backends.storage.request_cancel("ann", waiting.run_id).await.unwrap();
    accepted("ann", new_run(NEW, "four")).await;
}

async fn a_quota_of_runs_is_exact_for_concurrent_messages(backends: TestBackends) {
    for (owner, max) in [("ann", 1), ("bob", 2), ("cid", 7)] {
        let quotas = Quotas { runs: Some(max), bytes: None };
        let new: Vec<NewRun> = (0..24).map(|_| new_run(NEW, "hi")).collect();
        let submitted =
            futures::future::join_all(new.iter().map(|new| backends.storage.submit(owner, &quotas, new))).await;
        let accepted = submitted.into_iter().filter(|one| matches!(one.as_ref().unwrap(), SubmitOutcome::Accepted(_)));
        assert_eq!(accepted.count(), max, "for {owner}");
    }
}

async fn a_quota_limits_an_owners_bytes(backends: TestBackends) {
    // A conversation itself counts 256 bytes, and the rows of a run 4,096.
    let max = 1_000 + 3 * ROWS;
    let quotas = Quotas { runs: None, bytes: Some(max) };
    let submit = async |owner: &str, target: Target, bytes: usize| {
        backends.storage.submit(owner, &quotas, &new_run(target, &"x".repeat(bytes))).await.unwrap()
    };
    let SubmitOutcome::Accepted(first) = submit("ann", NEW, 100).await else { panic!("refused") };
    let SubmitOutcome::Accepted(second) = submit("ann", NEW, 100).await else { panic!("refused") };
    assert_eq!(backends.storage.kept_bytes("ann").await.unwrap(), 712 + 2 * ROWS);
    let there = || Target::Existing(first.conversation.id);
    for (target, bytes) in [(NEW, 33), (there(), 289)] {
        assert!(matches!(submit("ann", target, bytes).await, SubmitOutcome::QuotaExceeded(limit) if limit == max));
    }
    assert_eq!(backends.storage.kept_bytes("ann").await.unwrap(), 712 + 2 * ROWS, "a refused message keeps no bytes");
    assert!(matches!(submit("ann", there(), 88).await, SubmitOutcome::Accepted(_)));
    let claim = backends.claim(1).await.remove(0);
    let answer = Answer { text: "y".repeat(200), ..Answer::default() };
    backends.storage.finish(&claim, None, claim.started.id, &answer, &Ending::Completed).await.unwrap();
    assert_eq!(backends.storage.kept_bytes("ann").await.unwrap(), max, "answers count");
    assert!(matches!(submit("ann", there(), 1).await, SubmitOutcome::QuotaExceeded(limit) if limit == max));
    assert!(matches!(submit("bob", NEW, 744 + 2 * ROWS).await, SubmitOutcome::Accepted(_)));
    assert!(matches!(submit("cid", NEW, 745 + 2 * ROWS).await, SubmitOutcome::QuotaExceeded(limit) if limit == max));
    backends.storage.delete_conversation("ann", second.conversation.id).await.unwrap();
    assert!(matches!(submit("ann", there(), 356).await, SubmitOutcome::Accepted(_)));
}

async fn a_deleted_conversation_frees_its_key_at_once(backends: TestBackends) {
    let keyed = || NewRun { key: Some(IdempotencyKey::new("k".into(), &["hi"])), ..new_run(NEW, "hi") };
    let submit = async || backends.storage.submit("ann", &THREE, &keyed()).await.unwrap();
    let SubmitOutcome::Accepted(first) = submit().await else { panic!("refused") };
    assert!(matches!(submit().await, SubmitOutcome::Repeated(_)));
    let repeated = async |text: &str| backends.storage.repeated("ann", &IdempotencyKey::new("k".into(), &[text])).await;
    assert!(matches!(repeated("hi").await.unwrap(), Some(SubmitOutcome::Repeated(_))));
    assert!(matches!(repeated("another request").await.unwrap(), Some(SubmitOutcome::KeyReused)));
    // Its worker still holds the run.
    let claim = backends.claim(1).await.remove(0);
    backends.storage.delete_conversation("ann", first.conversation.id).await.unwrap();
    assert!(backends.storage.repeated("ann", &keyed().key.unwrap()).await.unwrap().is_none());
    let SubmitOutcome::Accepted(second) = submit().await else { panic!("the key still belongs to the deleted run") };
    assert_ne!(second.run.id, first.run.id);
    finish(&backends, &claim).await;
}
