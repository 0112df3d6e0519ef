//! The dates of runs: their zones, and the times at which they began or resumed.

use std::time::Duration;

use holdfast_shared::{
    ending::Ending,
    event_id::EventId,
    message::Language,
    run::SubmitMode,
    storage::{
        Answer, BeginResult, Claim, FinishOutcome, MessageInput, NewRun, Progress, Release, RunOptions,
        StoredUserProfile, SubmitOutcome, Target,
    },
    time_zone::{RunDate, RunZone, TimeZone},
    tool::ToolCallStatus,
};
use uuid::Uuid;

use crate::{
    backends::{ALL, LEASE, NO_QUOTAS, TestBackends, new_run},
    conversations::{checkpoint_of, claim_of},
    on_each_backend,
    subagents::family,
    waiting::{approval, approve, call, chunk, decide, later},
};

on_each_backend!(
    a_run_has_the_zone_of_its_request_or_profile_or_deployment,
    a_group_of_openings_has_the_zones_of_its_members,
    a_child_has_the_zone_of_its_parent,
    a_date_stays_until_the_run_resumes_after_a_wait,
    an_earlier_message_keeps_the_date_of_its_newest_answer,
    a_fork_keeps_the_dates_of_its_copies,
    a_message_that_joins_a_run_has_no_date_of_its_own,
    a_profile_without_text_and_zone_is_none,
);

const NEW: Target = Target::New { agent_id: None };

fn zone(name: &str) -> TimeZone {
    name.parse().unwrap()
}

/// Returns a message whose request names this zone, for a deployment in Lima.
fn in_zone(named: Option<&str>, target: Target, content: &str) -> NewRun {
    let zone = RunZone { named: named.map(zone), otherwise: zone("America/Lima") };
    NewRun { options: RunOptions { zone, ..RunOptions::default() }, ..new_run(target, content) }
}

async fn submit(backends: &TestBackends, owner: &str, new: &NewRun) -> (Uuid, Uuid) {
    match backends.storage.submit(owner, &NO_QUOTAS, new).await.unwrap() {
        SubmitOutcome::Accepted(accepted) => (accepted.run.id, accepted.conversation.id),
        _ => panic!("the message was not accepted"),
    }
}

async fn claimed(backends: &TestBackends, new: &NewRun) -> Claim {
    let (run, _) = submit(backends, "ann", new).await;
    claim_of(backends, run).await
}

async fn answer(backends: &TestBackends, claim: &Claim, text: &str) {
    answer_after(backends, claim, claim.started.id, text).await;
}

async fn answer_after(backends: &TestBackends, claim: &Claim, last: EventId, text: &str) {
    let answer = Answer { text: text.into(), ..Answer::default() };
    let finished = backends.storage.finish(claim, None, last, &answer, &Ending::Completed).await.unwrap();
    assert!(matches!(finished, FinishOutcome::Ended(_)));
}

/// Returns the earlier messages of a claimed run, with their dates.
async fn earlier(backends: &TestBackends, claim: &Claim) -> Vec<(String, Option<RunDate>)> {
    let BeginResult::Executing(start) = backends.storage.begin(claim, ALL).await.unwrap() else { panic!("fenced") };
    let earlier = start.history.earlier.into_iter();
    earlier.map(|earlier| (earlier.message.content.model_text(Language::En), earlier.date)).collect()
}

async fn a_run_has_the_zone_of_its_request_or_profile_or_deployment(backends: TestBackends) {
    let name = async |named: Option<&str>, target: Target| {
        claimed(&backends, &in_zone(named, target, "hi")).await.date.zone.name().to_owned()
    };
    assert_eq!(name(None, NEW).await, "America/Lima");
    assert_eq!(name(Some("Asia/Tokyo"), NEW).await, "Asia/Tokyo");
    let profile = StoredUserProfile { text: None, time_zone: Some(zone("Europe/Copenhagen")) };
    backends.storage.put_user_profile("ann", &profile).await.unwrap();
    assert_eq!(backends.storage.user_profile("ann").await.unwrap(), profile);
    let first = claimed(&backends, &in_zone(None, NEW, "one")).await;
    assert_eq!(first.date.zone.name(), "Europe/Copenhagen");
    answer(&backends, &first, "1").await;
    assert_eq!(name(Some("Asia/Tokyo"), Target::Existing(first.conversation_id)).await, "Asia/Tokyo");
    let (other, _) = submit(&backends, "bob", &in_zone(None, NEW, "hi")).await;
    assert_eq!(claim_of(&backends, other).await.date.zone.name(), "America/Lima", "a profile is its owner's alone");
}

async fn a_group_of_openings_has_the_zones_of_its_members(backends: TestBackends) {
    let profile = StoredUserProfile { text: Some("I keep bees.".into()), time_zone: Some(zone("Europe/Copenhagen")) };
    backends.storage.put_user_profile("ann", &profile).await.unwrap();
    let names = [("ann", None), ("ann", Some("Asia/Tokyo")), ("bob", None), ("bob", Some("Asia/Kathmandu"))];
    let expected = ["Europe/Copenhagen", "Asia/Tokyo", "America/Lima", "Asia/Kathmandu"];
    let news: Vec<_> =
        names.iter().cycle().take(40).map(|(owner, named)| (*owner, in_zone(*named, NEW, "x"))).collect();
    let submitted = futures::future::join_all(news.iter().map(|(owner, new)| submit(&backends, owner, new))).await;
    let claims = backends.claim(40).await;
    assert_eq!(claims.len(), 40);
    for (at, (run, _)) in submitted.iter().enumerate() {
        let claim = claims.iter().find(|claim| claim.run_id == *run).expect("it was claimed");
        assert_eq!(claim.date.zone.name(), expected[at % 4]);
    }
}

async fn a_child_has_the_zone_of_its_parent(backends: TestBackends) {
    let profile = StoredUserProfile { text: None, time_zone: Some(zone("Asia/Tokyo")) };
    backends.storage.put_user_profile("ann", &profile).await.unwrap();
    let family = family(&backends, 1).await;
    backends.storage.put_user_profile("ann", &StoredUserProfile::default()).await.unwrap();
    backends.storage.flush(&family.parent, &family.tail, LEASE).await.unwrap();
    let child = claim_of(&backends, family.children[0].child_run_id).await;
    assert_eq!((child.is_child, child.date.zone.name()), (true, "Asia/Tokyo"));
}

async fn a_date_stays_until_the_run_resumes_after_a_wait(backends: TestBackends) {
    let first = claimed(&backends, &in_zone(Some("Asia/Tokyo"), NEW, "hi")).await;
    let tail = chunk(&first, 2, Progress::default());
    backends.storage.release(&first, Some(&tail), tail.last, Release::Queued).await.unwrap();
    let second = claim_of(&backends, first.run_id).await;
    assert_eq!((second.attempt, &second.date), (2, &first.date), "a hand-over is no wait");
    backends.expire(first.run_id).await;
    let third = backends.take_over().await.remove(0);
    assert_eq!((third.attempt, &third.date), (3, &first.date), "nor is a takeover");
    let question = approval("c1", later());
    let id = question.id;
    let calls = vec![call("c1", ToolCallStatus::Waiting, None)];
    let asks = Progress { approvals: vec![question], calls, ..Progress::default() };
    let tail = chunk(&third, 2, asks);
    backends.storage.release(&third, Some(&tail), tail.last, Release::Waiting).await.unwrap();
    // The times of SQLite have milliseconds.
    tokio::time::sleep(Duration::from_millis(2)).await;
    decide(&backends, &third, id, approve()).await;
    let fourth = claim_of(&backends, first.run_id).await;
    assert!(fourth.date.at > first.date.at && fourth.date.zone == first.date.zone, "{:?}", fourth.date);
}

async fn an_earlier_message_keeps_the_date_of_its_newest_answer(backends: TestBackends) {
    let one = claimed(&backends, &in_zone(Some("Asia/Tokyo"), NEW, "one")).await;
    answer(&backends, &one, "1").await;
    let conversation = Target::Existing(one.conversation_id);
    let two = claimed(&backends, &in_zone(Some("Asia/Kathmandu"), conversation.clone(), "two")).await;
    let first = [("one".to_owned(), Some(one.date)), ("1".to_owned(), None)];
    assert_eq!(earlier(&backends, &two).await, first);
    answer(&backends, &two, "2").await;
    let asked = backends.storage.run("ann", two.run_id).await.unwrap().unwrap().input_message_id;
    let input = MessageInput::Again { replace_from: asked };
    let again = NewRun { input, ..in_zone(Some("Europe/Oslo"), conversation.clone(), "") };
    let better = claimed(&backends, &again).await;
    assert_eq!(earlier(&backends, &better).await, first);
    answer(&backends, &better, "2b").await;
    let three = claimed(&backends, &in_zone(None, conversation, "three")).await;
    let second = [("two".to_owned(), Some(better.date)), ("2b".to_owned(), None)];
    assert_eq!(earlier(&backends, &three).await, [first, second].concat());
}

async fn a_fork_keeps_the_dates_of_its_copies(backends: TestBackends) {
    let one = claimed(&backends, &in_zone(Some("Asia/Tokyo"), NEW, "one")).await;
    let checkpoint = checkpoint_of(&backends, &one).await;
    let fork = backends.storage.fork_conversation("ann", one.conversation_id, checkpoint).await.unwrap().unwrap();
    let two = claimed(&backends, &in_zone(None, Target::Existing(fork.id), "two")).await;
    assert_eq!(earlier(&backends, &two).await, [("one".to_owned(), Some(one.date))]);
}

async fn a_message_that_joins_a_run_has_no_date_of_its_own(backends: TestBackends) {
    let live = claimed(&backends, &in_zone(Some("Asia/Tokyo"), NEW, "one")).await;
    let conversation = Target::Existing(live.conversation_id);
    let steers = NewRun { mode: SubmitMode::Steer, ..in_zone(None, conversation.clone(), "more") };
    submit(&backends, "ann", &steers).await;
    let steering = backends.storage.steering_messages(&live).await.unwrap();
    let progress = Progress { steering, ..Progress::default() };
    let tail = chunk(&live, 2, progress);
    backends.storage.flush(&live, &tail, LEASE).await.unwrap();
    answer_after(&backends, &live, tail.last, "1").await;
    let next = claimed(&backends, &in_zone(None, conversation, "two")).await;
    let expected = [("one", Some(live.date)), ("more", None), ("1", None)];
    assert_eq!(earlier(&backends, &next).await, expected.map(|(text, date)| (text.to_owned(), date)));
}

async fn a_profile_without_text_and_zone_is_none(backends: TestBackends) {
    let stored = async || backends.storage.user_profile("ann").await.unwrap();
    let profile = StoredUserProfile { text: Some("I keep bees.".into()), time_zone: Some(zone("Asia/Tokyo")) };
    backends.storage.put_user_profile("ann", &profile).await.unwrap();
    assert_eq!(stored().await, profile);
    backends.storage.put_user_profile("ann", &StoredUserProfile { text: None, ..profile.clone() }).await.unwrap();
    assert_eq!(stored().await, StoredUserProfile { text: None, ..profile });
    backends.storage.put_user_profile("ann", &StoredUserProfile::default()).await.unwrap();
    assert_eq!(stored().await, StoredUserProfile::default());
}
