//! Owners beside each other: whose run is claimed next, and how many runs an owner may have.

use std::time::{Duration, Instant};

use holdfast_shared::{
    ending::Ending,
    idempotency::IdempotencyKey,
    quotas::Quotas,
    run::SubmitMode,
    storage::{Answer, Claim, Leave, NewRun, Submitted, Target},
};
use uuid::Uuid;

use crate::{
    on_each_backend,
    places::{Places, new_run},
};

on_each_backend!(
    owners_take_turns,
    an_owner_who_holds_fewer_running_runs_goes_first,
    an_owner_who_always_has_a_run_to_claim_leaves_every_other_turn_to_another,
    priority_goes_before_turns,
    a_long_queue_of_one_owner_is_not_looked_through,
    an_owner_has_only_so_many_unfinished_runs,
    of_many_messages_at_once_the_quota_accepts_exactly_as_many_as_it_has,
    an_owner_keeps_only_so_many_bytes,
    a_deleted_conversation_is_gone_for_its_key_at_once,
);

const NEW: Target = Target::New { agent_id: None };

async fn queue(places: &Places, owners: &[&str]) {
    for owner in owners {
        places.submit_as(owner, NEW, "hi").await;
    }
}

fn owners(claims: &[Claim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.owner_id.as_str()).collect()
}

async fn one_by_one(places: &Places, times: usize) -> Vec<String> {
    let mut claimed = Vec::new();
    for _ in 0..times {
        claimed.push(places.claim(1).await.remove(0).owner_id);
    }
    claimed
}

async fn finish(places: &Places, claim: &Claim) {
    let ended = places.storage.finish(claim, None, claim.started.id, &Answer::default(), &Ending::Completed).await;
    ended.unwrap();
}

async fn owners_take_turns(places: Places) {
    let queued = ["ann", "ann", "ann", "ann", "bob", "bob", "cid"];
    queue(&places, &queued).await;
    assert_eq!(one_by_one(&places, 7).await, ["ann", "bob", "cid", "ann", "bob", "ann", "ann"]);
    queue(&places, &["dan", "dan", "dan", "eve"]).await;
    let mut together = owners(&places.claim(3).await).join(" ");
    // The order within one claim is not promised.
    if together == "eve dan dan" || together == "dan eve dan" {
        together = "dan dan eve".to_owned();
    }
    assert_eq!(together, "dan dan eve");
}

async fn an_owner_who_holds_fewer_running_runs_goes_first(places: Places) {
    queue(&places, &["ann", "ann"]).await;
    assert_eq!(places.claim(2).await.len(), 2);
    queue(&places, &["ann", "ann", "bob"]).await;
    assert_eq!(one_by_one(&places, 3).await, ["bob", "ann", "ann"]);
}

async fn an_owner_who_always_has_a_run_to_claim_leaves_every_other_turn_to_another(places: Places) {
    queue(&places, &["ann", "ann", "ann", "ann", "ann"]).await;
    let mut claimed = Vec::new();
    for _ in 0..8 {
        queue(&places, &["bob"]).await;
        let claim = places.claim(1).await.remove(0);
        finish(&places, &claim).await;
        claimed.push(claim.owner_id);
    }
    // Nothing of either runs beside it, so it is the rounds alone that tell whose turn it is.
    let of_ann = claimed.iter().filter(|owner| *owner == "ann").count();
    assert!((3..=5).contains(&of_ann), "{claimed:?}");
}

async fn priority_goes_before_turns(places: Places) {
    queue(&places, &["ann", "ann", "bob"]).await;
    let Some(mut raw) = places.raw().await else { return };
    let urgent = "update agent_runs set priority = 1 where owner_id = 'ann' and queue_round = 1";
    raw.execute(urgent, urgent).await;
    assert_eq!(one_by_one(&places, 3).await, ["ann", "bob", "ann"]);
}

/// Prints how long a claim takes; `QUEUED_RUNS=100000` makes the queue as long as the documentation says.
async fn a_long_queue_of_one_owner_is_not_looked_through(places: Places) {
    let Some(mut raw) = places.raw().await else { return };
    let runs = std::env::var("QUEUED_RUNS").map_or(2_000, |runs| runs.parse().unwrap());
    queue(&places, &["cid"]).await;
    let short = time_to_claim(&places, "cid").await;
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
        // The first of these runs and bob's have one round, so ids decide between them: these are the younger ones.
        &format!("{queued} select overlay(gen_random_uuid()::text placing 'ff' from 1 for 2)::uuid, {columns}"),
        &format!("{queued} select cast(x'ff' || randomblob(15) as blob), {columns}"),
    )
    .await;
    queue(&places, &["bob"]).await;
    let long = time_to_claim(&places, "bob").await;
    println!("a claim takes {short:?} from a queue of one run, {long:?} from one of {runs}");
}

/// Claims a run, which is this owner's; gives it back and claims it again, some times.
async fn time_to_claim(places: &Places, owner: &str) -> Duration {
    let mut times = Vec::new();
    for _ in 0..10 {
        let began = Instant::now();
        let claims = places.claim(1).await;
        times.push(began.elapsed());
        assert_eq!(owners(&claims), [owner]);
        places.storage.leave(&claims[0], None, claims[0].started.id, Leave::Queued).await.unwrap();
    }
    times.sort();
    // So that it is in nobody's way.
    let last = places.claim(1).await.remove(0);
    finish(places, &last).await;
    times[5]
}

const THREE: Quotas = Quotas { runs: Some(3), bytes: None };

async fn an_owner_has_only_so_many_unfinished_runs(places: Places) {
    let submit = async |owner: &str, new: NewRun| places.storage.submit(owner, &THREE, &new).await.unwrap();
    let keyed =
        |content: &str| NewRun { key: Some(IdempotencyKey::new("k".into(), &[content])), ..new_run(NEW, content) };
    let accepted = async |owner: &str, new: NewRun| match submit(owner, new).await {
        Submitted::Accepted(accepted) => (accepted.run.id, accepted.conversation.id),
        _ => panic!("it was refused"),
    };
    accepted("ann", keyed("one")).await;
    let waiting = places.claim(1).await.remove(0);
    places.storage.leave(&waiting, None, waiting.started.id, Leave::Waiting).await.unwrap();
    let (_, conversation) = accepted("ann", new_run(NEW, "two")).await;
    let running = places.claim(1).await.remove(0);
    accepted("ann", new_run(NEW, "three")).await;

    let named = Target::Named { handle: holdfast_shared::conversation::Handle::Session("s".into()), agent_id: None };
    for target in [NEW, Target::Existing(conversation), named] {
        assert!(matches!(submit("ann", new_run(target, "four")).await, Submitted::TooManyRuns(3)));
    }
    let nobody = Target::New { agent_id: Some(Uuid::nil()) };
    assert!(matches!(submit("ann", new_run(nobody, "four")).await, Submitted::AgentNotFound));
    let listed = places.storage.conversations("ann", 10, None, None).await.unwrap().unwrap();
    assert_eq!(listed.items.len(), 3, "what is refused leaves nothing behind");
    assert!(matches!(submit("ann", keyed("one")).await, Submitted::Repeated(_)));
    accepted("bob", new_run(NEW, "one")).await;

    let mode = SubmitMode::Interrupt;
    let instead = NewRun { mode, ..new_run(Target::Existing(conversation), "instead of two") };
    accepted("ann", instead).await;
    finish(&places, &running).await;
    assert!(matches!(submit("ann", new_run(NEW, "four")).await, Submitted::TooManyRuns(3)));
    places.storage.request_cancel("ann", waiting.run_id).await.unwrap();
    accepted("ann", new_run(NEW, "four")).await;
}

async fn of_many_messages_at_once_the_quota_accepts_exactly_as_many_as_it_has(places: Places) {
    for (owner, max) in [("ann", 1), ("bob", 2), ("cid", 7)] {
        let quotas = Quotas { runs: Some(max), bytes: None };
        let new: Vec<NewRun> = (0..24).map(|_| new_run(NEW, "hi")).collect();
        let submitted =
            futures::future::join_all(new.iter().map(|new| places.storage.submit(owner, &quotas, new))).await;
        let accepted = submitted.into_iter().filter(|one| matches!(one.as_ref().unwrap(), Submitted::Accepted(_)));
        assert_eq!(accepted.count(), max, "for {owner}");
    }
}

async fn an_owner_keeps_only_so_many_bytes(places: Places) {
    // A conversation counts 256 bytes by itself.
    let quotas = Quotas { runs: None, bytes: Some(1_000) };
    let submit = async |owner: &str, target: Target, bytes: usize| {
        places.storage.submit(owner, &quotas, &new_run(target, &"x".repeat(bytes))).await.unwrap()
    };
    let Submitted::Accepted(first) = submit("ann", NEW, 100).await else { panic!("refused") };
    let Submitted::Accepted(second) = submit("ann", NEW, 100).await else { panic!("refused") };
    assert_eq!(places.storage.kept_bytes("ann").await.unwrap(), 712);
    let there = || Target::Existing(first.conversation.id);
    for (target, bytes) in [(NEW, 33), (there(), 289)] {
        assert!(matches!(submit("ann", target, bytes).await, Submitted::QuotaExceeded(1_000)));
    }
    assert_eq!(places.storage.kept_bytes("ann").await.unwrap(), 712, "what is refused is not kept");
    assert!(matches!(submit("ann", there(), 88).await, Submitted::Accepted(_)));
    let claim = places.claim(1).await.remove(0);
    let answer = Answer { text: "y".repeat(200), ..Answer::default() };
    places.storage.finish(&claim, None, claim.started.id, &answer, &Ending::Completed).await.unwrap();
    assert_eq!(places.storage.kept_bytes("ann").await.unwrap(), 1_000, "answers count");
    assert!(matches!(submit("ann", there(), 1).await, Submitted::QuotaExceeded(1_000)));
    assert!(matches!(submit("bob", NEW, 744).await, Submitted::Accepted(_)));
    assert!(matches!(submit("cid", NEW, 745).await, Submitted::QuotaExceeded(1_000)));
    places.storage.delete_conversation("ann", second.conversation.id).await.unwrap();
    assert!(matches!(submit("ann", there(), 356).await, Submitted::Accepted(_)));
}

async fn a_deleted_conversation_is_gone_for_its_key_at_once(places: Places) {
    let keyed = || NewRun { key: Some(IdempotencyKey::new("k".into(), &["hi"])), ..new_run(NEW, "hi") };
    let submit = async || places.storage.submit("ann", &THREE, &keyed()).await.unwrap();
    let Submitted::Accepted(first) = submit().await else { panic!("refused") };
    assert!(matches!(submit().await, Submitted::Repeated(_)));
    let repeated = async |text: &str| places.storage.repeated("ann", &IdempotencyKey::new("k".into(), &[text])).await;
    assert!(matches!(repeated("hi").await.unwrap(), Some(Submitted::Repeated(_))));
    assert!(matches!(repeated("another request").await.unwrap(), Some(Submitted::KeyReused)));
    // Its worker has not let go of it yet.
    let held = places.claim(1).await.remove(0);
    places.storage.delete_conversation("ann", first.conversation.id).await.unwrap();
    assert!(places.storage.repeated("ann", &keyed().key.unwrap()).await.unwrap().is_none());
    let Submitted::Accepted(second) = submit().await else { panic!("the key still stands for what was deleted") };
    assert_ne!(second.run.id, first.run.id);
    finish(&places, &held).await;
}
