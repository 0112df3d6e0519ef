//! Questions of the runs below a top run, in the log of the top run.

use chrono::{TimeDelta, Utc};
use holdfast_shared::{
    approval::ApprovalStatus,
    event::Event,
    event_id::EventId,
    run::RunStatus,
    storage::{AnswerOutcome, AnsweredRun, CancelOutcome, Claim, NewApproval, Progress, Release, ReleaseOutcome},
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    backends::{LEASE, TestBackends},
    on_each_backend,
    subagents::{Family, claims_of, family, finish, leave, waiting_family},
    waiting::{approval, approve, chunk, decide, later, status},
};

on_each_backend!(
    a_question_of_a_run_below_is_its_top_runs_question,
    a_question_during_the_top_runs_work_is_logged_when_it_leaves,
    two_questions_that_come_at_once_are_forwarded_once,
    a_top_run_with_a_forwarded_question_waits_though_its_other_children_end,
    a_cancel_of_the_asking_run_settles_the_question_in_both_logs,
    a_cancel_of_the_top_run_settles_the_question_in_its_log,
    an_expiry_stands_in_both_logs,
);

const OWNER: &str = "ann";

/// Lets the run ask and wait; returns the top run if it was waiting.
async fn ask(backends: &TestBackends, claim: &Claim, question: &NewApproval) -> Option<AnsweredRun> {
    let approvals = vec![question.clone()];
    let resume_at = Some(EventId::new(claim.attempt, 2));
    let tail = chunk(claim, 2, Progress { approvals, resume_at, ..Progress::default() });
    match backends.storage.release(claim, Some(&tail), tail.last, Release::Waiting).await.unwrap() {
        ReleaseOutcome::Released { asked, .. } => asked,
        other => panic!("{other:?}"),
    }
}

fn question() -> NewApproval {
    approval("c1", later())
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(Event::kind_name).collect()
}

fn payload(event: &Event) -> Value {
    serde_json::from_slice(event.payload()).unwrap()
}

async fn a_question_of_a_run_below_is_its_top_runs_question(backends: TestBackends) {
    let (Family { parent, .. }, claims) = waiting_family(&backends, 1).await;
    let (child, question) = (&claims[0], question());
    let asked = ask(&backends, child, &question).await.unwrap();
    assert_eq!((asked.run_id, asked.queued), (parent.run_id, false));
    assert_eq!(names(&asked.events), ["approval.requested", "agent.state"]);
    let shown = payload(&asked.events[0]);
    assert_eq!((&shown["base"], &shown["child_run_id"]), (&json!("1-2"), &json!(child.run_id)));
    assert_eq!((&shown["approval_id"], &shown["input"]), (&json!(question.id), &question.input));
    assert_eq!(status(&backends, &parent).await, RunStatus::Waiting);
    // The top run lists the question, and leads to the run that asks.
    let listed = backends.storage.approvals(parent.run_id).await.unwrap();
    assert_eq!((listed.len(), listed[0].run_id), (1, child.run_id));
    assert_eq!(backends.storage.asking_run(parent.run_id, question.id).await.unwrap(), Some(child.run_id));
    assert_eq!(backends.storage.asking_run(Uuid::nil(), question.id).await.unwrap(), None);
    let AnswerOutcome::Accepted { run, top } = decide(&backends, child, question.id, approve()).await else {
        panic!("the decision was refused")
    };
    let top = top.unwrap();
    assert_eq!((run.run_id, run.queued, top.run_id, top.queued), (child.run_id, true, parent.run_id, false));
    let resolved = payload(&top.events[0]);
    assert_eq!((names(&top.events), &resolved["child_run_id"]), (vec!["approval.resolved"], &json!(child.run_id)));
    assert_eq!((&resolved["decision"], &resolved["base"]), (&json!("approved"), &json!("2-2")));
    assert_eq!(payload(&run.events[0]).get("child_run_id"), None);
    assert_eq!(status(&backends, &parent).await, RunStatus::Running, "waiting for children is work");
    let child = backends.claim(10).await.remove(0);
    assert!(finish(&backends, &child, "done").await.answered[0].queued);
}

async fn a_question_during_the_top_runs_work_is_logged_when_it_leaves(backends: TestBackends) {
    let Family { parent, children, tail } = family(&backends, 1).await;
    backends.storage.flush(&parent, &tail, LEASE).await.unwrap();
    let claims = claims_of(&backends, &children).await;
    assert!(ask(&backends, &claims[0], &question()).await.is_none(), "the top run has a worker");
    let ReleaseOutcome::Released { events, queued, .. } = leave(&backends, &parent, None, tail.last).await else {
        panic!("the top run is fenced")
    };
    assert_eq!((names(&events), queued), (vec!["approval.requested", "agent.state"], false));
    assert_eq!(events[0].id, tail.last.next());
    assert_eq!(status(&backends, &parent).await, RunStatus::Waiting);
}

async fn two_questions_that_come_at_once_are_forwarded_once(backends: TestBackends) {
    for _ in 0..5 {
        let (Family { parent, .. }, claims) = waiting_family(&backends, 2).await;
        let (first, second) = (question(), question());
        let asked = tokio::join!(ask(&backends, &claims[0], &first), ask(&backends, &claims[1], &second));
        let events: Vec<_> = [asked.0.unwrap(), asked.1.unwrap()].into_iter().flat_map(|asked| asked.events).collect();
        assert_eq!(names(&events).iter().filter(|name| **name == "approval.requested").count(), 2);
        let run = backends.storage.run(OWNER, parent.run_id).await.unwrap().unwrap();
        assert_eq!((run.status, run.attempt), (RunStatus::Waiting, 3));
        backends.storage.request_cancel(OWNER, parent.run_id).await.unwrap();
        backends.storage.cancel_children(parent.run_id).await.unwrap();
    }
}

async fn a_top_run_with_a_forwarded_question_waits_though_its_other_children_end(backends: TestBackends) {
    let (Family { parent, .. }, claims) = waiting_family(&backends, 2).await;
    ask(&backends, &claims[0], &question()).await.unwrap();
    let answered = finish(&backends, &claims[1], "b").await.answered.remove(0);
    assert!(!answered.queued);
    assert_eq!(names(&answered.events), ["subagent.completed", "tool_call.completed", "agent.state"]);
    assert_eq!(status(&backends, &parent).await, RunStatus::Waiting);
    assert!(backends.claim(10).await.is_empty());
}

async fn a_cancel_of_the_asking_run_settles_the_question_in_both_logs(backends: TestBackends) {
    let (Family { parent, .. }, claims) = waiting_family(&backends, 1).await;
    ask(&backends, &claims[0], &question()).await.unwrap();
    let CancelOutcome::Ended(ended) = backends.storage.request_cancel(OWNER, claims[0].run_id).await.unwrap() else {
        panic!("a run without a worker ends at once")
    };
    assert_eq!(names(&ended.closed.events), ["approval.resolved", "run.cancelled"]);
    let [answered] = &ended.closed.answered[..] else { panic!("one run above") };
    assert_eq!((answered.run_id, answered.queued), (parent.run_id, true));
    assert_eq!(names(&answered.events), ["approval.resolved", "subagent.completed", "tool_call.completed"]);
    assert_eq!(answered.events[0].base, Some(EventId::new(2, 2)));
    assert_eq!(payload(&answered.events[0])["decision"], "cancelled");
}

async fn a_cancel_of_the_top_run_settles_the_question_in_its_log(backends: TestBackends) {
    let (Family { parent, .. }, claims) = waiting_family(&backends, 1).await;
    let question = question();
    ask(&backends, &claims[0], &question).await.unwrap();
    let CancelOutcome::Ended(ended) = backends.storage.request_cancel(OWNER, parent.run_id).await.unwrap() else {
        panic!("a run without a worker ends at once")
    };
    assert_eq!(names(&ended.closed.events), ["approval.resolved", "run.cancelled"]);
    assert_eq!(payload(&ended.closed.events[0])["child_run_id"], json!(claims[0].run_id));
    // Until its own end, the run below can still be answered, and the ended run takes no answer.
    let AnswerOutcome::Accepted { top, .. } = decide(&backends, &claims[0], question.id, approve()).await else {
        panic!("the decision was refused")
    };
    assert!(top.is_none());
    let (ended, _) = backends.storage.cancel_children(parent.run_id).await.unwrap();
    assert!(ended.iter().all(|end| end.closed.answered.is_empty()));
}

async fn an_expiry_stands_in_both_logs(backends: TestBackends) {
    let (Family { parent, .. }, claims) = waiting_family(&backends, 1).await;
    let past = approval("c1", Utc::now() - TimeDelta::seconds(1));
    ask(&backends, &claims[0], &past).await.unwrap();
    let answered = backends.storage.expire_questions().await.unwrap();
    let runs: Vec<Uuid> = answered.iter().map(|answered| answered.run_id).collect();
    assert_eq!(runs, [claims[0].run_id, parent.run_id]);
    assert!(answered.iter().all(|answered| names(&answered.events) == ["approval.resolved"]));
    let approvals = backends.storage.approvals(parent.run_id).await.unwrap();
    assert_eq!(approvals[0].status, ApprovalStatus::Expired);
}
