//! Summaries: which of them a run reads, of what they are made, and who makes those that are due.

use std::time::Duration;

use holdfast_shared::{
    ending::Ending,
    storage::{
        Answer, Claim, FinishOutcome, MessageFilter, MessageInput, NewDueSummary, NewRun, Progress, Summary,
        SummaryScope, Target,
    },
    usage::Usage,
};
use uuid::Uuid;

use crate::{
    backends::{ALL, LEASE, TestBackends, new_run},
    conversations::{checkpoint_of, claim_of, model_history, shown, submitted, texts},
    on_each_backend,
    waiting::chunk,
};

on_each_backend!(
    a_summary_stays_until_a_turn_that_it_covers_is_superseded,
    a_summary_is_made_of_complete_turns_that_it_lacks,
    a_shorter_summary_never_replaces_a_longer_one,
    a_superseded_run_keeps_no_summary,
    the_usage_of_a_summary_counts_for_its_ended_run,
    a_fork_begins_with_the_summary_of_its_messages,
    a_due_summary_has_one_worker_at_a_time,
    a_due_summary_of_a_run_that_has_not_ended_waits,
    a_due_summary_is_given_up_after_three_dead_workers,
);

/// Returns the messages that the run could read.
pub fn scope(claim: &Claim) -> SummaryScope {
    let (run_id, conversation_id) = (claim.run_id, claim.conversation_id);
    SummaryScope { run_id, conversation_id, before: claim.position, seen_at: claim.created_at }
}

async fn keep(backends: &TestBackends, claim: &Claim, up_to: i64, content: &str) {
    let summary = Summary { up_to, content: content.into() };
    backends.storage.keep_summary(&scope(claim), &summary, Usage::default()).await.unwrap();
}

/// Says something, and returns the claim of the run.
async fn asked(backends: &TestBackends, target: Target, content: &str) -> Claim {
    let (run_id, _) = backends.submit(target, content).await;
    claim_of(backends, run_id).await
}

/// Ends the run with an answer, and perhaps with a summary that is due.
async fn end(backends: &TestBackends, claim: &Claim, text: &str, due: Option<NewDueSummary>) {
    let answer = Answer { text: text.into(), ..Answer::default() };
    let tail = due.map(|due| chunk(claim, 2, Progress { due_summaries: vec![due], ..Progress::default() }));
    let last = tail.as_ref().map_or(claim.started.id, |tail| tail.last);
    let ended = backends.storage.finish(claim, tail.as_ref(), last, &answer, &Ending::Completed).await.unwrap();
    assert!(matches!(ended, FinishOutcome::Ended(_)));
}

/// Makes a conversation of so many turns, "q1", "a1" and so on. Returns it with the claims of its runs.
async fn conversation(backends: &TestBackends, turns: usize) -> (Uuid, Vec<Claim>) {
    let mut claims: Vec<Claim> = Vec::new();
    for turn in 1..=turns {
        let target =
            claims.first().map_or(Target::New { agent_id: None }, |claim| Target::Existing(claim.conversation_id));
        let claim = asked(backends, target, &format!("q{turn}")).await;
        end(backends, &claim, &format!("a{turn}"), None).await;
        claims.push(claim);
    }
    (claims[0].conversation_id, claims)
}

async fn a_summary_stays_until_a_turn_that_it_covers_is_superseded(backends: TestBackends) {
    let (id, _) = conversation(&backends, 1).await;
    let target = Target::Existing(id);
    let second = submitted(&backends, new_run(target.clone(), "two")).await;
    let claim = claim_of(&backends, second.run.id).await;
    keep(&backends, &claim, 1, "short").await;
    let (kept, history) = model_history(&backends, &claim, ALL).await;
    let summary = Some(Summary { up_to: 1, content: "short".into() });
    assert_eq!((&kept, texts(&history)), (&summary, ["q1", "a1", "two"].map(str::to_owned).to_vec()));
    end(&backends, &claim, "second", None).await;
    let edit = async |content: &str, replace_from| {
        let input = MessageInput::Edit { content: content.into(), replace_from };
        let run_id = submitted(&backends, NewRun { input, ..new_run(target.clone(), "") }).await.run.id;
        let claim = claim_of(&backends, run_id).await;
        let (kept, _) = model_history(&backends, &claim, ALL).await;
        backends.storage.end_run(run_id, &Ending::Cancelled).await.unwrap();
        kept
    };
    assert_eq!(edit("zwei", second.message.id).await, summary, "the covered turns are unchanged");
    let first = shown(&backends, id, MessageFilter::Current, 10).await[0].id;
    assert_eq!(edit("eins", first).await, None);
}

async fn a_summary_is_made_of_complete_turns_that_it_lacks(backends: TestBackends) {
    let (id, claims) = conversation(&backends, 4).await;
    let claim = asked(&backends, Target::Existing(id), "now").await;
    let turn = |n: usize| claims[n - 1].position;
    let read = async |after: i64, up_to: i64, bytes: usize| {
        let turns = backends.storage.older_turns(&scope(&claim), after, up_to, bytes).await.unwrap();
        turns.iter().map(|earlier| earlier.message.content.to_stored()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(read(i64::MIN, turn(2), 1000).await, "q1 a1 q2 a2");
    assert_eq!(read(turn(1), turn(3), 1000).await, "q2 a2 q3 a3");
    assert_eq!(read(turn(3), turn(3), 1000).await, "");
    assert_eq!(read(i64::MIN, turn(4), 8).await, "q1 a1 q2 a2");
    assert_eq!(read(i64::MIN, turn(4), 7).await, "q1 a1", "no part of a turn");
    assert_eq!(read(i64::MIN, turn(4), 1).await, "q1 a1", "but at least one");
    assert_eq!(read(turn(4), i64::MAX, 1000).await, "", "the run's own input is no older message");
    let dated = backends.storage.older_turns(&scope(&claim), i64::MIN, turn(1), 1000).await.unwrap();
    assert!(dated[0].date.is_some() && dated[1].date.is_none(), "{dated:?}");
}

async fn a_shorter_summary_never_replaces_a_longer_one(backends: TestBackends) {
    let (_, claims) = conversation(&backends, 2).await;
    let newest = async || backends.storage.newest_summary(&scope(&claims[1])).await.unwrap().unwrap().content;
    keep(&backends, &claims[1], 2, "long").await;
    keep(&backends, &claims[1], 1, "short").await;
    assert_eq!(newest().await, "long");
    keep(&backends, &claims[1], 3, "longer").await;
    assert_eq!(newest().await, "longer");
    keep(&backends, &claims[0], 1, "of the run before").await;
    assert_eq!(newest().await, "longer");
}

async fn a_superseded_run_keeps_no_summary(backends: TestBackends) {
    let (id, claims) = conversation(&backends, 2).await;
    let first = shown(&backends, id, MessageFilter::Current, 10).await[0].id;
    let input = MessageInput::Edit { content: "eins".into(), replace_from: first };
    submitted(&backends, NewRun { input, ..new_run(Target::Existing(id), "") }).await;
    keep(&backends, &claims[1], 1, "of the old version").await;
    assert_eq!(backends.storage.newest_summary(&scope(&claims[1])).await.unwrap(), None);
}

async fn the_usage_of_a_summary_counts_for_its_ended_run(backends: TestBackends) {
    let (id, claims) = conversation(&backends, 1).await;
    let usage = Usage { input_tokens: 7, output_tokens: 2, ..Usage::default() };
    let summary = Summary { up_to: 1, content: "short".into() };
    for _ in 0..2 {
        backends.storage.keep_summary(&scope(&claims[0]), &summary, usage).await.unwrap();
    }
    let run = backends.storage.run("ann", claims[0].run_id).await.unwrap().unwrap();
    assert_eq!(run.usage.map(|usage| (usage.input_tokens, usage.output_tokens)), Some((14, 4)));
    let running = asked(&backends, Target::Existing(id), "now").await;
    backends.storage.keep_summary(&scope(&running), &summary, usage).await.unwrap();
    let run = backends.storage.run("ann", running.run_id).await.unwrap().unwrap();
    assert_eq!(run.usage, None, "its worker counts it");
}

async fn a_fork_begins_with_the_summary_of_its_messages(backends: TestBackends) {
    let (id, claims) = conversation(&backends, 2).await;
    let third = asked(&backends, Target::Existing(id), "q3").await;
    keep(&backends, &claims[1], claims[0].position, "the first turn").await;
    let checkpoint = checkpoint_of(&backends, &third).await;
    keep(&backends, &third, claims[1].position, "both turns").await;
    let fork = backends.storage.fork_conversation("ann", id, checkpoint).await.unwrap().unwrap().id;
    let (run_id, _) = backends.submit(Target::Existing(fork), "in the fork").await;
    let claim = claim_of(&backends, run_id).await;
    let (kept, history) = model_history(&backends, &claim, ALL).await;
    assert_eq!(texts(&history), ["q1", "a1", "q2", "a2", "q3", "in the fork"]);
    assert_eq!(kept, Some(Summary { up_to: 4, content: "both turns".into() }));
    let rest = backends.storage.older_turns(&scope(&claim), 4, i64::MAX, 1000).await.unwrap();
    assert_eq!(rest.iter().map(|earlier| earlier.message.content.to_stored()).collect::<Vec<_>>(), ["q3"]);
    backends.storage.end_run(run_id, &Ending::Cancelled).await.unwrap();
    let copied = shown(&backends, fork, MessageFilter::Current, 10).await[0].id;
    let input = MessageInput::Edit { content: "eins".into(), replace_from: copied };
    let edited = submitted(&backends, NewRun { input, ..new_run(Target::Existing(fork), "") }).await;
    let (kept, _) = model_history(&backends, &claim_of(&backends, edited.run.id).await, ALL).await;
    assert_eq!(kept, None, "it tells of a message that was edited");
}

const DUE: NewDueSummary = NewDueSummary { up_to: 1, tokens: 50, lease_ms: 60_000 };
const AT_ONCE: NewDueSummary = NewDueSummary { lease_ms: 0, ..DUE };
const NEXT_TICK: Duration = Duration::from_millis(3);

async fn a_due_summary_has_one_worker_at_a_time(backends: TestBackends) {
    let storage = &backends.storage;
    let claim = asked(&backends, Target::New { agent_id: None }, "q1").await;
    let (run_id, conversation) = (claim.run_id, claim.conversation_id);
    assert_eq!(storage.due_summary(run_id).await.unwrap(), None);
    end(&backends, &claim, "a1", Some(DUE)).await;
    let due = storage.due_summary(run_id).await.unwrap().unwrap();
    assert_eq!((due.up_to, due.tokens, due.scope.run_id, due.attempt), (1, 50, run_id, claim.attempt));
    assert!(storage.is_summary_under_way(conversation, Uuid::now_v7()).await.unwrap());
    assert!(!storage.is_summary_under_way(conversation, run_id).await.unwrap(), "a run does not wait for itself");
    assert_eq!(storage.take_due_summary(LEASE).await.unwrap(), None, "its own worker has time left");
    storage.extend_due_summary(run_id, Duration::ZERO).await.unwrap();
    // The clock of the database counts whole milliseconds.
    tokio::time::sleep(NEXT_TICK).await;
    assert!(!storage.is_summary_under_way(conversation, Uuid::now_v7()).await.unwrap());
    let taken = storage.take_due_summary(LEASE).await.unwrap().unwrap();
    assert_eq!((taken.scope.run_id, taken.up_to), (run_id, 1));
    assert!(storage.is_summary_under_way(conversation, Uuid::now_v7()).await.unwrap());
    assert_eq!(storage.take_due_summary(LEASE).await.unwrap(), None, "another worker has it");
    storage.settle_due_summary(run_id).await.unwrap();
    assert_eq!(storage.due_summary(run_id).await.unwrap(), None);
    // The answer of the run is one of the messages.
    let older = storage.older_turns(&taken.scope, i64::MIN, i64::MAX, 1000).await.unwrap();
    assert_eq!(older.iter().map(|earlier| earlier.message.content.to_stored()).collect::<Vec<_>>(), ["q1", "a1"]);
}

async fn a_due_summary_of_a_run_that_has_not_ended_waits(backends: TestBackends) {
    let storage = &backends.storage;
    let claim = asked(&backends, Target::New { agent_id: None }, "q1").await;
    let progress = Progress { due_summaries: vec![AT_ONCE], ..Progress::default() };
    storage.flush(&claim, &chunk(&claim, 2, progress), LEASE).await.unwrap();
    tokio::time::sleep(NEXT_TICK).await;
    assert_eq!(storage.take_due_summary(LEASE).await.unwrap(), None);
    assert_eq!(storage.due_summary(claim.run_id).await.unwrap(), None);
}

async fn a_due_summary_is_given_up_after_three_dead_workers(backends: TestBackends) {
    let storage = &backends.storage;
    let claim = asked(&backends, Target::New { agent_id: None }, "q1").await;
    end(&backends, &claim, "a1", Some(AT_ONCE)).await;
    for _ in 0..3 {
        tokio::time::sleep(NEXT_TICK).await;
        assert!(storage.take_due_summary(Duration::ZERO).await.unwrap().is_some());
    }
    tokio::time::sleep(NEXT_TICK).await;
    assert_eq!(storage.take_due_summary(Duration::ZERO).await.unwrap(), None);
    assert_eq!(storage.due_summary(claim.run_id).await.unwrap(), None);
}
